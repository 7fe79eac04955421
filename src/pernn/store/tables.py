"""Results as rows for SQL: trials, their learning curves and tables, of one sweep or of all."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pernn.config import flatten
from pernn.errors import StoreError

from .files import gc_paused
from .run_directory import RunDirectory, list_runs
from .status import RunStatus, read_record, read_status
from .sweeps import Sweep, list_sweeps, load_sweep

Row = Mapping[str, Any]

MEANINGS = {
    "trials": "a finished trial: its settings by dotted path, its metrics",
    "status": "a trial, finished or not, with the columns of `trials`; `state` tells",
    "curves": "what was measured at an update of a trial, finished or not, beside its columns",
}
"""Name → what a row is."""

MEANING = "a row of this table of a finished trial, beside its columns"
"""What a row is of a table that a task has by a name of its own, `by_position` and the like."""

FIRST = ("run", "state")
LAST = ("position", "update", "event", "reason", "started", "finished")
"""A trial's columns before and after those that vary; what all trials share comes at the end."""


def read_tables(root: Path, sweep: str | None) -> dict[str, Iterable[Row]]:
    """Return the rows of each table but `trials`; curves are read as they are gone through.

    Args:
        root: Results directory.
        sweep: The sweep; `None` for all of them, and the runs that belong to none.

    Raises:
        ConfigError: If there is no such sweep.
        StoreError: If the directory or a list of runs cannot be read.
    """
    names = list_sweeps(root) if sweep is None else [sweep]
    sweeps = [load_sweep(root, name) for name in names]
    planned = dict.fromkeys(run for one in sweeps for run in one.runs)
    alone = [run for run in list_runs(root) if run not in planned] if sweep is None else []
    with gc_paused():
        found = {run: _read_trial(root, run) for run in (*planned, *alone)}
    tables = {run: trial.pop("tables", {}) for run, trial in found.items()}
    trials = [
        {**found[run], **_origin(one), "position": position}
        for one in sweeps
        for position, run in enumerate(one.runs)
    ]
    trials += [found[run] for run in alone]
    columns = _ordered(trials)
    own = {name for some in tables.values() for name in some if name.casefold() not in MEANINGS}
    return {
        "status": [{column: trial.get(column) for column in columns} for trial in trials],
        "curves": _curve_rows(root, found),
        **{name: _table_rows(tables, name) for name in sorted(own)},
    }


def _origin(sweep: Sweep) -> Row:
    """Return the columns of a trial that say which sweep it belongs to."""
    overrides = json.dumps(sweep.overrides, sort_keys=True)
    return {
        "sweep": sweep.name,
        "experiment": sweep.experiment,
        "scale": sweep.scale,
        "overrides": overrides,
    }


def _read_trial(root: Path, run: str) -> dict[str, Any]:
    """Return the columns of a trial and its tables; what cannot be read is left out."""
    directory = RunDirectory(root, run)
    record: dict[str, Any] | None = None
    journal: list[dict[str, Any]] = []
    with suppress(StoreError, OSError):
        record = read_record(directory)
    # A record is of a finished trial; of any other the status says what is wrong.
    status = RunStatus(run, "finished") if record is not None else read_status(root, run)
    with suppress(StoreError, OSError):
        journal = directory.read_journal()
        record = flatten(directory.read_spec() or {}) if record is None else record
    ended = [line for line in journal if line.get("event") == "finished"][-1:]
    done = ended if status.state == "finished" else []
    return {
        **(record or {}),
        "run": run,
        "state": status.state,
        "update": status.update or next((line.get("update") for line in done), None),
        "event": status.event,
        "reason": status.reason,
        "started": _moment(journal[:1]),
        "finished": _moment(done),
    }


def _moment(lines: Sequence[Row]) -> datetime | None:
    """Return the time of a line of a journal, in UTC."""
    with suppress(LookupError, TypeError, ValueError, OverflowError):
        moment = datetime.fromisoformat(lines[0]["time"]).astimezone(UTC)
        return moment.replace(tzinfo=None)
    return None


def _ordered(trials: Sequence[Row]) -> list[str]:
    """List all columns: a trial's name, what varies among the trials, the rest."""
    values: dict[str, set[Any]] = {}
    for trial in trials:
        for column, value in trial.items():
            values.setdefault(column, set()).add(value)
    varying = [column for column, some in values.items() if len(some) > 1 and column not in LAST]
    return list(dict.fromkeys((*FIRST, *varying, *LAST, *values)))


def _curve_rows(root: Path, runs: Iterable[str]) -> Iterator[Row]:
    for run in runs:
        for line in RunDirectory(root, run).read_metrics():
            yield {**line, "run": run}


def _table_rows(tables: Mapping[str, Mapping[str, Any]], name: str) -> Iterator[Row]:
    for run, some in tables.items():
        columns = some.get(name, {})
        for values in zip(*columns.values(), strict=True):
            yield {**dict(zip(columns, values, strict=True)), "run": run}
