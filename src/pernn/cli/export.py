"""`pernn export`."""

from typing import Annotated

import typer

from pernn.reports import export_records
from pernn.store import hide_credentials, load_sweep, read_records

from .options import RESULTS, Results, Scale
from .report import sweep_name
from .statuses import left_out


def export(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File or address (s3://…): .csv, .json or .parquet decides the form.",
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option("--table", "-t", help="Write the rows of this table of each trial instead."),
    ] = None,
    scale: Scale = "demo",
    results: Results = RESULTS,
) -> int:
    """Write one flat record per finished trial: its spec beside its metrics.

    An address, such as s3://bucket/records.csv, needs the extra `remote` and the package of its
    preset.

    With --table one record per row of a table, for example by length or by position.

    Example: pernn export vocabulary_size -o records.parquet

    Example: pernn export variable_length --table by_length -o by_length.csv
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    damage: list[str] = []
    records = read_records(results, found.runs, damage.append)
    num_rows = export_records(records, output, table)
    what = f"{len(records)} of {len(found.runs)} trials"
    typer.echo(
        f"{f'{num_rows} rows of ' if table else ''}{what} written to {hide_credentials(output)}"
    )
    return left_out(damage)
