"""`pernn train`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pernn.runners import LocalRunner
from pernn.runs import RunSpec
from pernn.store import RunDirectory

from .options import RESULTS, Assignments, Device, Json, Results, Threads, overrides
from .progress import Tally, showing
from .statuses import failure_status


def train(
    spec: Annotated[Path, typer.Argument(help="TOML or JSON file; a run's spec.json is one.")],
    assignments: Assignments = None,
    threads: Threads = 1,
    device: Device = "auto",
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Train one trial from a file, or go on with it.

    Example: pernn train trial.toml --set seed=222
    """
    one = RunSpec.read(spec).override(overrides(assignments))
    tally = Tally([one], results)
    with showing(tally, Console(stderr=True)) as hear:
        LocalRunner(jobs=1, device=device, threads=threads).run([one], results, hear)
    directory = RunDirectory(results, one.fingerprint())
    for failure in tally.failures:
        typer.echo(f"pernn: {failure.kind}: {failure.message}", err=True)
    if tally.failures:
        return failure_status(tally.failures)
    result = directory.read_result() or {}
    if as_json:
        typer.echo(json.dumps({"directory": str(directory.path), **result}, indent=2))
    else:
        for name, value in result["metrics"].items():
            typer.echo(f"{name:28} {value:.6g}")
        typer.echo(f"{'parameters':28} {result['num_parameters']:,}")
        typer.echo(f"Run directory: {directory.path}")
    return 0
