"""Analysis of a training's checkpoints: gradient stability, anatomy, and descent."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
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
from pernn.lab.config import grouped
from pernn.lab.interfaces import Batch, SequenceModel
from pernn.lab.pairing import dual_frequency_pairs, stability_map
from pernn.lab.store import RunDirectory
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

Line = dict[str, Any]
Tables = dict[str, dict[str, list[Any]]]
Measure = Callable[[PositionEncodedRNN, Sequence[float]], Tables]
"""Takes a network and the levels that it stands for."""
TABLE, MAP = "gradient_stability", "stability_map"
NOISE, LEVELS = "gradient_noise", "at_levels"
KIND = "analysis"
"""Marks the lines of `metrics.jsonl` that hold the tables of one checkpoint."""
MEMORY_BUDGET = {"cpu": 2**29, "cuda": 2**31}
"""Bytes that all checkpoints that are measured at a time may be worked with; a GPU with less would
have idle units (docs/performance.md)."""
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
    model, batch = load_model(run, device=chosen), task.stream(spec.seed).test()
    return _sort_errors(model, task, batch, chosen)


def _sort_errors(
    model: SequenceModel, task: SyntheticTask, batch: Batch, device: torch.device
) -> RecallErrors:
    answers = predict(model, batch, device).values
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
    # Between the last multiple of the interval and the end, whichever is nearer.
    kept: list[int] = [*range(interval, last, interval), last]

    def nearest(level: float) -> int:
        first = next((update for update, accuracy in curve if accuracy >= level), last)
        return min(kept, key=lambda one: abs(one - first))

    return grouped((nearest(level), level) for level in levels)


def choose_checkpoints(spec: RunSpec, root: Path) -> Mapping[int, Sequence[float]]:
    """Map the checkpoints that are measured to their levels."""
    config, every = spec.analysis, dict.fromkeys(spec.analysed_updates, ())
    if config is None or isinstance(config, StabilityAnalysis):
        return every
    first = spec.first_stage() or spec
    lines = RunDirectory(root, first.fingerprint()).metrics()
    nearest = nearest_checkpoints(config.levels, spec.training, lines)
    return nearest if isinstance(config, AnatomyAnalysis) else {**every, **nearest}


def analyse(
    spec: RunSpec, root: Path, levels: Mapping[int, Sequence[float]], device: torch.device
) -> Iterator[Line]:
    """Measure some checkpoints of a training run, one line each.

    Args:
        spec: What is to be measured, of the training that is its first stage.
        root: Results directory of both.
        levels: Which checkpoints, 0 for the network before the training, and what they stand for.
        device: Where it is computed.

    Yields:
        Update and tables: a row per condition, and per position in the map.

    Raises:
        ConfigError: If the task has no such pairs of sequences.
        CorruptError: If a checkpoint is missing or damaged.
    """
    first = spec.first_stage() or spec
    directory = RunDirectory(root, first.fingerprint())
    # With one thread for each, the numbers do not depend on how many there are.
    num_workers = min(len(levels), torch.get_num_threads()) if device.type == "cpu" else 1
    budget = MEMORY_BUDGET[device.type] // max(1, num_workers)
    measure = build_measure(spec, device, budget)

    def measure_one(update: int) -> Line:
        model, folder = deepcopy(untrained), directory.checkpoints
        if update:
            try:
                arrays = folder.load(update).arrays
            except CorruptError as error:
                raise CorruptError(f"{error}; delete {directory.path} to train it again") from None
            restore_weights(model, arrays, folder.path)
        return {"update": update, "kind": KIND, **measure(model, levels[update])}

    pool = ThreadPoolExecutor(max(1, num_workers), "checkpoint", _begin_thread)
    try:
        # Drawn by one thread, too.
        untrained: Any = pool.submit(build_stage, first, root, device).result().model
        yield from pool.map(measure_one, levels)
    finally:
        # If nobody wants more of them, those that were not begun are left out.
        pool.shutdown(cancel_futures=True)


def build_measure(spec: RunSpec, device: torch.device, budget: int) -> Measure:
    """Return what measures the networks of a spec with the same sequences.

    Raises:
        ConfigError: If the task has no such sequences, or there are too few of them.
        MachineError: If a package is missing.
    """
    config, task = spec.analysis, spec.build_task()
    if config is None or not isinstance(task, SyntheticTask) or task.network == "vector":
        raise ConfigError(f"checkpoints are measured on tokens, not on {spec.task.kind}")
    if isinstance(config, AnatomyAnalysis):
        return _measure_anatomy(config, task, spec.seed, device)
    if isinstance(config, DescentAnalysis):
        return _measure_descent(config, task, spec, device, budget)
    return _measure_stability(config, task, spec.seed, budget)


def _begin_thread() -> None:
    """Put into force what each thread has of its own."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


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
        lines = analyse(spec, root, dict.fromkeys(updates, ()), chosen)
        return tabulate(watch(lines, len(updates)), first.training.iterations)


