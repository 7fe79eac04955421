"""`pernn publish`."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.evidence import publish_sweep
from pernn.store import FOLDER

from .options import RESULTS, Json, Results, Scale
from .report import sweep_name


def publish(
    sweeps: Annotated[list[str], typer.Argument(help="Sweeps, see `pernn status`.")],
    to: Annotated[
        Path, typer.Option("--to", help="Folder of published trials, a Parquet file per sweep.")
    ] = Path(FOLDER),
    scale: Scale = "demo",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Add the finished trials of sweeps to the published ones: spec, result, machine, curve.

    Repeating it changes nothing. Each run is checked; a damaged one is reported and left out, with
    exit status 1. Of a trial that is published already with another result the first one stays.

    Example: pernn publish vocabulary_size-small dual_frequency-small --to evidence
    """
    made = {name: publish_sweep(results, sweep_name(name, scale), to) for name in sweeps}
    status = 0
    for name, one in made.items():
        count = Counter(one.fates.values())
        said = ", ".join(f"{number} {fate}" for fate, number in count.items()) or "nothing finished"
        if not as_json:
            typer.echo(one_line(f"{one.path}: {said}"))
        for run, fate in one.fates.items():
            if fate == "kept the first":
                typer.echo(f"pernn: {run} is published with another result: {fate}", err=True)
        for run, reason in one.left_out.items():
            typer.echo(f"pernn: {run} of {name} left out: {reason}", err=True)
            status = 1
    if as_json:
        plain = {
            name: {"path": str(one.path), "trials": dict(one.fates), "left_out": dict(one.left_out)}
            for name, one in made.items()
        }
        typer.echo(json.dumps(plain, indent=2))
    return status
