"""`pernn analyze`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pernn.errors import ConfigError
from pernn.reports import export_records
from pernn.runs import RunSpec, StabilityAnalysis
from pernn.store import RunDirectory

from .options import Device, Json, Threads


def analyze(
    run: Annotated[Path, typer.Argument(help="Directory of a run, finished or not.")],
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Pairs of sequences per condition.")
    ] = 64,
    source_step: Annotated[
        int,
        typer.Option("--source-step", min=1, help="Step of the input at which the target stands."),
    ] = 1,
    map_pairs: Annotated[
        int,
        typer.Option("--map", min=0, help="Also map every step of the target, with N pairs each."),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the rows to a .csv, .json or .parquet file."),
    ] = None,
    device: Device = "auto",
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Measure gradient stability in the checkpoints that a run has, finished or half-finished.

    Nothing is written into the run's directory. Set training.keep_interval for more checkpoints
    than the last two.

    Example: pernn analyze results/runs/0123456789abcdef --pairs 16 -o stability.csv
    """
    config = StabilityAnalysis(
        num_per_condition=pairs, source_step=source_step, map_per_condition=map_pairs
    )
    spec = _spec_of(run)
    spec = spec.override({"analysis": config.dump()})
    tables = _measure(spec, run, device, threads)
    rows = [
        {"table": name, **dict(zip(table, values, strict=True))}
        for name, table in tables.items()
        for values in zip(*table.values(), strict=True)
    ]
    if output is not None:
        export_records(rows, output)
    if as_json:
        typer.echo(json.dumps(tables, indent=1))
        return
    _show(tables["gradient_stability"])
    if output is not None:
        typer.echo(f"{len(rows)} rows written to {output}")


def _spec_of(run: Path) -> RunSpec:
    """Read what a run trains; of an analysis, what it analyses."""
    path = run.absolute()
    # results/runs/<fingerprint>; of a shorter path `RunDirectory` refuses the name.
    stored = RunDirectory(path.parent.parent, path.name).read_spec()
    if stored is None:
        raise ConfigError(f"{run}: no run's directory: it has no spec.json")
    spec = RunSpec.load(stored)
    first = spec.first_stage()
    return first if spec.analysis is not None and first is not None else spec


def _measure(spec: RunSpec, run: Path, device: str, threads: int) -> dict[str, dict[str, Any]]:
    """Measure the untrained network and every checkpoint that is there."""
    import torch

    from pernn.runs import analyse, tabulate
    from pernn.training import choose_device, computing

    first, root = spec.first_stage(), run.absolute().parent.parent
    if first is None:
        raise ConfigError(f"{run}: nothing to analyse")
    checkpoints = RunDirectory(root, first.fingerprint()).checkpoints.updates()
    torch.set_num_threads(threads)
    chosen = choose_device(device)
    with computing("fp32", chosen):
        updates = [0, *checkpoints]
        lines = list(
            track(
                analyse(spec, first, root, updates, chosen),
                description="Analysing checkpoints",
                total=len(updates),
                console=Console(stderr=True),
            )
        )
    return tabulate(lines, first.training.iterations)


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
