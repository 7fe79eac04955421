"""The stages of a run, and the one that trains."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.errors import TrialError
from pernn.lab.interfaces import Measurement, Task
from pernn.lab.store import Checkpoint, RunDirectory
from pernn.lab.training import (
    CheckpointDue,
    Measured,
    Precision,
    TrainState,
    Updated,
    advance,
    evaluate,
    evaluate_diverged,
    find_usual,
)

from .building import build_stage, read_divergence
from .sinks import Log
from .spec import RunSpec


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
        num_updates: Number of its updates, or of what else counts as one.
        precision: Of its arithmetic.
    """

    spec: RunSpec
    task: Task
    directory: RunDirectory
    root: Path
    device: torch.device
    on_warning: Callable[[str], None]
    num_updates: int = field(init=False)
    precision: Precision = field(init=False, default="fp32")

    @property
    @abstractmethod
    def update(self) -> int:
        """Updates of the training that it stands at."""

    def environment(self) -> dict[str, Any]:
        """Return what `environment.json` says of it alone."""
        return {}

    @abstractmethod
    def restore(self) -> None:
        """Go back to what is saved."""

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


@dataclass
class TrainingRun(Stage):
    """A stage that trains: its parts, and where their state stands."""

    def __post_init__(self) -> None:
        training = self.spec.training
        self.num_updates, self.precision = training.iterations, training.precision
        self.trial = build_stage(self.spec, self.root, self.device, self.task)
        self.state = TrainState.fresh(self.trial.model, self.trial.preset, training.optimizer)
        self.saved = 0

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
        self.saved = self.update
        directory.checkpoints.prune(self.spec.training.keep_interval)
        self.log = Log(self.spec, directory, self.root, self.on_warning)

    def updates(self) -> Iterator[int]:
        """Train, and write metrics and checkpoints when due."""
        first = self.spec.first_stage()
        lost = None if first is None else read_divergence(first, self.root)
        if lost is not None:
            raise TrialError(f"its pretraining diverged: {lost['reason']}")
        trial, config = self.trial, self.spec.training
        for event in advance(self.state, trial.stream, config, trial.preset, self.device):
            if isinstance(event, Measured):
                values = {"update": event.update, "kind": event.kind, **event.values}
                self.directory.append_metrics(values)
                self.log.write(values)
            elif isinstance(event, CheckpointDue):
                self._write_checkpoint()
            elif isinstance(event, Updated):
                yield event.update

    def save(self) -> None:
        """Save the state if it is new and finite.

        Whether a run has diverged is found out at the same updates whatever stopped it before.
        """
        if self.update > self.saved:
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
        found = evaluate(self.state.model, self.trial.stream, self.device, self.precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {self.update}")
        return self._result(found, [self.update])

    def diverge(self, reason: str) -> dict[str, Any]:
        """Count what would have been measured from here on as the worst."""
        last, step = self.num_updates, self.spec.training.evaluation_interval
        lines = self.directory.read_metrics()
        measured = {line["update"] for line in lines if line["kind"] == "test"}
        updates = [update for update in range(step, last, step) if update not in measured]
        found = evaluate_diverged(self.state.model, self.trial.stream)
        lost = {"update": self.update, "reason": reason}
        return self._result(found, [*updates, last], diverged=lost)

    def _result(self, found: Measurement, updates: Sequence[int], **more: Any) -> dict[str, Any]:
        """Return the result whose evaluation holds for some updates, the last one among them."""
        for update in updates:
            self.log.write({"update": update, "kind": "test", **found.metrics})
        curve = _learning_curve(
            self.directory.read_metrics(), updates, found.metrics, diverged="diverged" in more
        )
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
    logged: Sequence[Mapping[str, Any]],
    updates: Sequence[int],
    metrics: Mapping[str, float],
    *,
    diverged: bool,
) -> dict[str, list[float | None]]:
    """Return all evaluations on the held-out sequences, those of `updates` included, as a table.

    Beside them the mean training loss since the row before, as far as it was logged; once a run has
    diverged, the worst loss.
    """
    lines = [line for line in logged if line["kind"] == "test"]
    num_measured = len(lines)
    lines += [{"update": update, **metrics} for update in updates]
    columns = {name: [line[name] for line in lines] for name in ("update", *metrics)}
    percent: list[float | None] = [round(100 * u / updates[-1]) for u in columns["update"]]
    training = [line for line in logged if line["kind"] == "train"]
    losses = _training_losses(training, columns["update"])
    if diverged:
        losses[num_measured:] = columns["loss"][num_measured:]
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
