"""Tables of the index: what they hold, and whether a file has them."""

import sqlite3
from collections.abc import Iterable

from .files import FORMAT

APPLICATION_ID = 0x7065726E
"""Marks an SQLite file as pernn's: its name in ASCII."""

INDEX_FORMAT = 1000 + FORMAT
"""Version of the tables, in thousands, and of the directories; a file with another one is set aside
and made anew."""

MAX_COLUMNS, MAX_NAME = 1000, 200
"""Bounds of the wide view; what lies beyond them stands in `settings` and `metrics` only."""

RUN_COLUMNS = (
    "run",
    "standing",
    "update",
    "event",
    "reason",
    "begun",
    "finished",
    "num_parameters",
    "weights_sha256",
    "signature",
)

TABLES = {
    "runs": """CREATE TABLE runs (
  run TEXT PRIMARY KEY,
  standing TEXT NOT NULL,
  "update" INTEGER NOT NULL,
  event TEXT NOT NULL,
  reason TEXT NOT NULL,
  begun TEXT,
  finished TEXT,
  num_parameters INTEGER,
  weights_sha256 TEXT,
  signature TEXT NOT NULL
) WITHOUT ROWID""",
    "settings": """CREATE TABLE settings (
  run TEXT NOT NULL,
  path TEXT NOT NULL,
  value,
  PRIMARY KEY (run, path)
) WITHOUT ROWID""",
    "metrics": """CREATE TABLE metrics (
  run TEXT NOT NULL,
  name TEXT NOT NULL,
  value,
  PRIMARY KEY (run, name)
) WITHOUT ROWID""",
    "sweeps": """CREATE TABLE sweeps (
  sweep TEXT PRIMARY KEY,
  experiment TEXT NOT NULL,
  scale TEXT NOT NULL,
  overrides TEXT NOT NULL,
  signature TEXT NOT NULL
) WITHOUT ROWID""",
    "sweep_runs": """CREATE TABLE sweep_runs (
  sweep TEXT NOT NULL,
  position INTEGER NOT NULL,
  run TEXT NOT NULL,
  PRIMARY KEY (sweep, position)
) WITHOUT ROWID""",
    "trials": """CREATE VIEW trials AS
  SELECT s.sweep, s.position, s.run, coalesce(r.standing, 'waiting') AS standing,
    coalesce(r."update", 0) AS "update", r.event, r.reason, r.begun, r.finished
  FROM sweep_runs s LEFT JOIN runs r ON r.run = s.run""",
}
"""Name → statement that makes it; the view `records` grows with the columns that occur."""

MEANINGS = {
    "records": "one row per finished run: its settings by dotted path beside its metrics",
    "trials": "one row per trial of a sweep, begun or not, and how it stands",
    "runs": "one row per run directory: how it stands, when it began and ended",
    "settings": "one row per value of a run's spec, by dotted path",
    "metrics": "one row per metric of a finished run",
    "sweeps": "one row per sweep",
    "sweep_runs": "the runs of each sweep, in the grid's order",
}
"""Name → what a row is, for `pernn query --schema`."""

FIRST_COLUMNS = ("run", "num_parameters", "weights_sha256", "begun", "finished")


class UnsoundIndexError(Exception):
    """The file is no index of this version: damaged, foreign, older or newer."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database, inside the caller's transaction."""
    for statement in TABLES.values():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {INDEX_FORMAT}")
    widen(connection, ())


def is_empty(connection: sqlite3.Connection) -> bool:
    """Say whether a database has just been made; by a kill before its tables, too."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return count == 0 and _number(connection, "application_id") in (0, APPLICATION_ID)


def check_tables(connection: sqlite3.Connection) -> None:
    """Refuse a database whose tables are not exactly these.

    Raises:
        UnsoundIndexError: If it is another program's, another version's, or was changed by hand.
    """
    numbers = (_number(connection, "application_id"), _number(connection, "user_version"))
    if numbers != (APPLICATION_ID, INDEX_FORMAT):
        raise UnsoundIndexError("not an index of this version")
    if connection.execute("PRAGMA journal_mode").fetchone() not in (("delete",), ("memory",)):
        raise UnsoundIndexError("a write-ahead log, which network file systems do not bear")
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    columns = record_columns(connection)[len(FIRST_COLUMNS) :]
    if {**TABLES, "records": _view_of(columns)} != found:
        raise UnsoundIndexError("not the tables of an index")


def record_columns(connection: sqlite3.Connection) -> list[str]:
    """List the columns of the wide view."""
    return [row[1] for row in connection.execute("PRAGMA table_info(records)")]


def widen(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    """Give the wide view the columns that it lacks, inside the caller's transaction.

    Each value is looked up by its key, so a query pays for the columns that it names.
    """
    known = record_columns(connection)
    # SQLite does not tell upper case from lower.
    folded = {name.casefold() for name in (*known, *FIRST_COLUMNS)}
    more = []
    for name in names:
        if name.casefold() not in folded and name.isprintable() and len(name) <= MAX_NAME:
            folded.add(name.casefold())
            more.append(name)
    if known and not more:
        return
    columns = [*known[len(FIRST_COLUMNS) :], *more][:MAX_COLUMNS]
    connection.execute("DROP VIEW IF EXISTS records")
    connection.execute(_view_of(columns))


def _view_of(columns: Iterable[str]) -> str:
    values = "".join(f",\n  {_looked_up(name)} AS {quoted(name, chr(34))}" for name in columns)
    first = ", ".join(f"r.{name}" for name in FIRST_COLUMNS)
    return f"CREATE VIEW records AS SELECT {first}{values}\nFROM runs r WHERE r.standing = 'done'"


def _looked_up(name: str) -> str:
    word = quoted(name, "'")
    return (
        f"coalesce((SELECT value FROM metrics m WHERE m.run = r.run AND m.name = {word}), "  # noqa: S608 quoted
        f"(SELECT value FROM settings s WHERE s.run = r.run AND s.path = {word}))"
    )


def quoted(text: str, mark: str) -> str:
    """Quote a name (with ") or a text (with ') for SQL."""
    return mark + text.replace(mark, mark + mark) + mark


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
