"""`pernn archive`."""

import json
from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.runs import with_stages
from pernn.store import load_sweep, open_url, write_archive

from .options import RESULTS, Json, Results, Scale
from .report import sweep_name


def archive(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="File or URL, such as s3://bucket/sweep.tar.")
    ],
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints/--no-checkpoints", help="Take the checkpoints too.")
    ] = True,
    scale: Scale = "demo",
    results: Results = RESULTS,
    as_json: Json = False,
) -> None:
    """Put a sweep's runs into one tar, with the earlier stages that they went on from.

    Equal runs give equal bytes. Protocols other than files need their fsspec package (s3fs, gcsfs).

    Example: pernn archive vocabulary_size-demo -o vocabulary_size.tar
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    runs = with_stages(results, found.runs)
    with open_url(output, "wb") as file:
        taken = write_archive(results, found, runs, file, checkpoints=checkpoints)
    if as_json:
        typer.echo(json.dumps({"sweep": found.name, "output": output, "runs": taken}, indent=2))
    else:
        typer.echo(one_line(f"{len(taken)} runs of {found.name} written to {output}"))
