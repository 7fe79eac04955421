"""Plan, run and report a sweep, for `pernn run` and `pernn.lab.run`."""

import hashlib
import json
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pernn.errors import ConfigError, CorruptError, StoreError, one_line
from pernn.lab.config import own_parts_off
from pernn.lab.experiments import (
    ADDED,
    CATALOGUE,
    SINGLE,
    TUNED,
    Experiment,
    Tuning,
    find_experiment,
    trials,
    tune,
    with_axes,
)
from pernn.lab.runners import Limits, LocalRunner, OnEvent, Runner, TrialEvent, num_cores
from pernn.lab.runs import RunSpec, changed_parts
from pernn.lab.store import (
    Sweep,
    evidence_folder,
    gc_paused,
    in_words,
    is_done,
    is_pause_requested,
    list_sweeps,
    load_sweep,
    read_json,
    save_sweep,
    sweep_directory,
    withdraw_pause,
)
from pernn.lab.trials import (
    Trial,
    find_published,
    gather,
    read_trial,
    to_frame,
)

if TYPE_CHECKING:
    import pandas as pd

    from pernn.lab.reports import Format, Report, Verdict


@dataclass(frozen=True)
class SweepResult:
    """Result of a sweep.

    Attributes:
        name: The sweep's name, its folder below `sweeps/`.
        results: Results directory.
        failures: Trials that failed, each with its message.
        page: The report's page.
        verdicts: On each claim of the experiment.
        plan: What was run, with the trials that a tuned setting asked for.
        report: The report; `None` if the one on disk was up to date and left as it is.
        stopped: Why it stopped early; empty if it did not.
        damage: Why damaged runs were left out of the report.
    """

    name: str
    results: Path
    failures: Sequence[TrialEvent]
    page: Path
    verdicts: "Sequence[Verdict]"
    plan: "Plan"
    report: "Report | None" = None
    stopped: str = ""
    damage: Sequence[str] = ()

    def load(self, table: str | None = None) -> "pd.DataFrame":
        """Return the finished trials, or the rows of one table."""
        trials = gather(self.results, self.plan.sweep.runs, self.plan.published)
        return to_frame(trials, self.results, table)


def run(
    experiment: str | Experiment,
    scale: str = "demo",
    overrides: Mapping[str, Any] | None = None,
    *,
    results: str | Path = "results",
    evidence: str | Path | Literal[True] | None = True,
    runner: Runner | None = None,
    on_event: OnEvent = lambda event: None,
) -> SweepResult:
    """Run an experiment's missing trials, then write its report.

    Safe to interrupt and to repeat. A script that calls it needs no `if __name__` guard: trials run
    in processes of their own, which import parts by their kinds.

    Args:
        experiment: Its name, see `pernn list`, or an `Experiment`.
        scale: `demo`, `small` or `paper`.
        overrides: Dotted path → value that replaces every spec's, `{"core.hidden_size": 64}`; a
            list makes a grid, `{"seed": [111, 222]}`, and `+path` adds to the grid's own values,
            `{"+core.kind": "mingru:MinGRUConfig"}`, and `~path` tunes a setting,
            `{"~training.learning_rate": "0.001:0.014:9"}`.
        results: Results directory.
        evidence: Folder of published trials, which count as done; `True` for the one of the
            commands, which is `PERNN_EVIDENCE`, `evidence` here or else the wheel's own; `None` to
            run all trials here.
        runner: Where trials happen; if absent, in as many processes here as there are CPU cores
            that this one may use.
        on_event: Called with each trial's progress and end.

    Raises:
        ConfigError: If there is no such experiment or scale, an override fits no spec, or an
            `Experiment` has the name of another one.
        KeyboardInterrupt: After a signal, when every trial has a checkpoint.

    Example:
        `pernn.lab.run("vocabulary_size", overrides={"core.hidden_size": 32}).load()`
    """
    # Whatever reads the sweep later finds its experiment by the name.
    if (
        isinstance(experiment, Experiment)
        and experiment.name in {SINGLE, *CATALOGUE}
        and (experiment.name == SINGLE or experiment is not find_experiment(experiment.name))
    ):
        raise ConfigError(
            f"name is invalid: expected one that pernn does not use itself, got {experiment.name!r}"
        )

    @contextmanager
    def watch(specs: Sequence[RunSpec]) -> Iterator[OnEvent]:
        labels = {spec.fingerprint(): spec.label for spec in specs}

        def listen(event: TrialEvent) -> None:
            if event.is_warning:
                warnings.warn(f"{labels[event.run]}: {event.message}", stacklevel=2)
            on_event(event)

        yield listen

    return run_sweep(
        plan_sweep(experiment, scale, dict(overrides or {})),
        Path(results),
        runner or LocalRunner(jobs=num_cores()),
        evidence=evidence_folder() if evidence is True else Path(evidence) if evidence else None,
        watch=watch,
    )


