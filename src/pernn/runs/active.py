"""One run under way: its directory is held, its parts are made, its state restored."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.errors import CorruptError, MachineError, StoreError, TrialError
from pernn.interfaces import Measurement, Task
from pernn.kernels import describe_kernels, find_kernels, whole_updates, without_kernels
from pernn.store import Checkpoint, RunDirectory
from pernn.training import (
    CheckpointDue,
    Event,
    Measured,
    TrainState,
    evaluate,
    evaluate_diverged,
    find_usual,
)

from .assembly import Trial, build_stage
from .environment import describe_environment, describe_parts
from .sinks import Log
from .spec import RunSpec

OnUpdate = Callable[[int], bool]
"""Told the number of updates done after each, those of earlier stages included; returns false to
have the run stop there."""


@dataclass(frozen=True)
class Outcome:
    """How an execution ended.

    Attributes:
        state: `finished`, or `stopped` with a checkpoint.
        result: The content of `result.json`; `None` if stopped.
        is_new: Whether this execution did something; false if the run was finished before.
    """

    state: Literal["finished", "stopped"]
    result: Mapping[str, Any] | None
    is_new: bool = True


@dataclass
class ActiveRun:
    """A run under way.

    Attributes:
        spec: What is run.
        directory: Held by this process.
        trial: Its parts.
        state: Where it stands.
        resumed: Updates that were done before.
        warn: Told in one line if the run diverges.
        log: Where its metrics are shown besides.
        begun: When it was taken up, by the process's own clock.
    """

    spec: RunSpec
    directory: RunDirectory
    trial: Trial
    state: TrainState
    resumed: int
    warn: Callable[[str], None]
    log: Log
    begun: float = field(default_factory=time.perf_counter)

    @classmethod
    def begin(
        cls,
        spec: RunSpec,
        task: Task,
        directory: RunDirectory,
        started: Mapping[str, Any] | None,
        root: Path,
        device: torch.device,
        warn: Callable[[str], None],
    ) -> "ActiveRun":
        """Make the parts and restore the newest checkpoint; earlier stages are finished."""
        trial = build_stage(spec, root, device, task, warn)
        # Read from files, data could be others than they were.
        data = getattr(trial.stream, "digest", None)
        environment = describe_start(spec, device, data)
        state = TrainState.fresh(trial.model, trial.preset)
        if find_usual(state, spec.training, device) is not None:
            environment["updates"] = "whole"
        if started is None:
            directory.write_environment(environment)
        else:
            _check_data(started, data, directory)
        _restore(directory, state, started, environment, warn)
        directory.checkpoints.prune(spec.training.keep_interval)
        log = Log(spec, directory, root, warn)
        return cls(spec, directory, trial, state, state.update, warn, log)

    def take(self, event: Event) -> None:
        """Store what an event says; raise TrialError for a checkpoint with NaN or infinity."""
        if isinstance(event, Measured):
            values = {"update": event.update, "kind": event.kind, **event.values}
            self.directory.append_metrics(values)
            self.log.write(values)
        elif isinstance(event, CheckpointDue):
            self._save()

    def stop(self) -> Outcome:
        """Leave the run with a checkpoint, if there is anything new that is worth keeping.

        Whether a run has diverged is found out at the same updates whatever stopped it before.
        """
        if self.state.update > self.resumed:
            with suppress(TrialError):
                self._save()
        self.directory.note("stopped", update=self.state.update)
        return Outcome("stopped", None)

    def finish(self, device: torch.device) -> Outcome:
        """Measure the held-out sequences and write the result."""
        network, precision = self.state.network, self.spec.training.precision
        found = evaluate(network, self.trial.stream, device, precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {self.state.update}")
        seconds, count = time.perf_counter() - self.begun, self.state.update - self.resumed
        result = self._write(found, [(self.state.update, found.metrics)])
        self.directory.note("finished", update=self.state.update, updates=count, seconds=seconds)
        return Outcome("finished", result)

    def diverge(self, reason: str) -> Outcome:
        """Write the result of a run that diverged, as it is a result too.

        Whatever would have been measured from here on has its worst value.
        """
        training, lost = self.spec.training, {"update": self.state.update, "reason": reason}
        found = evaluate_diverged(self.state.network, self.trial.stream)
        step = training.evaluation_interval
        lines = self.directory.read_metrics()
        measured = {line["update"] for line in lines if line["kind"] == "test"}
        updates = [u for u in range(step, training.iterations, step) if u not in measured]
        updates.append(training.iterations)
        result = self._write(found, [(update, found.metrics) for update in updates], diverged=lost)
        self.directory.note("diverged", **lost)
        self.warn(f"diverged after update {self.state.update} and counts as the worst: {reason}")
        return Outcome("finished", result)

    def _write(
        self,
        found: Measurement,
        evaluations: Sequence[tuple[int, Mapping[str, float]]],
        **more: Any,
    ) -> dict[str, Any]:
        state, directory = self.state, self.directory
        for update, metrics in evaluations:
            self.log.write({"update": update, "kind": "test", **metrics})
        result = {
            "fingerprint": directory.fingerprint,
            "metrics": dict(found.metrics),
            "tables": {
                **{name: dict(table) for name, table in found.tables.items()},
                "by_update": _learning_curve(directory, evaluations, diverged="diverged" in more),
            },
            "num_parameters": self.trial.model.num_parameters,
            "weights_sha256": weights_digest(state.weights()),
            **more,
        }
        # A kill may have come between the last checkpoint and this, and nobody comes here again.
        directory.checkpoints.prune(self.spec.training.keep_interval)
        directory.write_result(result)
        return result

    def _save(self) -> None:
        """Write a checkpoint, which never contains NaN or infinity: the last good one stays."""
        arrays = self.state.dump()
        self.state.check(arrays)
        metrics = self.directory.metrics_so_far()
        self.directory.checkpoints.save(Checkpoint(self.state.update, arrays, metrics))
        self.directory.checkpoints.prune(self.spec.training.keep_interval)


def describe_start(spec: RunSpec, device: torch.device, data: str | None = None) -> dict[str, Any]:
    """Return what `environment.json` says of a run that begins here, on data of this SHA-256."""
    # In one time zone and form, so that two dates compare as texts.
    date = datetime.now(UTC).isoformat(timespec="seconds")
    sources = {"date": date, "data_sha256": data, "parts": describe_parts(spec)}
    return describe_environment(device) | {key: one for key, one in sources.items() if one}


def read_start(directory: RunDirectory) -> Mapping[str, Any] | None:
    """Read how a run began; `None` if it did not. Without that nobody knows its bits."""
    started = directory.read_environment()
    if started is None:
        if not directory.checkpoints.updates():
            return None
        what = "is missing"
    elif isinstance(started.get("device"), str) and started.get("threads") in range(1, 2**16):
        return started
    else:
        what = "does not say device and threads"
    raise CorruptError(
        f"{directory.path / 'environment.json'} {what}: restore it, or delete the run directory to "
        "begin again"
    )


def check_device(started: Mapping[str, Any], device: torch.device, run: RunDirectory) -> None:
    """Refuse another kind of device than the one that a run began on."""
    before = started["device"].partition(":")[0]
    if before != device.type:
        raise MachineError(
            f"{run.path}: this run began on {before} and would not end in the same bits on "
            f"{device.type}: resume with --device {before}, or delete the directory"
        )


def kernels_of(
    started: Mapping[str, Any] | None, run: RunDirectory
) -> AbstractContextManager[None]:
    """Go on as the run began: sums of kernels and of PyTorch are ordered differently."""
    before = "" if started is None else str(started.get("kernels", ""))
    if before.startswith("torch"):
        return without_kernels()
    if before and find_kernels() is None:
        raise MachineError(
            f"{run.path}: this run began with compiled kernels, and here it is "
            f"{describe_kernels()}: `pernn doctor` says what is missing; or delete the directory"
        )
    return nullcontext()


def updates_of(started: Mapping[str, Any] | None) -> AbstractContextManager[None]:
    """Go on as the run began: sums of whole updates and of autograd are ordered differently."""
    return whole_updates(enabled=started is None or started.get("updates") == "whole")


def _check_data(started: Mapping[str, Any], data: str | None, run: RunDirectory) -> None:
    before = started.get("data_sha256")
    if before != data:
        raise StoreError(
            f"{run.path}: this run began on data with SHA-256 {before}, now it is {data}: bring "
            "the old data back, or delete the directory to begin again"
        )


def _restore(
    directory: RunDirectory,
    state: TrainState,
    started: Mapping[str, Any] | None,
    environment: Mapping[str, Any],
    warn: Callable[[str], None],
) -> None:
    """Go back to the newest sound checkpoint, or to the beginning."""
    checkpoint, complaints = directory.checkpoints.load_latest()
    for complaint in complaints:
        directory.note("damaged checkpoint set aside", reason=complaint)
        warn(f"damaged checkpoint set aside, the run goes on from an earlier state: {complaint}")
    if checkpoint is not None:
        state.restore(checkpoint.arrays, checkpoint.update)
    mended = directory.restore_metrics({} if checkpoint is None else checkpoint.state)
    if mended:
        directory.note("metrics restored", reason=mended)
        warn(f"metrics restored from the newest checkpoint: {mended}")
    changed = {
        key: [started.get(key), value]
        for key, value in environment.items()
        if started is not None and key != "date" and started.get(key) != value
    }
    event = "started" if started is None else "resumed"
    directory.note(event, update=state.update, **({"changed": changed} if changed else {}))


def _learning_curve(
    directory: RunDirectory, last: Sequence[tuple[int, Mapping[str, float]]], *, diverged: bool
) -> dict[str, list[float | None]]:
    """Return all evaluations on the held-out sequences, the last ones included, as a table.

    Beside them the mean training loss since the row before, as far as it was logged; once a run has
    diverged, the worst loss.
    """
    logged = directory.read_metrics()
    lines = [line for line in logged if line["kind"] == "test"]
    num_measured = len(lines)
    lines += [{"update": update, **metrics} for update, metrics in last]
    percent: list[float | None] = [
        round(100 * line["update"] / lines[-1]["update"]) for line in lines
    ]
    columns = {name: [line[name] for line in lines] for name in ("update", *last[-1][1])}
    training = [line for line in logged if line["kind"] == "train"]
    losses = _training_losses(training, [line["update"] for line in lines])
    if diverged:
        losses[num_measured:] = columns["loss"][num_measured:]
    return {"percent": percent, **columns, "train_loss": losses}


def _training_losses(
    training: Sequence[Mapping[str, Any]], updates: Sequence[int]
) -> list[float | None]:
    """Average what `train` lines say up to each update, every one as long as it is a mean of."""
    losses: list[float | None] = []
    sums, counts, before = 0.0, 0, 0
    waiting = list(training)
    for update in updates:
        while waiting and waiting[0]["update"] <= update:
            line = waiting.pop(0)
            num_updates, before = line["update"] - before, line["update"]
            sums, counts = sums + num_updates * line["loss"], counts + num_updates
        losses.append(sums / counts if counts else None)
        sums, counts = 0.0, 0
    return losses


def weights_digest(arrays: Mapping[str, Shaped[np.ndarray, "..."]]) -> str:
    """Return the SHA-256 of all model tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith("model."):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
