"""`pernn unpack`."""

import json
from collections import Counter
from typing import Annotated

import typer

from pernn.errors import one_line
from pernn.store import open_url, read_archive

from .options import RESULTS, Json, Results


def unpack(
    source: Annotated[str, typer.Argument(help="File or URL that `pernn archive` wrote.")],
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Take the runs of a tar into a results directory; nothing that is there is overwritten.

    Each run is checked and appears whole or not at all. A run that is damaged, or that is there
    already and ends otherwise, is reported and left out, with exit status 1.

    Example: pernn unpack vocabulary_size.tar --results results
    """
    with open_url(source, "rb") as file:
        found = read_archive(results, file, source)
    if as_json:
        summary = {"sweep": found.sweep.name, "manifest": found.sweep_fate, "runs": found.fates}
        summary["damage"] = found.damage
        typer.echo(json.dumps(summary, indent=2))
    else:
        count = Counter(found.fates.values())
        words = ", ".join(f"{number} {fate}" for fate, number in count.items()) or "no runs"
        typer.echo(one_line(f"{found.sweep.name}: {words}; results in {results}"))
    for run, reason in found.damage.items():
        typer.echo(f"pernn: {run} left out, it is damaged in the archive: {reason}", err=True)
    for run in (run for run, fate in found.fates.items() if fate == "different"):
        typer.echo(f"pernn: {run} is here already and differs: left as it is", err=True)
    if found.sweep_fate == "different":
        typer.echo(f"pernn: {found.sweep.name} is here with other runs: left as it is", err=True)
    return 1 if {"different", "damaged"} & {found.sweep_fate, *found.fates.values()} else 0