def run_sweep(
    plan: "Plan",
    root: Path,
    runner: Runner,
    *,
    evidence: Path | None,
    watch: Callable[[Sequence[RunSpec]], AbstractContextManager[OnEvent]],
    prepare: Callable[[Sequence[RunSpec], int], None] = lambda specs, num_to_come: None,
    say: Callable[[str], None] = lambda text: None,
    on_warning: Callable[[str], None] = warnings.warn,
    anew: bool = True,
) -> SweepResult:
    """Run a sweep's missing trials, then write its report.

    Args:
        plan: The sweep.
        root: Results directory.
        runner: Where trials happen; it leaves if somebody asks for a pause.
        evidence: Folder of published trials, which count as done, if there is one.
        watch: Gives, for some trials, what is called with their events while they run.
        prepare: Called with the trials to run before any of them is begun, and how many more will
            come at least; may refuse them.
        say: Called with a line about what is done or about to be done.
        on_warning: Called with a line about what went wrong.
        anew: Write the report also where it is up to date and nothing was run.
    """
    name, limits = plan.sweep.name, getattr(runner, "limits", Limits())
    plan = plan.with_published(evidence, on_warning, root)
    wanted = plan.missing(root)
    withdraw_pause(root, name)  # one that is asked for from now on counts
    if wanted:
        prepare(wanted, plan.tuning.num_to_come(len(plan.chosen)) if plan.tuning else 0)
    save_plan(root, plan)
    done = {run: spec for run, spec in plan.specs.items() if is_done(root, run)}
    for change in changed_parts(done, root):
        on_warning(change)
    if taken := sum(not is_done(root, run) for run in plan.published):
        say(
            f"{taken} of {len(plan.specs)} trials are published and count as finished "
            "(--ignore-published runs them here)"
        )
    failures: list[TrialEvent] = []
    page, told = sweep_directory(root, name) / "index.html", set[str]()
    if not wanted:
        say(f"All {len(plan.specs)} trials of {name} are finished: nothing to do.")
        if not anew and plan.is_reported(root):
            return SweepResult(name, root, (), page, (), plan)
    with limits.anew(lambda: is_pause_requested(root, name)):
        while True:
            column = plan.tuning.column if plan.tuning else ""
            for condition in [one for one in plan.chosen if one not in told]:
                say(f"Chosen: {column} = {plan.chosen[condition]:g} for {condition}")
            told |= plan.chosen.keys()
            if wanted:
                kept = sum(plan.is_finished(root, run) for run in plan.specs)
                finished = f" ({kept} are finished)" if kept else ""
                say(
                    f"Running {len(wanted)} trials{finished}, {runner.describe()}; "
                    f"results in {one_line(str(root))}"
                )
                with watch(wanted) as on_event:
                    runner.run(wanted, root, partial(_note, failures, on_event))
            more = plan.with_published(evidence, on_warning, root)
            if limits.reason or failures or len(more.specs) == len(plan.specs):
                break
            plan = more
            save_plan(root, plan)
            wanted = plan.missing(root)
    stopped = limits.reason if more.missing(root) else ""
    for failure in failures:
        on_warning(f"{plan.specs[failure.run].label} {failure.state}: {failure.message}")
    damage: list[str] = []
    report = make_report(root, plan, damage.append)
    for lost in report.lacking:
        on_warning(lost)
    return SweepResult(
        name, root, failures, report.page, report.verdicts, plan, report, stopped, damage
    )


