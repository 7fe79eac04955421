"""`pernn archive`."""

import json
from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.runs import with_stages
from pernn.store import create_archive, hide_credentials, load_sweep, write_archive

from .options import RESULTS, Json, Results, Scale
from .report import sweep_name


def archive(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File or URL, such as s3://bucket/sweep.tar: .tar, .tar.gz or .tgz.",
        ),
    ],
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints/--no-checkpoints", help="Take the checkpoints too.")
    ] = True,
    scale: Scale = "demo",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Put a sweep's runs into one tar, with the earlier stages that they went on from.

    Equal runs give equal bytes. Each run is checked; a damaged one is reported and left out, with
    exit status 1. Protocols other than files need their fsspec package (s3fs, gcsfs).

    Example: pernn archive vocabulary_size-demo -o vocabulary_size.tar
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    runs = with_stages(results, found.runs)
    with create_archive(output) as file:
        made = write_archive(results, found, runs, file, checkpoints=checkpoints)
    if as_json:
        summary = {"output": hide_credentials(output), **vars(made)}
        typer.echo(json.dumps({"sweep": found.name, **summary}, indent=2))
    else:
        said = f"{len(made.runs)} runs of {found.name} written to {hide_credentials(output)}"
        typer.echo(one_line(said))
    for run, reason in made.left_out.items():
        typer.echo(f"pernn: {run} left out: {reason}", err=True)
    return 1 if made.left_out else 0
