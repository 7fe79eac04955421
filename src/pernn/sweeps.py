"""A sweep: planned under a name, run to its end, reported; for notebooks, and for the verbs."""

import hashlib
import json
import os
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError
from pernn.experiments import Experiment, find_experiment, trials
from pernn.runners import Hear, LocalRunner, Runner, TrialEvent
from pernn.runs import RunSpec, changed_parts
from pernn.store import (
    Published,
    RunDirectory,
    Sweep,
    describe_machines,
    describe_published,
    find_published,
    is_done,
    list_sweeps,
    load_sweep,
    read_records,
    save_sweep,
    sweep_directory,
    without_collection,
)

if TYPE_CHECKING:
    import pandas as pd

    from pernn.reports import Report, Verdict


@dataclass(frozen=True)
class SweepResult:
    """What a sweep came to.

    Attributes:
        name: The sweep's name, its folder below `sweeps/`.
        results: Results directory.
        failures: Trials that failed, each with its message.
        page: The report's page.
        verdicts: On each claim of the experiment.
    """

    name: str
    results: Path
    failures: Sequence[TrialEvent]
    page: Path
    verdicts: "Sequence[Verdict]"

    def load(self, table: str | None = None) -> "pd.DataFrame":
        """Return the finished trials, or the rows of one of their tables; see `load_results`."""
        from pernn.reports import load_results

        return load_results(self.results, self.name, table=table)


def run(
    experiment: str | Experiment,
    scale: str = "demo",
    overrides: Mapping[str, Any] | None = None,
    *,
    results: str | Path = "results",
    evidence: str | Path | None = "evidence",
    runner: Runner | None = None,
    hear: Hear = lambda event: None,
) -> SweepResult:
    """Run what is missing of an experiment, then write its report, as `pernn run` does.

    Safe to interrupt and to repeat. A script that calls it needs no `if __name__` guard: trials run
    in processes of their own, which import parts by their kinds.

    Args:
        experiment: Its name, see `pernn list`, or an `Experiment`.
        scale: `demo`, `small` or `paper`.
        overrides: Dotted path → value that replaces every spec's, `{"core.hidden_size": 64}`.
        results: Results directory.
        evidence: Folder of published trials, which count as done; `None` to run them all here.
        runner: Where trials happen; as many processes here as there are CPU cores if absent.
        hear: Told of each trial's progress and end.

    Raises:
        ConfigError: If there is no such experiment or scale, or an override fits no spec.
        KeyboardInterrupt: After a signal, when every trial has a checkpoint.

    Example:
        `pernn.run("vocabulary_size", overrides={"core.hidden_size": 32}).load()`
    """
    found = find_experiment(experiment) if isinstance(experiment, str) else experiment
    root, changes = Path(results), dict(overrides or {})
    specs = {spec.fingerprint(): spec for spec in trials(found, scale, changes)}
    sweep = Sweep(name_sweep(found.name, scale, changes), found.name, scale, changes, list(specs))
    save_sweep(root, sweep)
    done = {run: spec for run, spec in specs.items() if is_done(root, run)}
    published = find_published(Path(evidence) if evidence else None, specs, warnings.warn)
    for change in changed_parts(done, root):
        warnings.warn(change, stacklevel=2)
    failures: list[TrialEvent] = []

    def listen(event: TrialEvent) -> None:
        if event.kind == "failed":
            failures.append(event)
            warnings.warn(f"{event.run} failed: {event.message}", stacklevel=2)
        elif event.kind == "warning":
            warnings.warn(f"{event.run}: {event.message}", stacklevel=2)
        hear(event)

    missing = [spec for run, spec in specs.items() if run not in done and run not in published]
    if missing:
        chosen = LocalRunner(jobs=os.cpu_count() or 1) if runner is None else runner
        chosen.run(missing, root, listen)
    report = make_report(root, sweep, warnings.warn, published, found)
    return SweepResult(sweep.name, root, failures, report.page, report.verdicts)


