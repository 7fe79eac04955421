"""`pernn show`."""

import inspect
import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pernn.errors import ConfigError
from pernn.experiments import experiment_names, find_experiment, trials
from pernn.runs import Cost, RunSpec, estimate_cost, measure_rate
from pernn.store import flatten
from pernn.tasks import TASKS, draw_pictures

from .options import Assignments, Jobs, Json, Scale, Threads, num_cores, number_of_jobs, overrides


def show(
    name: Annotated[
        str, typer.Argument(help="Name of an experiment, see `pernn list`, or kind of a task.")
    ],
    scale: Scale = "demo",
    assignments: Assignments = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=1,
            max=1000,
            help="Show so many sequences of the task of this name, where an experiment has it too.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show an experiment before it runs (grid, cost, claims, command), or what a task looks like.

    Example: pernn show vocabulary_size --scale paper --set protocol=as-written

    Example: pernn show sorting --sample 3 --set length=6
    """
    is_task = name in TASKS.names()
    if is_task and (sample is not None or name not in experiment_names()):
        if (scale, jobs, threads) != ("demo", None, 1):
            raise ConfigError(f"{name} is a task: it takes --sample, --set and --json only")
        _show_task(name, sample or 1, overrides(assignments), as_json)
        return
    found = find_experiment(name)
    if sample is not None:
        raise ConfigError(
            f"--sample {sample}: {name} is an experiment; sequences are shown of a task "
            f"({', '.join(TASKS.names())})"
        )
    specs = trials(found, scale, overrides(assignments))
    slots = number_of_jobs(jobs, threads)
    rate = measure_rate()
    share = min(1.0, slots * threads / num_cores())
    cost = sum(map(estimate_cost, specs), Cost(0, 0))
    hours = cost.seconds(rate * share, slots) / 3600
    command = " ".join(
        ["pernn run", name, "--scale", scale, "--jobs", str(slots)]
        + [f"--set {text}" for text in assignments or []]
    )
    if as_json:
        content = {
            "experiment": name,
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
    if name in TASKS.names():
        console.print(f"Its task:  pernn show {name} --sample 3")
    console.print(f"Run it:  {command}", soft_wrap=True)


def _show_task(kind: str, num_samples: int, changes: dict[str, object], as_json: bool) -> None:
    """Show what a task asks for and some of its sequences."""
    config = TASKS.validate({"kind": kind}).override(changes)
    task = config.build()
    summary = (inspect.getdoc(type(config)) or kind).splitlines()[0]
    samples = draw_pictures(task, num_samples)
    if as_json:
        content = {
            "task": config.dump(),
            "summary": summary,
            "name": config.name,
            "num_steps": task.num_steps,
            "num_scored": task.num_scored,
            "extra_rows": task.extra_rows,
            "samples": [{"input": one.inputs, "target": one.targets} for one in samples],
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    typer.echo(f"{summary}\n{config.name}")
    for one in samples:
        typer.echo(f"\n{one.text(Console().width)}")


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
