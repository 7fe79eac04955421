"""`pernn status`: how sweeps stand, once or again and again."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live

from pernn.errors import one_line
from pernn.progress import label_run, label_trials, look_at_sweeps
from pernn.store import (
    Progress,
    RunStatus,
    list_published,
    read_progress,
    seconds_left,
    where_published,
)

from .options import RESULTS, IgnorePublished, Json, Results, published_folder, warn
from .terminal import framed, print_rows

STATES = ("finished", "running", "stopped", "waiting", "failed", "damaged")
SECONDS = 2.0
Found = Mapping[str, Sequence[RunStatus]]


def status(
    sweep: Annotated[
        str | None,
        typer.Argument(help="A sweep's name, to list its trials; the default is all sweeps."),
    ] = None,
    again: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.2, help=f"Watch, with this many seconds between refreshes ({SECONDS:g})."
        ),
    ] = None,
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> None:
    """Show the progress of all sweeps, or the trials of one; `train` has those of `pernn train`.

    With --watch, the table refreshes itself and shows running trials and the time left; in a pipe
    it is printed again and again, with --json as one line each time.

    Examples: pernn status vocabulary_size-demo; pernn status --every 10
    """
    seen: dict[str, RunStatus] = {}
    label = cache(partial(label_run, results))
    folder = published_folder(ignore=ignore_published)
    published = list_published(folder, warn)
    complain = cache(warn)

    def look() -> Found:
        return look_at_sweeps(results, [sweep] if sweep else None, published, seen, complain)

    def dump(indent: int | None) -> None:
        found = {
            name: [vars(one) for one in runs] if sweep else Counter(one.state for one in runs)
            for name, runs in look().items()
        }
        typer.echo(json.dumps(found, indent=indent, ensure_ascii=False))

    console = Console()
    if not again and every is None:
        dump(2) if as_json else _print(look(), sweep, results, folder, console)
        return
    on_screen = console.is_terminal and not as_json
    screen = Live(console=console, auto_refresh=False) if on_screen else nullcontext()
    # Ctrl-C is the way to leave, and interrupts nothing else.
    with suppress(KeyboardInterrupt), screen as live:
        while True:
            if as_json:
                dump(None)
            elif live is not None:
                live.update(overview(results, look(), label), refresh=True)
            else:
                console.print(overview(results, look(), label))
            sys.stdout.flush()
            time.sleep(SECONDS if every is None else every)


def _print(
    found: Found, sweep: str | None, results: Path, published: Path | None, console: Console
) -> None:
    if not found:
        start, where = "start one with `pernn run`", where_published(published)
        text = one_line(f"No sweeps in {results.absolute()}: {start}; {where}.")
        console.print(text, markup=False, soft_wrap=True)
    elif sweep:
        columns = ("Trial", "State", "Update", "Last event", "Reason", "Run")
        labels = label_trials(results, sweep, warn)
        rows = []
        for one in found[sweep]:
            update = f"{one.update:,}" if one.update else ""
            label = labels.get(one.run, one.run)
            rows.append((label, one.state, update, one.event, one.reason, one.run))
        print_rows(columns, rows, console)
    else:
        console.print(table_of_sweeps(found))


def table_of_sweeps(found: Found, left: Mapping[str, str] | None = None) -> RenderableType:
    """Return a row per sweep; its last column is the time left, if that is given."""
    seen = [one.state for runs in found.values() for one in runs]
    # What another version may call a state has a column of its own; one that no trial has, none.
    states = [state for state in dict.fromkeys([*STATES, *seen]) if state in seen]
    rows = []
    for name, runs in found.items():
        counts = Counter[str](one.state for one in runs)
        row = [name, str(len(runs)), *(str(counts[key] or "") for key in states)]
        rows.append(row if left is None else [*row, left.get(name, "")])
    return framed(["Sweep", "Trials", *states, *([] if left is None else ["Left"])], rows)


def overview(root: Path, found: Found, label: Callable[[str], str]) -> RenderableType:
    """Return the sweeps with the time that they have left, and the trials that run.

    Args:
        root: Results directory.
        found: What there is.
        label: Returns which trial a run is.
    """
    left, rows = {}, []
    for name, runs in found.items():
        running = {one: read_progress(root, one) for one in runs if one.state == "running"}
        left[name] = span(seconds_left(runs, list(running.values())))
        lost = [one for one in runs if one.state in ("failed", "damaged")]
        rows += [[label(one.run), name, *_cells(how), ""] for one, how in running.items()]
        rows += [[label(one.run), name, one.state, "", one.reason] for one in lost]
    head = table_of_sweeps(found, left)
    columns = ["Trial", "Sweep", "Updates", "Left", "Reason"]
    return Group(head, framed(columns, rows)) if rows else head


def span(seconds: float | None) -> str:
    """Return a time in two units at most; nothing if it is unknown."""
    if seconds is None:
        return ""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 48:
        return f"about {hours / 24:.1f} days"
    if hours >= 1:
        return f"about {int(hours)} h {int(minutes % 60)} min"
    return f"about {minutes:.0f} min" if minutes >= 10 else f"about {seconds:.0f} s"


def _cells(progress: Progress) -> list[str]:
    total = f" of {progress.total:,}" if progress.total else ""
    return [f"{progress.update:,}{total}", span(progress.seconds_left)]
