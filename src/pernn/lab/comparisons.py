"""Comparison of two settings, sweeps or folders."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pernn.errors import ConfigError
from pernn.lab.experiments import LEVELS, experiment_names, find_experiment
from pernn.lab.lookup import find_plan
from pernn.lab.reports import Comparison, Side, at_own_best, compare_pace, select
from pernn.lab.reports import compare as compare_sides
from pernn.lab.store import (
    describe_publication,
    evidence_folder,
    list_publications,
    list_runs,
    list_sweeps,
    load_sweep,
)
from pernn.lab.trials import Trial, gather, read_published

Records = list[dict[str, Any]]


def compare(
    first: str,
    second: str,
    *,
    sweep: str | None = None,
    metric: str | None = None,
    until: float | None = None,
    scale: str = "demo",
    results: str | Path = "results",
    evidence: str | Path | Literal[True] | None = True,
    complain: Callable[[str], None] = warnings.warn,
    left_out: Callable[[str], None] = warnings.warn,
) -> Comparison:
    """Compare two sets of trials, paired by seed and other settings.

    Args:
        first: Conditions such as `core.kind=gru,task.length=32`, a sweep, an experiment, or a
            folder of results or of published trials.
        second: Likewise; differences are first − second.
        sweep: Where conditions select from; all finished trials of the directory if absent.
        metric: What is compared; that of the experiments if absent.
        until: Compare by the updates until the training accuracy first reached this level.
        scale: Of experiments.
        results: Results directory.
        evidence: Folder of published trials, which count as finished, as in `run`; `None` to count
            none. Of a sweep, seeds that choose a setting take no part.
        complain: Told why published trials do not count.
        left_out: Told of each damaged run.

    Raises:
        ConfigError: If the two are not of one sort, nothing matches, or no metric is clear.

    Example:
        `pernn.lab.compare("encoding.kind=sinusoidal", "encoding.kind=none", sweep="sorting-small")`
        shows a table in a notebook; its `rows` and `dump()` are for programs.
    """
    root = Path(results)
    published = evidence_folder() if evidence is True else Path(evidence) if evidence else None
    if until is not None and (metric is not None or not 0 < until <= 1):
        raise ConfigError(
            f"until is invalid: expected a share of right tokens above 0, and no metric beside "
            f"it, got {until}" + (f" and {metric}" if metric else "")
        )
    levels = LEVELS if until is None else (*LEVELS, until)
    metrics: list[set[str]] = []
    best: set[str] = set()

    def rows(trials: Iterable[Trial], experiments: Iterable[str]) -> Records:
        known = {*experiments} & {*experiment_names()}
        metrics.append({find_experiment(name).figure.metrics[0] for name in known})
        return [one.row(levels) for one in trials]

    def of_sweep(name: str) -> Records:
        plan = find_plan(root, name, scale, published, complain)
        found = gather(root, plan.sweep.runs, plan.published, left_out)
        records = rows(found, [plan.experiment.name])
        # Both sides at one value of what is tuned, if they say so.
        judged, columns = at_own_best(plan.experiment, records, f"{first},{second}")
        best.update(columns)
        return judged

    def of_results(folder: Path) -> Records:
        experiments = (load_sweep(folder, one).experiment for one in list_sweeps(folder))
        return rows(gather(folder, list_runs(folder), on_warning=left_out), experiments)

    def side(text: str) -> Side:
        folder = Path(text)
        if (folder / "runs").is_dir():
            records = of_results(folder)
        elif files := list_publications(folder):
            experiments = (describe_publication(one).experiment for one in files)
            records = rows(read_published(folder), experiments)
        else:
            folder, records = root, of_sweep(text)
        return Side(text, records, place=folder.resolve())

    conditions = ["=" in text for text in (first, second)]
    if all(conditions):
        records = of_sweep(sweep) if sweep else of_results(root)
        sides = (select(text, records, root) for text in (first, second))
        # Each side at its own best value, whichever that is.
        one, other = (
            replace(side, where={**dict.fromkeys(best, side.name), **(side.where or {})})
            for side in sides
        )
    elif any(conditions) or sweep:
        raise ConfigError(
            "expected two conditions such as core.kind=gru, two sweeps or two folders"
        )
    else:
        one, other = side(first), side(second)
    if until is not None:
        return compare_pace(one, other, until)
    return compare_sides(one, other, metric or _metric(metrics, [*one.records, *other.records]))


def _metric(known: Sequence[set[str]], records: Sequence[Mapping[str, Any]]) -> str:
    """Return the one metric of both sides' experiments, if there is one."""
    shared = set.intersection(*known)
    if len(shared) == 1:
        return shared.pop()
    if records and all("token_accuracy" in one for one in records):
        return "token_accuracy"
    every = ", ".join(sorted(set.union(*known))) or "token_accuracy, loss, perplexity …"
    raise ConfigError(f"--metric is missing: expected one of {every}")