def _note(failures: list[TrialEvent], on_event: OnEvent, event: TrialEvent) -> None:
    """Keep an event that is a failure, and hand it on."""
    failures.extend([event] if event.state == "failed" else [])
    on_event(event)


def save_plan(root: Path, plan: "Plan") -> None:
    """Write a sweep's list of runs, if it is one.

    Of a tuned sweep, what is finished here stays in it, whatever published trials ask for today.
    """
    sweep = plan.sweep
    if sweep.experiment == SINGLE:
        return
    if plan.tuning and sweep.name in list_sweeps(root):
        with suppress(CorruptError):
            before = load_sweep(root, sweep.name).runs
            kept = [run for run in before if run not in plan.specs and is_done(root, run)]
            sweep = replace(sweep, runs=[*sweep.runs, *kept])
    save_sweep(root, sweep)


@dataclass(frozen=True)
class Plan:
    """A sweep with its experiment and its trials' specs."""

    sweep: Sweep
    experiment: Experiment
    specs: Mapping[str, RunSpec]  # run → spec, in the order of the grid
    # Run → trial, for those that count as finished although they are not in the results directory.
    published: Mapping[str, Trial] = field(default_factory=dict)
    # If a setting is tuned, how; trials are then added as others finish.
    tuning: Tuning | None = None
    # Condition → the value that was chosen for it.
    chosen: Mapping[str, float] = field(default_factory=dict)

    def with_published(
        self, folder: Path | None, complain: Callable[[str], None], root: Path
    ) -> "Plan":
        """Return the plan with its published trials."""
        return self.taking(lambda runs: find_published(folder, runs, complain), root)

    def taking(self, find: Callable[[Iterable[str]], dict[str, Trial]], root: Path) -> "Plan":
        """Return the plan with published trials, grown as they allow."""
        plan = replace(self, published=find(self.specs))
        more = plan.grown(root)
        return plan if len(more.specs) == len(plan.specs) else more.taking(find, root)

    def grown(self, root: Path) -> "Plan":
        """Return a plan, if tuned with all trials that finished ones need."""
        if self.tuning is None:
            return self
        metric = self.tuning.metric

        def score(spec: RunSpec) -> float | None:
            run, one = spec.fingerprint(), None
            with suppress(CorruptError):  # whoever reads all trials names it
                one = read_trial(root, run, lambda reason: None)
            one = one or self.published.get(run)
            return None if one is None else one.row().get(metric)

        trials, chosen = self.tuning.trials(score)
        specs = {spec.fingerprint(): spec for spec in trials}
        return replace(
            self,
            sweep=replace(self.sweep, runs=list(specs)),
            specs=specs,
            chosen={spec.label.rpartition(" seed ")[0]: best for spec, best in chosen.items()},
        )

    def is_finished(self, root: Path, run: str) -> bool:
        """Return whether a trial has a result, here or published."""
        return run in self.published or is_done(root, run)

    def missing(self, root: Path) -> list[RunSpec]:
        """Return the trials that have no result, those that failed included.

        One seed of everything comes first, so that early reports cover all.
        """
        found = [one for run, one in self.specs.items() if not self.is_finished(root, run)]
        return sorted(found, key=lambda one: one.seed)

    def summary(self, root: Path, report: "Report") -> dict[str, Any]:
        """Return how it stands, as plain values."""
        return {
            "sweep": self.sweep.name,
            "num_trials": len(self.specs),
            "num_finished": len(report.records),
            "num_published": sum(not is_done(root, run) for run in self.published),
            "page": str(report.page),
            "verdicts": [verdict.dump() for verdict in report.verdicts],
        }

    def is_reported(self, root: Path) -> bool:
        """Return whether the report on disk is certainly the present one.

        That of an experiment of one's own is not: its claims and figures may have been edited.
        """
        if self.experiment.name not in {SINGLE, *CATALOGUE} or self.missing(root):
            return False
        claims = sweep_directory(root, self.sweep.name) / "claims.json"
        try:
            return bool(read_json(claims).get("num_finished") == len(self.specs))
        except StoreError:
            return False


