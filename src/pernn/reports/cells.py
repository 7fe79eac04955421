"""Which records a claim is about, and their values by seed and cell."""

from collections.abc import Sequence
from typing import Any

from pernn.errors import ConfigError
from pernn.experiments import Contrast

from .statistics import Record, difference_of, number, paired_differences, rank

Columns = dict[Any, dict[Any, float]]
"""Seed → cell → value."""


class NotRunError(Exception):
    """Some trials that the claim needs are not there; the message says which."""


def matches(record: Record, where: Any) -> bool:
    """Whether a record has an allowed value in every column.

    Args:
        record: One trial, or one row of its table.
        where: Column → value, or a tuple of allowed values; `None` stands for a column that the
            record does not have.
    """
    return all(
        record.get(column) in (allowed if isinstance(allowed, tuple) else (allowed,))
        for column, allowed in where.items()
    )


def by_seed(records: Sequence[Record], metric: str, cells: str) -> Columns:
    """Sort a metric by seed and cell; records without either are left out.

    Raises:
        ConfigError: If two records compete for one place.
    """
    columns: Columns = {}
    holders: dict[tuple[Any, Any], Record] = {}
    for record in sorted(records, key=lambda record: rank(record["seed"])):
        value = number(record, metric)
        if value is None or cells not in record:
            continue
        place = (record["seed"], record[cells])
        if place in holders:
            raise ConfigError(
                f"two trials of seed {record['seed']} at {cells} = {record[cells]}: the claim's "
                f"`where` must select one{difference_of(holders[place], record)}"
            )
        holders[place] = record
        columns.setdefault(record["seed"], {})[record[cells]] = value
    return columns


def differences(records: Sequence[Record], metric: str, contrast: Contrast, cells: str) -> Columns:
    """Sort the paired differences of a metric by seed and cell.

    Raises:
        ConfigError: If two records compete for one place.
        NotRunError: If fewer than two seeds have a pair.
    """
    columns: Columns = {}
    for (seed, cell), value in paired_differences(records, metric, contrast, [cells]).items():
        columns.setdefault(seed, {})[cell] = value
    if len(columns) < 2:
        raise NotRunError(
            f"needs at least 2 seeds with both {show(contrast.treated)} and "
            f"{show(contrast.baseline)}, found {len(columns)}"
        )
    return columns


def complete(columns: Columns, name: str) -> tuple[list[Any], list[Any], str]:
    """Choose seeds that share their cells, so that each seed's value is of the same thing.

    A sweep runs seed by seed: those that have every cell, if two do; else all, with the cells that
    they share.

    Returns:
        Seeds, cells in order, and a note on what was left out.

    Raises:
        NotRunError: If no cell is shared by all.
    """
    every = {cell for column in columns.values() for cell in column}
    seeds = [seed for seed, column in columns.items() if column.keys() == every]
    if len(seeds) < 2:
        seeds = list(columns)
        every = {cell for cell in every if all(cell in column for column in columns.values())}
    if not every:
        raise NotRunError(f"no value of {name} has all {len(seeds)} seeds")
    left_out = len(columns) - len(seeds)
    note = f"; {left_out} unfinished seed{'s' * (left_out > 1)} left out" if left_out else ""
    return seeds, sorted(every, key=rank), note


def show(value: Any) -> str:
    """Give a value as text; numbers have thousands separated."""
    whole = isinstance(value, float) and value.is_integer()
    value = int(value) if whole else value
    plain = isinstance(value, bool) or not isinstance(value, int)
    return str(value) if plain else f"{value:,}"


def show_all(values: Sequence[Any]) -> str:
    """List a few values, or the ends of many."""
    if len(values) > 6:
        return f"{show(values[0])}, {show(values[1])} … {show(values[-1])} ({len(values)} values)"
    return ", ".join(show(value) for value in values) or "none"
