"""`pernn report`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import ConfigError
from pernn.experiments import experiment_names
from pernn.store import load_sweep
from pernn.sweeps import make_report, make_study

from .options import RESULTS, IgnorePublished, Json, Results, Scale, published_among
from .statuses import left_out
from .sweep import summary


def report(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")
    ] = None,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
    every: Annotated[
        bool, typer.Option("--all", help="One page of all sweeps, with every claim of the study.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="With --all: the file; by default RESULTS/study.html."),
    ] = None,
) -> int:
    """Write figure, tables, verdicts and page from what is finished.

    Example: pernn report vocabulary_size --scale demo

    Example: pernn report --all --out study.html
    """
    if every:
        return _study(results, output, given=sweep is not None or as_json)
    if sweep is None or output is not None:
        raise ConfigError("name a sweep, or give --all (and then --out FILE) for a page of all")
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


def _study(results: Path, output: Path | None, *, given: bool) -> int:
    """Write the page of all sweeps."""
    if given:
        raise ConfigError("--all takes no sweep and no --json")
    if not results.is_dir():
        raise ConfigError(f"no results in {results.absolute()}: start with `pernn run`")
    path, damage = output or results / "study.html", list[str]()
    make_study(results, path, damage.append)
    typer.echo(str(path))
    return left_out(damage)


def sweep_name(word: str, scale: str) -> str:
    """Take an experiment's name for its sweep at a scale; a sweep's name stays."""
    return f"{word}-{scale}" if word in experiment_names() else word
