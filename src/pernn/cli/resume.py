"""`pernn resume`."""

from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.runners import LocalRunner
from pernn.store import list_sweeps, load_sweep

from .options import RESULTS, Device, Jobs, Json, Results, Threads, number_of_jobs
from .sweep import carry_out


def resume(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, see `pernn status`; all if absent.")
    ] = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    device: Device = "auto",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Go on with sweeps that were interrupted.

    Example: pernn resume vocabulary_size-demo
    """
    names = [sweep] if sweep else list_sweeps(results)
    if not names:
        typer.echo(one_line(f"No sweeps in {results}: start one with `pernn run`."), err=True)
    runner = LocalRunner(jobs=number_of_jobs(jobs, threads), device=device, threads=threads)
    found = [load_sweep(results, name) for name in names]
    return max(
        (
            carry_out(
                one.experiment, one.scale, dict(one.overrides), results, runner, as_json=as_json
            )
            for one in found
        ),
        default=0,
    )
