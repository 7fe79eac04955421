"""Trials unrolled into the rows of one of their tables: by position, by length, by condition."""

from collections.abc import Iterable, Sequence

from pernn.config import suggestion
from pernn.errors import ConfigError, CorruptError
from pernn.experiments import Claim, Where
from pernn.runs import RunSpec

from .records import Record

NAMING = frozenset({"run", "num_parameters", "tables", "kind", "diverged"})
"""Columns that are neither set nor measured."""


def is_setting(column: str) -> bool:
    """Whether a column is a value of the trial's spec."""
    return column.partition(".")[0] in RunSpec.model_fields


def settings_of(claim: Claim) -> Where:
    """Return what the settings of the trials that a claim is about must match."""
    return {k: v for k, v in claim.predicate.where.items() if is_setting(k)}


def unroll(records: Sequence[Record], table: str | None) -> list[Record]:
    """Return one record per row of a table, its columns laid over the trial's.

    What a row's columns do not name stays as the whole trial has it; a metric that they do name is
    the row's own.

    Args:
        records: Finished trials.
        table: Name of the table; `None` leaves the trials as they are.

    Returns:
        The rows of the first trial, those of the second …; none of a trial without that table.

    Raises:
        CorruptError: If a column bears the name of a setting or of the run. What columns hold was
            checked when the result was read.
    """
    if table is None:
        return list(records)
    return [row for record in records for row in _rows(record, table)]


def table_columns(records: Iterable[Record], table: str) -> list[str]:
    """List the columns that a table has in any trial, in the order of their first appearance."""
    tables = (record.get("tables", {}).get(table, {}) for record in records)
    return list(dict.fromkeys(column for found in tables for column in found))


def require_table(records: Sequence[Record], table: str) -> None:
    """Refuse a table that no trial has.

    Raises:
        ConfigError: If there are trials, but none of them has it.
    """
    known = sorted({name for record in records for name in record.get("tables", {})})
    if records and table not in known:
        hint = suggestion(table, known)
        raise ConfigError(
            f"no finished trial has a table {table!r}{hint} (known: {', '.join(known) or 'none'})"
        )


def _rows(record: Record, name: str) -> list[Record]:
    table = record.get("tables", {}).get(name)
    if table is None:
        return []
    for column in table:
        if column in NAMING or is_setting(column):
            raise CorruptError(
                f"run {record.get('run')}: table {name!r}: column {column!r} has the name of one "
                "of the trial's own"
            )
    trial = {column: value for column, value in record.items() if column != "tables"}
    return [
        {**trial, **dict(zip(table, row, strict=True))} for row in zip(*table.values(), strict=True)
    ]