def _measure_stability(
    config: StabilityAnalysis, task: SyntheticTask, seed: int, budget: int
) -> Measure:
    """Return what measures the gradient stability of networks with the same pairs."""
    pairs = dual_frequency_pairs(
        task, seed, num_per_condition=config.num_per_condition, source=config.source_step
    )

    def measure(model: PositionEncodedRNN, _levels: Sequence[float]) -> Tables:
        tables = {TABLE: gradient_stability(model, pairs, memory_budget=budget).table()}
        if count := config.map_per_condition:
            tables[MAP] = stability_map(
                model, task, seed, num_per_condition=count, memory_budget=budget
            )
        return tables

    return measure


def _measure_descent(
    config: DescentAnalysis, task: SyntheticTask, spec: RunSpec, device: torch.device, budget: int
) -> Measure:
    """Return what measures loss and gradients of networks with the same batches."""
    size = spec.training.batch_size
    inputs = _draw(task, spec.seed, config.num_batches * size)
    batches = [task.batch(inputs[start : start + size]) for start in range(0, len(inputs), size)]
    stability = StabilityAnalysis(num_per_condition=config.num_per_condition)
    measure_stability = _measure_stability(stability, task, spec.seed, budget)

    def measure(model: PositionEncodedRNN, levels: Sequence[float]) -> Tables:
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
        tables = measure_stability(model, ())
        similar = by_disturbants(tables[TABLE])
        tables[NOISE] = {name: [one] for name, one in numbers.items()}
        rows: dict[str, list[Any]]
        rows = {"disturbants": [*similar], "similarity": [*similar.values()]}
        rows |= {name: one * len(similar) for name, one in tables[NOISE].items()}
        return tables | _stack(({"level": level}, {LEVELS: rows}) for level in levels)

    return measure


