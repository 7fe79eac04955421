"""`pernn resume`."""

from typing import Annotated

import typer

from pernn.store import list_sweeps, load_sweep

from .options import (
    RESULTS,
    Address,
    CPUsPerTrial,
    Device,
    GPUsPerTrial,
    Jobs,
    Json,
    NoWait,
    Partition,
    Results,
    RunnerName,
    Threads,
    TimeLimit,
    TrialsPerJob,
)
from .placing import choose_runner
from .sweep import carry_out


def resume(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, see `pernn status`; all if absent.")
    ] = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    device: Device = "auto",
    runner: RunnerName = "local",
    address: Address = None,
    cpus_per_trial: CPUsPerTrial = None,
    gpus_per_trial: GPUsPerTrial = None,
    partition: Partition = None,
    time_limit: TimeLimit = None,
    trials_per_job: TrialsPerJob = None,
    no_wait: NoWait = False,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Go on with sweeps that were interrupted.

    Example: pernn resume vocabulary_size-demo
    """
    names = [sweep] if sweep else list_sweeps(results)
    if not names:
        typer.echo(f"No sweeps in {results}: start one with `pernn run`.", err=True)
    chosen = choose_runner(
        runner,
        threads=threads,
        device=device,
        given={
            "--jobs": jobs,
            "--address": address,
            "--cpus-per-trial": cpus_per_trial,
            "--gpus-per-trial": gpus_per_trial,
            "--partition": partition,
            "--time-limit": time_limit,
            "--trials-per-job": trials_per_job,
            "--no-wait": no_wait,
        },
    )
    found = [load_sweep(results, name) for name in names]
    return max(
        (
            carry_out(
                one.experiment, one.scale, dict(one.overrides), results, chosen, as_json=as_json
            )
            for one in found
        ),
        default=0,
    )
