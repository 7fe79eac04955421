"""What `run` and `resume` share: do what is missing of a sweep, then report."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from pernn.errors import StoreError
from pernn.experiments import find_experiment, trials
from pernn.kernels import may_compile_first
from pernn.runners import Runner
from pernn.runs import RunSpec
from pernn.store import (
    Sweep,
    describe_machines,
    is_done,
    read_json,
    read_records,
    save_sweep,
    sweep_directory,
)

from .progress import Tally, showing
from .statuses import failure_status

if TYPE_CHECKING:
    from pernn.reports import Report


def name_sweep(experiment: str, scale: str, overrides: dict[str, Any]) -> str:
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


def carry_out(
    experiment: str,
    scale: str,
    overrides: dict[str, Any],
    root: Path,
    runner: Runner,
    *,
    as_json: bool,
) -> int:
    """Run the trials of a sweep that are missing, write its report, and give the exit status."""
    specs = trials(find_experiment(experiment), scale, overrides)
    runs = [spec.fingerprint() for spec in specs]
    sweep = Sweep(name_sweep(experiment, scale, overrides), experiment, scale, overrides, runs)
    directory = save_sweep(root, sweep)
    missing = [spec for spec, run in zip(specs, runs, strict=True) if not is_done(root, run)]
    # Messages go to standard error when standard output is for a script.
    console = Console(stderr=as_json)
    if missing:
        tally = _run(missing, len(specs), root, runner, console)
        failures = tally.failures
        if len(tally.ended) < len(missing):
            console.print(
                f"{len(missing) - len(tally.ended)} trials are left to their jobs: `pernn status "
                f"{sweep.name}` says how they stand, `pernn report` makes the report.",
                soft_wrap=True,
            )
    else:
        failures = []
        console.print(f"All {len(specs)} trials of {sweep.name} are done: nothing to do.")
    if not missing and _is_reported(directory, len(specs)) and not as_json:
        console.print(f"Report: {directory / 'index.html'}", soft_wrap=True)
        return 0
    report = make_report(root, sweep)
    if as_json:
        typer.echo(json.dumps(summary(sweep, root, report), indent=2, ensure_ascii=False))
    else:
        from .verdicts import print_verdicts

        print_verdicts(report.verdicts, console, brief=True)
        console.print(f"Report: {report.page}", soft_wrap=True)
    for failure in failures:
        typer.echo(f"pernn: {failure.run} {failure.kind}: {failure.message}", err=True)
    return failure_status(failures)


def _run(
    missing: Sequence[RunSpec], planned: int, root: Path, runner: Runner, console: Console
) -> Tally:
    done = planned - len(missing)
    kept = f" ({done} are done)" if done else ""
    console.print(
        f"Running {len(missing)} trials{kept}, {runner.describe()}; results in {root}",
        soft_wrap=True,
    )
    if may_compile_first():
        console.print("The first trial waits for the kernels to be compiled (once, about 20 s).")
    tally = Tally(missing, root)
    with showing(tally, console) as hear:
        runner.run(missing, root, hear)
    return tally


def _is_reported(directory: Path, num_finished: int) -> bool:
    """Say whether the report on disk already has that many trials."""
    try:
        return bool(read_json(directory / "claims.json").get("num_finished") == num_finished)
    except StoreError:
        return False


def make_report(root: Path, sweep: Sweep) -> "Report":
    """Write a sweep's figure, tables, verdicts and page."""
    # Drawing takes longer to import than a sweep that is done takes to check.
    from pernn.reports import write_report

    return write_report(
        find_experiment(sweep.experiment),
        sweep.scale,
        read_records(root, sweep.runs),
        len(sweep.runs),
        sweep_directory(root, sweep.name),
        repeat_command(sweep),
        describe_machines(root, sweep.runs),
    )


def summary(sweep: Sweep, root: Path, report: "Report") -> dict[str, Any]:
    """Say how a sweep stands, as plain values."""
    return {
        "sweep": sweep.name,
        "num_trials": len(sweep.runs),
        "num_finished": sum(is_done(root, run) for run in sweep.runs),
        "page": str(report.page),
        "verdicts": [verdict.dump() for verdict in report.verdicts],
    }
