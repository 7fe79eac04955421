"""Questions in SQL, of tables in DuckDB's memory that nothing leads out of."""

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import ConfigError, MachineError

from .tables import MEANING, MEANINGS, TYPES, Row, read_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database
    from duckdb import Statement

MAX_MEMORY = 2**30
"""Bytes that DuckDB may take."""
NUM_ROWS = 5_000
"""Rows that are read at a time."""
NUM_VALUES = 20_000
"""Values of an answer that are fetched at a time."""
MAX_NAME = 200
"""Characters of a column's name."""

BOUNDS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    "memory_limit": f"{MAX_MEMORY}B",
    "threads": 2,
    "lock_configuration": True,
}
"""No files, no network, no variables of this program, and no way to change that."""

Chunk = Sequence[Sequence[Any]]


def query(
    root: Path,
    statement: str | None,
    *,
    sweep: str | None,
    published: Path | None = None,
    complain: Callable[[str], None] = warnings.warn,
) -> Iterator[Chunk]:
    """Return what yields the names of an answer's columns, then some of its rows at a time.

    Args:
        root: Results directory.
        statement: A SELECT of DuckDB; `None` asks which tables there are.
        sweep: The sweep that is asked; `None` for all of them, told apart by a column.
        published: Folder of published trials, which count as finished; `None` to count none.
        complain: Told if published trials cannot be read.

    Raises:
        ConfigError: If the statement is not valid, would do more than read or needs too much
            memory, or there is no such sweep.
        MachineError: If DuckDB is missing.
        StoreError: If the results cannot be read.
    """
    database = connect()
    tables = fill(database, read_tables(root, sweep, published, complain), statement)
    return describe(database, tables) if statement is None else answer(database, statement, tables)


def connect() -> "Database":
    """Return an empty database."""
    try:
        import duckdb
    except ImportError:
        raise MachineError("a query needs DuckDB: pip install 'pernn[duckdb]'") from None
    return duckdb.connect(config=BOUNDS)


def fill(
    database: "Database", tables: Mapping[str, Iterable[Row]], statement: str | None
) -> list[str]:
    """Make a view of each table that a statement names, or of all tables; return all names."""
    tables = dict(tables)
    columns = _load(database, "status", tables.pop("status"))
    database.execute("CREATE VIEW trials AS FROM status WHERE state = 'finished'")
    database.execute("CREATE SCHEMA loaded")
    for name, rows in tables.items():
        if statement is None or name.casefold() in statement.casefold():
            own = {column.casefold() for column in _load(database, f"loaded.{quoted(name)}", rows)}
            both = ", ".join(quoted(column) for column in columns if column.casefold() in own)
            database.execute(
                f"CREATE VIEW {quoted(name)} AS SELECT own.*, trial.* EXCLUDE ({both}) "  # noqa: S608 quoted
                f"FROM loaded.{quoted(name)} AS own JOIN status AS trial USING (run)"
            )
    return ["trials", "status", *tables]


def _load(database: "Database", place: str, rows: Iterable[Row]) -> list[str]:
    """Make a table of rows, some at a time, as wide as they need it; return its columns."""
    database.execute(f"CREATE TABLE {place} (run VARCHAR)")
    names, kinds = {"run": "run"}, {"run": set[type]([str])}
    source = iter(rows)
    while some := list(islice(source, NUM_ROWS)):
        for key in dict.fromkeys(key for row in some for key in row):
            found = {_kind(row.get(key)) for row in some} - {type(None)} | TYPES.get(key, set())
            change = ""
            if key not in names:
                names[key], kinds[key] = _name(key, names.values()), found
                change = f"ADD COLUMN {quoted(names[key])} {_sql_type(found)}"
            elif _sql_type(kinds[key] | found) != _sql_type(kinds[key]):
                change = f"ALTER COLUMN {quoted(names[key])} TYPE {_sql_type(kinds[key] | found)}"
            kinds[key] |= found
            if change:
                database.execute(f"ALTER TABLE {place} {change}")
        types = {key: _sql_type(kinds[key]) for key in names}
        values = [[_cell(row.get(key), types[key]) for row in some] for key in names]
        columns = ", ".join(
            f"TRY_CAST(unnest(${number}) AS {types[key]}) AS {quoted(names[key])}"
            for number, key in enumerate(names, start=1)
        )
        database.execute(f"INSERT INTO {place} BY NAME SELECT {columns}", values)
    return list(names.values())


def _kind(value: Any) -> type:
    """Return the class that a value has in a column: a number beyond 64 bits is text there."""
    return str if isinstance(value, int) and abs(value) >= 2**63 else type(value)


def _sql_type(kinds: Set[type]) -> str:
    """Return the type of a column of values of these classes; of a mixture, text."""
    match sorted(kind.__name__ for kind in kinds):
        case ["bool"]:
            return "BOOLEAN"
        case ["int"]:
            return "BIGINT"
        case ["float"] | ["float", "int"]:
            return "DOUBLE"
        case ["datetime"]:
            return "TIMESTAMP"
        case _:
            return "VARCHAR"


def _cell(value: Any, sql_type: str) -> Any:
    """Return a value as its column takes it; half a surrogate pair becomes a question mark."""
    if value is None or sql_type != "VARCHAR":
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def _name(key: str, taken: Iterable[str]) -> str:
    """Return a name for a column: SQL does not tell upper case from lower."""
    folded = {name.casefold() for name in taken}
    first = "".join(sign if sign.isprintable() else "?" for sign in key[:MAX_NAME])
    names = (first if number == 1 else f"{first}_{number}" for number in count(1))
    return next(name for name in names if name.casefold() not in folded)


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


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

    try:
        statement.encode()
    except UnicodeError:
        raise ConfigError("SQL: not text in UTF-8") from None
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
