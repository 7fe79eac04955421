"""`pernn cite`."""

from typing import Annotated

import typer

from pernn.citing import cite, entries

from .options import Json, Scale, print_json


def cite_sources(
    name: Annotated[
        str, typer.Argument(metavar="RUN|EXPERIMENT", help="A run's directory, or an experiment.")
    ],
    scale: Scale = "demo",
    as_json: Json = False,
) -> None:
    """Print BibTeX of pernn and of what a run or an experiment builds on.

    These are the sources of its core, encoding, task and text; of an experiment also those of the
    statistics of its verdicts. A part of one's own has those that its `references` names.

    Examples: pernn cite vocabulary_size > sources.bib; pernn cite results/runs/0123456789abcdef
    """
    found = cite(name, scale)
    known = entries()
    # A part of another package may have keys of its own bibliography.
    keys = dict.fromkeys(key for some in found.values() for key in some)
    if as_json:
        print_json({"parts": found, "entries": {key: known.get(key) for key in keys}})
        return
    typer.echo("\n\n".join(known.get(key, f"% {key}: not in pernn's list") for key in keys))
