"""`pernn run`."""

from typing import Annotated

import typer

from .options import (
    RESULTS,
    Assignments,
    Device,
    Force,
    Jobs,
    Json,
    MaxTrials,
    Order,
    Oversubscribe,
    Results,
    Scale,
    Threads,
    TimeLimit,
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
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Run what is missing of an experiment, then write its report.

    Safe to interrupt and to repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits. Several drivers may work on one results directory.

    Examples: pernn run vocabulary_size --scale demo --jobs 2;
    pernn run vocabulary_size -s small --set protocol=as-written --time-limit 11:30:00
    """
    launch = Launch(jobs, threads, device, time_limit, max_trials, order, force, oversubscribe)
    sweep = plan_sweep(experiment, scale, overrides(assignments))
    return carry_out(sweep, results, launch, as_json=as_json)
