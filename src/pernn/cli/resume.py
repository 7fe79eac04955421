"""`pernn resume`, `pernn retry` and `pernn pause`."""

from typing import Annotated

import typer

from pernn.errors import ConfigError, one_line
from pernn.experiments import SINGLE
from pernn.store import (
    is_done,
    list_sweeps,
    load_sweep,
    naming_damage,
    read_status,
    request_pause,
)
from pernn.sweeps import list_single_runs, reload_plan

from .launch import Launch, with_launch
from .options import RESULTS, Json, Results
from .statuses import LEFT_EARLY, left_out
from .sweep import run_sweep


@with_launch()
def resume(
    sweep: Annotated[
        str | None,
        typer.Argument(
            help="A sweep (see `pernn status`), or `train` for those of `pernn train`; "
            "the default is all."
        ),
    ] = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Resume sweeps, and trials of `pernn train`, that were interrupted or paused.

    --time-limit holds for all sweeps together, --max-trials for each. After a sweep that stops
    early, no other is started.

    Example: pernn resume vocabulary_size-demo --time-limit 55m
    """
    names = [sweep] if sweep else list_sweeps(results)
    if not sweep and not all(is_done(results, run) for run in list_single_runs(results)):
        names.append(SINGLE)
    if not names:
        typer.echo(
            one_line(f"No sweeps in {results.absolute()}: start one with `pernn run`."), err=True
        )
    plans = []
    damage: list[str] = []
    for name in names:
        with naming_damage(None if sweep else damage.append):
            plans.append(reload_plan(results, name))
    status = left_out(damage)
    for plan in plans:
        status = max(status, run_sweep(plan, results, launch, as_json=as_json))
        if status == LEFT_EARLY:
            break
    return status


@with_launch()
def retry(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, see `pernn status`.")],
    failed: Annotated[bool, typer.Option("--failed", help="Retry all failed trials.")] = False,
    run: Annotated[
        str | None, typer.Option("--run", metavar="FINGERPRINT", help="Run this trial alone.")
    ] = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Run only the trials that failed, from their last checkpoint.

    `pernn run` and `pernn resume` run them too, with all that are missing.

    Example: pernn retry vocabulary_size-demo --failed
    """
    if failed == (run is not None):
        raise ConfigError("expected either --failed or --run FINGERPRINT")
    plan = reload_plan(results, sweep)
    if run is not None and run not in plan.specs:
        raise ConfigError(f"{run[:40]!r} is no trial of {sweep}: see `pernn status {sweep}`")
    wanted = [run] if run is not None else plan.find_failed(results)
    if not wanted:
        typer.echo(f"No trial of {sweep} has failed: nothing to do.", err=as_json)
        return 0
    return run_sweep(plan, results, launch, as_json=as_json, only=wanted)


def pause(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, see `pernn status`.")],
    results: Results = RESULTS,
) -> None:
    """Pause a sweep, wherever it runs: every driver checkpoints its trials and leaves.

    `pernn resume` goes on. Until a driver has left, `pernn status` shows its trials as running.

    Example: pernn pause vocabulary_size-demo
    """
    found = load_sweep(results, sweep)
    request_pause(results, sweep)
    running = sum(read_status(results, run).state == "running" for run in found.runs)
    typer.echo(f"Asked for a pause of {running} running trials; go on: pernn resume {sweep}")
