"""What is seen while trials run: bars on a terminal, plain lines in a pipe."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pernn.runners import OnEvent, TrialEvent
from pernn.runs import RunSpec
from pernn.store import read_status


class Tally:
    """Counts what happens to a set of trials."""

    def __init__(self, specs: Sequence[RunSpec], root: Path) -> None:
        self.specs = {spec.fingerprint(): spec for spec in specs}
        self.updates = {run: read_status(root, run).update for run in self.specs}
        self.first = sum(self.updates.values())
        self.ended: dict[str, TrialEvent] = {}
        self.begun = time.monotonic()

    def on_event(self, event: TrialEvent) -> None:
        """Take note of an event."""
        self.updates[event.run] = max(self.updates[event.run], event.update)
        if event.is_end:
            self.ended[event.run] = event
            if event.state == "finished":
                self.updates[event.run] = self.specs[event.run].num_updates

    @property
    def total(self) -> int:
        """Updates of all trials together."""
        return sum(spec.num_updates for spec in self.specs.values())

    @property
    def done(self) -> int:
        """Updates done so far."""
        return sum(self.updates.values())

    @property
    def failures(self) -> list[TrialEvent]:
        """Trials that cannot go on; those that were stopped can."""
        return [event for event in self.ended.values() if event.state == "failed"]

    def seconds_left(self) -> float | None:
        """Estimate the time left from the updates done since the start."""
        fresh = self.done - self.first
        elapsed = time.monotonic() - self.begun
        return elapsed / fresh * (self.total - self.done) if fresh else None


@contextmanager
def showing(tally: Tally, console: Console) -> Iterator[OnEvent]:
    """Show progress while the block runs; gives what the runner is to call."""
    if not console.is_terminal:
        yield lambda event: _print_line(tally, event)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        overall = progress.add_task(
            f"[bold]all {len(tally.specs)} trials", total=tally.total, completed=tally.first
        )
        bars: dict[str, TaskID] = {}

        def on_event(event: TrialEvent) -> None:
            tally.on_event(event)
            progress.update(overall, completed=tally.done)
            spec = tally.specs[event.run]
            if event.state == "running" and not event.elsewhere and event.run not in bars:
                bars[event.run] = progress.add_task(spec.label, total=spec.num_updates)
            if event.run in bars:
                progress.update(bars[event.run], completed=tally.updates[event.run])
            if event.is_end and event.run in bars:
                progress.remove_task(bars.pop(event.run))
            if event.message:
                line = f"{_word(event)}: {spec.label}: {event.message}"
                progress.console.print(line, markup=False)

        yield on_event


def _print_line(tally: Tally, event: TrialEvent) -> None:
    tally.on_event(event)
    if event.is_warning:
        typer.echo(f"warning: {tally.specs[event.run].label}: {event.message}", err=True)
    if not (event.is_end or event.elsewhere):
        return
    left = tally.seconds_left()
    ahead = f", about {left / 60:.1f} min left" if left else ""
    reason = f": {event.message}" if event.message else ""
    count = f"[{len(tally.ended)}/{len(tally.specs)}]"
    label = tally.specs[event.run].label
    typer.echo(f"{count} {_word(event)}: {label}{reason}{ahead}", err=True)


def _word(event: TrialEvent) -> str:
    return "warning" if event.is_warning else event.state
