"""`pernn pause`."""

from typing import Annotated

import typer

from pernn.store import load_sweep, read_status, request_pause

from .options import RESULTS, Results


def pause(
    sweep: Annotated[str, typer.Argument(help="A sweep's name, see `pernn status`.")],
    results: Results = RESULTS,
) -> None:
    """Have every driver of a sweep finish its updates, checkpoint and leave, wherever it runs.

    `pernn resume` goes on; until a driver leaves, `pernn status` shows its trials as running.

    Example: pernn pause vocabulary_size-demo
    """
    found = load_sweep(results, sweep)
    request_pause(results, sweep)
    running = sum(read_status(results, run).state == "running" for run in found.runs)
    typer.echo(f"Asked for a pause of {running} running trials; go on: pernn resume {sweep}")
