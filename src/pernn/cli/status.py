"""`pernn status`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pernn.errors import one_line
from pernn.experiments import SINGLE
from pernn.store import RunStatus, list_published, list_sweeps, read_statuses
from pernn.sweeps import label_trials, list_single_runs, read_sweep

from .options import RESULTS, IgnorePublished, Json, Results, published_folder, warn
from .sweep_tables import EVERY_SECONDS, count, repeat, table_of_sweeps, watch
from .terminal import print_rows


def status(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, to list its trials; all if absent.")
    ] = None,
    again: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.2, help=f"Watch, refreshed after this many seconds ({EVERY_SECONDS:g})."
        ),
    ] = None,
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> None:
    """Show the progress of sweeps, or the trials of one; `train` are those that belong to none.

    With --watch: a table that renews itself, with the trials that run and the time left; in a pipe
    one table after another, with --json one line after another.

    Examples: pernn status vocabulary_size-demo; pernn status --watch --every 10
    """
    found: dict[str, RunStatus] = {}
    single = list_single_runs(results) if sweep is None else []
    published = list_published(published_folder(ignore=ignore_published), warn)

    def look() -> dict[str, list[RunStatus]]:
        names = [sweep] if sweep else list_sweeps(results)
        sweeps = {name: read_sweep(results, name).runs for name in names}
        sweeps |= {SINGLE: single} if single else {}
        every_run = dict.fromkeys(run for runs in sweeps.values() for run in runs)
        found.update(read_statuses(results, list(every_run), found))
        for run in published & found.keys():
            if found[run].state == "waiting":
                found[run] = RunStatus(run, "finished", event="published")
        return {name: [found[run] for run in runs] for name, runs in sweeps.items()}

    def dump() -> dict[str, Any]:
        return {
            name: [vars(one) for one in runs] if sweep else dict(count(runs))
            for name, runs in look().items()
        }

    seconds = EVERY_SECONDS if every is None else every
    if again or every is not None:
        if as_json:
            repeat(lambda: typer.echo(json.dumps(dump(), ensure_ascii=False)), seconds)
        else:
            watch(results, look, seconds)
    elif as_json:
        typer.echo(json.dumps(dump(), indent=2, ensure_ascii=False))
    else:
        _print(look(), sweep, results)


def _print(found: dict[str, list[RunStatus]], sweep: str | None, results: Path) -> None:
    console = Console()
    if not found:
        console.print(
            one_line(f"No sweeps in {results}: start one with `pernn run`."), markup=False
        )
    elif sweep:
        columns = ("Trial", "State", "Update", "Last event", "Reason", "Run")
        labels = label_trials(results, sweep)
        rows = []
        for one in found[sweep]:
            update = f"{one.update:,}" if one.update else ""
            label = labels.get(one.run, one.run)
            rows.append((label, one.state, update, one.event, one.reason, one.run))
        print_rows(columns, rows, console)
    else:
        console.print(table_of_sweeps(found))
