"""What `run`, `resume` and `retry` share: do what is missing of a sweep, then report."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from rich.console import Console

from pernn.errors import StoreError, one_line
from pernn.experiments import find_experiment, trials
from pernn.kernels import may_compile_first
from pernn.runners import (
    Limits,
    Runner,
    TrialEvent,
    check_cores,
    measure_capacity,
    show_bytes,
)
from pernn.runs import RunSpec, changed_parts
from pernn.store import (
    Sweep,
    is_done,
    is_pause_requested,
    load_sweep,
    read_json,
    read_status,
    save_sweep,
    withdraw_pause,
)
from pernn.sweeps import find_trials, make_report, name_sweep

from .estimates import estimate_hours, show_hours
from .options import num_cores, number_of_jobs, read_duration
from .placing import choose_runner
from .progress import Tally, showing
from .statuses import LEFT_EARLY, failure_status, left_out

if TYPE_CHECKING:
    from pernn.reports import Report


PLACING = (
    "--address",
    "--cpus-per-trial",
    "--gpus-per-trial",
    "--partition",
    "--job-time",
    "--trials-per-job",
    "--no-wait",
)
"""Options that concern some runners only."""


@dataclass(frozen=True)
class Launch:
    """How the trials of a sweep are to be run.

    Attributes:
        jobs: Trials at a time; one per core if absent.
        threads: CPU threads of each.
        device: As for `execute`.
        time_limit: When to leave, as it was typed.
        max_trials: After how many to leave.
        order: What comes first.
        force: Whether to begin without enough disk or memory.
        oversubscribe: Whether there may be more threads than cores.
        runner_name: Where trials happen.
        placing: Option → value of those that concern some runners only.
        begun: When the command began: a time limit holds for all its sweeps together.
    """

    jobs: int | None = None
    threads: int = 1
    device: str = "auto"
    time_limit: str | None = None
    max_trials: int | None = None
    order: Literal["seed", "grid"] = "seed"
    force: bool = False
    oversubscribe: bool = False
    runner_name: str = "local"
    placing: Mapping[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Launch":
        """Take from a verb's parameters what concerns the launch; other ones are left alone."""
        names = (one.name for one in fields(cls) if one.name in options)
        placing = {option: options[option[2:].replace("-", "_")] for option in PLACING}
        return cls(
            **{name: options[name] for name in names},
            runner_name=options["runner"],
            placing=placing,
        )

    def limits(self, paused: Callable[[], bool] = lambda: False) -> Limits:
        """Start to count what limits the work."""
        seconds = None if self.time_limit is None else read_duration(self.time_limit)
        return Limits(seconds, self.max_trials, paused, self.begun)

    @property
    def is_here(self) -> bool:
        """Say whether trials run on this machine."""
        return self.runner_name in ("local", "inline")

    @property
    def jobs_here(self) -> int:
        """Give the number of trials at a time, if they run on this machine."""
        return 1 if self.runner_name == "inline" else number_of_jobs(self.jobs, self.threads)

    def runner(self, limits: Limits) -> Runner:
        """Make what runs the trials."""
        if self.is_here and not self.oversubscribe:
            check_cores(self.jobs_here, self.threads, num_cores())
        return choose_runner(
            self.runner_name,
            threads=self.threads,
            device=self.device,
            limits=limits,
            given={
                "--jobs": self.jobs,
                "--force": self.force,
                "--oversubscribe": self.oversubscribe,
                **self.placing,
            },
        )

    def sort(self, specs: Sequence[RunSpec]) -> list[RunSpec]:
        """Put trials in the order in which they are to be run."""
        return sorted(specs, key=lambda one: one.seed) if self.order == "seed" else list(specs)