def restrict(published: Mapping[str, Trial], runs: Iterable[str]) -> dict[str, Trial]:
    """Return those of some runs that are published."""
    return {run: published[run] for run in runs if run in published}


def plan_sweep(experiment: str | Experiment, scale: str, overrides: Mapping[str, Any]) -> Plan:
    """Expand an experiment's grid at a scale, under a name."""
    found = find_experiment(experiment) if isinstance(experiment, str) else experiment
    # As they will be read again.
    changes = json.loads(json.dumps(overrides))
    plain = {path: value for path, value in changes.items() if not path.startswith(TUNED)}
    made = trials(found, scale, plain)
    name = name_sweep(found.name, scale, changes)
    found, tuning = tune(with_axes(found, made, plain), made, changes)
    made = made if tuning is None else tuple(tuning.trials(lambda spec: None)[0])
    specs = {spec.fingerprint(): spec for spec in made}
    sweep = Sweep(name, found.name, scale, changes, list(specs))
    return Plan(sweep, found, specs, tuning=tuning)


@own_parts_off()
def plan_again(sweep: Sweep) -> Plan:
    """Expand a sweep's grid to read it."""
    return plan_sweep(sweep.experiment, sweep.scale, sweep.overrides)


def name_sweep(experiment: str, scale: str, overrides: Mapping[str, Any]) -> str:
    """Return a sweep's name: experiment, scale and digest of overrides."""
    if not overrides:
        return f"{experiment}-{scale}"
    text = json.dumps(overrides, sort_keys=True)
    return f"{experiment}-{scale}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def repeat_command(sweep: Sweep) -> str:
    """Return the command that makes a sweep."""
    if sweep.experiment == SINGLE:
        return "pernn train RUN/spec.json"
    words = ["pernn", "run", sweep.experiment, "--scale", sweep.scale]
    for path, value in sweep.overrides.items():
        option = {ADDED: "--add", TUNED: "--tune"}.get(path[0], "--set")
        name = path if option == "--set" else path[1:]
        words += [option, f"{name}={in_words(value)}"]
    return shlex.join(words)


def report_of(
    root: Path,
    plan: Plan,
    complain: Callable[[str], None],
    formats: "Sequence[Format] | None" = None,
) -> "Report":
    """Return a sweep's report without damaged runs, made when asked for."""
    # Drawing takes longer to import than a sweep that is done takes to check.
    from pernn.lab.reports import FORMATS, Report, find_registered

    sweep = plan.sweep
    with gc_paused():
        found = gather(root, sweep.runs, plan.published, complain)
        environments = {one.run: one.environment for one in found}
        return Report(
            plan.experiment,
            sweep.scale,
            [one.row() for one in found],
            list(plan.specs.values()),
            repeat_command(sweep),
            trials=found,
            name=sweep.name,
            changes=sweep.changes,
            is_restricted=sweep.is_restricted,
            registered=find_registered(sweep, plan.experiment, plan.specs, environments),
            formats=FORMATS if formats is None else formats,
        )


def make_report(root: Path, plan: Plan, complain: Callable[[str], None]) -> "Report":
    """Write a sweep's figures, tables, verdicts and page into its folder."""
    report = report_of(root, plan, complain)
    with gc_paused():
        report.write(sweep_directory(root, plan.sweep.name))
    return report
