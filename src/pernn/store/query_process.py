"""The process that answers a query within bounds; `queries.py` asks it.

It is asked by an argument in JSON and answers with lines of JSON: the columns' names, then the
values of each row; or an object that says what was wrong.
"""

import json
import math
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError, PernnError

from .database import MAX_MEMORY, connect, fill, quoted
from .tables import MEANING, MEANINGS, read_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database
    from duckdb import Statement

MAX_ROW = 2**24
"""Characters of a row of an answer."""

NUM_VALUES = 20_000
"""Values that are fetched at a time."""

Chunk = Sequence[Sequence[Any]]


def describe(database: "Database", tables: Sequence[str]) -> Iterator[Chunk]:
    """Yield a row per table: its name, what a row of it is, columns of its own with their types."""
    yield [["table", "row", "columns"]]
    for name in tables:
        place = name if name in ("trials", "status") else f"loaded.{quoted(name)}"
        columns = [] if name == "status" else _columns(database, place)
        shown = ", ".join(f"{column} {kind}" for column, kind in columns)
        yield [[name, MEANINGS.get(name, MEANING), shown]]


def answer(database: "Database", statement: str, tables: Sequence[str]) -> Iterator[Chunk]:
    """Yield the columns' names, then some rows at a time."""
    import duckdb

    try:
        cursor = database.execute(_one_select(database, statement))
        columns = [column[0] for column in cursor.description or ()]
        yield [columns]
        while rows := cursor.fetchmany(max(1, NUM_VALUES // len(columns))):
            yield [[_plain(value) for value in row] for row in rows]
    except (MemoryError, duckdb.OutOfMemoryException):
        raise ConfigError(
            f"the query needs more than {MAX_MEMORY / 2**30:g} GiB of memory: ask for less"
        ) from None
    except duckdb.Error as error:
        # After an empty line come a picture of the place and advice on options that are fixed.
        said = " ".join(str(error).partition("\n\n")[0].split())
        raise ConfigError(f"SQL: {said}{_hint(said, database, tables)}") from None


def _one_select(database: "Database", statement: str) -> "Statement":
    import duckdb

    statements = database.extract_statements(statement)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ConfigError("a query is one SELECT statement: it reads the tables, nothing else")
    return statements[0]


def _hint(said: str, database: "Database", tables: Sequence[str]) -> str:
    """Return which tables there are, or how a name with a dot is written."""
    if "Table with name" in said:
        return f" (there: {', '.join(tables)})"
    word = re.search(r'Referenced table "(\w+)" not found', said)
    for column, _ in _columns(database, "status") if word else ():
        if word and column.startswith(f"{word[1]}."):
            return f'; write names with a dot in double quotes: "{column}"'
    return ""


def _columns(database: "Database", place: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in database.execute(f"DESCRIBE {place}").fetchall()]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes in hexadecimal; NaN, infinity and times as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Decimal():
            return float(value) if math.isfinite(value) else str(value)
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case _:
            return str(value)


def _bound_memory() -> None:
    """Let this process take twice the memory of DuckDB beside what it has, and no more."""
    # Not every system has this limit; DuckDB's own holds everywhere.
    with suppress(OSError, ValueError):
        # Addresses count, used or not, and libraries reserve more of them than they use.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 2 * MAX_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _send(row: Any) -> None:
    line = json.dumps(row)
    if len(line) > MAX_ROW:
        raise ConfigError(f"a row of more than {MAX_ROW / 2**20:g} MiB: ask for less")
    sys.stdout.write(f"{line}\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"pernn: {text}\n")


def main() -> None:
    """Answer; after this many seconds of DuckDB's work the system ends the process."""
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    request = json.loads(sys.argv[1])
    statement, left = request["statement"], request["seconds"]
    try:
        database = connect()
        folder = None if request["published"] is None else Path(request["published"])
        found = read_tables(Path(request["root"]), request["sweep"], folder, _complain)
        tables = fill(database, found, statement)
        if statement is None:
            chunks = describe(database, tables)
        else:
            chunks = answer(database, statement, tables)
        _bound_memory()
        while True:
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3))
            chunk = next(chunks, None)
            # Whoever reads slowly takes none of the time.
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            if chunk is None:
                return
            for row in chunk:
                _send(row)
            sys.stdout.flush()
    except PernnError as error:
        _send({"error": type(error).__name__, "message": str(error)})


if __name__ == "__main__":
    main()
