"""Flat records of finished trials, selected, ordered and compared."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.config import suggestion
from pernn.lab.experiments import Claim, Contrast, Where
from pernn.lab.trials import CENSORED, is_setting

Record = dict[str, Any]
"""One finished trial, or a row of its table: its spec by dotted path beside its metrics."""

NO_CONDITION: Where = {}

Arm = tuple[int, Where]
"""Records that take part in a difference, and how often each counts: +1 or −1."""


def matches(record: Record, where: Where) -> bool:
    """Return whether a record has an allowed value in every column.

    Args:
        record: One trial, or one row of its table.
        where: Column → value, or a tuple of allowed values; `None` stands for a column that the
            record does not have.
    """
    return all(
        record.get(column) in (allowed if isinstance(allowed, tuple) else (allowed,))
        for column, allowed in where.items()
    )


def lacking(columns: Sequence[str], records: Sequence[Record]) -> list[str]:
    """Return which columns no record has, a line each."""
    known = {name for record in records for name in record} if records else {*columns}
    return [
        f"no trial has a column {name!r}{suggestion(name, known)}"
        for name in columns
        if name not in known
    ]


def settings_of(claim: Claim) -> Where:
    """Return the settings that a claim's trials must match."""
    return {k: v for k, v in claim.predicate.where.items() if is_setting(k)}


def sides(contrast: Contrast) -> list[Arm]:
    """Return the two arms of a contrast, the treated one first."""
    return [
        (1, {contrast.column: contrast.treated, **contrast.treated_where}),
        (-1, {contrast.column: contrast.baseline, **contrast.baseline_where}),
    ]


def combine(
    records: Iterable[Record], metric: str, arms: Sequence[Arm], columns: Sequence[str]
) -> dict[tuple[Any, ...], float]:
    """Sum a metric over arms wherever all of them are there.

    Args:
        records: Finished trials, or rows of a table.
        metric: What is summed.
        arms: Which records, with their signs.
        columns: What the records of a sum agree in.

    Returns:
        Values of the columns → sum in the metric's unit, in the keys' order.

    Raises:
        ConfigError: If two records compete for one place, as nothing then says which one to take.
    """
    having = [one for one in records if number(one, metric) is not None]
    found = [(sign, placed(having, columns, where)) for sign, where in arms]
    keys = set.intersection(*(set(one) for _, one in found))
    return {
        key: math.fsum(sign * one[key][metric] for sign, one in found)
        for key in sorted(keys, key=lambda key: [*map(sort_key, key)])
    }


def paired_differences(
    records: Sequence[Record], metric: str, contrast: Contrast, match_columns: Sequence[str] = ()
) -> dict[tuple[Any, ...], float]:
    """Subtract the baseline from the treated condition wherever both are there.

    Args:
        records: Finished trials; those of other conditions are left out.
        metric: What is compared.
        contrast: The two conditions; `None` in it stands for records without that column.
        match_columns: Columns in which the two trials of a pair agree, besides the seed.

    Returns:
        (seed, *values of match_columns) → difference in the metric's unit, in the keys' order.

    Raises:
        ConfigError: If two trials compete for one place.
    """
    return combine(records, metric, sides(contrast), ("seed", *match_columns))


def placed(
    records: Iterable[Record], columns: Sequence[str], where: Where = NO_CONDITION
) -> dict[tuple[Any, ...], Record]:
    """Map values of columns to the one record that has them.

    Args:
        records: Finished trials, or rows of a table.
        columns: What tells them apart.
        where: Which of them take part.

    Raises:
        ConfigError: If two records compete for one place, as nothing then says which one to take.
    """
    found: dict[tuple[Any, ...], Record] = {}
    for record in records:
        if not matches(record, where):
            continue
        key = tuple(map(record.get, columns))
        if key in found:
            pairs = [*where.items(), *zip(columns, key, strict=True)]
            at = ", ".join(f"{name} = {part}" for name, part in pairs)
            raise ConfigError(f"two trials at {at}: match more columns or select fewer records")
        found[key] = record
    return found


def number(record: Record, column: str) -> float | None:
    """Return a record's finite number, or `None`."""
    value = record.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def sort_key(value: Any) -> tuple[bool, float, str]:
    """Return a sort key: numbers by size, then texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (False, float(value), "")
    return (True, 0.0, str(value))


def restrict_together(records: Iterable[Record], column: str) -> list[Record]:
    """Return records that have a pace, within the updates of all.

    A trial that went on for longer than another, and reached the level after that one had ended,
    is censored there: otherwise the longer training would count as the slower one.

    Args:
        records: Finished trials, or rows of a table.
        column: Such as `updates_to_0.9`.
    """
    having = [one for one in records if number(one, column) is not None]
    cap = min((float(one["training.iterations"]) for one in having), default=math.inf)
    return [
        {
            **one,
            column: min(one[column], cap),
            f"{column}{CENSORED}": is_censored(one, column) or one[column] > cap,
        }
        for one in having
    ]


def is_censored(record: Record, column: str) -> bool:
    """Return whether a column is a pace that the trial never reached."""
    return bool(record.get(f"{column}{CENSORED}"))
