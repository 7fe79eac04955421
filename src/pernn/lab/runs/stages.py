"""The stages of a run: training, and analysis of its checkpoints."""

import hashlib
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped

from pernn.analysis import KINDS, gradient_stability
from pernn.errors import ConfigError, CorruptError, TrialError
from pernn.lab.interfaces import Measurement, Task
from pernn.lab.pairing import dual_frequency_pairs, stability_map
from pernn.lab.store import Checkpoint, RunDirectory, sealed
from pernn.lab.tasks import SyntheticTask
from pernn.lab.training import (
    CheckpointDue,
    Measured,
    Precision,
    TrainState,
    Updated,
    advance,
    choose_device,
    computing,
    evaluate,
    evaluate_diverged,
    find_usual,
)
from pernn.models import PositionEncodedRNN

from .anatomy import Anatomy, Tables, nearest_checkpoints
from .building import build_stage, read_divergence, read_run, restore_weights
from .sinks import Log
from .spec import AnatomyAnalysis, RunSpec, StabilityAnalysis

Line = dict[str, Any]
TABLE, MAP = "gradient_stability", "stability_map"
KIND = "analysis"
"""Marks the lines of `metrics.jsonl` that hold the tables of one checkpoint."""
MEMORY_BUDGET = 2**29
"""Bytes that all checkpoints that are measured at a time may be worked with."""


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
        self.trial = build_stage(self.spec, self.root, self.device, self.task, self.on_warning)
        self.state = TrainState.fresh(self.trial.model, self.trial.preset)
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
        found = evaluate(self.state.network, self.trial.stream, self.device, self.precision)
        if not math.isfinite(found.metrics["loss"]):
            raise TrialError(f"the held-out loss is not finite after update {self.update}")
        return self._result(found, [self.update])

    def diverge(self, reason: str) -> dict[str, Any]:
        """Count what would have been measured from here on as the worst."""
        last, step = self.num_updates, self.spec.training.evaluation_interval
        lines = self.directory.read_metrics()
        measured = {line["update"] for line in lines if line["kind"] == "test"}
        updates = [update for update in range(step, last, step) if update not in measured]
        found = evaluate_diverged(self.state.network, self.trial.stream)
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
        self.training = self.spec.first_stage() or self.spec
        run = self.training.fingerprint()
        trained = RunDirectory(self.root, run).read_result()
        if trained is None:
            raise CorruptError(f"{self.root}: the training run {run} has no result")
        self.num_updates, self.trained = self.spec.num_analysed, trained
        self.lines: dict[int, Line] = {}
        self.chosen: Sequence[int] = self.spec.analysed_updates
        if isinstance(self.spec.analysis, AnatomyAnalysis):
            self.chosen = sorted(find_levels(self.spec.analysis, self.training, self.root))

    @property
    def update(self) -> int:
        """The newest checkpoint that is measured."""
        return max(self.lines, default=0)

    def restore(self) -> None:
        """Read what is measured already."""
        self.lines = {line["update"]: line for line in self.directory.read_metrics()}

    def updates(self) -> Iterator[int]:
        """Measure the other checkpoints, the worst values after a divergence."""
        lost = self.trained.get("diverged")
        kept = [one for one in self.chosen if not lost or one < lost["update"]]
        left = [update for update in kept if update not in self.lines]
        for line in analyse(self.spec, self.training, self.root, left, self.device):
            self.directory.append_metrics(sealed(line))
            self.lines[line["update"]] = line
            yield len(self.lines)
        if isinstance(self.spec.analysis, StabilityAnalysis):
            for update in sorted({*self.chosen} - {*kept}):
                self.lines[update] = _worst(self.lines[0], update)

    def finish(self) -> dict[str, Any]:
        """Put the tables of all checkpoints beside what the training came to."""
        last, trained = self.training.training.iterations, self.trained
        kept = {"num_parameters", "weights_sha256", "diverged"} & trained.keys()
        return {
            **{key: trained[key] for key in sorted(kept)},
            "fingerprint": self.directory.fingerprint,
            "metrics": {**trained["metrics"], **summarise(self.lines.get(last, {}))},
            "tables": {**trained["tables"], **tabulate(list(self.lines.values()), last)},
        }


def analyse(
    spec: RunSpec,
    first: RunSpec,
    root: Path,
    updates: Sequence[int],
    device: torch.device,
) -> Iterator[dict[str, Any]]:
    """Measure some checkpoints of a training run, one line each.

    Args:
        spec: What is to be measured.
        first: The training run.
        root: Results directory of both.
        updates: Which checkpoints; 0 for the network before the training.
        device: Where it is computed.

    Yields:
        Update and tables: a row per condition, and per position in the map.

    Raises:
        ConfigError: If the task has no such pairs of sequences.
        CorruptError: If a checkpoint is missing or damaged.
    """
    # With one thread for each, the numbers do not depend on how many there are.
    num_workers = min(len(updates), torch.get_num_threads()) if device.type == "cpu" else 1
    budget = MEMORY_BUDGET // max(1, num_workers)
    measurement = _Measurement(spec, first, root, device, budget)
    pool = ThreadPoolExecutor(max(1, num_workers), thread_name_prefix="checkpoint")
    try:
        yield from pool.map(measurement.of, updates)
    finally:
        # If nobody wants more of them, those that were not begun are left out.
        pool.shutdown(cancel_futures=True)


