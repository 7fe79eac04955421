"""Pairs of trials that agree in seed and all settings not compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.config import Registry, flatten, is_kind, own_parts_off, parse_assignment, suggestion
from pernn.lab.cores import CORES
from pernn.lab.corpora import CORPORA
from pernn.lab.encodings import ENCODINGS
from pernn.lab.tasks import TASKS
from pernn.lab.trials import is_setting

from .records import Record, combine, matches, sort_key

FOLLOWING = ("embedding_size", "encoding.size")
"""Widths that follow `core.hidden_size`, unless they are set."""

REGISTRIES: Mapping[str, Registry[Any]] = {
    "core": CORES,
    "corpus": CORPORA,
    "encoding": ENCODINGS,
    "task": TASKS,
}
"""Part, by the last word of its path → its kinds."""

MIN_PAIRS = 2

Cell = tuple[Any, ...]


@dataclass(frozen=True)
class Side:
    """One of the two sets.

    Attributes:
        name: As it was asked for.
        records: Finished trials.
        where: What selected them; `None` if they are all trials of a sweep or of a folder.
        place: Its folder. A trial of one folder is not paired with itself; of two folders that have
            trials in common, only these are compared.
    """

    name: str
    records: Sequence[Record]
    where: Mapping[str, Any] | None = None
    place: Path | None = None


@dataclass(frozen=True)
class Pairs:
    """The pairs of two sides.

    Attributes:
        differing: Settings in which the two sides differ, and the trials of a pair may.
        columns: Settings that tell the cells apart.
        cells: Values of these → seed → metric of A and of B.
        num_unpaired: Trials of A and of B without a partner, or without the metric.
        num_same: Trials that are on both sides, and in no pair.
        num_diverged: Trials in pairs that diverged; they count as the worst.
    """

    differing: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[Cell, Mapping[int, tuple[float, float]]]
    num_unpaired: tuple[int, int]
    num_same: int
    num_diverged: int

    @property
    def naming(self) -> tuple[str, ...]:
        """The columns that name a cell, kinds first, none twice told."""
        kept: list[str] = []
        for column in sorted(self.columns, key=lambda name: (not is_kind(name), name)):
            if len(self._values([*kept, column])) > len(self._values(kept)):
                kept.append(column)
        return tuple(kept)

    def _values(self, columns: Sequence[str]) -> set[Cell]:
        places = [self.columns.index(column) for column in columns]
        return {tuple(cell[place] for place in places) for cell in self.cells}


def select(text: str, records: Sequence[Record], place: Path | None = None) -> Side:
    """Return the side of the records that match conditions.

    One is `core.kind=gru`; several have commas between.

    Raises:
        ConfigError: If it is no condition, there are no records, or none matches.
    """
    if not records:
        folder = f" in {place.absolute()}" if place else ""
        raise ConfigError(
            f"{text}: there are no finished trials to select from{folder}: name a sweep or an "
            "experiment by --sweep, published ones included, or another folder by --results"
        )
    parts = re.split(r",(?=[\w.]+=)", text)
    where = flatten(dict(parse_assignment(part, option="compare") for part in parts))
    for column, value in where.items():
        having = [one for one in records if column in one and is_setting(column)]
        there = sorted({one[column] for one in having}, key=sort_key)
        if not there:
            known = sorted({key for one in records for key in one if is_setting(key)})
            hint = suggestion(column, known)
            raise ConfigError(f"{text} is invalid: no finished trial has a setting {column}{hint}")
        if value not in there:
            values = ", ".join(map(str, there))
            raise ConfigError(f"{text} is invalid: expected {column} as in {values}, got {value}")
    return Side(text, [one for one in records if matches(one, where)], where, place)


def pair(first: Side, second: Side, metric: str) -> Pairs:
    """Find the pairs of two sides.

    Args:
        first: Side A.
        second: Side B.
        metric: What is compared.

    Raises:
        ConfigError: If two trials of a side compete for one place, or no cell has two pairs.
    """
    sides = [list(first.records), list(second.records)]
    num_trials = [len(some) for some in sides]
    same = {one["run"] for one in sides[0]} & {one["run"] for one in sides[1]}
    if first.place == second.place:
        sides = [[one for one in some if one["run"] not in same] for some in sides]
        num_trials = [len(some) for some in sides]
    elif same:  # the same trials, run in two places
        sides = [[one for one in some if one["run"] in same] for some in sides]
        same = set()
    if not all(sides):
        raise ConfigError(
            f"a comparison is invalid: expected finished trials on both sides, got "
            f"{len(sides[0])} of A and {len(sides[1])} of B; on both sides: {len(same)}"
        )
    columns, differing, apart = _columns(sides, _named(first, second))
    keys = ("seed", *columns)
    found = [combine(some, metric, [(1, {})], keys) for some in sides]
    both = [key for key in found[0] if key in found[1]]
    unpaired = (num_trials[0] - len(both), num_trials[1] - len(both))
    if len(both) < MIN_PAIRS:
        also = f"; A and B differ in {', '.join(apart)} too: name it on both sides" if apart else ""
        lacking = "" if any(found) else f"; no trial has {metric}"
        raise ConfigError(
            f"a comparison is invalid: expected at least {MIN_PAIRS} pairs of trials that differ "
            f"in {', '.join(differing) or 'nothing'} alone, got {len(both)}; without a partner: "
            f"{unpaired[0]} of A, {unpaired[1]} of B; on both sides: {len(same)}{also}{lacking}"
        )
    cells: dict[Cell, dict[int, tuple[float, float]]] = {}
    for key in both:
        cells.setdefault(key[1:], {})[key[0]] = found[0][key], found[1][key]
    if max(map(len, cells.values())) < MIN_PAIRS:
        raise ConfigError(
            f"a comparison is invalid: expected at least {MIN_PAIRS} seeds of a cell, got "
            f"{len(both)} pairs in {len(cells)} cells, one seed each"
        )
    taken = {tuple(key) for key in both}
    lost = (one for some in sides for one in some if "diverged" in one)
    num_diverged = sum(tuple(one.get(column) for column in keys) in taken for one in lost)
    return Pairs(differing, columns, cells, unpaired, len(same), num_diverged)


def _named(first: Side, second: Side) -> set[str] | None:
    """Return the settings that conditions give the sides different values of."""
    if first.where is None or second.where is None:
        return None
    one, other = first.where, second.where
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def _columns(
    sides: Sequence[Sequence[Record]], named: set[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the settings in which pairs agree and vary, those compared, and those beside them.

    Whole sweeps are compared by the settings in which no trial of one is like one of the other.
    What a side cannot have, such as the width of an encoding beside none, belongs to the kinds that
    are compared; else a setting that is left out of a spec differs from one that is given.
    """
    settings = {key for some in sides for one in some for key in one if is_setting(key)} - {"seed"}
    values = [{key: {one.get(key) for one in some} for key in settings} for some in sides]
    kinds = [key for key in settings if is_kind(key) and not values[0][key] & values[1][key]]
    shared = sorted(key for key in settings if not _belongs_to(kinds, key, values))
    apart = [key for key in shared if not values[0][key] & values[1][key]]
    differing = set(apart) if named is None else named
    if "core.hidden_size" in differing:
        every = [one for some in sides for one in some]
        differing |= {k for k in FOLLOWING if k in shared and all(_follows(o, k) for o in every)}
    columns = [
        key for key in shared if key not in differing and len(values[0][key] | values[1][key]) > 1
    ]
    beside = tuple(key for key in apart if key not in differing)
    return tuple(columns), tuple(sorted(differing)), beside


def _belongs_to(
    kinds: Sequence[str], column: str, values: Sequence[Mapping[str, set[Any]]]
) -> bool:
    """Whether a part's kinds differ between the sides and one side's cannot have a setting."""
    keys = column.split(".")
    places = range(1, len(keys))
    parts = [(".".join([*keys[:n], "kind"]), keys[n - 1], keys[n]) for n in places]
    return any(
        kind in kinds
        and side[column] == {None}
        and not any(one is None or _can_have(part, name, one) for one in side[kind])
        for kind, part, name in parts
        for side in values
    )


def _can_have(part: str, setting: str, kind: str) -> bool:
    """Whether a part of a kind has a setting, which its specs may leave out."""
    with own_parts_off():
        return setting in REGISTRIES[part].find(kind).model_fields


def _follows(record: Record, column: str) -> bool:
    return record.get(column) in (None, record.get("core.hidden_size"))
