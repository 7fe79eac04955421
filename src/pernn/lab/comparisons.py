"""Comparison of two settings, sweeps or folders."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pernn.errors import ConfigError
from pernn.lab.experiments import LEVELS, experiment_names, find_experiment
from pernn.lab.lookup import find_plan
from pernn.lab.reports import Comparison, Side, compare_pace, select
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
            none.
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
            f"--until is invalid: expected a share of right tokens above 0, and no metric beside "
            f"it, got {until}" + (f" and {metric}" if metric else "")
        )
    levels = LEVELS if until is None else (*LEVELS, until)
    pool = _Pool(root, scale, published, complain, left_out, levels)
    conditions = ["=" in text for text in (first, second)]
    if conditions == [True, True]:
        records = pool.read_sweep(sweep) if sweep else pool.read_all(root)
        sides = [select(text, records, root) for text in (first, second)]
    elif True in conditions or sweep:
        raise ConfigError(
            "expected two conditions such as core.kind=gru, two sweeps or two folders"
        )
    else:
        sides = [pool.read_side(text) for text in (first, second)]
    one, other = sides
    if until is not None:
        return compare_pace(one, other, until)
    return compare_sides(one, other, metric or pool.metric([*one.records, *other.records]))


@dataclass
class _Pool:
    """Where trials come from, and which metric their experiments are about."""

    results: Path
    scale: str
    published: Path | None
    complain: Callable[[str], None]
    left_out: Callable[[str], None]
    levels: Sequence[float]
    metrics: list[set[str]] = field(default_factory=list)

    def read_sweep(self, name: str) -> Records:
        """Return a sweep's finished trials, or published ones if none ran."""
        plan = find_plan(self.results, name, self.scale, self.published, self.complain)
        found = gather(self.results, plan.sweep.runs, plan.published, self.left_out)
        return self._rows(found, plan.experiment.name)

    def read_all(self, folder: Path) -> Records:
        """Return all finished trials of a folder."""
        experiments = (load_sweep(folder, one).experiment for one in list_sweeps(folder))
        found = gather(folder, list_runs(folder), on_warning=self.left_out)
        return self._rows(found, *experiments)

    def read_side(self, text: str) -> Side:
        """Return the trials of a folder or a sweep."""
        folder = Path(text)
        if (folder / "runs").is_dir():
            return Side(text, self.read_all(folder), place=folder.resolve())
        if files := list_publications(folder):
            experiments = (describe_publication(one).experiment for one in files)
            records = self._rows(read_published(folder), *experiments)
            return Side(text, records, place=folder.resolve())
        return Side(text, self.read_sweep(text), place=self.results.resolve())

    def metric(self, records: Sequence[Mapping[str, Any]]) -> str:
        """Return the one metric of both sides' experiments, if there is one."""
        shared = set.intersection(*self.metrics)
        if len(shared) == 1:
            return shared.pop()
        if records and all("token_accuracy" in one for one in records):
            return "token_accuracy"
        known = ", ".join(sorted(set.union(*self.metrics))) or "token_accuracy, loss, perplexity …"
        raise ConfigError(f"--metric is missing: expected one of {known}")

    def _rows(self, trials: Iterable[Trial], *experiments: str) -> Records:
        known = {name for name in experiments if name in experiment_names()}
        self.metrics.append({find_experiment(name).figure.metrics[0] for name in known})
        return [one.row(self.levels) for one in trials]
