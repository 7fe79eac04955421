"""`pernn register`."""

from pathlib import Path
from typing import Annotated

import typer

from pernn.errors import counted, one_line
from pernn.registration import register as write_registration
from pernn.store import VARIABLE_OF_PLANS, plan_folders
from pernn.sweeps import repeat_command

from .options import warn


def register(
    plan: Annotated[Path, typer.Argument(help="A TOML file; docs/sweeps.md has an example.")],
) -> int:
    """Register a plan: write down what will be run and judged, before it is run.

    PLAN.lock.json beside it has a digest of every trial and claim, the rule of verdicts, the
    smallest effects that can be seen, the version and the date. Reports then call a verdict
    registered, or exploratory with all that departs from the plan.

    Example: pernn register plans/temperature.toml
    """
    path, found = write_registration(plan)
    typer.echo(one_line(str(path)))
    for sweep, registered in found:
        seen = [one.seen for one in registered.claims.values() if one.seen is not None]
        range_ = f"{min(seen):.2g} to {max(seen):.2g}" if seen else "unknown"
        typer.echo(
            f"  {repeat_command(sweep.sweep)}\n  {counted(len(registered.runs), 'trial')}, "
            f"{counted(len(registered.claims), 'claim')}; smallest effects seen with 80 % power: "
            f"{range_} standard deviations over seeds"
        )
    if path.parent.resolve() not in [folder.resolve() for folder in plan_folders()]:
        folders = " and ".join(map(str, plan_folders()))
        warn(f"reports look for plans in {folders}: move it there, or set {VARIABLE_OF_PLANS}")
    return 0
