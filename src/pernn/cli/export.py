"""`pernn export`."""

from typing import Annotated

import typer

from pernn.errors import ConfigError
from pernn.reports import export_records
from pernn.store import find_published, hide_credentials
from pernn.sweeps import read_curves, read_finished, read_sweep

from .options import RESULTS, IgnorePublished, Results, Scale, SweepName, published_folder, warn
from .report import sweep_name
from .statuses import left_out


def export(
    sweep: SweepName,
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
    curves: Annotated[
        bool,
        typer.Option("--curves", help="Write the learning curves instead: all lines of metrics."),
    ] = False,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
) -> int:
    """Write one flat record per finished trial: its spec beside its metrics.

    Published trials of the sweep count as finished; their learning curves are thinned.

    An address, such as s3://bucket/records.csv, needs the extra `remote` and the package of its
    preset.

    With --table one record per row of a table, for example by length or by position.

    Example: pernn export vocabulary_size -o records.parquet

    With --curves one record per line of a finished trial's training (kind train) and tests (test).

    Example: pernn export vocabulary_size --curves -o curves.csv

    Example: pernn export variable_length --table by_length -o by_length.csv
    """
    runs = read_sweep(results, sweep_name(sweep, scale)).runs
    published = find_published(published_folder(ignore=ignore_published), runs, warn)
    damage: list[str] = []
    records, taken = read_finished(results, runs, published, damage.append)
    if curves and table is not None:
        raise ConfigError("--curves and --table are two things: give one of them")
    rows = records
    if curves:
        rows = read_curves(results, records, taken, thin=False)
    num_rows = export_records(rows, output, table)
    what = f"{len(records)} of {len(runs)} trials"
    if table or curves:
        what = f"{num_rows} rows of {what}"
    typer.echo(f"{what} written to {hide_credentials(output)}")
    return left_out(damage)
