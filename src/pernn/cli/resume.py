"""`pernn resume`."""

from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.store import list_sweeps
from pernn.sweeps import reload_plan

from .launch import Launch, with_launch
from .options import RESULTS, Json, Results
from .statuses import LEFT_EARLY
from .sweep import run_sweep


@with_launch
def resume(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, see `pernn status`; all if absent.")
    ] = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Go on with sweeps that were interrupted or paused.

    A time limit holds for all sweeps together, --max-trials for each; after one that left early no
    other is begun.

    Example: pernn resume vocabulary_size-demo --time-limit 55m
    """
    names = [sweep] if sweep else list_sweeps(results)
    if not names:
        typer.echo(one_line(f"No sweeps in {results}: start one with `pernn run`."), err=True)
    status = 0
    for plan in [reload_plan(results, name) for name in names]:
        status = max(status, run_sweep(plan, results, launch, as_json=as_json))
        if status == LEFT_EARLY:
            break
    return status
