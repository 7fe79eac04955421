"""`pernn list`, `show`, `status` and `doctor`."""

import inspect
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import Annotated, NamedTuple, get_args

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from pernn.errors import ConfigError, MachineError, install_command, one_line, show_time
from pernn.lab.config import flatten
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.experiments import CATALOGUE, experiment_names, registered
from pernn.lab.lookup import label_run, label_trials, look_at_sweeps
from pernn.lab.runners import num_cores
from pernn.lab.runs import RunSpec, describe_versions
from pernn.lab.store import (
    RunState,
    RunStatus,
    evidence_folder,
    list_published,
    physical_memory,
    read_progress,
    seconds_left,
    where_published,
)
from pernn.lab.sweeps import Plan, plan_sweep, repeat_command
from pernn.lab.tasks import TASKS, draw_pictures

from .options import (
    RESULTS,
    Additions,
    Assignments,
    IgnorePublished,
    Json,
    Results,
    Scale,
    Seeds,
    grid_changes,
    overrides,
    print_json,
    warn,
)
from .terminal import framed, print_rows, without_blanks


def list_experiments(as_json: Json = False) -> None:
    """List the experiments, and the kinds of parts for specs.

    An experiment of another package is listed by its entry point; its module, which has the
    question, is not imported.

    Example:
        pernn list --json
    """
    found = [(name, entry.question, entry.source) for name, entry in CATALOGUE.items()]
    found += [(name, "", point.value) for name, point in registered().items()]
    if as_json:
        print_json([{"name": name, "question": q, "source": source} for name, q, source in found])
        return
    console = Console()
    rows = [(name, question or source) for name, question, source in found]
    console.print(framed(["Experiment", "Question"], rows))
    for title, kinds in (("Tasks", TASKS), ("Cores", CORES), ("Encodings", ENCODINGS)):
        console.print(f"{title}: {', '.join(kinds.names())}")
    console.print("More of each:  pernn show EXPERIMENT,  pernn show TASK --sample 3")


def show(
    name: str,
    scale: Scale = "demo",
    assignments: Assignments = None,
    seeds: Seeds = None,
    additions: Additions = None,
    sample: Annotated[int | None, Option(min=1, max=1000)] = None,
    as_json: Json = False,
) -> None:
    """Show an experiment before it runs, or sequences of a task.

    Of an experiment: grid, claims, command. `pernn run` first tells what it costs.

    Args:
        name: Name of an experiment (see `pernn list`), or kind of a task.
        sample: Print N example sequences of the task.

    Examples:
        pernn show vocabulary_size --scale paper --set preset=as-written
        pernn show sorting --sample 3 --set length=6
    """
    is_task = name in TASKS.names() or ":" in name
    if sample is not None and not is_task:
        kinds = ", ".join(TASKS.names())
        raise ConfigError(f"--sample {sample}: {name} is no task; sequences are shown of {kinds}")
    if sample is not None or (is_task and name not in experiment_names()):
        if (scale, seeds, additions) != ("demo", None, None):
            raise ConfigError(f"{name} is a task: it takes --sample, --set and --json only")
        _show_task(name, sample or 1, overrides(assignments), as_json=as_json)
        return
    plan = plan_sweep(name, scale, grid_changes(assignments, seeds, additions))
    if not as_json:
        _print_plan(plan)
        return
    claims = [{"name": c.name, "statement": c.statement} for c in plan.experiment.claims]
    content = {
        "experiment": plan.experiment.name,
        "scale": plan.sweep.scale,
        "num_trials": len(plan.specs),
        "claims": claims,
        "command": repeat_command(plan.sweep),
        "specs": [{"run": run, **spec.dump()} for run, spec in plan.specs.items()],
    }
    print_json(content)


def _print_plan(plan: Plan) -> None:
    console, experiment = Console(), plan.experiment
    console.print(f"[bold]{experiment.question}[/bold]  ({experiment.source})\n")
    console.print(_grid(list(plan.specs.values())), f"{len(plan.specs)} trials", sep="\n")
    claims = Table("Claim", "Statement")
    for one in experiment.claims:
        claims.add_row(one.name, Text.assemble(f"{one.statement}\n", (one.cited, "dim")))
    console.print(claims)
    typer.echo(f"Run it:  {repeat_command(plan.sweep)}")


def _grid(specs: Sequence[RunSpec]) -> Table:
    """Show what varies over the trials, and what does not."""
    columns: dict[str, Counter[str]] = {}
    for spec in specs:
        for path, value in flatten(spec.dump()).items():
            columns.setdefault(path, Counter())[str(value)] += 1
    rows = []
    for path, values in columns.items():
        varies = len(values) > 1 or values.total() < len(specs)
        shown = (f"{value} ({count})" if varies else value for value, count in values.items())
        rows.append((path, ", ".join(shown)))
    return framed(["Setting", "Values (trials)"], rows)


