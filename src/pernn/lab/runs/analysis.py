"""Analysis of a training's checkpoints: gradient stability, anatomy, and descent."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pernn.analysis import (
    ALL,
    KINDS,
    RecallErrors,
    gradient_noise,
    gradient_stability,
    input_gradients,
    latent_states,
    lead,
    log_slope,
    perturb,
    position_changes,
    read_linearly,
    recall_errors,
    subspace_overlap,
)
from pernn.errors import ConfigError, CorruptError
from pernn.lab.pairing import dual_frequency_pairs, stability_map
from pernn.lab.store import RunDirectory, sealed
from pernn.lab.tasks import SyntheticTask
from pernn.lab.training import (
    TrainingConfig,
    batch_loss,
    choose_device,
    computing,
    predict,
    show,
)
from pernn.models import PositionEncodedRNN
from pernn.randomness import RandomStream, Split

from .building import build_stage, load_model, read_run, restore_weights
from .spec import AnatomyAnalysis, DescentAnalysis, RunSpec, StabilityAnalysis
from .stages import Stage

Tables = dict[str, dict[str, list[Any]]]
Measure = Callable[[PositionEncodedRNN], Tables]
NOISE_DRAWS = 4
"""Copies of a network with noise on their weights."""
FEWER = 4
"""One in this many sequences is enough for gradients and replaced tokens, and read for the time."""


def find_errors(run: Path, *, device: str = "auto") -> RecallErrors:
    """Sort the wrong answers of a run's newest checkpoint.

    Raises:
        ConfigError: If it is no run's directory, or none whose answers are tokens of the input
            that each stand at one step.
    """
    spec, _ = read_run(run)
    task, chosen = spec.build_task(), choose_device(device)
    if not isinstance(task, SyntheticTask) or task.network == "vector":
        raise ConfigError(f"recall errors are those of tokens, not of {spec.task.kind}")
    batch = task.stream(spec.seed).test()
    answers = predict(load_model(run, device=chosen), batch, chosen).values
    inputs = batch.tokens[:, : task.longest]
    return recall_errors(inputs, batch.targets, answers, task.vocab_size)


def tabulate_errors(found: RecallErrors) -> dict[str, list[Any]]:
    """Put errors into a table, a row for each distance."""
    return {
        "distance": [*range(1, len(found.counts))],
        "share": found.shares[1:].tolist(),
        "chance": found.chances[1:].tolist(),
    }


def nearest_checkpoints(
    levels: Iterable[float], training: TrainingConfig, lines: Iterable[Mapping[str, Any]]
) -> dict[int, list[float]]:
    """Map the kept checkpoints nearest to the levels to them.

    Args:
        levels: Training accuracies.
        training: Says which checkpoints are kept.
        lines: Metrics of the training.
    """
    interval, last = training.kept_interval, training.iterations
    curve = [(one["update"], one["token_accuracy"]) for one in lines if one["kind"] == "train"]
    found: dict[int, list[float]] = {}
    for level in levels:
        first = next((update for update, accuracy in curve if accuracy >= level), last)
        # Between the last multiple of the interval and the end, whichever is nearer.
        kept = (*range(interval, last, interval), last)
        found.setdefault(min(kept, key=lambda one: abs(one - first)), []).append(level)
    return found


class Anatomy:
    """Measures networks of one task with the same sequences.

    Args:
        config: What is measured.
        task: Which answers are tokens of the input.
        seed: Which sequences.
        device: Where the networks are.

    Raises:
        ConfigError: If outputs are fed back.
    """

    def __init__(
        self, config: AnatomyAnalysis, task: SyntheticTask, seed: int, device: torch.device
    ) -> None:
        if task.network != "queried" or len(task.length.possible) > 1:
            raise ConfigError(
                "the anatomy is that of networks that answer queries about sequences of one "
                f"length, got {task.name!r}"
            )
        self.config, self.task, self.device = config, task, device
        self.stream = RandomStream(seed, task.name, Split.ANALYSIS)
        # Pairs of sequences take later steps of this stream.
        words = self.stream.words(0, config.num_sequences * task.num_draws)
        self.inputs = task.draw(words.reshape(config.num_sequences, -1))
        self.batch = task.batch(self.inputs)

    def tables(self, model: PositionEncodedRNN) -> Tables:
        """Return a network's measurements: one row of numbers, four tables."""
        batch, length = self.batch, self.inputs.shape[1]
        found = self._errors(model)
        generator = torch.Generator().manual_seed(int(self.stream.words(0, 1, lane=1)[0] >> 1))
        shares = np.repeat(self.config.noise, NOISE_DRAWS).tolist()
        drawn = [self._errors(perturb(model, share, generator)).accuracy for share in shares]
        noisy = np.reshape(drawn, (-1, NOISE_DRAWS)).mean(axis=1)
        with torch.no_grad():
            tokens = torch.from_numpy(batch.tokens).to(self.device)
            gates = model.project(tokens, batch.num_queries)
        few = gates[: len(gates) // FEWER, :length]
        slope = log_slope(input_gradients(model.core, few, model.embedding.embedding_dim))
        overlap = subspace_overlap(position_changes(model.core, few, few.roll(1, 0)))
        moved = overlap.diagonal().count_nonzero().item()  # these have 1 with themselves
        states = latent_states(model.core, gates).cpu().numpy()
        tokens_read, time_read = self._read_tokens(states), _read_time(states[::FEWER])
        numbers = {
            "accuracy": found.accuracy,
            "neighbour_share": found.shares[1],
            "sequence_share": found.shares[1:].sum(),
            "neighbour_chance": found.chances[1],
            "gradient_slope": slope.mean().item(),
            "gradient_slope_size": slope.mean().abs().item(),
            "overlap": (overlap.sum().item() - moved) / (length * (length - 1)),
            "tokens_read": np.mean(tokens_read["read"][-length:]),
            "time_read": np.mean(time_read["read"]),
        }
        return {
            "anatomy": {name: [float(value)] for name, value in numbers.items()},
            "errors": tabulate_errors(found),
            "noise": {
                "noise": [*self.config.noise],
                "loss": (found.accuracy - noisy).tolist(),
            },
            "tokens": tokens_read,
            "time": time_read,
        }

    def _errors(self, model: PositionEncodedRNN) -> RecallErrors:
        answers = predict(model, self.batch, self.device).values
        return recall_errors(self.inputs, self.batch.targets, answers, self.task.vocab_size)

    def _read_tokens(self, states: np.ndarray) -> dict[str, list[Any]]:
        """Read every token that was shown from the state after every step of the input."""
        length = self.inputs.shape[1]
        places = [(t, p) for t in range(length) for p in range(t + 1)]
        read = [read_linearly(states[:, t], self.inputs[:, p]).mean() for t, p in places]
        steps, positions = ([place + 1 for place in axis] for axis in zip(*places, strict=True))
        return {"step": steps, "position": positions, "read": [float(share) for share in read]}


def _read_time(states: np.ndarray) -> dict[str, list[Any]]:
    """Read the step from the state after it."""
    count, num_steps, width = states.shape
    labels = np.tile(np.arange(num_steps), count)
    read = read_linearly(states.reshape(-1, width), labels).reshape(count, num_steps)
    return {"step": [*range(1, num_steps + 1)], "read": read.mean(axis=0).tolist()}


def by_disturbants(table: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Average the similarities of a checkpoint over the classes of the target."""
    found: dict[str, list[float]] = {}
    for value, word in zip(table["similarity"], table["disturbants"], strict=True):
        found.setdefault(word, []).append(value)
    return {word: math.fsum(values) / len(values) for word, values in found.items()}


def at_levels(tables: Tables, levels: Sequence[float]) -> Tables:
    """Put noise beside similarities, for each level that a checkpoint stands for."""
    found = by_disturbants(tables[TABLE])
    rows: dict[str, list[Any]] = {"disturbants": [*found], "similarity": [*found.values()]}
    noise = {name: one * len(found) for name, one in tables[NOISE].items()}
    return _repeat({LEVELS: rows | noise}, levels)


def find_lead(lines: Iterable[Mapping[str, Any]]) -> float | None:
    """Correlate similarity among Rare disturbants with the loss's next fall.

    Without classes of tokens it is that of all pairs; the untrained network is left out.
    """
    series = []
    for line in lines:
        found = by_disturbants(line[TABLE])
        if line["update"]:
            series.append((found.get("Rare", found.get(ALL)), line[NOISE]["loss"][0]))
    if len(series) < 4:
        return None
    value = lead(*np.array(series).T)
    return None if math.isnan(value) else value


Line = dict[str, Any]
TABLE, MAP = "gradient_stability", "stability_map"
NOISE, LEVELS = "gradient_noise", "at_levels"
KIND = "analysis"
"""Marks the lines of `metrics.jsonl` that hold the tables of one checkpoint."""
MEMORY_BUDGET = {"cpu": 2**29, "cuda": 2**31}
"""Bytes that all checkpoints that are measured at a time may be worked with; a GPU with less would
have idle units (docs/performance.md)."""


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
            levels, lines = self.spec.analysis.levels, RunDirectory(self.root, run).metrics()
            self.chosen = sorted(nearest_checkpoints(levels, self.training.training, lines))

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
        metrics = {**trained["metrics"], **summarise(self.lines.get(last, {}))}
        if isinstance(self.spec.analysis, DescentAnalysis):
            found = find_lead(self.lines[update] for update in sorted(self.lines))
            metrics |= {} if found is None else {"lead": found}
        return {
            **{key: trained[key] for key in sorted(kept)},
            "fingerprint": self.directory.fingerprint,
            "metrics": metrics,
            "tables": {**trained["tables"], **tabulate(list(self.lines.values()), last)},
        }


def analyse(
    spec: RunSpec, first: RunSpec, root: Path, updates: Sequence[int], device: torch.device
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
    budget = MEMORY_BUDGET[device.type] // max(1, num_workers)
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
        if config is None or not isinstance(task, SyntheticTask) or task.network == "vector":
            raise ConfigError(f"checkpoints are measured on tokens, not on {first.task.kind}")
        self.first, self.root, self.device = first, root, device
        self.local = threading.local()
        self.levels: Mapping[int, Sequence[float]] = {}
        self.measure: Measure
        if isinstance(config, StabilityAnalysis):
            self.measure = _measure_stability(config, task, spec.seed, budget)
            return
        lines = RunDirectory(root, first.fingerprint()).metrics()
        self.levels = nearest_checkpoints(config.levels, first.training, lines)
        if isinstance(config, AnatomyAnalysis):
            self.measure = Anatomy(config, task, spec.seed, device).tables
        else:
            self.measure = _measure_descent(config, task, first, device, budget)

    def of(self, update: int) -> Line:
        """Return the line of one checkpoint."""
        tables = self.measure(self._network(update))
        levels = self.levels.get(update, [])
        if NOISE in tables:
            tables |= at_levels(tables, levels) if levels else {}
        elif levels:
            tables = _repeat(tables, levels)
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
) -> Measure:
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


def _measure_descent(
    config: DescentAnalysis, task: SyntheticTask, first: RunSpec, device: torch.device, budget: int
) -> Measure:
    """Return what measures loss and gradients of networks with the same batches."""
    size = first.training.batch_size
    stream = RandomStream(first.seed, task.name, Split.ANALYSIS)
    # Pairs of sequences take later steps of this stream.
    words = stream.words(0, config.num_batches * size * task.num_draws)
    inputs = task.draw(words.reshape(-1, task.num_draws))
    batches = [task.batch(inputs[start : start + size]) for start in range(0, len(inputs), size)]
    stability = StabilityAnalysis(num_per_condition=config.num_per_condition)
    measure_stability = _measure_stability(stability, task, first.seed, budget)

    def measure(model: PositionEncodedRNN) -> Tables:
        weights = [one for one in model.parameters() if one.requires_grad]
        losses, gradients = [], []
        for batch in batches:
            (shown,) = show(batch, device)
            loss, _ = batch_loss(model, shown)
            found = torch.autograd.grad(loss, weights)
            gradients.append(torch.cat([one.flatten() for one in found]))
            losses.append(loss.item())
        signal, noise = gradient_noise(torch.stack(gradients), size)
        scale = math.log2(noise / signal) if noise > 0 < signal else None
        mean = math.fsum(losses) / len(losses)
        numbers = {"loss": mean, "signal": signal, "noise": noise, "noise_scale": scale}
        return {**measure_stability(model), NOISE: {name: [one] for name, one in numbers.items()}}

    return measure


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
    similarities = line[TABLE]["similarity"]
    found = {"similarity": math.fsum(similarities) / len(similarities)}
    return found | {
        f"similarity_{word.lower()}_disturbants": value
        for word, value in by_disturbants(line[TABLE]).items()
        if word != ALL
    }
