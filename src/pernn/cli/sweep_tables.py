"""`pernn status --watch`: how sweeps stand, again and again."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from pernn.store import Progress, RunStatus, read_progress, seconds_left

from .terminal import framed

EVERY_SECONDS = 2.0
STATES = ("finished", "running", "stopped", "waiting", "failed", "damaged")
Found = Mapping[str, Sequence[RunStatus]]


def count(runs: Sequence[RunStatus]) -> Counter[str]:
    """Count the trials of a sweep by how they stand."""
    return Counter(one.state for one in runs)


def table_of_sweeps(found: Found, more: Mapping[str, str] | None = None) -> Table:
    """Return a row per sweep.

    Args:
        found: Sweep → its trials.
        more: If given, a last column: sweep → time left.
    """
    # What another version may call a state has a column of its own.
    others = dict.fromkeys(one.state for runs in found.values() for one in runs)
    states = dict.fromkeys([*STATES, *others])
    rows = []
    for name, runs in found.items():
        counts = count(runs)
        row = [name, str(len(runs)), *(str(counts[key] or "") for key in states)]
        rows.append([*row, more.get(name, "")] if more is not None else row)
    last = [] if more is None else ["Left"]
    return framed(["Sweep", "Trials", *states, *last], rows)


def overview(root: Path, found: Found) -> RenderableType:
    """Return the sweeps with the time that they have left, and the trials that run."""
    left, rows = {}, []
    for name, runs in found.items():
        running = {one: read_progress(root, one) for one in runs if one.state == "running"}
        seconds = seconds_left(runs, list(running.values()))
        left[name] = "" if seconds is None else f"about {span(seconds)}"
        rows += [[one.run, name, *_cells(progress)] for one, progress in running.items()]
        rows += [
            [one.run, name, one.state, "", one.reason]
            for one in runs
            if one.state in ("failed", "damaged")
        ]
    head = table_of_sweeps(found, left)
    return (
        Group(head, framed(["Run", "Sweep", "Updates", "Left", "Reason"], rows)) if rows else head
    )


def span(seconds: float) -> str:
    """Return a time in two units at most."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 48:
        return f"{hours / 24:.1f} days"
    if hours >= 1:
        return f"{int(hours)} h {int(minutes % 60)} min"
    return f"{minutes:.0f} min" if minutes >= 10 else f"{seconds:.0f} s"


def watch(root: Path, look: Callable[[], Found], seconds: float) -> None:
    """Show what is found, refreshed at this interval, until Ctrl-C.

    On a terminal one table is renewed in its place; elsewhere each is printed below the last.
    """
    console = Console()
    if not console.is_terminal:
        repeat(lambda: console.print(overview(root, look())), seconds)
        return
    with Live(console=console, auto_refresh=False) as live:
        repeat(lambda: live.update(overview(root, look()), refresh=True), seconds)


def repeat(act: Callable[[], None], seconds: float) -> None:
    """Do something again and again; Ctrl-C is the way to leave, and interrupts nothing else."""
    with suppress(KeyboardInterrupt):
        while True:
            act()
            sys.stdout.flush()
            time.sleep(seconds)


def _cells(progress: Progress) -> list[str]:
    total = f" of {progress.total:,}" if progress.total else ""
    left = progress.seconds_left
    return [f"{progress.update:,}{total}", "" if left is None else f"about {span(left)}", ""]
