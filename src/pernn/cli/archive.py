"""`pernn archive` and `pernn unpack`."""

from collections import Counter
from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.runs import with_stages
from pernn.store import (
    create_archive,
    hide_credentials,
    load_sweep,
    open_url,
    read_archive,
    write_archive,
)
from pernn.sweeps import full_name

from .options import RESULTS, Json, Results, Scale, SweepName, print_json, warn


def archive(
    sweep: SweepName,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File or URL, such as s3://bucket/sweep.tar: .tar, .tar.gz or .tgz.",
        ),
    ],
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints/--no-checkpoints", help="Include the checkpoints.")
    ] = True,
    scale: Scale = "demo",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Pack a sweep's runs into one tar, with the earlier stages that they build on.

    Equal runs give equal bytes. Every run is checked; damaged ones are reported and left out, with
    exit status 1. A URL needs the fsspec package of its protocol (s3fs, gcsfs).

    Example: pernn archive vocabulary_size-demo -o vocabulary_size.tar
    """
    found = load_sweep(results, full_name(sweep, scale))
    runs = with_stages(results, found.runs)
    with create_archive(output) as file:
        made = write_archive(results, found, runs, file, checkpoints=checkpoints)
    if as_json:
        summary = {"output": hide_credentials(output), **vars(made)}
        print_json({"sweep": found.name, **summary})
    else:
        said = f"{len(made.runs)} runs of {found.name} written to {hide_credentials(output)}"
        typer.echo(one_line(said))
    for run, reason in made.left_out.items():
        warn(f"{run} left out: {reason}")
    return 1 if made.left_out else 0


def unpack(
    source: Annotated[str, typer.Argument(help="File or URL that `pernn archive` wrote.")],
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Unpack the runs of a tar into a results directory; nothing there is overwritten.

    Every run is checked and appears whole or not at all. A run that is damaged, or that is there
    already with another result, is reported and left out, with exit status 1.

    Example: pernn unpack vocabulary_size.tar --results results
    """
    with open_url(source, "rb") as file:
        found = read_archive(results, file, source)
    if as_json:
        summary = {"sweep": found.sweep.name, "manifest": found.sweep_fate, "runs": found.fates}
        summary["damage"] = found.damage
        print_json(summary)
    else:
        count = Counter(found.fates.values())
        words = ", ".join(f"{number} {fate}" for fate, number in count.items()) or "no runs"
        typer.echo(one_line(f"{found.sweep.name}: {words}; results in {results}"))
    for run, reason in found.damage.items():
        warn(f"{run} left out, it is damaged in the archive: {reason}")
    for run in (run for run, fate in found.fates.items() if fate == "different"):
        warn(f"{run} is here already and differs: left as it is")
    if found.sweep_fate == "different":
        warn(f"{found.sweep.name} is here with other runs: left as it is")
    return 1 if {"different", "damaged"} & {found.sweep_fate, *found.fates.values()} else 0
