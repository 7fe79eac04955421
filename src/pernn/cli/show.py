"""`pernn show`."""

import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pernn.experiments import find_experiment, trials
from pernn.runs import Cost, RunSpec, estimate_cost, measure_rate
from pernn.store import flatten

from .options import Assignments, Jobs, Json, Scale, Threads, num_cores, number_of_jobs, overrides


def show(
    experiment: Annotated[str, typer.Argument(help="Name of an experiment, see `pernn list`.")],
    scale: Scale = "demo",
    assignments: Assignments = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Show an experiment before it runs: grid, cost estimate, claims, command.

    Example: pernn show vocabulary_size --scale paper --set protocol=as-written
    """
    found = find_experiment(experiment)
    specs = trials(found, scale, overrides(assignments))
    slots = number_of_jobs(jobs, threads)
    rate = measure_rate()
    share = min(1.0, slots * threads / num_cores())
    cost = sum(map(estimate_cost, specs), Cost(0, 0))
    hours = cost.seconds(rate * share, slots) / 3600
    command = " ".join(
        ["pernn run", experiment, "--scale", scale, "--jobs", str(slots)]
        + [f"--set {text}" for text in assignments or []]
    )
    if as_json:
        content = {
            "experiment": experiment,
            "scale": scale,
            "num_trials": len(specs),
            "estimated_hours": hours,
            "operations": cost.operations,
            "measured_operations_per_second": rate,
            "jobs": slots,
            "claims": [{"name": c.name, "statement": c.statement} for c in found.claims],
            "command": command,
            "specs": [{"run": spec.fingerprint(), **spec.dump()} for spec in specs],
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(f"[bold]{found.question}[/bold]  ({found.source})\n")
    console.print(_grid(specs))
    console.print(
        f"{len(specs)} trials, {cost.operations:.2g} floating-point operations: about "
        f"[bold]{_duration(hours)}[/bold] on {slots} of {num_cores()} CPU cores "
        f"({rate / 1e9:.0f} GFLOP/s measured now; an estimate, good to a factor of two)"
    )
    claims = Table("Claim", "Statement", "Source")
    for claim in found.claims:
        claims.add_row(claim.name, claim.statement, claim.source)
    console.print(claims)
    console.print(f"Run it:  {command}", soft_wrap=True)


def _grid(specs: tuple[RunSpec, ...]) -> Table:
    """Show what varies over the trials, and what does not."""
    columns: dict[str, Counter[str]] = {}
    for spec in specs:
        for path, value in flatten(spec.dump()).items():
            columns.setdefault(path, Counter())[str(value)] += 1
    table = Table("Setting", "Values (trials)")
    for path, values in columns.items():
        if len(values) > 1 or sum(values.values()) < len(specs):
            table.add_row(
                f"[bold]{path}[/bold]", ", ".join(f"{v} ({n})" for v, n in values.items())
            )
        else:
            table.add_row(path, next(iter(values)))
    return table


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.0f} minutes" if hours > 1 / 60 else "under a minute"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
