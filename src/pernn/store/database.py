"""Results as tables of a DuckDB in memory that nothing leads out of."""

import json
from collections.abc import Iterable, Mapping, Set
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from pernn.errors import MachineError

from .tables import TYPES, Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

MAX_MEMORY = 2**30
"""Bytes that DuckDB may take."""

NUM_ROWS = 5_000
"""Rows that are read at a time."""

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
