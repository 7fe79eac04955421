"""`pernn run`."""

from typing import Annotated

import typer

from .options import (
    RESULTS,
    Address,
    Assignments,
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
    Scale,
    Threads,
    TimeLimit,
    TrialsPerJob,
    overrides,
)
from .sweep import Launch, carry_out, plan_sweep


def run(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment, see `pernn list`.")],
    scale: Scale = "demo",
    assignments: Assignments = None,
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
    """Run what is missing of an experiment, then write its report.

    Safe to interrupt and to repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits. Several drivers may work on one results directory.

    Examples: pernn run vocabulary_size --scale demo --jobs 2;
    pernn run vocabulary_size -s small --set preset=as-written --time-limit 11:30:00;
    pernn run vocabulary_size -s paper --runner ray --gpus-per-trial 0.25;
    pernn run vocabulary_size -s paper --runner slurm --partition gpu --trials-per-job 10
    """
    # Nothing but the parameters yet.
    launch = Launch.of(locals())
    sweep = plan_sweep(experiment, scale, overrides(assignments))
    return carry_out(sweep, results, launch, as_json=as_json)
