"""Bring a run to its end: new, resumed or already finished."""

import hashlib
import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.errors import CorruptError, MachineError, StoreError, TrialError
from pernn.kernels import describe_kernels, find_kernels, whole_updates, without_kernels
from pernn.lab.interfaces import Measurement, Task
from pernn.lab.store import Checkpoint, RunDirectory, physical_memory, sealed
from pernn.lab.training import (
    TrainState,
    advance,
    choose_device,
    computing,
    evaluate,
    evaluate_diverged,
    find_usual,
)

from .analysis import (
    Line,
    analyse,
    build_measure,
    choose_checkpoints,
    find_lead,
    summarise,
    tabulate,
    worst,
)
from .building import build_stage, build_task
from .environment import changed_parts, describe_start
from .sinks import Log
from .spec import DescentAnalysis, RunSpec, StabilityAnalysis

WORD, INDEX = 4, 8
"""Bytes of a number and of an id."""

OnUpdate = Callable[[int], bool]
"""Called with the number of updates done after each, those of earlier stages included; returns
false to have the run stop there."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of an execution.

    Attributes:
        state: `finished`, or `stopped` with a checkpoint.
        result: The content of `result.json`; `None` if stopped.
        is_new: Whether this execution did something; false if the run was finished before.
    """

    state: Literal["finished", "stopped"]
    result: Mapping[str, Any] | None
    is_new: bool = True


