"""`pernn retry`."""

from typing import Annotated

import typer

from pernn.errors import ConfigError
from pernn.store import read_status

from .options import (
    RESULTS,
    Address,
    CPUsPerTrial,
    Device,
    Force,
    GPUsPerTrial,
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
from .sweep import Launch, carry_out, reload_sweep


def retry(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, see `pernn status`.")],
    failed: Annotated[
        bool, typer.Option("--failed", help="Take up all trials that failed for good.")
    ] = False,
    run: Annotated[
        str | None, typer.Option("--run", metavar="FINGERPRINT", help="Take up this trial alone.")
    ] = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    device: Device = "auto",
    time_limit: TimeLimit = None,
    max_trials: MaxTrials = None,
    order: Order = "seed",
    force: Force = False,
    oversubscribe: Oversubscribe = False,
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
    """Take trials up again that `run` and `resume` leave out since they failed for good.

    They go on from their last checkpoint. The same spec on the same machine fails the same way:
    this is for trials whose cause is gone.

    Example: pernn retry vocabulary_size-demo --failed
    """
    # Nothing but the parameters yet.
    launch = Launch.of(locals())
    if failed == (run is not None):
        raise ConfigError("say which trials: either --failed or --run FINGERPRINT")
    found = reload_sweep(results, sweep)
    if run is not None and run not in found.runs:
        raise ConfigError(f"{run[:40]!r} is no trial of {sweep}: see `pernn status {sweep}`")
    wanted = [run] if run is not None else []
    if failed:
        wanted = [one for one in found.runs if read_status(results, one).state == "failed"]
    if not wanted:
        typer.echo(f"No trial of {sweep} has failed: nothing to do.", err=as_json)
        return 0
    return carry_out(found, results, launch, as_json=as_json, retried=wanted)