def analyse_run(
    run: Path,
    config: StabilityAnalysis,
    *,
    device: str = "auto",
    threads: int = 1,
    watch: Callable[[Iterator[Line], int], Iterable[Line]] = lambda lines, count: lines,
) -> dict[str, dict[str, Any]]:
    """Measure the untrained network and every checkpoint of a run.

    Args:
        run: The run's directory; of an analysis, what it analyses is measured.
        config: What is measured.
        device: As for `execute`.
        threads: CPU threads.
        watch: Gets the lines to come and their number, to show how far they are.

    Returns:
        Table → column → values; see `tabulate`.

    Raises:
        ConfigError: If it is no run's directory, or its task has no such pairs of sequences.
    """
    first, root = read_run(run)
    spec = first.override({"analysis": config.dump()})
    updates = [0, *RunDirectory(root, first.fingerprint()).checkpoints.updates()]
    torch.set_num_threads(threads)
    chosen = choose_device(device)
    with computing("fp32", chosen):
        lines = watch(analyse(spec, first, root, updates, chosen), len(updates))
        return tabulate(list(lines), first.training.iterations)


class _Measurement:
    """Measures checkpoints, in whichever thread; each thread has a network of its own."""

    def __init__(
        self, spec: RunSpec, first: RunSpec, root: Path, device: torch.device, budget: int
    ) -> None:
        config, task = spec.analysis, first.build_task()
        if config is None or not isinstance(task, SyntheticTask):
            raise ConfigError(f"checkpoints are measured on tokens, not on {first.task.kind}")
        self.first, self.root, self.device = first, root, device
        self.levels: Mapping[int, Sequence[float]] = {}
        self.measure: Callable[[PositionEncodedRNN], Tables]
        if isinstance(config, AnatomyAnalysis):
            self.levels = find_levels(config, first, root)
            self.measure = Anatomy(config, task, spec.seed, device).tables
        else:
            self.measure = _measure_stability(config, task, spec.seed, budget)
        self.local = threading.local()

    def of(self, update: int) -> Line:
        """Return the line of one checkpoint."""
        tables = self.measure(self._network(update))
        if self.levels:
            tables = _repeat(tables, self.levels.get(update, []))
        return {"update": update, "kind": KIND, **tables}

    def _network(self, update: int) -> PositionEncodedRNN:
        local = self.local
        if not hasattr(local, "model"):
            # The settings belong to the thread, too.
            torch.set_num_threads(1)
            torch.set_flush_denormal(True)
            local.model = build_stage(self.first, self.root, self.device).model
            local.initial = {name: one.clone() for name, one in local.model.state_dict().items()}
        if update:
            folder = RunDirectory(self.root, self.first.fingerprint()).checkpoints
            restore_weights(local.model, folder.load(update).arrays, folder.path)
        else:
            local.model.load_state_dict(local.initial)
        model: PositionEncodedRNN = local.model
        return model


def _measure_stability(
    config: StabilityAnalysis, task: SyntheticTask, seed: int, budget: int
) -> Callable[[PositionEncodedRNN], Tables]:
    """Return what measures the gradient stability of networks with the same pairs."""
    pairs = dual_frequency_pairs(
        task, seed, num_per_condition=config.num_per_condition, source=config.source_step
    )

    def measure(model: PositionEncodedRNN) -> Tables:
        tables = {TABLE: gradient_stability(model, pairs, memory_budget=budget).table()}
        if count := config.map_per_condition:
            tables[MAP] = stability_map(
                model, task, seed, num_per_condition=count, memory_budget=budget
            )
        return tables

    return measure


def find_levels(
    config: AnatomyAnalysis, first: RunSpec, root: Path
) -> Mapping[int, Sequence[float]]:
    """Return which levels a training's checkpoints stand for."""
    lines = RunDirectory(root, first.fingerprint()).read_metrics()
    return nearest_checkpoints(config.levels, first.training, lines)


def _repeat(tables: Tables, levels: Sequence[float]) -> Tables:
    """Repeat the rows of tables for every level that their checkpoint stands for."""
    found: Tables = {}
    for name, table in tables.items():
        count = len(next(iter(table.values())))
        own = {"level": [level for level in levels for _ in range(count)]}
        found[name] = own | {column: values * len(levels) for column, values in table.items()}
    return found


def tabulate(lines: Sequence[Mapping[str, Any]], last: int) -> dict[str, dict[str, list[Any]]]:
    """Stack the tables of all checkpoints, each row with its update."""
    tables: dict[str, dict[str, list[Any]]] = {}
    for line in sorted(lines, key=lambda line: line["update"]):
        for name in (key for key, value in line.items() if isinstance(value, Mapping)):
            table = tables.setdefault(name, {})
            count = len(next(iter(line[name].values())))
            own = {"update": line["update"], "percent": round(100 * line["update"] / last)}
            columns = {**{key: [value] * count for key, value in own.items()}, **line[name]}
            for key, values in columns.items():
                table.setdefault(key, []).extend(values)
    return tables


def _worst(line: Mapping[str, Any], update: int) -> dict[str, Any]:
    """Return what counts as measured of a network that diverged: gradients that point apart.

    Similarities are −1, everything else that was measured of `line` is unknown.
    """
    worst: dict[str, Any] = {"update": update, "kind": KIND}
    for name in {TABLE, MAP} & line.keys():
        worst[name] = {
            column: [
                value if not isinstance(value, float) else -1.0 if column in KINDS else None
                for value in values
            ]
            for column, values in line[name].items()
        }
    return worst


def summarise(line: Mapping[str, Any]) -> dict[str, float]:
    """Return a checkpoint's mean similarity, also by kind of disturbants."""
    if TABLE not in line:
        return {}
    table = line[TABLE]
    groups: dict[str, list[float]] = {"similarity": table["similarity"]}
    for word, value in zip(table["disturbants"], table["similarity"], strict=True):
        if word in ("Frequent", "Rare"):
            groups.setdefault(f"similarity_{word.lower()}_disturbants", []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in groups.items()}
