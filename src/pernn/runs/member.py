"""One run under way: its directory is held, its parts are made, its state restored."""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.errors import CorruptError, MachineError, StoreError, TrialError
from pernn.kernels import describe_kernels, find_kernels, without_kernels
from pernn.store import Checkpoint, RunDirectory
from pernn.training import CheckpointDue, Event, Measured, TrainState, evaluate

from .assembly import Trial
from .environment import describe_environment
from .outcome import Outcome
from .parts import describe_parts
from .spec import RunSpec
from .stages import build_stage


@dataclass
class Member:
    """A run under way.

    Attributes:
        spec: What is run.
        directory: Held by this process.
        trial: Its parts.
        state: Where it stands.
        resumed: Updates that were done before.
        begun: When it was taken up, by the process's own clock.
    """

    spec: RunSpec
    directory: RunDirectory
    trial: Trial
    state: TrainState
    resumed: int
    begun: float = field(default_factory=time.perf_counter)

    @classmethod
    def begin(
        cls,
        spec: RunSpec,
        directory: RunDirectory,
        started: Mapping[str, Any] | None,
        root: Path,
        device: torch.device,
        warn: Callable[[str], None],
    ) -> "Member":
        """Make the parts and restore the newest checkpoint; earlier stages are finished.

        Raises:
            StoreError: If what is there does not fit.
        """
        trial = build_stage(spec, root, device, warn)
        # Read from files, data could be others than they were.
        data = getattr(trial.stream, "digest", None)
        sources = {"data_sha256": data, "parts": describe_parts(spec)}
        environment = describe_environment(device) | {k: v for k, v in sources.items() if v}
        if started is None:
            directory.write_environment(environment)
        else:
            _check_data(started, data, directory)
        state = TrainState.fresh(trial.model, trial.protocol)
        _restore(directory, state, started, environment, warn)
        return cls(spec, directory, trial, state, state.update)

    def take(self, event: Event) -> None:
        """Store what an event says.

        Raises:
            TrialError: If a checkpoint would hold what is no number.
        """
        if isinstance(event, Measured):
            values = {"update": event.update, "kind": event.kind, **event.values}
            self.directory.append_metrics(values)
        elif isinstance(event, CheckpointDue):
            self._save()

    def stop(self) -> Outcome:
        """Leave the run with a checkpoint, if there is anything new to keep."""
        if self.state.update > self.resumed:
            self._save()
        self.directory.note("stopped", update=self.state.update)
        return Outcome("stopped", None)

    def fail(self, error: TrialError) -> None:
        """Note that the run has failed for good."""
        self.directory.note("failed", update=self.state.update, reason=str(error))

    def finish(self, device: torch.device) -> Outcome:
        """Measure the held-out sequences and write the result."""
        state, directory = self.state, self.directory
        found = evaluate(state.network, self.trial.stream, device, self.spec.training.precision)
        seconds, count = time.perf_counter() - self.begun, state.update - self.resumed
        result = {
            "fingerprint": directory.fingerprint,
            "metrics": dict(found.metrics),
            "tables": {
                **{name: dict(table) for name, table in found.tables.items()},
                "by_update": _learning_curve(directory, state.update, found.metrics),
            },
            "num_parameters": self.trial.model.num_parameters,
            "weights_sha256": weights_digest(state.dump()),
        }
        directory.write_result(result)
        directory.note("finished", update=state.update, updates=count, seconds=seconds)
        return Outcome("finished", result)

    def _save(self) -> None:
        """Write a checkpoint, which never holds what is no number: the last good one stays."""
        arrays = self.state.dump()
        self.state.check(arrays)
        position = self.directory.metrics_position()
        self.directory.checkpoints.save(Checkpoint(self.state.update, arrays, position))
        self.directory.checkpoints.prune(self.spec.training.keep_interval)


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
    """Refuse another kind of device than the one that a run began on.

    Raises:
        MachineError: If it is one.
    """
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
    directory.restore_metrics({} if checkpoint is None else checkpoint.state)
    changed = {
        key: [started.get(key), value]
        for key, value in environment.items()
        if started is not None and started.get(key) != value
    }
    event = "started" if started is None else "resumed"
    directory.note(event, update=state.update, **({"changed": changed} if changed else {}))


def _learning_curve(
    directory: RunDirectory, last: int, metrics: Mapping[str, float]
) -> dict[str, list[float]]:
    """Give all evaluations on the held-out sequences, the final one included, as a table."""
    lines = [line for line in directory.read_metrics() if line["kind"] == "test"]
    lines.append({"update": last, **metrics})
    percent = [round(100 * line["update"] / last) for line in lines]
    columns = {name: [line[name] for line in lines] for name in ("update", *metrics)}
    return {"percent": percent, **columns}


def weights_digest(arrays: Mapping[str, Shaped[np.ndarray, "..."]]) -> str:
    """Give the SHA-256 of all model tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith("model."):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
