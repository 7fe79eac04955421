"""Questions in SQL to the index: one statement that reads, bounded in time and memory."""

import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pernn.config import suggestion
from pernn.errors import ConfigError

from .index import indexed, indexed_anew
from .index_file import FAULTS, set_aside
from .index_schema import FIRST_COLUMNS, MEANINGS, quoted

READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
"""What a statement may do; everything else is refused before it runs."""

OUTWARD = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
"""Functions that would reach beyond the database."""

MAX_VALUE = 2**24
"""Bytes of the longest value that a statement may make."""

MAX_MEMORY = 2**30
"""Bytes that an answer may have, and that SQLite may take in this process from a query on."""

NUM_STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock."""


@dataclass(frozen=True)
class Answer:
    """What a statement gave.

    Attributes:
        columns: Their names.
        rows: Their values: numbers, texts, `None`.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(
    root: Path, statement: str, *, seconds: float = 60.0, max_rows: int = 1_000_000
) -> Answer:
    """Answer one SQL statement from the index, brought up to date first.

    Args:
        root: Results directory.
        statement: A SELECT; the tables are those of `describe_index`.
        seconds: Time that it may take.
        max_rows: Rows that it may give.

    Raises:
        ConfigError: If it is not valid, would do more than read, or exceeds a bound.
        KeyboardInterrupt: If Ctrl-C was pressed meanwhile.
    """
    try:
        with indexed(root) as connection:
            return _ask(connection, statement, seconds, max_rows)
    except FAULTS:
        # Only what is read shows all of the damage that a file may have.
        set_aside(root)
    with indexed_anew(root) as connection:
        return _ask(connection, statement, seconds, max_rows)


def describe_index(root: Path) -> dict[str, tuple[str, list[str]]]:
    """Give each table's meaning and columns; those of `records` are of the runs that are there."""
    with indexed(root) as connection:
        return {name: (said, _columns(connection, name)) for name, said in MEANINGS.items()}


def _ask(connection: sqlite3.Connection, statement: str, seconds: float, max_rows: int) -> Answer:
    names = {name: _columns(connection, name) for name in MEANINGS}
    watch = _Watch(seconds)
    _restrict(connection, watch)
    try:
        cursor = connection.execute(statement)
        rows = _fetch(cursor, max_rows)
    except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError) as error:
        if isinstance(error, ConfigError) or is_damage(error):
            raise
        raise watch.explain(error, names) from None
    if cursor.description is None:
        raise ConfigError("a query is one SELECT statement; this one gives no table")
    return Answer(tuple(column[0] for column in cursor.description), rows)


def _fetch(cursor: sqlite3.Cursor, max_rows: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > MAX_MEMORY:
            raise MemoryError
        if len(rows) == max_rows:
            raise ConfigError(
                f"more than {max_rows:,} rows: aggregate, add a LIMIT, or raise --max-rows"
            )
        rows.append(row)
    return rows


class _Watch:
    """Stops a statement at its deadline or at Ctrl-C.

    Args:
        seconds: Until the deadline.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def __call__(self) -> bool:
        """Say whether the statement must stop; Ctrl-C in here does it too."""
        return time.monotonic() > self.end

    def explain(self, error: Exception, names: dict[str, list[str]]) -> BaseException:
        """Say in one line what was wrong with a statement."""
        if "interrupted" in str(error):
            if not self():
                return KeyboardInterrupt()
            return ConfigError(
                f"the query took longer than {self.seconds:g} s and was stopped: ask for less, or "
                "allow more with --seconds"
            )
        if isinstance(error, MemoryError) or "too big" in str(error):
            return ConfigError("the query needs too much memory: ask for less")
        if "not authorized" in str(error) or "denied" in str(error):
            return ConfigError(f"a query may only read the tables of the index ({error})")
        if isinstance(error, UnicodeError):
            return ConfigError("SQL: not text in UTF-8")
        said = " ".join(str(error).split())
        return ConfigError(f"SQL: {said}{_hint(said, names)}")


def _restrict(connection: sqlite3.Connection, watch: Callable[[], bool]) -> None:
    """Leave a connection nothing but reading, within bounds."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA hard_heap_limit = {MAX_MEMORY}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    connection.set_progress_handler(watch, NUM_STEPS)
    connection.set_authorizer(_authorise)


def _authorise(action: int, *about: str | None) -> int:
    outward = action == sqlite3.SQLITE_FUNCTION and (about[1] or "").lower() in OUTWARD
    return sqlite3.SQLITE_OK if action in READING and not outward else sqlite3.SQLITE_DENY


def is_damage(error: Exception) -> bool:
    """Say whether an error is the file's, not the statement's."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table, chr(34))})")]


def _hint(error: str, names: dict[str, list[str]]) -> str:
    """Say what there is where a table or a column is not known."""
    found = re.fullmatch(r"no such (table|column): (.*)", error, re.DOTALL)
    if not found:
        return ""
    kind, word = found.groups()
    if kind == "table":
        return f"{suggestion(word, list(names))} (tables: {', '.join(names)})"
    if names["records"] == list(FIRST_COLUMNS):
        return ": no run is finished yet, and the columns are those of finished runs"
    columns = list(dict.fromkeys(name for some in names.values() for name in some))
    # SQL takes a dot for the sign between table and column.
    if word in columns:
        return f': write it in double quotes, "{word}"'
    table = f"{suggestion(word, columns)} (columns: "
    return table + "; ".join(f"{name}: {', '.join(some)}" for name, some in names.items()) + ")"
