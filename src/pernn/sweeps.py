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

from pernn.experiments import Experiment, find_experiment, trials
from pernn.runners import Hear, LocalRunner, Runner, TrialEvent
from pernn.runs import RunSpec, changed_parts
from pernn.store import (
    Sweep,
    describe_machines,
    gc_paused,
    is_done,
    read_records,
    save_sweep,
    sweep_directory,
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

    missing = [spec for run, spec in specs.items() if run not in done]
    if missing:
        chosen = LocalRunner(jobs=os.cpu_count() or 1) if runner is None else runner
        chosen.run(missing, root, listen)
    report = make_report(root, sweep, warnings.warn, found)
    return SweepResult(sweep.name, root, failures, report.page, report.verdicts)


def name_sweep(experiment: str, scale: str, overrides: Mapping[str, Any]) -> str:
    """Name a sweep: experiment and scale, and a digest of what was overridden."""
    if not overrides:
        return f"{experiment}-{scale}"
    text = json.dumps(overrides, sort_keys=True)
    return f"{experiment}-{scale}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def repeat_command(sweep: Sweep) -> str:
    """Return the command that makes a sweep."""
    words = ["pernn", "run", sweep.experiment, "--scale", sweep.scale]
    for path, value in sweep.overrides.items():
        words += ["--set", f"{path}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def find_trials(sweep: Sweep, experiment: Experiment | None = None) -> dict[str, RunSpec]:
    """Return the specs of a sweep's trials by fingerprint, in the order of the grid."""
    found = experiment or find_experiment(sweep.experiment)
    return {spec.fingerprint(): spec for spec in trials(found, sweep.scale, dict(sweep.overrides))}


def make_report(
    root: Path,
    sweep: Sweep,
    complain: Callable[[str], None],
    experiment: Experiment | None = None,
) -> "Report":
    """Write a sweep's figure, tables, verdicts and page.

    Args:
        root: Results directory.
        sweep: What is reported.
        complain: Told of each damaged run, which is left out.
        experiment: That of the sweep, if it is not registered under its name.
    """
    # Drawing takes longer to import than a sweep that is done takes to check.
    from pernn.reports import write_report

    with gc_paused():
        return write_report(
            experiment or find_experiment(sweep.experiment),
            sweep.scale,
            read_records(root, sweep.runs, complain),
            list(find_trials(sweep, experiment).values()),
            sweep_directory(root, sweep.name),
            repeat_command(sweep),
            describe_machines(root, sweep.runs),
        )
