"""`pernn run`."""

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    RESULTS,
    Address,
    Assignments,
    CPUsPerTrial,
    Device,
    GPUsPerTrial,
    Jobs,
    Json,
    NoWait,
    Partition,
    Results,
    RunnerName,
    Scale,
    Threads,
    TimeLimit,
    TrialsPerJob,
    overrides,
)
from .placing import choose_runner
from .sweep import carry_out


def run(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment, see `pernn list`.")],
    scale: Scale = "demo",
    assignments: Assignments = None,
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
    """Run what is missing of an experiment, then write its report.

    Safe to interrupt and to repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits.

    Examples: pernn run vocabulary_size --scale demo --jobs 2;
    pernn run vocabulary_size -s small --set protocol=as-written;
    pernn run vocabulary_size -s paper --runner ray --gpus-per-trial 0.25;
    pernn run vocabulary_size -s paper --runner slurm --partition gpu --trials-per-job 10
    """
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
    return carry_out(
        experiment, scale, overrides(assignments), Path(results), chosen, as_json=as_json
    )