def carry_out(
    sweep: Sweep, root: Path, launch: Launch, *, as_json: bool, retried: Sequence[str] = ()
) -> int:
    """Run the trials of a sweep that are missing, write its report, and give the exit status.

    Args:
        sweep: What belongs to it; written if it is new, or has grown.
        root: Results directory.
        launch: How.
        as_json: Whether standard output is for a script.
        retried: If given, only these are run, also if they failed for good.
    """
    limits = launch.limits(lambda: is_pause_requested(root, sweep.name))
    # First of all, so that invalid options are refused before anything is written.
    runner = launch.runner(limits)
    specs = find_trials(sweep)
    directory = save_sweep(root, sweep)
    withdraw_pause(root, sweep.name)
    missing = {run: spec for run, spec in specs.items() if not is_done(root, run)}
    failed = {} if retried else _find_failed(missing, root)
    wanted = [spec for run, spec in missing.items() if run not in failed]
    if retried:
        wanted = [missing[run] for run in retried if run in missing]
    _warn_of_changes({run: spec for run, spec in specs.items() if run not in missing}, root)
    # Messages go to standard error when standard output is for a script.
    console = Console(stderr=as_json)
    failures: list[TrialEvent] = []
    if wanted:
        kept = len(specs) - len(missing)
        if launch.is_here:
            _check_room(wanted, root, launch, console)
        tally = _run(launch.sort(wanted), kept, root, runner, console)
        failures = tally.failures
        if len(tally.ended) < len(wanted) and not limits.reason:
            console.print(
                f"{len(wanted) - len(tally.ended)} trials are left to their jobs: `pernn status "
                f"{sweep.name}` says how they stand, `pernn report` makes the report.",
                soft_wrap=True,
            )
    elif not missing:
        console.print(f"All {len(specs)} trials of {sweep.name} are done: nothing to do.")
    if not missing and _is_reported(directory, len(specs)) and not as_json:
        console.print(one_line(f"Report: {directory / 'index.html'}"), soft_wrap=True, markup=False)
        return 0
    for failure in failures:
        typer.echo(f"pernn: {failure.run} {failure.kind}: {failure.message}", err=True)
    damage: list[str] = []
    report = make_report(root, sweep, damage.append)
    if as_json:
        typer.echo(json.dumps(summary(sweep, root, report), indent=2, ensure_ascii=False))
    else:
        from .verdicts import print_verdicts

        print_verdicts(report.verdicts, console, brief=True)
        console.print(f"Report: {one_line(str(report.page))}", soft_wrap=True, markup=False)
    for run, reason in failed.items():
        typer.echo(f"pernn: {run} failed before and was left out: {reason}", err=True)
    if failed:
        typer.echo(f"pernn: to try again: pernn retry {sweep.name} --failed", err=True)
    if limits.reason:
        done = sum(is_done(root, run) for run in specs)
        typer.echo(
            f"pernn: left early, {limits.reason}; {done} of {len(specs)} trials are done; "
            f"to go on: pernn resume {sweep.name}",
            err=True,
        )
    lost = left_out(damage)
    return failure_status(failures) or lost or (1 if failed else LEFT_EARLY if limits.reason else 0)


def plan_sweep(experiment: str, scale: str, overrides: dict[str, Any]) -> Sweep:
    """List the trials of an experiment at a scale under a name."""
    specs = trials(find_experiment(experiment), scale, overrides)
    runs = [spec.fingerprint() for spec in specs]
    return Sweep(name_sweep(experiment, scale, overrides), experiment, scale, overrides, runs)


def reload_sweep(root: Path, name: str) -> Sweep:
    """Read a sweep and list its trials anew: its experiment may have grown since."""
    stored = load_sweep(root, name)
    return plan_sweep(stored.experiment, stored.scale, dict(stored.overrides))


def _warn_of_changes(done: Mapping[str, RunSpec], root: Path) -> None:
    for change in changed_parts(done, root):
        typer.echo(f"pernn: {change}", err=True)


def _find_failed(runs: Iterable[str], root: Path) -> dict[str, str]:
    """Give the reasons of the runs that failed for good."""
    found = (read_status(root, run) for run in runs)
    return {one.run: one.reason for one in found if one.state == "failed"}


def _check_room(wanted: Sequence[RunSpec], root: Path, launch: Launch, console: Console) -> None:
    """Say what the trials will take, and refuse what does not fit."""
    capacity = measure_capacity(wanted, launch.jobs_here, root)
    hours = estimate_hours(wanted, launch.jobs_here, launch.threads)["estimated_hours"]
    time_words = "" if launch.device.startswith("cuda") else f"{show_hours(hours)} on the CPU, "
    console.print(
        f"Needs about {time_words}{show_bytes(capacity.disk)} of disk "
        f"({show_bytes(capacity.free_disk)} free), {show_bytes(capacity.memory)} of memory "
        f"({show_bytes(capacity.free_memory)} free)",
        soft_wrap=True,
    )
    if not launch.force:
        capacity.check()


def _run(
    wanted: Sequence[RunSpec], kept: int, root: Path, runner: Runner, console: Console
) -> Tally:
    done = f" ({kept} are done)" if kept else ""
    console.print(
        f"Running {len(wanted)} trials{done}, {runner.describe()}; "
        f"results in {one_line(str(root))}",
        soft_wrap=True,
        markup=False,
    )
    if may_compile_first():
        console.print("The first trial waits for the kernels to be compiled (once, about 20 s).")
    tally = Tally(wanted, root)
    with showing(tally, console) as hear:
        runner.run(wanted, root, hear)
    return tally


def _is_reported(directory: Path, num_finished: int) -> bool:
    """Say whether the report on disk already has that many trials."""
    try:
        return bool(read_json(directory / "claims.json").get("num_finished") == num_finished)
    except StoreError:
        return False


def summary(sweep: Sweep, root: Path, report: "Report") -> dict[str, Any]:
    """Say how a sweep stands, as plain values."""
    return {
        "sweep": sweep.name,
        "num_trials": len(sweep.runs),
        "num_finished": sum(is_done(root, run) for run in sweep.runs),
        "page": str(report.page),
        "verdicts": [verdict.dump() for verdict in report.verdicts],
    }
