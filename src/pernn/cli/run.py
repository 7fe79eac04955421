"""`pernn run`."""

from pathlib import Path
from typing import Annotated

import typer

from pernn.runners import LocalRunner

from .options import (
    RESULTS,
    Assignments,
    Device,
    Jobs,
    Json,
    Results,
    Scale,
    Threads,
    number_of_jobs,
    overrides,
)
from .sweep import carry_out


def run(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment, see `pernn list`.")],
    scale: Scale = "demo",
    assignments: Assignments = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    device: Device = "auto",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Run what is missing of an experiment, then write its report.

    Safe to interrupt and to repeat: finished trials are kept, the others go on from their last
    checkpoint and end in the same bits.

    Examples: pernn run vocabulary_size --scale demo --jobs 2;
    pernn run vocabulary_size -s small --set protocol=as-written
    """
    runner = LocalRunner(jobs=number_of_jobs(jobs, threads), device=device, threads=threads)
    return carry_out(
        experiment, scale, overrides(assignments), Path(results), runner, as_json=as_json
    )
