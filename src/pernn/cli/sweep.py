"""What `run`, `resume` and `retry` share: run what is missing, show how it gets on, then report."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pernn.errors import ConfigError, StoreError, one_line
from pernn.experiments import SINGLE
from pernn.kernels import may_compile_first
from pernn.runners import OnEvent, Runner, TrialEvent
from pernn.runs import RunSpec, estimate, show_hours
from pernn.store import (
    RunDirectory,
    is_done,
    is_pause_requested,
    require_writable,
    save_sweep,
    sweep_directory,
    withdraw_pause,
)
from pernn.sweeps import Plan, make_report

from .launch import Launch
from .options import print_json, published_folder, warn
from .statuses import LEFT_EARLY, failure_status, left_out

if TYPE_CHECKING:
    from pernn.reports import Report


def run_sweep(
    plan: Plan, root: Path, launch: Launch, *, as_json: bool, only: Sequence[str] = ()
) -> int:
    """Run the trials of a sweep that are missing, write its report, and return the exit status."""
    name = plan.sweep.name
    published = published_folder(ignore=launch.ignore_published)
    plan = plan.with_published(published, warn, root)
    limits = launch.limits(lambda: is_pause_requested(root, name))
    # First of all, so that invalid options are refused before anything is written.
    runner = launch.make_runner(limits)
    # Messages go to standard error when standard output is for a script.
    console = Console(stderr=as_json)
    wanted = plan.missing(root, only, launch.order)
    if wanted:
        launch.check_machine(wanted)
        if may_compile_first():
            console.print("The kernels are compiled first (once, about 20 s).")
    # Any name will do: what a worker or a report would find too late is found now.
    require_writable(root / name)
    if wanted and launch.is_here and not launch.force:
        _check_room(wanted, root, launch, console)
    if plan.sweep.experiment != SINGLE:
        save_sweep(root, plan.sweep)
    withdraw_pause(root, name)
    for change in plan.changes(root):
        warn(f"{change}")
    if taken := sum(not is_done(root, run) for run in plan.published):
        console.print(
            f"{taken} of {len(plan.specs)} trials are published and count as finished "
            "(--ignore-published runs them here)",
            soft_wrap=True,
        )
    if not wanted:
        console.print(f"All {len(plan.specs)} trials of {name} are finished: nothing to do.")
        if plan.is_reported(root) and not as_json:
            _show_page(sweep_directory(root, name) / "index.html", console)
            return 0
    _say_chosen(plan, {}, console)
    tally = _run(plan, wanted, root, runner, console)
    while plan.tuning and not (limits.reason or tally.failures or only):
        before, plan = plan, plan.with_published(published, warn, root)
        if len(plan.specs) == len(before.specs):
            break
        _say_chosen(plan, before.chosen, console)
        save_sweep(root, plan.sweep)
        wanted = plan.missing(root, (), launch.order)
        tally = _run(plan, wanted, root, runner, console)
    if len(tally.ended) < len(wanted) and not limits.reason:
        console.print(
            f"{len(wanted) - len(tally.ended)} trials are left to their jobs: `pernn status "
            f"{name}` says how they stand, `pernn report` makes the report.",
            soft_wrap=True,
        )
    return _end(plan, tally, root, console, limits.reason, as_json=as_json)


def _end(
    plan: Plan, tally: "Tally", root: Path, console: Console, reason: str | None, *, as_json: bool
) -> int:
    """Write the report, say what is left, and return the exit status."""
    for failure in tally.failures:
        warn(f"{tally.specs[failure.run].label} {failure.state}: {failure.message}")
    lost = _report(plan, root, console, as_json=as_json)
    if reason:
        finished = sum(plan.is_finished(root, run) for run in plan.specs)
        typer.echo(
            f"pernn: stopped: {reason}; {finished} of {len(plan.specs)} trials are "
            f"finished; to go on: pernn resume {plan.sweep.name}",
            err=True,
        )
    return failure_status(tally.failures) or lost or (LEFT_EARLY if reason else 0)


def _say_chosen(plan: Plan, said: Mapping[str, float], console: Console) -> None:
    """Print what was chosen since it was last said."""
    for name, value in plan.chosen.items():
        if name not in said and plan.tuning is not None:
            text = f"Chosen: {plan.tuning.column} = {value:g} for {name}"
            console.print(text, soft_wrap=True, markup=False)


def _check_room(wanted: Sequence[RunSpec], root: Path, launch: Launch, console: Console) -> None:
    """Show what the trials will take, refuse what does not fit, and ask before more than a day."""
    console.print("Timing a few updates of each kind of trial …")
    found = estimate(
        wanted,
        root,
        jobs=launch.jobs_here,
        threads=launch.threads,
        device=launch.device,
    )
    console.print(f"Needs {found.describe()}", soft_wrap=True, markup=False)
    found.check()
    limited = launch.time_limit is not None or launch.max_trials is not None
    if launch.yes or limited or not found.is_long:
        return
    time = "" if found.hours is None else f"at least {show_hours(found.hours[0])}"
    if not sys.stdin.isatty():
        raise ConfigError(
            f"this takes {time}: say --yes to begin, or limit it with --time-limit or --max-trials"
        )
    typer.confirm(f"This takes {time}. Begin?", abort=True)


def _run(
    plan: Plan, wanted: Sequence[RunSpec], root: Path, runner: Runner, console: Console
) -> "Tally":
    tally = Tally(wanted, root)
    if not wanted:
        return tally
    kept = sum(plan.is_finished(root, run) for run in plan.specs)
    finished = f" ({kept} are finished)" if kept else ""
    console.print(
        f"Running {len(wanted)} trials{finished}, {runner.describe()}; "
        f"results in {one_line(str(root))}",
        soft_wrap=True,
        markup=False,
    )
    with showing(tally, console) as on_event:
        runner.run(wanted, root, on_event)
    return tally


def _report(plan: Plan, root: Path, console: Console, *, as_json: bool) -> int:
    """Write and show the report; return the exit status of damaged runs."""
    damage: list[str] = []
    report = make_report(root, plan, damage.append)
    if as_json:
        print_json(summary(plan, root, report))
    else:
        from .terminal import print_verdicts

        print_verdicts(report.verdicts, console, brief=True)
        _show_page(report.page, console)
    return left_out(damage)


def _show_page(page: Path, console: Console) -> None:
    console.print(one_line(f"Report: {page}"), soft_wrap=True, markup=False)


def summary(plan: Plan, root: Path, report: "Report") -> dict[str, Any]:
    """Return how a sweep stands, as plain values."""
    return {
        "sweep": plan.sweep.name,
        "num_trials": len(plan.sweep.runs),
        "num_finished": sum(plan.is_finished(root, run) for run in plan.sweep.runs),
        "num_published": sum(not is_done(root, run) for run in plan.published),
        "page": str(report.page),
        "verdicts": [verdict.dump() for verdict in report.verdicts],
    }


class Tally:
    """Counts what happens to a set of trials."""

    def __init__(self, specs: Sequence[RunSpec], root: Path) -> None:
        self.specs = {spec.fingerprint(): spec for spec in specs}
        self.updates = {run: _last_checkpoint(RunDirectory(root, run)) for run in self.specs}
        self.first = sum(self.updates.values())
        self.ended: dict[str, TrialEvent] = {}
        self.begun = time.monotonic()

    def on_event(self, event: TrialEvent) -> None:
        """Take note of an event."""
        self.updates[event.run] = max(self.updates[event.run], event.update)
        if event.is_end:
            self.ended[event.run] = event
            if event.state == "finished":
                self.updates[event.run] = self.specs[event.run].num_updates

    @property
    def total(self) -> int:
        """Updates of all trials together."""
        return sum(spec.num_updates for spec in self.specs.values())

    @property
    def done(self) -> int:
        """Updates done so far."""
        return sum(self.updates.values())

    @property
    def failures(self) -> list[TrialEvent]:
        """Trials that cannot go on; those that were stopped can."""
        return [event for event in self.ended.values() if event.state == "failed"]

    def seconds_left(self) -> float | None:
        """Estimate the time left from the updates done since the start."""
        fresh = self.done - self.first
        elapsed = time.monotonic() - self.begun
        return elapsed / fresh * (self.total - self.done) if fresh else None


def _last_checkpoint(run: RunDirectory) -> int:
    """Return the update that a run goes on from."""
    with suppress(StoreError):
        return max(run.checkpoints.updates(), default=0)
    return 0


@contextmanager
def showing(tally: Tally, console: Console) -> Iterator[OnEvent]:
    """Show progress while the block runs; gives what the runner is to call."""
    if not console.is_terminal:
        yield lambda event: _print_line(tally, event)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        overall = progress.add_task(
            f"[bold]all {len(tally.specs)} trials", total=tally.total, completed=tally.first
        )
        bars: dict[str, TaskID] = {}

        def on_event(event: TrialEvent) -> None:
            tally.on_event(event)
            progress.update(overall, completed=tally.done)
            spec = tally.specs[event.run]
            if event.state == "running" and not event.elsewhere and event.run not in bars:
                bars[event.run] = progress.add_task(spec.label, total=spec.num_updates)
            if event.run in bars:
                progress.update(bars[event.run], completed=tally.updates[event.run])
            if event.is_end and event.run in bars:
                progress.remove_task(bars.pop(event.run))
            if event.message:
                line = f"{_word(event)}: {spec.label}: {event.message}"
                progress.console.print(line, markup=False)

        yield on_event


def _print_line(tally: Tally, event: TrialEvent) -> None:
    tally.on_event(event)
    if event.is_warning:
        typer.echo(f"warning: {tally.specs[event.run].label}: {event.message}", err=True)
    if not (event.is_end or event.elsewhere):
        return
    left = tally.seconds_left()
    ahead = f", about {left / 60:.1f} min left" if left else ""
    reason = f": {event.message}" if event.message else ""
    count = f"[{len(tally.ended)}/{len(tally.specs)}]"
    label = tally.specs[event.run].label
    typer.echo(f"{count} {_word(event)}: {label}{reason}{ahead}", err=True)


def _word(event: TrialEvent) -> str:
    return "warning" if event.is_warning else event.state