def execute(
    spec: RunSpec,
    root: str | Path,
    *,
    device: str = "auto",
    threads: int = 1,
    on_update: OnUpdate = lambda update: True,
    on_warning: Callable[[str], None] = warnings.warn,
    expired: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Run a trial to its end, from wherever it stands.

    The same spec gives the same bits on the same machine, whatever was killed in between. A run
    goes on with the threads and on the kind of device that it began with.

    Args:
        spec: What to run.
        root: Results directory.
        device: `auto`, `cpu`, `cuda`, `cuda:1` …
        threads: CPU threads of a new run; their number can change the last bits.
        on_update: Called with the number of updates done; returns false to stop the run there.
        on_warning: Called with a line about what was wrong but could be mended.
        expired: Run → name of its expired lease, as a `LeaseWatch` gives it, to be taken over.

    Returns:
        How it ended.

    Raises:
        BusyError: If another process works on the run, or on an earlier stage of it.
        MachineError: If the device is missing, or the trial cannot fit into the memory.
        StoreError: If the directory cannot be read or written.
    """
    root = Path(root)
    directory = RunDirectory(root, spec.fingerprint())
    result = directory.read_result()
    if result is not None:
        for change in changed_parts({directory.fingerprint: spec}, root):
            on_warning(change)
        return Outcome("finished", result, is_new=False)
    chosen = choose_device(device)
    task = build_task(spec, chosen)
    check_memory(spec, task, chosen)
    earlier: Mapping[str, Any] = {}
    if spec.analysis:
        # What cannot be measured is refused now, not after the training.
        build_measure(spec, chosen, budget=0)
    if (first := spec.first_stage()) is not None:
        how: dict[str, Any] = {"device": device, "threads": threads, "expired": expired}
        how |= {"on_update": on_update, "on_warning": on_warning}
        end = execute(first, root, **how)
        if end.result is None:
            return end
        earlier = end.result
    with directory.locked(expired.get(directory.fingerprint, "")):
        # While this process waited for the lock, its holder may have finished.
        result = directory.read_result()
        if result is not None:
            return Outcome("finished", result, is_new=False)
        directory.write_spec(spec.dump())
        started = read_start(directory)
        torch.set_num_threads(started["threads"] if started else threads)
        precision = "fp32" if spec.analysis else spec.training.precision
        as_begun = _as_begun(started, directory, chosen) if started else nullcontext()
        # What is built and restored wakes the threads of PyTorch's loops, which are set up first.
        with as_begun, computing(precision, chosen):
            stage = AnalysisRun if spec.analysis else TrainingRun
            run = stage(spec, task, directory, root, chosen, on_warning, earlier)
            run.begin(started)
            with closing(run):
                return run.carry_on(on_update)


def read_start(directory: RunDirectory) -> Mapping[str, Any] | None:
    """Read a run's environment, or `None` if it never began."""
    started = directory.read_environment()
    if started is None and not directory.checkpoints.updates():
        return None
    if started is None or not {"device", "threads"} <= started.keys():
        raise CorruptError(
            f"{directory.path / 'environment.json'} does not say device and threads: restore it, "
            "or delete the run directory to begin again"
        )
    return started


@contextmanager
def _as_begun(
    started: Mapping[str, Any], directory: RunDirectory, device: torch.device
) -> Iterator[None]:
    """Compute as the run began, whose sums are ordered so; refuse where that cannot be had."""
    before = started["device"].partition(":")[0]
    if before != device.type:
        raise MachineError(
            f"{directory.path}: this run began on {before} and would not end in the same bits on "
            f"{device.type}: resume with --device {before}, or delete the directory"
        )
    kernels = str(started.get("kernels", ""))
    if kernels and not kernels.startswith("torch") and find_kernels() is None:
        raise MachineError(
            f"{directory.path}: this run began with compiled kernels, and here it is "
            f"{describe_kernels()}: `pernn doctor` says what is missing; or delete the directory"
        )
    arithmetic = without_kernels() if kernels.startswith("torch") else nullcontext()
    with whole_updates(enabled=started.get("updates") == "whole"), arithmetic:
        yield


@dataclass
class Stage(ABC):
    """A stage under way, in a directory that this process holds.

    Attributes:
        spec: What is run.
        task: Its task.
        directory: Where it is written.
        root: Results directory.
        device: Where it is computed.
        on_warning: Called with a line about what was mended.
        earlier: Result of the stage before; empty if there is none.
    """

    spec: RunSpec
    task: Task
    directory: RunDirectory
    root: Path
    device: torch.device
    on_warning: Callable[[str], None]
    earlier: Mapping[str, Any]

    @property
    @abstractmethod
    def update(self) -> int:
        """Updates of the training that it stands at."""

    def environment(self) -> dict[str, Any]:
        """Return what `environment.json` says of it alone."""
        return {}

    def restore(self) -> None:  # noqa: B027  by default it was built where it stands
        """Go back to what is saved, or to the beginning."""

    @abstractmethod
    def updates(self) -> Iterator[int]:
        """Do what is left, and yield the count after each update."""

    @abstractmethod
    def finish(self) -> dict[str, Any]:
        """Return the content of `result.json`."""

    def diverge(self, reason: str) -> dict[str, Any]:
        """Return the content of `result.json` of a stage whose numbers went wrong."""
        raise TrialError(reason)

    def save(self) -> None:  # noqa: B027  by default everything is saved at once
        """Save where it stands."""

    def close(self) -> None:  # noqa: B027  by default nothing is open
        """End what it has opened."""

    def begin(self, started: Mapping[str, Any] | None) -> None:
        """Restore it, and write down what it runs on."""
        directory = self.directory
        environment = describe_start(self.spec, self.device) | self.environment()
        if first := self.spec.first_stage():
            # What was measured before a plan was registered is older than it.
            began = RunDirectory(self.root, first.fingerprint()).read_environment() or {}
            environment["date"] = min(environment["date"], began.get("date", ""))
        known = environment if started is None else started
        before, data = (values.get("data_sha256") for values in (known, environment))
        if before != data:
            raise StoreError(
                f"{directory.path}: this run began on data with SHA-256 {before}, now it is "
                f"{data}: bring the old data back, or delete the directory to begin again"
            )
        self.restore()
        if self.update or directory.read_metrics():
            for change in changed_parts({directory.fingerprint: self.spec}, self.root):
                self.on_warning(change)
        else:
            # Only the date of an earlier start is kept: no restart may make a plan the older one.
            directory.write_environment({**environment, "date": known.get("date", "")})
        changed = {
            key: [known.get(key), value]
            for key, value in environment.items()
            if key != "date" and known.get(key) != value
        }
        event = "started" if started is None else "resumed"
        directory.note(event, update=self.update, **({"changed": changed} if changed else {}))

    def carry_on(self, on_update: OnUpdate) -> Outcome:
        """Do what is left, and write the result."""
        directory, before = self.directory, self.spec.num_updates - self.spec.num_own_updates
        begun, resumed = time.perf_counter(), self.update
        try:
            for update in self.updates():
                if not on_update(before + update):
                    self.save()
                    seconds = time.perf_counter() - begun
                    directory.note("stopped", update=self.update, seconds=seconds)
                    return Outcome("stopped", None)
            result, event = self.finish(), "finished"
            seconds = time.perf_counter() - begun
            details: Line = {"updates": self.update - resumed, "seconds": seconds}
        except TrialError as error:
            result, event = self.diverge(str(error)), "diverged"
            details = result["diverged"]
            self.on_warning(f"diverged after update {self.update} and counts as the worst: {error}")
        # A kill may have come between the last checkpoint and this, and nobody comes here again.
        directory.checkpoints.prune(self.spec.training.keep_interval)
        directory.write_result(result)
        directory.note(event, **{"update": self.update, **details})
        return Outcome("finished", result)


@dataclass
class TrainingRun(Stage):
    """A stage that trains: its parts, and where their state stands."""

    def __post_init__(self) -> None:
        self.trial = build_stage(self.spec, self.root, self.device, self.task)
        optimizer = self.spec.training.optimizer
        self.state = TrainState.fresh(self.trial.model, self.trial.preset, optimizer)

    @property
    def update(self) -> int:
        """Updates done."""
        return self.state.update

    def environment(self) -> dict[str, Any]:
        """Return the digest of data files, and how updates are computed."""
        data = getattr(self.trial.stream, "digest", None)
        whole = find_usual(self.state, self.spec.training, self.device) is not None
        return ({"data_sha256": data} if data else {}) | ({"updates": "whole"} if whole else {})

    def restore(self) -> None:
        """Go back to the newest sound checkpoint, or to the beginning."""
        directory = self.directory
        checkpoint, damage = directory.checkpoints.load_latest()
        for one in damage:
            directory.note("damaged checkpoint set aside", reason=one)
            self.on_warning(
                f"damaged checkpoint set aside, the run goes on from an earlier state: {one}"
            )
        if checkpoint is not None:
            self.state.restore(checkpoint.arrays, checkpoint.update)
        mended = directory.restore_metrics({} if checkpoint is None else checkpoint.state)
        if mended:
            directory.note("metrics restored", reason=mended)
            self.on_warning(f"metrics restored from the newest checkpoint: {mended}")
        directory.checkpoints.prune(self.spec.training.keep_interval)
        self.log = Log(self.spec, directory, self.root, self.on_warning)

    def updates(self) -> Iterator[int]:
        """Train, and write metrics and checkpoints when due."""
        if lost := self.earlier.get("diverged"):
            raise TrialError(f"its pretraining diverged: {lost['reason']}")
        trial, config = self.trial, self.spec.training
        for event in advance(self.state, trial.stream, config, trial.preset, self.device):
            if event.kind == "update":
                yield event.update
            elif event.kind == "checkpoint":
                self._write_checkpoint()
            else:
                line = {"update": event.update, "kind": event.kind, **event.values}
                self.directory.append_metrics(line)
                self.log.write(line)

    def save(self) -> None:
        """Save the state if it is finite.

        Whether a run has diverged is found out at the same updates whatever stopped it before.
        """
        with suppress(TrialError):
            self._write_checkpoint()

    def _write_checkpoint(self) -> None:
        """Write a checkpoint, which never contains NaN or infinity: the last good one stays."""
        arrays, folder = self.state.dump(), self.directory.checkpoints
        self.state.check(arrays)
        folder.save(Checkpoint(self.update, arrays, self.directory.metrics_so_far()))
        folder.prune(self.spec.training.keep_interval)

    def finish(self) -> dict[str, Any]:
        """Measure the held-out sequences."""
        precision = self.spec.training.precision
        found = evaluate(self.state.model, self.trial.stream, self.device, precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {self.update}")
        return self._result(found, [self.update])

    def diverge(self, reason: str) -> dict[str, Any]:
        """Count what would have been measured from here on as the worst."""
        last, step = self.spec.training.iterations, self.spec.training.evaluation_interval
        lines = self.directory.read_metrics()
        measured = {line["update"] for line in lines if line["kind"] == "test"}
        updates = [update for update in range(step, last, step) if update not in measured]
        found = evaluate_diverged(self.state.model, self.trial.stream)
        lost = {"update": self.update, "reason": reason}
        return self._result(found, [*updates, last], diverged=lost)

    def _result(self, found: Measurement, updates: Sequence[int], **more: Any) -> dict[str, Any]:
        """Return the result whose evaluation holds for some updates, the last one among them."""
        added = [{"update": update, "kind": "test", **found.metrics} for update in updates]
        for line in added:
            self.log.write(line)
        curve = _learning_curve(self.directory.read_metrics(), added, diverged="diverged" in more)
        return {
            "fingerprint": self.directory.fingerprint,
            "metrics": dict(found.metrics),
            "tables": {**{n: dict(t) for n, t in found.tables.items()}, "by_update": curve},
            "num_parameters": self.trial.model.num_parameters,
            "weights_sha256": weights_digest(self.state.weights()),
            **more,
        }

    def close(self) -> None:
        """End what shows the training besides."""
        self.log.close()


def _learning_curve(
    logged: Sequence[Line], added: Sequence[Line], *, diverged: bool
) -> dict[str, list[Any]]:
    """Return all evaluations on the held-out sequences, also those that are added, as a table.

    Beside them the mean training loss since the row before, as far as it was logged; once a run has
    diverged, the worst loss.
    """
    lines = [*(line for line in logged if line["kind"] == "test"), *added]
    columns = {name: [line[name] for line in lines] for name in added[-1] if name != "kind"}
    updates = columns["update"]
    losses = _training_losses([line for line in logged if line["kind"] == "train"], updates)
    if diverged:
        losses[-len(added) :] = columns["loss"][-len(added) :]
    percent = [round(100 * update / updates[-1]) for update in updates]
    return {"percent": percent, **columns, "train_loss": losses}


def _training_losses(
    training: Sequence[Mapping[str, Any]], updates: Sequence[int]
) -> list[float | None]:
    """Average what `train` lines say up to each update, every one as long as it is a mean of."""
    ends = np.array([line["update"] for line in training], dtype=np.int64)
    lengths, rows = np.diff(ends, prepend=0), np.searchsorted(updates, ends)
    losses = lengths * np.array([line["loss"] for line in training], dtype=np.float64)
    # What comes after the last update is in one further row.
    sums, counts = (np.bincount(rows, one, len(updates) + 1)[:-1] for one in (losses, lengths))
    means = np.divide(sums, counts, where=counts > 0, out=np.full(len(updates), np.nan))
    return [None if math.isnan(mean) else mean for mean in means.tolist()]


def weights_digest(arrays: Mapping[str, Shaped[np.ndarray, "..."]]) -> str:
    """Return the SHA-256 of all model tensors, ordered by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith("model."):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


@dataclass
class AnalysisRun(Stage):
    """A stage that analyses checkpoints that a training run kept.

    A line of `metrics.jsonl` is the measurement of one checkpoint: whatever is killed in between,
    only the one that was under way is lost.
    """

    def __post_init__(self) -> None:
        self.levels = choose_checkpoints(self.spec, self.root)
        try:
            self.lines = {line["update"]: line for line in self.directory.metrics()}
        except CorruptError as error:
            raise CorruptError(f"{error}; delete that file to measure again") from None

    @property
    def update(self) -> int:
        """The newest checkpoint that is measured."""
        return max(self.lines, default=0)

    def updates(self) -> Iterator[int]:
        """Measure the other checkpoints, the worst values after a divergence."""
        lost = self.earlier.get("diverged")
        # The untrained network is there whatever happened.
        kept = [one for one in sorted(self.levels) if not lost or one < max(1, lost["update"])]
        left = {update: self.levels[update] for update in kept if update not in self.lines}
        for line in analyse(self.spec, self.root, left, self.device):
            self.directory.append_metrics(sealed(line))
            self.lines[line["update"]] = line
            yield len(self.lines)
        if isinstance(self.spec.analysis, StabilityAnalysis):
            for update in self.levels.keys() - {*kept}:
                self.lines[update] = worst(self.lines[0], update)

    def finish(self) -> dict[str, Any]:
        """Put the tables of all checkpoints beside what the training came to."""
        last, trained = self.spec.training.iterations, self.earlier
        kept = {"num_parameters", "weights_sha256", "diverged"} & trained.keys()
        metrics = {**trained["metrics"], **summarise(self.lines.get(last, {}))}
        if isinstance(self.spec.analysis, DescentAnalysis):
            found = find_lead(line for _, line in sorted(self.lines.items()))
            metrics |= {} if found is None else {"lead": found}
        return {
            **{key: trained[key] for key in sorted(kept)},
            "fingerprint": self.directory.fingerprint,
            "metrics": metrics,
            "tables": {**trained["tables"], **tabulate(self.lines.values(), last)},
        }


def least_bytes(spec: RunSpec, task: Task, device: torch.device) -> int:
    """Return a lower bound of a trial's memory in bytes.

    Counted are weights with both of Adam's moments (a checkpoint holds them all), ids of one batch
    and of the held-out sequences, and on the CPU the hidden states of one batch or piece.
    """
    core, training = spec.core, spec.training
    hidden = core.hidden_size
    recurrent = core.num_layers * hidden * hidden
    weights = task.vocab_size * (spec.embedding_size + hidden) + recurrent
    held_out = getattr(spec.task, "num_held_out", 0)
    ids = (training.batch_size + held_out) * task.num_steps
    piece = training.micro_batch or training.batch_size
    states = piece * task.num_steps * hidden if device.type == "cpu" else 0
    return WORD * (3 * weights + states) + INDEX * ids


def check_memory(spec: RunSpec, task: Task, device: torch.device) -> None:
    """Refuse a trial that needs more memory than there is."""
    needed, there = least_bytes(spec, task, device), physical_memory()
    if needed > there:
        raise MachineError(
            f"{spec.label} needs at least {needed / 2**30:,.1f} GiB of memory, this machine has "
            f"{there / 2**30:,.1f}: choose smaller sizes"
        )
