"""`pernn analyze`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pernn.reports import export_records, require_exportable
from pernn.runs import StabilityAnalysis

from .options import Device, Json, Threads, print_json


def analyze(
    run: Annotated[Path, typer.Argument(help="Directory of a run, finished or not.")],
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Pairs of sequences per condition.")
    ] = 64,
    source_step: Annotated[
        int,
        typer.Option("--source-step", min=1, help="Input step of the target."),
    ] = 1,
    map_pairs: Annotated[
        int,
        typer.Option("--map", min=0, help="Also map all steps, with this many pairs each."),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the rows to a .csv, .json or .parquet file."),
    ] = None,
    device: Device = "auto",
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Measure gradient stability at the checkpoints of a run, finished or not.

    Nothing is written into the run's directory. A run keeps its last two checkpoints; set
    training.keep_interval, a multiple of training.checkpoint_interval, to keep more.

    Example: pernn analyze results/runs/0123456789abcdef --pairs 16 -o stability.csv
    """
    if output is not None:
        require_exportable(output)
    # Only what computes loads torch.
    from pernn.runs import analyse_run

    config = StabilityAnalysis(
        num_per_condition=pairs, source_step=source_step, map_per_condition=map_pairs
    )
    tables = analyse_run(
        run,
        config,
        device=device,
        threads=threads,
        watch=lambda lines, count: track(
            lines, "Analysing checkpoints", count, console=Console(stderr=True)
        ),
    )
    rows = [
        {"table": name, **dict(zip(table, values, strict=True))}
        for name, table in tables.items()
        for values in zip(*table.values(), strict=True)
    ]
    if output is not None:
        export_records(rows, output)
    if as_json:
        print_json(tables)
        return
    _show(tables["gradient_stability"])
    if output is not None:
        typer.echo(f"{len(rows)} rows written to {output}")


def _show(table: dict[str, list[Any]]) -> None:
    conditions = list(dict.fromkeys(table["condition"]))
    shown = Table("Update", *conditions, title="Gradient similarity")
    rows: dict[int, dict[str, str]] = {}
    for update, condition, value in zip(
        table["update"], table["condition"], table["similarity"], strict=True
    ):
        rows.setdefault(update, {})[condition] = f"{value:.4f}"
    for update, row in rows.items():
        shown.add_row(f"{update:,}", *(row[condition] for condition in conditions))
    Console().print(shown)
