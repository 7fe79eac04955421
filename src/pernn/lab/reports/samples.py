"""Which records a claim is about, and their values by seed and cell."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pernn.errors import counted
from pernn.lab.experiments import Cells, Claim, Contrast, Where
from pernn.lab.trials import unroll

from .records import Arm, Record, combine, matches, sides, sort_key

Label = Callable[[Any], str]
"""Column or value → how it is displayed."""

Columns = dict[Any, dict[Any, float]]
"""Seed → cell → value."""


class NotRunError(Exception):
    """Some trials that the claim needs are not there; the message says which."""


@dataclass(frozen=True)
class Sample:
    """Everything that a claim's predicate is about.

    Attributes:
        columns: Seed → cell → value; a difference if the predicate compares.
        cells: Those that are needed, in order; every one has a seed.
        name: Column whose values they are, as it is displayed.
        num_diverged: Trials among them that diverged, and count as the worst.
        num_missing: Planned trials that are not finished.
        label: Column or value → how it is displayed.
    """

    columns: Columns
    cells: tuple[Any, ...]
    name: str
    num_diverged: int
    num_missing: int
    label: Label

    def complete(self) -> tuple[list[Any], str]:
        """Choose the seeds that have every cell, so that each seed's value is of the same thing.

        Returns:
            Seeds, and a note on what was left out.

        Raises:
            NotRunError: If no seed has all cells.
        """
        seeds = [seed for seed, column in self.columns.items() if column.keys() >= {*self.cells}]
        if not seeds:
            raise NotRunError(f"no seed has all of {self.name} = {self.all_cells}")
        left_out = len(self.columns) - len(seeds)
        note = f"; {counted(left_out, 'unfinished seed')} left out" if left_out else ""
        return seeds, note

    def by_cell(self, seeds: Sequence[Any]) -> dict[Any, tuple[float, ...]]:
        """Return the values of some seeds by cell, which all of them have."""
        return {cell: tuple(self.columns[seed][cell] for seed in seeds) for cell in self.cells}

    @property
    def all_cells(self) -> str:
        """The cells as a list in words."""
        return show_all(self.cells, self.label)

    def at(self, cell: Any) -> tuple[float, ...]:
        """Return the values of all seeds that have a cell."""
        return tuple(column[cell] for column in self.columns.values() if cell in column)


def arms(*contrasts: Contrast | None) -> list[Arm]:
    """Return the records whose signed sum a predicate is about.

    One contrast is a difference, two are a difference of differences, none is the metric itself.
    """
    found: list[Arm] = [(1, {})]
    for contrast in contrasts:
        if contrast is not None:
            found = [
                (sign * own, {**where, **also})
                for own, also in sides(contrast)
                for sign, where in found
            ]
    return found


def gather(
    claim: Claim,
    cells: str,
    required: Cells,
    taking_part: Sequence[Arm],
    records: Sequence[Record],
    planned: Sequence[Record],
    label: Label,
) -> Sample:
    """Sort a claim's values by seed and cell.

    Args:
        claim: What is claimed.
        cells: Column that makes the cells.
        required: Cells that must be there.
        taking_part: From `arms`.
        records: Finished trials.
        planned: Settings of all trials of the sweep, flat; none if nobody knows.
        label: Column or value → how it is displayed.

    Raises:
        ConfigError: If two records compete for one place.
        CorruptError: If the claim's table is malformed.
        NotRunError: If a cell has no value.
    """
    metric, where = claim.predicate.metric, claim.predicate.where
    rows = unroll(records, claim.table)
    if records and not rows:
        raise NotRunError(f"no finished trial has a table {claim.table!r}")
    if claim.table is not None:
        rows += [one for one in records if claim.table not in one.get("tables", {})]
    chosen = [row for row in rows if matches(row, where)]
    if not chosen:
        asked = ", ".join(f"{label(k)} = {_any_of(v, label)}" for k, v in where.items())
        raise NotRunError(f"no finished trial has {asked}" if asked else "no finished trials")
    columns: Columns = {}
    with_cell = [row for row in chosen if cells in row]
    for (seed, cell), value in combine(with_cell, metric, taking_part, ("seed", cells)).items():
        columns.setdefault(seed, {})[cell] = value
    seen = {cell for column in columns.values() for cell in column}
    plan = _planned(planned, where, taking_part, is_table=claim.table is not None)
    needed = _required(cells, required, seen, plan)
    absent = [cell for cell in needed if cell not in seen]
    if absent or not needed:
        named = (", ".join(map(label, arm.values())) for _, arm in taking_part)
        what = f"both {' and '.join(named)}" if len(taking_part) > 1 else label(metric)
        if not needed:
            raise NotRunError(f"nothing finished or planned has {what} at any {label(cells)}")
        raise NotRunError(f"needs {what} at {label(cells)} = {show_all(absent, label)}")
    used = {
        row.get("run"): "diverged" in row
        for _, arm in taking_part
        for row in chosen
        if matches(row, arm) and (row.get(cells) in needed)
    }
    expected = {
        one.get("run") for some in plan for one in some if one.get(cells, needed[0]) in needed
    }
    num_missing = len(expected - used.keys())
    return Sample(columns, needed, label(cells), sum(used.values()), num_missing, label)


def _planned(
    planned: Sequence[Record], where: Where, taking_part: Sequence[Arm], *, is_table: bool
) -> list[list[Record]]:
    """Return the planned trials of each arm; what only tables tell apart is in all of them."""
    settings = {column for one in planned for column in one}

    def known(condition: Where) -> Where:
        return {k: v for k, v in condition.items() if k in settings or not is_table}

    chosen = [one for one in planned if matches(one, known(where))]
    return [[one for one in chosen if matches(one, known(arm))] for _, arm in taking_part]


def _required(
    cells: str, required: Cells, seen: Iterable[Any], plan: Sequence[Sequence[Record]]
) -> tuple[Any, ...]:
    if required != "planned":
        return tuple(sorted(required, key=sort_key))
    settings = [{one[cells] for one in some if cells in one} for some in plan]
    # A column of a table is in no spec, and without a plan what is there is all that is known.
    found = set.intersection(*settings) if any(settings) else set(seen)
    return tuple(sorted(found, key=sort_key))


def show(value: Any) -> str:
    """Return a value as text; numbers have thousands separated."""
    whole = isinstance(value, float) and value.is_integer()
    value = int(value) if whole else value
    plain = isinstance(value, bool) or not isinstance(value, int)
    return str(value) if plain else f"{value:,}"


def show_all(values: Sequence[Any], label: Label = show) -> str:
    """List a few values, or the ends of many."""
    words = [label(value) for value in values]
    if len(words) > 6:
        return f"{words[0]}, {words[1]} … {words[-1]} ({len(words)} values)"
    return ", ".join(words) or "none"


def _any_of(value: Any, label: Label) -> str:
    return " or ".join(map(label, value)) if isinstance(value, tuple) else label(value)
