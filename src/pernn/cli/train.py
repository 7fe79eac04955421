"""`pernn train`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pernn.runs import RunSpec
from pernn.store import RunDirectory

from .launch import Launch, with_launch
from .options import RESULTS, Assignments, Json, Results, overrides, print_json, warn
from .statuses import LEFT_EARLY, failure_status
from .sweep import Tally, showing


@with_launch("threads", "device", "time_limit", "oversubscribe", "log_to")
def train(
    spec: Annotated[Path, typer.Argument(help="TOML or JSON file; a run's spec.json is one.")],
    assignments: Assignments = None,
    results: Results = RESULTS,
    as_json: Json = False,
    *,
    launch: Launch,
) -> int:
    """Train one trial from a file, or resume it.

    `pernn status train`, `pernn report train` and `pernn export train` cover all such trials.

    Example: pernn train trial.toml --set seed=222
    """
    one = RunSpec.read(spec).override(overrides(assignments))
    limits = launch.limits()
    launch.check_machine([one])
    tally = Tally([one], results)
    with showing(tally, Console(stderr=True)) as on_event:
        launch.make_runner(limits).run([one], results, on_event)
    directory = RunDirectory(results, one.fingerprint())
    for failure in tally.failures:
        warn(f"{failure.state}: {failure.message}")
    if tally.failures:
        return failure_status(tally.failures)
    result = directory.read_result()
    if result is None:
        warn(f"stopped: {limits.reason}; the same command goes on")
        return LEFT_EARLY
    if as_json:
        print_json({"directory": str(directory.path), **result})
    else:
        for name, value in result["metrics"].items():
            typer.echo(f"{name:28} {value:.6g}")
        typer.echo(f"{'parameters':28} {result['num_parameters']:,}")
        typer.echo(f"Run directory: {directory.path}")
    return 0
