"""`pernn report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pernn.errors import ConfigError
from pernn.reports import Verdict
from pernn.store import list_publications, require_writable, sweep_directory, where_published
from pernn.studies import make_study
from pernn.sweeps import find_plan, judge_sweep, make_report

from .options import (
    RESULTS,
    IgnorePublished,
    Json,
    Results,
    Scale,
    print_json,
    published_folder,
    warn,
)
from .statuses import left_out
from .sweep import summary
from .terminal import print_verdicts


def report(
    sweep: Annotated[
        str | None,
        typer.Argument(
            help="A sweep (see `pernn status`), an experiment, or `train` for those of "
            "`pernn train`."
        ),
    ] = None,
    claims: Annotated[
        bool,
        typer.Option(
            "--claims", help="Only print the verdicts on the paper's claims; write nothing."
        ),
    ] = False,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
    every: Annotated[
        bool, typer.Option("--all", help="One page of all sweeps, with every claim of the study.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="With --all: the file; the default is RESULTS/study.html."
        ),
    ] = None,
) -> int:
    """Write figure, tables, verdicts and page of all finished trials.

    Published trials count as finished, also of an experiment that was never run here.

    Examples: pernn report vocabulary_size --scale demo; pernn report vocabulary_size --claims;
    pernn report --all --out study.html
    """
    if every:
        if sweep is not None or as_json or claims:
            raise ConfigError("--all takes no sweep, no --claims and no --json")
        return _study(results, output, published_folder(ignore=ignore_published))
    if sweep is None or output is not None:
        raise ConfigError("expected a sweep, or --all (and then --out FILE) for a page of all")
    published = published_folder(ignore=ignore_published)
    plan = find_plan(results, sweep, scale, published, warn)
    damage: list[str] = []
    if claims:
        _print_claims(judge_sweep(results, plan, damage.append), as_json=as_json)
    else:
        require_writable(sweep_directory(results, plan.sweep.name) / "index.html")
        made = make_report(results, plan, damage.append)
        if as_json:
            print_json(summary(plan, results, made))
        else:
            for path in made.paths:
                typer.echo(str(path))
    return left_out(damage)


def _study(results: Path, output: Path | None, published: Path | None) -> int:
    """Write the page of all sweeps, published ones among them."""
    if not results.is_dir() and not (published and list_publications(published)):
        where = where_published(published)
        raise ConfigError(f"no results in {results.absolute()}: start with `pernn run`; {where}")
    path, damage = output or results / "study.html", list[str]()
    make_study(results, path, damage.append, published)
    typer.echo(str(path))
    return left_out(damage)


def _print_claims(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    if as_json:
        rows = [verdict.dump() for verdict in verdicts]
        print_json(rows)
    else:
        print_verdicts(verdicts, Console(), brief=False)
