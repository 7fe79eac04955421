"""The index: run directories as tables of SQLite, for listing and for queries.

The directories are the truth, and no result depends on the index. Whoever finishes a run registers
it; whoever reads first takes up what changed in the directories since. So a kill between a result
and its registration, a run that was copied in and one that was deleted all come right. The file may
be deleted at any time. Where it cannot be read or written, the same tables are made in memory.
"""

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pernn.errors import BusyError, StoreError

from .files import storing
from .index_file import (
    FAULTS,
    INDEX,
    READER_SECONDS,
    WRITER_SECONDS,
    IndexFile,
    copy_to_memory,
    is_unsound,
    open_in_memory,
    open_index,
    remove,
    set_aside,
    writing,
)
from .index_rows import RunRows, may_stay, read_run, read_sweep, sign_run, sign_sweep
from .index_schema import RUN_COLUMNS, widen
from .status import RunStatus, read_status
from .sweeps import list_sweeps


@contextmanager
def indexed(root: Path, runs: Sequence[str] | None = None) -> Iterator[sqlite3.Connection]:
    """Give a connection to the index, brought up to date with the directories.

    Args:
        root: Results directory; nothing is made where there is none.
        runs: If given, only these are brought up to date.
    """
    with closing(_up_to_date(root, runs)) as connection:
        yield connection


@contextmanager
def indexed_anew(root: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection to the same tables in memory, read from the directories alone."""
    with closing(_refreshed(open_in_memory(), root, None)) as connection:
        yield connection


def register(root: Path, run: str) -> bool:
    """Take a run up into the index, at a cost that does not grow with their number.

    Never raises for the index's sake: what is missed here the next reader takes up.

    Returns:
        Whether it was taken up.
    """
    try:
        with closing(open_index(root, WRITER_SECONDS)) as connection, writing(connection):
            _store_runs(connection, [(run, read_run(root, run, own=True))])
    except FAULTS:
        return False
    return True


@contextmanager
def registering(root: Path, run: str) -> Iterator[None]:
    """Register a run when the block ends, however it ends; not if another process is at it."""
    busy = False
    try:
        yield
    except BusyError:
        busy = True
        raise
    finally:
        if not busy:
            register(root, run)


def rebuild(root: Path) -> int:
    """Delete the index and read all directories again.

    Returns:
        The number of runs in it.

    Raises:
        StoreError: If it cannot be written, or another process uses it for too long.
    """
    remove(root)
    with indexed(root) as connection:
        if not isinstance(connection, IndexFile):
            raise StoreError(f"{root / INDEX} cannot be written: check space and permissions")
        (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    return int(count)


def read_statuses(root: Path, runs: Sequence[str]) -> list[RunStatus]:
    """Say where runs stand, as `read_status` does for one; finished ones from the index."""
    columns = 'run, standing, "update", reason, event'
    with indexed(root, runs) as connection:
        found = {
            row[0]: RunStatus(*row)
            for row in connection.execute(f"SELECT {columns} FROM runs")  # noqa: S608 see above
        }
    return [found.get(run) or read_status(root, run) for run in runs]


def _up_to_date(root: Path, runs: Sequence[str] | None) -> sqlite3.Connection:
    """Open the index and refresh it; a damaged one is made anew, once."""
    for attempt in range(2):
        try:
            return _refreshed(open_index(root, READER_SECONDS), root, runs)
        except FAULTS as error:
            if attempt or not is_unsound(error):
                break
            set_aside(root)
    with suppress(*FAULTS):
        return _refreshed(copy_to_memory(root), root, runs)
    return _refreshed(open_in_memory(), root, runs)


def _refreshed(
    connection: sqlite3.Connection, root: Path, runs: Sequence[str] | None
) -> sqlite3.Connection:
    try:
        _refresh(connection, root, runs)
    except BaseException:
        connection.close()
        raise
    return connection


def _refresh(connection: sqlite3.Connection, root: Path, runs: Sequence[str] | None) -> None:
    """Take up what changed in the directories since the index was written.

    What changed is read again under the write lock, so that nobody writes what is older than what
    is there.
    """
    columns = ", ".join(f'"{name}"' for name in RUN_COLUMNS)
    query = f"SELECT {columns} FROM runs"  # noqa: S608 our own names
    known = {row[0]: row for row in connection.execute(query)}
    asked = _run_names(root) if runs is None else set(runs)
    gone = known.keys() - asked if runs is None else set()
    changed = gone | {run for run in asked if _has_changed(root, run, known.get(run))}
    sweeps = _changed_sweeps(connection, root) if runs is None else []
    if not changed and not sweeps:
        return
    with writing(connection):
        _store_runs(connection, ((run, read_run(root, run)) for run in sorted(changed)))
        for name in sweeps:
            _store_sweep(connection, root, name)


def _run_names(root: Path) -> set[str]:
    """List the run directories.

    Raises:
        StoreError: If they are there and cannot be listed: that must not look like none.
    """
    folder = root / "runs"
    try:
        with storing(folder), os.scandir(folder) as entries:
            names = {entry.name for entry in entries if entry.is_dir()}
    except StoreError:
        if folder.is_dir():
            raise
        return set()
    return {name for name in names if re.fullmatch(r"[0-9a-f]{16}", name)}


def _has_changed(root: Path, run: str, known: Sequence[object] | None) -> bool:
    signature = sign_run(f"{root}/runs/{run}")
    if may_stay(signature):
        return known is None or known[-1] != signature
    found = read_run(root, run)
    return (found.row if found else None) != known


def _changed_sweeps(connection: sqlite3.Connection, root: Path) -> list[str]:
    known = dict(connection.execute("SELECT sweep, signature FROM sweeps"))
    there = list_sweeps(root)
    changed = [name for name in there if known.get(name) != sign_sweep(root, name)]
    return [*changed, *(known.keys() - there)]


def _store_runs(
    connection: sqlite3.Connection, found: Iterable[tuple[str, RunRows | None]]
) -> None:
    """Replace the rows of runs; one that is no more has none."""
    columns: dict[str, None] = {}
    for run, rows in found:
        for table in ("runs", "settings", "metrics"):
            connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))  # noqa: S608 see above
        if rows is None:
            continue
        marks = ", ".join("?" * len(rows.row))
        connection.execute(f"INSERT INTO runs VALUES ({marks})", rows.row)  # noqa: S608 marks only
        _insert_pairs(connection, "settings", run, rows.settings.items())
        _insert_pairs(connection, "metrics", run, rows.metrics.items())
        if rows.metrics:
            columns |= dict.fromkeys([*rows.settings, *rows.metrics])
    widen(connection, columns)


def _insert_pairs(
    connection: sqlite3.Connection, table: str, run: str, pairs: Iterable[tuple[str, object]]
) -> None:
    rows = [(run, name, value) for name, value in pairs]
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)  # noqa: S608 our names


def _store_sweep(connection: sqlite3.Connection, root: Path, name: str) -> None:
    for table in ("sweeps", "sweep_runs"):
        connection.execute(f"DELETE FROM {table} WHERE sweep = ?", (name,))  # noqa: S608 see above
    found = read_sweep(root, name)
    if found is None:
        return
    row, runs = found
    connection.execute("INSERT INTO sweeps VALUES (?, ?, ?, ?, ?)", row)
    places = [(name, position, run) for position, run in enumerate(runs)]
    connection.executemany("INSERT INTO sweep_runs VALUES (?, ?, ?)", places)
