"""`pernn status`."""

import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from pernn.errors import one_line
from pernn.store import RunStatus, list_sweeps, load_sweep, read_status

from .options import RESULTS, Json, Results

STANDINGS = ("done", "running", "stopped", "waiting", "failed", "damaged")


def status(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, to list its trials; all if absent.")
    ] = None,
    results: Results = RESULTS,
    as_json: Json = False,
) -> None:
    """Say how sweeps stand, or the trials of one.

    Example: pernn status vocabulary_size-demo
    """
    names = [sweep] if sweep else list_sweeps(results)
    found: dict[str, list[RunStatus]] = {
        name: [read_status(results, run) for run in load_sweep(results, name).runs]
        for name in names
    }
    if as_json:
        rows = {
            name: [vars(one) for one in runs] if sweep else dict(_count(runs))
            for name, runs in found.items()
        }
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console()
    if sweep:
        table = Table("Run", "Standing", "Update", "Reason")
        for one in found[sweep]:
            table.add_row(
                one.run, one.standing, f"{one.update:,}" if one.update else "", escape(one.reason)
            )
    else:
        table = Table(Column("Sweep", overflow="fold"), "Trials", *STANDINGS)
        for name, runs in found.items():
            count = _count(runs)
            table.add_row(name, str(len(runs)), *(str(count[key] or "") for key in STANDINGS))
    console.print(
        table if found else escape(one_line(f"No sweeps in {results}: start one with `pernn run`."))
    )


def _count(runs: list[RunStatus]) -> Counter[str]:
    return Counter(one.standing for one in runs)
