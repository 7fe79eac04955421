"""`pernn report`."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from pernn.experiments import experiment_names
from pernn.reports import Verdict
from pernn.sweeps import judge_sweep, make_report, read_plan

from .options import RESULTS, Json, Results, Scale
from .statuses import left_out
from .sweep import summary
from .verdicts import print_verdicts


def report(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    claims: Annotated[
        bool, typer.Option("--claims", help="Only judge the paper's claims; write nothing.")
    ] = False,
    scale: Scale = "demo",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Write figure, tables, verdicts and page from what is finished.

    Examples: pernn report vocabulary_size --scale demo; pernn report vocabulary_size --claims
    """
    plan = read_plan(results, sweep_name(sweep, scale))
    damage: list[str] = []
    if claims:
        _print_claims(judge_sweep(results, plan, damage.append), as_json=as_json)
    else:
        made = make_report(results, plan, damage.append)
        if as_json:
            typer.echo(json.dumps(summary(plan, results, made), indent=2, ensure_ascii=False))
        else:
            for path in made.paths:
                typer.echo(str(path))
    return left_out(damage)


def _print_claims(verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    if as_json:
        rows = [verdict.dump() for verdict in verdicts]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_verdicts(verdicts, Console(), brief=False)


def sweep_name(word: str, scale: str) -> str:
    """Take an experiment's name for its sweep at a scale; a sweep's name stays."""
    return f"{word}-{scale}" if word in experiment_names() else word
