"""Exit statuses: what they mean, and which one an exception or a failed trial has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from pernn import errors
from pernn.errors import ConfigError, MachineError, StoreError

if TYPE_CHECKING:
    from pernn.lab.runners import TrialEvent

LEFT_EARLY, INTERRUPTED = 5, 130
EXIT_STATUSES = {
    0: "everything is finished",
    1: "some trials failed; the others are kept",
    2: "the command, a spec or a value is invalid",
    3: "this machine lacks a device or an optional package",
    4: "a results directory cannot be read or written",
    LEFT_EARLY: "stopped by a limit or a pause; `pernn resume` goes on",
    INTERRUPTED: "interrupted; everything is checkpointed, the same command goes on",
}


def exit_status(error: type[Exception]) -> int:
    """Return the exit status of an exception's class."""
    classes = {ConfigError: 2, MachineError: 3, StoreError: 4}
    return next((n for parent, n in classes.items() if issubclass(error, parent)), 1)


def failure_status(failures: "Sequence[TrialEvent]") -> int:
    """Return the exit status of failed trials: their common reason's, else 1; 0 if none failed."""
    if not failures:
        return 0
    statuses = {exit_status(getattr(errors, one.error, Exception)) for one in failures}
    return statuses.pop() if len(statuses) == 1 else 1


def left_out(damage: Sequence[str]) -> int:
    """Print why damaged runs were left out, and return the exit status; 0 if there were none."""
    for reason in damage:
        typer.echo(f"pernn: left out: {reason}", err=True)
    return exit_status(StoreError) if damage else 0