def _measure_anatomy(
    config: AnatomyAnalysis, task: SyntheticTask, seed: int, device: torch.device
) -> Measure:
    """Return what measures answers and states of networks with the same sequences."""
    if task.network != "queried" or len(task.length.possible) > 1 or task.longest < 2:
        raise ConfigError(
            "the anatomy is that of networks that answer queries about sequences of one "
            f"length above 1, got {task.name!r} at length {task.longest}"
        )
    inputs = _draw(task, seed, config.num_sequences)
    batch, length = task.batch(inputs), inputs.shape[1]
    try:
        for labels in inputs.T:
            read_linearly(inputs.astype(np.float64), labels)
    except ValueError as error:
        raise ConfigError(
            f"analysis.num_sequences is invalid: too few to read {task.vocab_size} tokens by "
            f"({error}), got {config.num_sequences}"
        ) from None
    noise_seed = int(RandomStream(seed, task.name, Split.ANALYSIS).words(0, 1, lane=1)[0] >> 1)

    def measure(model: PositionEncodedRNN, levels: Sequence[float]) -> Tables:
        found = _sort_errors(model, task, batch, device)
        generator = torch.Generator().manual_seed(noise_seed)
        shares = np.repeat(config.noise, NOISE_DRAWS).tolist()
        noisy = (perturb(model, share, generator) for share in shares)
        drawn = [_sort_errors(one, task, batch, device).accuracy for one in noisy]
        under_noise = np.reshape(drawn, (-1, NOISE_DRAWS)).mean(axis=1)
        with torch.no_grad():
            gates = model.project(torch.from_numpy(batch.tokens).to(device), batch.num_queries)
        few = gates[: len(gates) // FEWER, :length]
        slope = log_slope(input_gradients(model.core, few, model.embedding.embedding_dim))
        overlap = subspace_overlap(position_changes(model.core, few, few.roll(1, 0)))
        moved = overlap.diagonal().count_nonzero().item()  # these have 1 with themselves
        states = latent_states(model.core, gates).cpu().numpy()
        tokens_read, time_read = _read_tokens(states, inputs), _read_time(states[::FEWER])
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
        loss = (found.accuracy - under_noise).tolist()
        tables = {
            "anatomy": {name: [_finite(value)] for name, value in numbers.items()},
            "errors": tabulate_errors(found),
            "noise": {"noise": [*config.noise], "loss": loss},
            "tokens": tokens_read,
            "time": time_read,
        }
        # The rows are those of every level that the checkpoint stands for.
        return _stack(({"level": level}, tables) for level in levels)

    return measure


def _finite(value: float) -> float | None:
    """Return a number as JSON takes it: where a gradient is 0 its slope is unknown."""
    return float(value) if math.isfinite(value) else None


def _draw(task: SyntheticTask, seed: int, count: int) -> Any:
    """Draw inputs; pairs of sequences take later steps of this stream."""
    words = RandomStream(seed, task.name, Split.ANALYSIS).words(0, count * task.num_draws)
    return task.draw(words.reshape(count, -1))


def _read_tokens(states: np.ndarray, inputs: np.ndarray) -> dict[str, list[Any]]:
    """Read every token that was shown from the state after every step of the input."""
    places = [(t, p) for t in range(inputs.shape[1]) for p in range(t + 1)]
    read = [read_linearly(states[:, t], inputs[:, p]).mean() for t, p in places]
    steps, positions = ([place + 1 for place in axis] for axis in zip(*places, strict=True))
    return {"step": steps, "position": positions, "read": [float(share) for share in read]}


def _read_time(states: np.ndarray) -> dict[str, list[Any]]:
    """Read the step from the state after it."""
    count, num_steps, width = states.shape
    labels = np.tile(np.arange(num_steps), count)
    read = read_linearly(states.reshape(-1, width), labels).reshape(count, num_steps)
    return {"step": [*range(1, num_steps + 1)], "read": read.mean(axis=0).tolist()}


def tabulate(lines: Iterable[Mapping[str, Any]], last: int) -> Tables:
    """Stack the tables of all checkpoints, each row with its update."""
    parts = []
    for line in sorted(lines, key=lambda line: line["update"]):
        own = {"update": line["update"], "percent": round(100 * line["update"] / last)}
        parts.append((own, {key: one for key, one in line.items() if isinstance(one, Mapping)}))
    return _stack(parts)


def _stack(parts: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Tables:
    """Put tables below each other, whose rows begin with what their part has in common."""
    stacked: Tables = {}
    for own, tables in parts:
        for name, table in tables.items():
            count = len(next(iter(table.values())))
            rows = {**{key: [value] * count for key, value in own.items()}, **table}
            for key, values in rows.items():
                stacked.setdefault(name, {}).setdefault(key, []).extend(values)
    return stacked


def by_disturbants(table: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Average the similarities of a checkpoint over the classes of the target."""
    found = grouped(zip(table["disturbants"], table["similarity"], strict=True))
    return {word: math.fsum(values) / len(values) for word, values in found.items()}


def find_lead(lines: Iterable[Mapping[str, Any]]) -> float | None:
    """Correlate similarity among Rare disturbants with the loss's next fall.

    Without classes of tokens it is that of all pairs; the untrained network is left out.
    """
    trained = [line for line in lines if line["update"]]
    if len(trained) < 4:
        return None
    found = [by_disturbants(line[TABLE]) for line in trained]
    similarities = np.array([one.get("Rare", one.get(ALL)) for one in found])
    value = lead(similarities, np.array([line[NOISE]["loss"][0] for line in trained]))
    return None if math.isnan(value) else value


def worst(line: Mapping[str, Any], update: int) -> dict[str, Any]:
    """Return the measurement of a diverged network: gradients that point apart.

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