def name_sweep(experiment: str, scale: str, overrides: Mapping[str, Any]) -> str:
    """Name a sweep: experiment and scale, and a digest of what was overridden."""
    if not overrides:
        return f"{experiment}-{scale}"
    text = json.dumps(overrides, sort_keys=True)
    return f"{experiment}-{scale}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def repeat_command(sweep: Sweep) -> str:
    """Give the command that makes a sweep."""
    words = ["pernn", "run", sweep.experiment, "--scale", sweep.scale]
    for path, value in sweep.overrides.items():
        words += ["--set", f"{path}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def find_trials(sweep: Sweep, experiment: Experiment | None = None) -> dict[str, RunSpec]:
    """Return the specs of a sweep's trials by fingerprint, in the order of the grid."""
    found = experiment or find_experiment(sweep.experiment)
    return {spec.fingerprint(): spec for spec in trials(found, sweep.scale, dict(sweep.overrides))}


def read_finished(
    root: Path,
    sweep: Sweep,
    complain: Callable[[str], None],
    published: Mapping[str, Published],
) -> tuple[list[dict[str, Any]], list[Published]]:
    """Return the records of a sweep's finished trials, and which of them are published ones.

    A trial that finished here counts as it did here. Arguments are those of `make_report`.
    """
    records = read_records(root, sweep.runs, complain)
    here = {record["run"] for record in records}
    taken = [published[run] for run in sweep.runs if run in published and run not in here]
    return [*records, *(one.record() for one in taken)], taken


def make_report(
    root: Path,
    sweep: Sweep,
    complain: Callable[[str], None],
    published: Mapping[str, Published] | None = None,
    experiment: Experiment | None = None,
) -> "Report":
    """Write a sweep's figure, tables, verdicts and page.

    Args:
        root: Results directory.
        sweep: What is reported.
        complain: Told of each damaged run, which is left out.
        published: Trials that count although they are not in the results directory.
        experiment: That of the sweep, if it is not registered under its name.
    """
    # Drawing takes longer to import than a sweep that is done takes to check.
    from pernn.reports import write_report

    with without_collection():
        records, taken = read_finished(root, sweep, complain, published or {})
        return write_report(
            experiment or find_experiment(sweep.experiment),
            sweep.scale,
            records,
            list(find_trials(sweep, experiment).values()),
            sweep_directory(root, sweep.name),
            repeat_command(sweep),
            [*describe_machines(root, sweep.runs), *describe_published(taken)],
            curves=read_curves(root, records, taken),
        )


def read_curves(
    root: Path, records: Sequence[dict[str, Any]], taken: Sequence[Published] = ()
) -> list[dict[str, Any]]:
    """Return the thinned learning curves of finished trials, published ones among them."""
    from pernn.reports import NUM_POINTS, curve_rows

    published = {one.run: one for one in taken}

    def lines(run: str) -> list[dict[str, Any]]:
        one = published.get(run)
        return RunDirectory(root, run).read_metrics() if one is None else one.metric_lines()

    return curve_rows(records, lines, NUM_POINTS)


def make_study(root: Path, path: Path, complain: Callable[[str], None]) -> int:
    """Write one page of all sweeps of a results directory.

    Args:
        root: Results directory.
        path: Where the page goes.
        complain: Told of each damaged run and each sweep of an unknown experiment; left out.

    Returns:
        The number of sweeps on the page.
    """
    from pernn.reports import Chapter, draw_curves, write_study

    chapters = []
    with without_collection():
        for name in list_sweeps(root):
            sweep = load_sweep(root, name)
            try:
                experiment, planned = find_experiment(sweep.experiment), find_trials(sweep)
            except ConfigError as error:
                complain(f"sweep {name}: {error}")
                continue
            records = read_records(root, sweep.runs, complain)
            drawn = draw_curves(experiment, read_curves(root, records), sweep.scale, ("svg",))
            origin, hours = _provenance(root, [record["run"] for record in records])
            chapters.append(
                Chapter(
                    experiment,
                    sweep.scale,
                    records,
                    list(planned.values()),
                    repeat_command(sweep),
                    [*describe_machines(root, sweep.runs), *hours],
                    origin,
                    changed=bool(sweep.overrides),
                    curves=drawn.drawn["svg"].decode() if drawn.drawn else "",
                )
            )
        write_study(chapters, path)
    return len(chapters)


def _provenance(root: Path, runs: Sequence[str]) -> tuple[str, list[str]]:
    """Return with what versions runs were made, and how long they took."""
    found: dict[str, None] = {}
    seconds = 0.0
    for run in runs:
        directory = RunDirectory(root, run)
        about = directory.read_environment() or {}
        packages, commit = about.get("packages"), about.get("commit")
        version = packages.get("pernn") if isinstance(packages, dict) else None
        found[f"{version or 'unknown'}{f' ({str(commit)[:10]})' if commit else ''}"] = None
        for event in directory.read_journal():
            taken = event.get("seconds")
            seconds += taken if isinstance(taken, int | float) else 0.0
    words = f"They computed for {seconds / 3600:,.2f} hours in all, one after another."
    return ", ".join(found), [words] if runs else []
