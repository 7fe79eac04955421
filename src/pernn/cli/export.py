"""`pernn export`."""

from pathlib import Path
from typing import Annotated

import typer

from pernn.reports import export_records
from pernn.store import load_sweep, read_records

from .options import RESULTS, Results, Scale
from .report import sweep_name


def export(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File: .csv, .json or .parquet decides the form.")
    ],
    scale: Scale = "demo",
    results: Results = RESULTS,
) -> None:
    """Write one flat record per finished trial: its spec beside its metrics.

    Example: pernn export vocabulary_size -o records.parquet
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    records = read_records(results, found.runs)
    export_records(records, output)
    typer.echo(f"{len(records)} of {len(found.runs)} trials written to {output}")
