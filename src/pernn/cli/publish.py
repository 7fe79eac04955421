"""`pernn publish`."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import ConfigError, one_line
from pernn.evidence import publish_sweep
from pernn.experiments import experiment_names
from pernn.progress import name_run
from pernn.store import FOLDER, load_sweep
from pernn.sweeps import plan_sweep

from .options import (
    RESULTS,
    Additions,
    Assignments,
    Json,
    Results,
    Scale,
    Seeds,
    grid_changes,
    print_json,
    warn,
)


def publish(
    sweeps: Annotated[
        list[str], typer.Argument(help="Sweeps (see `pernn status`) or experiments.")
    ],
    to: Annotated[
        Path, typer.Option("--to", help="Folder for published trials, one Parquet file per sweep.")
    ] = Path(FOLDER),
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Add the finished trials of sweeps to the published ones: spec, result, machine, curves.

    For an experiment, name the --scale, --set, --seeds and --add that it was run with. Repeating
    the command changes nothing. Every run is checked; damaged ones are reported and left out, with
    exit status 1. A trial that is published already with another result stays as it is.

    Example: pernn publish vocabulary_size dual_frequency --scale small --to evidence
    """
    changes = grid_changes(assignments, seeds, additions)
    found = {
        name: plan_sweep(name, scale, changes).sweep
        if name in experiment_names()
        else load_sweep(results, name)
        for name in sweeps
    }
    if changes and not found.keys() <= {*experiment_names()}:
        raise ConfigError(
            "--set, --seeds and --add concern experiments only: a sweep's name has its own"
        )
    made = {name: publish_sweep(results, sweep, to) for name, sweep in found.items()}
    status = 0
    for name, one in made.items():
        count = Counter(one.fates.values())
        said = ", ".join(f"{number} {fate}" for fate, number in count.items()) or "nothing finished"
        if not as_json:
            typer.echo(one_line(f"{one.path}: {said}"))
        for run, fate in one.fates.items():
            if fate == "kept the first":
                warn(f"{name_run(results, run)} is published with another result: {fate}")
        for run, reason in one.left_out.items():
            warn(f"{name_run(results, run)} of {name} left out: {reason}")
            status = 1
    if as_json:
        plain = {
            name: {"path": str(one.path), "trials": dict(one.fates), "left_out": dict(one.left_out)}
            for name, one in made.items()
        }
        print_json(plain)
    return status
