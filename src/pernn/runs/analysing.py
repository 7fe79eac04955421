"""A stage that measures gradient stability in the checkpoints that a training run kept."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from pernn.analysis import KINDS, dual_frequency_pairs, gradient_stability, stability_map
from pernn.errors import ConfigError, CorruptError
from pernn.models import PositionEncodedRNN
from pernn.store import RunDirectory, sealed
from pernn.tasks import SyntheticTask
from pernn.training import choose_device, computing

from .active import OnUpdate, Outcome
from .assembly import build_stage, read_run, restore_weights
from .spec import RunSpec, StabilityAnalysis

Line = dict[str, Any]
TABLE, MAP = "gradient_stability", "stability_map"
KIND = "analysis"
"""Marks the lines of `metrics.jsonl` that hold the tables of one checkpoint."""
MEMORY_BUDGET = 2**29
"""Bytes that all checkpoints that are measured at a time may be worked with."""


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
    """Measure the untrained network and every checkpoint that a run has, finished or not.

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
            raise ConfigError(f"gradient stability is measured on tokens, not on {first.task.kind}")
        self.config, self.task, self.seed, self.budget = config, task, spec.seed, budget
        self.first, self.root, self.device = first, root, device
        self.pairs = dual_frequency_pairs(
            task, spec.seed, num_per_condition=config.num_per_condition, source=config.source_step
        )
        self.local = threading.local()

    def of(self, update: int) -> dict[str, Any]:
        """Return the line of one checkpoint."""
        model, budget = self._network(update), self.budget
        line = {"update": update, "kind": KIND}
        line[TABLE] = gradient_stability(model, self.pairs, memory_budget=budget).table()
        if count := self.config.map_per_condition:
            line[MAP] = stability_map(
                model, self.task, self.seed, num_per_condition=count, memory_budget=budget
            )
        return line

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


def tabulate(lines: Sequence[Mapping[str, Any]], last: int) -> dict[str, dict[str, list[Any]]]:
    """Put the tables of all checkpoints under one another, each row with its update."""
    tables: dict[str, dict[str, list[Any]]] = {}
    for line in sorted(lines, key=lambda line: line["update"]):
        for name in (TABLE, MAP):
            if name not in line:
                continue
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
    """Return the mean similarity of a checkpoint, and by disturbants where they differ."""
    table = line[TABLE]
    groups: dict[str, list[float]] = {"similarity": table["similarity"]}
    for word, value in zip(table["disturbants"], table["similarity"], strict=True):
        if word in ("Frequent", "Rare"):
            groups.setdefault(f"similarity_{word.lower()}_disturbants", []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in groups.items()}


def run_analysis(
    spec: RunSpec,
    first: RunSpec,
    directory: RunDirectory,
    root: Path,
    device: torch.device,
    on_update: OnUpdate,
) -> Outcome:
    """Measure what is not measured yet; the run's directory is locked by the caller.

    A line of `metrics.jsonl` is the measurement of one checkpoint: whatever is killed in between,
    only the one that was under way is lost.
    """
    lines = {line["update"]: line for line in directory.read_metrics()}
    trained = RunDirectory(root, first.fingerprint()).read_result()
    if trained is None:
        raise CorruptError(f"{root}: the training run {first.fingerprint()} has no result")
    diverged = trained.get("diverged")
    measured = [one for one in spec.analysed_updates if not diverged or one < diverged["update"]]
    open_updates = [update for update in measured if update not in lines]
    directory.note("started" if not lines else "resumed", checkpoints=len(open_updates))
    before = first.num_updates
    for line in analyse(spec, first, root, open_updates, device):
        directory.append_metrics(sealed(line))
        lines[line["update"]] = line
        if not on_update(before + len(lines)) and len(lines) < len(measured):
            directory.note("stopped", checkpoints=len(lines))
            return Outcome("stopped", None)
    for update in sorted({*spec.analysed_updates} - {*measured}):
        lines[update] = _worst(lines[0], update)
    last = first.training.iterations
    kept = {"num_parameters", "weights_sha256", "diverged"} & trained.keys()
    result = {
        **{key: trained[key] for key in sorted(kept)},
        "fingerprint": spec.fingerprint(),
        "metrics": {**trained["metrics"], **summarise(lines[last])},
        "tables": {**trained["tables"], **tabulate(list(lines.values()), last)},
    }
    directory.write_result(result)
    directory.note("finished", checkpoints=len(lines))
    return Outcome("finished", result)
