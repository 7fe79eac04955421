"""`pernn export`."""

from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import ConfigError
from pernn.reports import export_records, require_exportable
from pernn.store import find_published
from pernn.sweeps import find_sweep, full_name, read_curves, read_finished

from .options import RESULTS, IgnorePublished, Results, Scale, published_folder, warn
from .statuses import left_out


def export(
    sweep: Annotated[
        str | None,
        typer.Argument(
            help="A sweep (see `pernn status`), an experiment, or `train` for those of "
            "`pernn train`. "
            "With --hub, the default is all, published ones included."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File: .csv, .json or .parquet decides the form.",
        ),
    ] = None,
    hub: Annotated[
        Path | None,
        typer.Option("--hub", help="Write a folder for the Hugging Face hub: a data set."),
    ] = None,
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
    """Write one flat record per finished trial: its spec and its metrics.

    Published trials of the sweep count as finished; their learning curves are thinned.

    With --table, one record per row of a table, for example by length or by position. With
    --curves, one record per logged line of training (kind train) and evaluation (kind test). With
    --hub, all of these at once as Parquet, with the claims and a card, in a folder that can be
    uploaded to the Hugging Face hub as a data set.

    Examples: pernn export vocabulary_size -o records.parquet;
    pernn export variable_length --table by_length -o by_length.csv;
    pernn export vocabulary_size --curves -o curves.csv; pernn export --hub dataset
    """
    if hub is not None:
        if output is not None or table is not None or curves:
            raise ConfigError("--hub writes all there is: leave out --output, --table and --curves")
        return _dataset(results, hub, sweep, scale, published_folder(ignore=ignore_published))
    if sweep is None or output is None:
        raise ConfigError("expected a sweep and --output FILE, or --hub DIR")
    published = published_folder(ignore=ignore_published)
    runs = find_sweep(results, sweep, scale, published, warn).runs
    require_exportable(output)
    damage: list[str] = []
    found = find_published(published, runs, warn)
    records, taken = read_finished(results, runs, found, damage.append)
    if curves and table is not None:
        raise ConfigError("--curves and --table are two things: give one of them")
    rows = records
    if curves:
        rows = read_curves(results, records, taken, thin=False)
    num_rows = export_records(rows, output, table)
    what = f"{len(records)} of {len(runs)} trials"
    if table or curves:
        what = f"{num_rows} rows of {what}"
    typer.echo(f"{what} written to {output}")
    return left_out(damage)


def _dataset(
    results: Path, place: Path, sweep: str | None, scale: str, published: Path | None
) -> int:
    """Write sweeps as a data set of the hub."""
    # It draws too, and drawing takes long to import.
    from pernn.studies import write_dataset

    damage: list[str] = []
    only = [full_name(sweep, scale)] if sweep else []
    count = write_dataset(results, place, damage.append, published, only)
    typer.echo(f"{count} trials written to {place}")
    return left_out(damage)
