"""`pernn resume`."""

from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.store import list_sweeps

from .options import (
    RESULTS,
    Address,
    CPUsPerTrial,
    Device,
    Force,
    GPUsPerTrial,
    IgnorePublished,
    Jobs,
    JobTime,
    Json,
    MaxTrials,
    NoWait,
    Order,
    Oversubscribe,
    Partition,
    Results,
    RunnerName,
    Threads,
    TimeLimit,
    TrialsPerJob,
)
from .statuses import LEFT_EARLY
from .sweep import Launch, carry_out, reload_sweep


def resume(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, see `pernn status`; all if absent.")
    ] = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    device: Device = "auto",
    time_limit: TimeLimit = None,
    max_trials: MaxTrials = None,
    order: Order = "seed",
    force: Force = False,
    oversubscribe: Oversubscribe = False,
    ignore_published: IgnorePublished = False,
    runner: RunnerName = "local",
    address: Address = None,
    cpus_per_trial: CPUsPerTrial = None,
    gpus_per_trial: GPUsPerTrial = None,
    partition: Partition = None,
    job_time: JobTime = None,
    trials_per_job: TrialsPerJob = None,
    no_wait: NoWait = False,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Go on with sweeps that were interrupted or paused.

    A time limit holds for all sweeps together, --max-trials for each; after one that left early no
    other is begun.

    Example: pernn resume vocabulary_size-demo --time-limit 55m
    """
    # Nothing but the parameters yet.
    launch = Launch.of(locals())
    names = [sweep] if sweep else list_sweeps(results)
    if not names:
        typer.echo(one_line(f"No sweeps in {results}: start one with `pernn run`."), err=True)
    status = 0
    for found in [reload_sweep(results, name) for name in names]:
        status = max(status, carry_out(found, results, launch, as_json=as_json))
        if status == LEFT_EARLY:
            break
    return status
