"""Results as rows for SQL: trials, their learning curves and tables, of one sweep or of all."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pernn.config import flatten
from pernn.errors import ConfigError, StoreError

from .files import gc_paused
from .published import Published, describe_publication, find_published, list_publications
from .run_directory import RunDirectory, is_done, list_runs
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

TYPES: Mapping[str, set[type]] = {
    "position": {int},
    "update": {int},
    "started": {datetime},
    "finished": {datetime},
}
"""Column → its type, also where it has no value: published trials do not say when they ran."""

FIRST = ("run", "state")
LAST = ("position", "update", "event", "reason", "started", "finished", "published")
"""A trial's columns before and after those that vary; what all trials share comes at the end."""


def read_tables(
    root: Path, sweep: str | None, folder: Path | None, complain: Callable[[str], None]
) -> dict[str, Iterable[Row]]:
    """Return the rows of each table but `trials`; curves are read as they are gone through.

    Args:
        root: Results directory.
        sweep: The sweep; `None` for all of them, and the runs that belong to none.
        folder: Published trials, which count as finished; `None` to count none.
        complain: Told if these cannot be read.

    Raises:
        ConfigError: If there is no such sweep, here or published, or there are no results at all.
        StoreError: If the directory or a list of runs cannot be read.
    """
    sweeps, published = _find(root, sweep, folder, complain)
    planned = dict.fromkeys(run for one in sweeps for run in one.runs)
    alone = [run for run in list_runs(root) if run not in planned] if sweep is None else []
    with gc_paused():
        found = {run: _read_trial(root, run, published.get(run)) for run in (*planned, *alone)}
    tables = {run: trial.pop("tables", {}) for run, trial in found.items()}
    trials = [
        {**found[run], **_origin(one), "position": position}
        for one in sweeps
        for position, run in enumerate(one.runs)
    ]
    trials += [found[run] for run in alone]
    if not trials:
        raise ConfigError(f"no results in {root.absolute()}: start with `pernn run`")
    columns = _ordered(trials)
    own = {name for some in tables.values() for name in some if name.casefold() not in MEANINGS}
    taken = {run: published[run] for run, trial in found.items() if trial["published"]}
    return {
        "status": [{column: trial.get(column) for column in columns} for trial in trials],
        "curves": _curve_rows(root, found, taken),
        **{name: _table_rows(tables, name) for name in sorted(own)},
    }


def _find(
    root: Path, sweep: str | None, folder: Path | None, complain: Callable[[str], None]
) -> tuple[list[Sweep], dict[str, Published]]:
    """Return one sweep or all, those here first, with the published trials among them."""
    here = list_sweeps(root)
    files = {path.stem: path for path in (list_publications(folder) if folder else ())}
    others = {name: path for name, path in files.items() if name not in here}
    if sweep is not None:
        path = others.get(sweep)
        one = load_sweep(root, sweep) if path is None else describe_publication(path)
        return [one], find_published(folder, one.runs, complain)
    published = find_published(folder, None, complain)
    more = map(describe_publication, others.values()) if published else ()
    return [*(load_sweep(root, name) for name in here), *more], published


def _origin(sweep: Sweep) -> Row:
    """Return the columns of a trial that say which sweep it belongs to."""
    overrides = json.dumps(sweep.overrides, sort_keys=True)
    return {
        "sweep": sweep.name,
        "experiment": sweep.experiment,
        "scale": sweep.scale,
        "overrides": overrides,
    }


def _read_trial(root: Path, run: str, published: Published | None) -> dict[str, Any]:
    """Return the columns of a trial and its tables; what cannot be read is left out."""
    if published is not None and not is_done(root, run):
        return {**published.record(), "state": "finished", "published": True}
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
        "published": False,
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


def _curve_rows(root: Path, runs: Iterable[str], taken: Mapping[str, Published]) -> Iterator[Row]:
    for run in runs:
        one = taken.get(run)
        for line in one.metric_lines() if one else RunDirectory(root, run).read_metrics():
            yield {**line, "run": run}


def _table_rows(tables: Mapping[str, Mapping[str, Any]], name: str) -> Iterator[Row]:
    for run, some in tables.items():
        columns = some.get(name, {})
        for values in zip(*columns.values(), strict=True):
            yield {**dict(zip(columns, values, strict=True)), "run": run}
