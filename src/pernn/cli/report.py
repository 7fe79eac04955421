"""`pernn report`."""

import json
from typing import Annotated

import typer

from pernn.experiments import experiment_names
from pernn.store import load_sweep
from pernn.sweeps import make_report

from .options import RESULTS, IgnorePublished, Json, Results, Scale, published_among
from .statuses import left_out
from .sweep import summary


def report(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> int:
    """Write figure, tables, verdicts and page from what is finished.

    Example: pernn report vocabulary_size --scale demo
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    damage: list[str] = []
    published = published_among(found.runs, ignore=ignore_published)
    made = make_report(results, found, damage.append, published)
    if as_json:
        typer.echo(
            json.dumps(summary(found, results, made, published), indent=2, ensure_ascii=False)
        )
    else:
        for path in made.paths:
            typer.echo(str(path))
    return left_out(damage)


def sweep_name(word: str, scale: str) -> str:
    """Take an experiment's name for its sweep at a scale; a sweep's name stays."""
    return f"{word}-{scale}" if word in experiment_names() else word
