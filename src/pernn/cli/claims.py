"""`pernn claims`."""

import json
from typing import Annotated

import typer
from rich.console import Console

from pernn.experiments import find_experiment
from pernn.reports import Labels, judge_all
from pernn.store import load_sweep
from pernn.sweeps import find_trials, read_finished

from .options import RESULTS, IgnorePublished, Json, Results, Scale, published_among
from .report import sweep_name
from .statuses import left_out
from .verdicts import print_verdicts


def claims(
    sweep: Annotated[str, typer.Argument(help="A sweep, see `pernn status`, or an experiment.")],
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> int:
    """Judge the paper's claims by what is finished.

    Example: pernn claims vocabulary_size --scale demo --json
    """
    found = load_sweep(results, sweep_name(sweep, scale))
    damage: list[str] = []
    published = published_among(found.runs, ignore=ignore_published)
    records, _ = read_finished(results, found, damage.append, published)
    planned = list(find_trials(found).values())
    experiment = find_experiment(found.experiment)
    label = Labels(experiment.labels)
    verdicts = judge_all(experiment.claims, records, planned, label)
    if as_json:
        rows = [verdict.dump() for verdict in verdicts]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_verdicts(verdicts, Console(), brief=False)
    return left_out(damage)
