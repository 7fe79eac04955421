"""`pernn show`."""

import inspect
import json
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pernn.errors import ConfigError
from pernn.experiments import experiment_names, find_experiment, trials
from pernn.runs import RunSpec
from pernn.store import flatten
from pernn.tasks import TASKS, draw_pictures

from .estimates import estimate_hours, show_hours
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
    measure: Annotated[
        bool, typer.Option("--measure", help="Time a few updates of each kind, for a better guess.")
    ] = False,
    price: Annotated[
        float | None, typer.Option("--price", min=0, help="What the machine costs an hour.")
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="Where --measure times; by default the CPU.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Show an experiment before it runs (grid, cost, claims, command), or what a task looks like.

    Example: pernn show vocabulary_size --scale paper --set preset=as-written

    Example: pernn show vocabulary_size --scale small --measure --price 0.10

    Example: pernn show sorting --sample 3 --set length=6
    """
    is_task = name in TASKS.names()
    if is_task and (sample is not None or name not in experiment_names()):
        if (scale, jobs, threads, measure, price) != ("demo", None, 1, False, None):
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
    estimate = estimate_hours(specs, slots, threads)
    if measure:
        estimate["measured_hours"] = _measure(specs, slots, threads, device)
    hours = estimate.get("measured_hours", estimate["estimated_hours"])
    if price is not None:
        estimate["cost"] = hours * price
    command = " ".join(
        ["pernn run", name, "--scale", scale, "--jobs", str(slots)]
        + [f"--set {text}" for text in assignments or []]
    )
    if as_json:
        content = {
            "experiment": name,
            "scale": scale,
            "num_trials": len(specs),
            **estimate,
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
    words = f"{len(specs)} trials, {estimate['operations']:.2g} floating-point operations: about "
    words += f"[bold]{show_hours(hours)}[/bold] on {slots} of {num_cores()} CPU cores "
    if device != "auto":
        words = words.replace(f"{slots} of {num_cores()} CPU cores", device)
    rate = estimate["measured_operations_per_second"] / 1e9
    words += (
        "(measured now: a few updates of each kind)"
        if measure
        else f"({rate:.0f} GFLOP/s measured now; an estimate, good to a factor of two: --measure)"
    )
    if price is not None:
        words += f", {estimate['cost']:,.2f} at {price:g} an hour"
    console.print(words)
    claims = Table("Claim", "Statement", "Source")
    for claim in found.claims:
        claims.add_row(claim.name, claim.statement, claim.cited)
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


def _measure(specs: tuple[RunSpec, ...], slots: int, threads: int, device: str) -> float:
    """Time a few updates of every kind and give the hours of all."""
    import torch

    from pernn.performance import measure_seconds
    from pernn.training import choose_device

    torch.set_num_threads(threads)
    chosen = choose_device("cpu" if device == "auto" else device)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Timing updates", total=None)
        seconds = measure_seconds(
            specs, chosen, lambda done, total: progress.update(task, completed=done, total=total)
        )
    return seconds / (1 if chosen.type == "cuda" else slots) / 3600


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