def _show_task(kind: str, num_samples: int, changes: dict[str, object], *, as_json: bool) -> None:
    """Show what a task asks for and some of its sequences."""
    config = TASKS.validate({"kind": kind}).override(changes)
    task = config.build()
    summary = (inspect.getdoc(type(config)) or kind).splitlines()[0]
    samples = draw_pictures(task, num_samples)
    if not as_json:
        typer.echo(f"{summary}\n{config.name}")
        for one in samples:
            typer.echo(f"\n{one.text(Console().width)}")
        return
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


def status(
    sweep: Annotated[str | None, Argument()] = None,
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> None:
    """Show the progress of all sweeps, or of the trials of one.

    The sweep `train` has the trials of `pernn train`. `watch pernn status` repeats it.

    Args:
        sweep: A sweep's name, to list its trials; the default is all sweeps.

    Example:
        pernn status vocabulary_size-demo
    """
    folder = None if ignore_published else evidence_folder()
    published = list_published(folder, warn)
    found = look_at_sweeps(results, sweep, published, warn)
    if as_json:
        as_counts = {name: Counter(one.state for one in runs) for name, runs in found.items()}
        print_json({sweep: [vars(one) for one in found[sweep]]} if sweep else as_counts)
    elif not found:
        start, where = "start one with `pernn run`", where_published(folder)
        typer.echo(one_line(f"No sweeps in {results.absolute()}: {start}; {where}."))
    elif sweep:
        labels, rows = label_trials(results, sweep), []
        for one in found[sweep]:
            done = f"{one.update:,}" if one.update else ""
            if one.state == "running":
                done = str(read_progress(results, one))
            rows.append([labels.get(one.run, one.run), one.state, one.run, one.reason, done])
        print_rows(*without_blanks(["Trial", "State", "Run", "Reason", "Updates"], rows))
    else:
        _print_sweeps(results, found)


def _print_sweeps(root: Path, found: Mapping[str, Sequence[RunStatus]]) -> None:
    """Print a row per sweep, with the time left if known, and the trials that run."""
    states, rows, running = get_args(RunState), [], []
    for name, runs in found.items():
        counts = Counter[str](one.state for one in runs)
        progress = {one.run: read_progress(root, one) for one in runs if one.state == "running"}
        left = show_time(seconds_left(runs, list(progress.values())))
        numbers = (str(counts[state] or "") for state in states)
        rows.append([name, str(len(runs)), *numbers, left])
        running += [[label_run(root, run), name, str(how)] for run, how in progress.items()]
    console = Console()
    console.print(framed(*without_blanks(["Sweep", "Trials", *states, "Left"], rows)))
    if running:
        console.print(framed(["Trial", "Sweep", "Updates"], running))


OTHERS = ("browser", "dev", "pdf", "site")
"""Extras that nothing in a run needs."""


class Finding(NamedTuple):
    """One thing that was looked for, and how to get it."""

    what: str
    present: bool
    found: str
    required: bool = True
    remedy: str = ""


def doctor(as_json: Json = False) -> int:
    """Show what this machine has and how to get what is missing.

    Example:
        pernn doctor
    """
    findings = [
        Finding("Python", True, platform.python_version()),
        *_packages(),
        Finding("CPU cores", True, str(num_cores())),
        Finding("memory", True, f"{physical_memory() / 2**30:.0f} GiB"),
        *_arithmetic(),
    ]
    if as_json:
        print_json([one._asdict() for one in findings])
    else:
        marks = ("ok" if o.present else "missing" if o.required else "absent" for o in findings)
        rows = [(mark, one.what, one.found) for mark, one in zip(marks, findings, strict=True)]
        print_rows(["", "What", "Found"], rows)
        for one in findings:
            if not one.present:
                typer.echo(f"{one.what}: {one.remedy}")
    return 3 if any(one.required and not one.present for one in findings) else 0


def _packages() -> list[Finding]:
    """Look for what pernn's own metadata names, with the extra that a package comes with."""
    found: dict[str, Finding] = {}
    for line in requires("pernn") or ():
        name, extra = re.match(r"([\w.-]+)[^;]*(?:; extra == ['\"](\w+)['\"])?", line).groups()  # type: ignore[union-attr]
        # Two extras may need one package: the one of its name wins.
        if extra in OTHERS or (name in found and extra != name):
            continue
        remedy = install_command(extra) if extra else f"pip install {name}"
        seen = describe_versions((name,))[name] or ""
        found[name] = Finding(f"package {name}", bool(seen), seen, extra is None, remedy)
    return [*found.values()]


def _arithmetic() -> list[Finding]:
    """Look at what computes here; kernels are compiled now if that was never done."""
    try:
        import torch

        from pernn.kernels import describe_arithmetic, find_kernels
    except ImportError:
        return []  # The package is found to be missing.
    try:
        has_kernels, found = find_kernels() is not None, describe_arithmetic()
    except MachineError as error:
        has_kernels, found = False, str(error)
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = [torch.cuda.get_device_name(number) for number in range(num_gpus)]
    slower = "a C++ compiler with OpenMP; without one, training is slower"
    cuda = "a CUDA build of torch and an NVIDIA driver; everything also runs on the CPU"
    return [
        Finding("CPU arithmetic", has_kernels, found, False, slower),
        Finding("CUDA device", bool(gpus), ", ".join(gpus) or "none", False, cuda),
    ]
