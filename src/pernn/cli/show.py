"""`pernn show`."""

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pernn.config import flatten
from pernn.errors import ConfigError
from pernn.experiments import experiment_names
from pernn.runs import Estimate, RunSpec, estimate
from pernn.sweeps import Plan, plan_sweep, repeat_command
from pernn.tasks import TASKS, draw_pictures

from .options import (
    RESULTS,
    Additions,
    Assignments,
    Device,
    Jobs,
    Json,
    Scale,
    Seeds,
    Threads,
    grid_changes,
    num_cores,
    number_of_jobs,
    overrides,
    print_json,
)


def show(
    name: Annotated[
        str, typer.Argument(help="Name of an experiment (see `pernn list`), or kind of a task.")
    ],
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    jobs: Jobs = None,
    threads: Threads = 1,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample",
            min=1,
            max=1000,
            help="Print N example sequences of the task.",
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Measure a few updates of each kind of trial, for an estimate."
        ),
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Show an experiment before it runs (grid, time, claims, command), or what a task looks like.

    Examples: pernn show vocabulary_size --scale paper --set preset=as-written;
    pernn show vocabulary_size --scale small --measure;
    pernn show sorting --sample 3 --set length=6
    """
    is_task = name in TASKS.names()
    if is_task and (sample is not None or name not in experiment_names()):
        given = (scale, jobs, threads, measure, seeds, additions)
        if given != ("demo", None, 1, False, None, None):
            raise ConfigError(f"{name} is a task: it takes --sample, --set and --json only")
        _show_task(name, sample or 1, overrides(assignments), as_json)
        return
    if sample is not None:
        raise ConfigError(
            f"--sample {sample}: {name} is an experiment; sequences are shown of a task "
            f"({', '.join(TASKS.names())})"
        )
    plan = plan_sweep(name, scale, grid_changes(assignments, seeds, additions))
    slots = number_of_jobs(jobs, threads)
    found = None
    if measure:
        specs = list(plan.specs.values())
        found = estimate(specs, RESULTS, jobs=slots, threads=threads, device=device)
    command = f"{repeat_command(plan.sweep)} --jobs {slots}"
    if as_json:
        _print_json(plan, found, slots, command)
    else:
        _print(plan, found, slots, command)


def _print_json(plan: Plan, found: Estimate | None, slots: int, command: str) -> None:
    content = {
        "experiment": plan.experiment.name,
        "scale": plan.sweep.scale,
        "num_trials": len(plan.specs),
        "estimated_hours": found and found.hours,
        "num_kinds": found and found.num_kinds,
        "num_kinds_measured": found and found.num_measured,
        "disk_bytes": found and found.disk,
        "memory_bytes": found and found.memory,
        "jobs": slots,
        "claims": [{"name": c.name, "statement": c.statement} for c in plan.experiment.claims],
        "command": command,
        "specs": [{"run": run, **spec.dump()} for run, spec in plan.specs.items()],
    }
    print_json(content)


def _print(plan: Plan, found: Estimate | None, slots: int, command: str) -> None:
    console, experiment = Console(), plan.experiment
    console.print(f"[bold]{experiment.question}[/bold]  ({experiment.source})\n")
    console.print(_grid(list(plan.specs.values())))
    needs = "--measure times a few updates of each kind" if found is None else found.describe()
    words = f"{len(plan.specs)} trials on {slots} of {num_cores()} CPU cores: {needs}"
    console.print(words, markup=False)
    claims = Table("Claim", "Statement", "Source")
    for claim in experiment.claims:
        claims.add_row(claim.name, claim.statement, claim.cited)
    console.print(claims)
    if experiment.name in TASKS.names():
        console.print(f"Its task:  pernn show {experiment.name} --sample 3")
    console.print(f"Run it:  {command}", soft_wrap=True, markup=False)


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
        print_json(content)
        return
    typer.echo(f"{summary}\n{config.name}")
    for one in samples:
        typer.echo(f"\n{one.text(Console().width)}")


def _grid(specs: Sequence[RunSpec]) -> Table:
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
