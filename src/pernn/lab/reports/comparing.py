"""Two sides compared in pairs of trials that agree in all else."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, counted
from pernn.lab.config import flatten, is_kind, nested, parse_assignment, suggestion
from pernn.lab.experiments import pace_column
from pernn.lab.trials import is_setting

from .records import Records, combine, lacking, matches, sort_key
from .statistics import (
    MIN_SEEDS,
    ROUNDING,
    Effect,
    Interval,
    effect_size,
    sign_flip_test,
    student_interval,
)
from .texts import Labels, clean

MIN_PAIRS = 2

Cell = tuple[Any, ...]
Cells = Mapping[Cell, Mapping[int, tuple[float, float]]]
"""Values of the settings that tell cells apart → seed → metric of A and of B."""

Never = Mapping[Cell, Mapping[int, tuple[bool, bool]]]
"""Likewise, whether A and B never reached the level."""


@dataclass(frozen=True)
class Side:
    """One of the two sets."""

    name: str  # as it was asked for
    records: Records
    # What selected them; `None` if they are all trials of a sweep or of a folder.
    where: Mapping[str, Any] | None = None
    # Its folder. A trial of one folder is not paired with itself; of two folders that have trials
    # in common, only these are compared.
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
    cells: Cells
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


def select(text: str, records: Records, place: Path | None = None) -> Side:
    """Return the side of the records that match conditions.

    One is `core.kind=gru`; several have commas between.
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
    """Find the pairs of two sides."""
    sides = [list(first.records), list(second.records)]
    num_trials = [len(some) for some in sides]
    same = {one["run"] for one in sides[0]} & {one["run"] for one in sides[1]}
    if first.place == second.place:
        sides = [[one for one in some if one["run"] not in same] for some in sides]
        num_trials = [len(some) for some in sides]
    elif same:  # the same trials, run in two places
        sides = [[one for one in some if one["run"] in same] for some in sides]
        same = set()
    if lost := lacking([metric], [one for some in sides for one in some]):
        raise ConfigError(f"a comparison is invalid: {lost[0]}")
    columns, differing, apart = _columns(sides, _named(first, second))
    keys = ("seed", *columns)
    found = [combine(some, metric, [(1, {})], keys) for some in sides]
    both = [key for key in found[0] if key in found[1]]
    unpaired = (num_trials[0] - len(both), num_trials[1] - len(both))
    cells = nested((key[1:], key[0], (found[0][key], found[1][key])) for key in both)
    if max(map(len, cells.values()), default=0) < MIN_PAIRS:
        also = f"; A and B differ in {', '.join(apart)} too: name it on both sides" if apart else ""
        raise ConfigError(
            f"a comparison is invalid: expected a cell with at least {MIN_PAIRS} pairs of trials "
            f"that differ in {', '.join(differing) or 'nothing'} alone, got "
            f"{counted(len(both), 'pair')} in {counted(len(cells), 'cell')}; without a partner: "
            f"{unpaired[0]} of A, {unpaired[1]} of B; on both sides: {len(same)}{also}"
        )
    taken = {tuple(key) for key in both}
    diverged = (one for some in sides for one in some if "diverged" in one)
    num_diverged = sum(tuple(one.get(column) for column in keys) in taken for one in diverged)
    return Pairs(differing, columns, cells, unpaired, len(same), num_diverged)


def _named(first: Side, second: Side) -> set[str] | None:
    """Return the settings that conditions give the sides different values of."""
    if first.where is None or second.where is None:
        return None
    one, other = first.where, second.where
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def _columns(
    sides: Sequence[Records], named: set[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the settings in which pairs agree and vary, those compared, and those beside them.

    Whole sweeps are compared by the settings in which no trial of one is like one of the other. If
    the kinds of a part differ, so may what one side's part lacks, such as the width of an encoding
    beside none; else a setting that is left out of a spec differs from one that is given.
    """
    settings = {key for some in sides for one in some for key in one if is_setting(key)} - {"seed"}
    first, second = ({key: {one.get(key) for one in some} for key in settings} for some in sides)
    apart = sorted(key for key in settings if all(sides) and not first[key] & second[key])
    parts = tuple(
        key.removesuffix("kind")
        for key in apart
        if is_kind(key) and None not in first[key] | second[key]
    )
    lacking_one = {key for key in settings if {None} in (first[key], second[key])}
    differing = {key for key in lacking_one if key.startswith(parts)}
    differing |= set(apart) if named is None else named
    columns = [key for key in settings - differing if len(first[key] | second[key]) > 1]
    beside = tuple(key for key in apart if key not in differing)
    return tuple(sorted(columns)), tuple(sorted(differing)), beside


COMPARED = ("Cell", "n", "A − B", "95 % by t", "p", "d_z", "g_z", "A", "B")
LABEL = Labels({})
CORE = "core.kind"


@dataclass(frozen=True)
class Compared:
    """The differences of some pairs, tested.

    Attributes:
        name: The cell that they share, or that they are means over all cells.
        differences: Seed → A − B, in the metric's unit.
        means: Mean of A and of B.
        interval: Student's t interval of the mean difference.
        num_never: Of factors, which are tested as log2: trials of A and of B that never reached the
            level; they count at the last update. `None` of other differences.
    """

    name: str
    differences: Mapping[int, float]
    means: tuple[float, float]
    interval: Interval
    num_never: tuple[int, int] | None = None

    # Sixteen pairs have 65,536 signs, which figures of factors do not ask for.
    @cached_property
    def p_value(self) -> float:
        """p-value of the mean difference, by the sign-flip test."""
        return sign_flip_test([*self.differences.values()])

    @property
    def effect(self) -> Effect | None:
        """Size of the effect, `None` of two or equal differences."""
        return effect_size([*self.differences.values()])

    @property
    def factor(self) -> str:
        """The factor, with ≥ or ≤ where only that is known."""
        first, second = self.num_never or (0, 0)
        sign = "≥ " if second and not first else "≤ " if first and not second else ""
        return f"{sign}{self.interval.as_factor().shown}"

    @property
    def nothing(self) -> str:
        """The reason for no factor: `never` or `at once`, else nothing."""
        if any(self.differences.values()):
            return ""
        return "never" if any(self.num_never or ()) else "at once"

    def dump(self) -> dict[str, Any]:
        """Return plain JSON values."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return {**values, "p_value": self.p_value, "effect": self.effect}

    @property
    def shown(self) -> tuple[str, ...]:
        """The row of a table, as the comparison's `columns` name it."""
        p, found, size = f"{self.p_value:.3g}", self.interval, self.effect
        row = [self.name, str(len(self.differences))]
        if self.num_never is None:
            effect = (f"{size.d_z:.3g}", f"{size.g_z:.3g}") if size else ("–", "–")
            return (*row, found.shown, found.bounds, p, *effect, *map(found.show, self.means))
        told = (self.factor, found.as_factor().bounds, p)
        told = (self.nothing, "–", "–") if self.nothing else told
        means = (f"{2**-mean:,.0f}" for mean in self.means)
        return (*row, *told, "{}, {}".format(*self.num_never), *means)


@dataclass(frozen=True)
class Comparison:
    """Two sides compared by a metric.

    Attributes:
        first: Name of the side A.
        second: Name of the side B.
        metric: What is compared.
        pairs: What was paired.
        cells: Each cell that has two pairs, in order.
        overall: Each seed's mean over all cells; `None` if not two seeds have them all.
        by_core: Likewise for each core that has several cells, if cores differ: these are tried at
            different sizes, so that a mean over all of them is no number of anything.
        notes: What a reader should know, a sentence each.
        columns: Names of the table's columns, the third one that of what is compared.
    """

    first: str
    second: str
    metric: str
    pairs: Pairs
    cells: tuple[Compared, ...]
    overall: Compared | None
    by_core: tuple[Compared, ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...] = COMPARED

    @property
    def title(self) -> str:
        """The two sides and the metric in one line."""
        names = (clean(one) for one in (self.first, self.second))
        return f"{LABEL(self.metric)}: A = {next(names)}, B = {next(names)}"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The table, as `columns` names it, with means over cells last."""
        cells = self.cells if len(self.pairs.cells) > 1 else ()
        pairs = self.pairs
        one_core = self.overall and (CORE not in pairs.columns or len(pairs.cells) == 1)
        means = [self.overall] if one_core else self.by_core
        return [one.shown for one in (*cells, *means)]

    def dump(self) -> dict[str, Any]:
        """Return plain JSON values."""
        pairs = self.pairs
        return {
            "a": self.first,
            "b": self.second,
            "metric": self.metric,
            "differing": list(pairs.differing),
            "num_pairs": sum(map(len, pairs.cells.values())),
            "num_unpaired": list(pairs.num_unpaired),
            "num_on_both_sides": pairs.num_same,
            "num_diverged": pairs.num_diverged,
            "cells": [one.dump() for one in self.cells],
            "overall": self.overall and self.overall.dump(),
            "by_core": [one.dump() for one in self.by_core],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it."""
        import pandas as pd

        table = pd.DataFrame(self.rows, columns=list(self.columns)).to_html(index=False)
        return f"<p>{escape(self.title)}</p>{table}"


def compare(first: Side, second: Side, metric: str) -> Comparison:
    """Compare two sides by the differences within pairs."""
    return _compare(first, second, metric, pair(first, second, metric))


def _compare(
    first: Side, second: Side, metric: str, pairs: Pairs, never: Never | None = None
) -> Comparison:
    singles = (
        _compared(_name(pairs, cell), {cell: found}, never) for cell, found in pairs.cells.items()
    )
    cells, num_cells = tuple(filter(None, singles)), len(pairs.cells)
    name = f"mean over {num_cells} cells" if num_cells > 1 else cells[0].name
    overall = _compared(name, pairs.cells, never)
    means = (
        _compared(f"{core}, mean over {len(some)} cells", some, never)
        for core, some in _group_by_core(pairs).items()
    )
    by_core = tuple(filter(None, means))
    seeds = [{*found} for found in pairs.cells.values()]
    complete = set.intersection(*seeds)
    if by_core:
        complete = {seed for one in by_core for seed in one.differences}
    shown = [*cells, *(by_core or filter(None, [overall]))]
    notes = _notes(pairs, len(set.union(*seeds)) - len(complete), shown)
    return Comparison(first.name, second.name, metric, pairs, cells, overall, by_core, tuple(notes))


def _group_by_core(pairs: Pairs) -> dict[str, Cells]:
    """Group cells by core, of cores that have several; none of one core alone."""
    if CORE not in pairs.columns:
        return {}
    place = pairs.columns.index(CORE)
    cores = nested((LABEL(cell[place]), cell, found) for cell, found in pairs.cells.items())
    return {core: cells for core, cells in cores.items() if len(cells) > 1}


def _compared(name: str, cells: Cells, never: Never | None) -> Compared | None:
    """Test each seed's mean over cells; `None` if not two seeds have them all."""
    seeds = sorted(set.intersection(*({*found} for found in cells.values())))
    if len(seeds) < MIN_PAIRS:
        return None
    sides = {seed: zip(*(found[seed] for found in cells.values()), strict=True) for seed in seeds}
    means = {seed: [math.fsum(x) / len(x) for x in some] for seed, some in sides.items()}
    differences = {
        # Without what rounding leaves of equal numbers.
        seed: 0.0 if abs(one - other) <= ROUNDING else one - other
        for seed, (one, other) in means.items()
    }
    values = list(differences.values())
    first, second = (math.fsum(side) / len(seeds) for side in zip(*means.values(), strict=True))
    lost = _count(never[c][seed] for c in cells for seed in seeds) if never else None
    return Compared(name, differences, (first, second), student_interval(values), lost)


def _name(pairs: Pairs, cell: tuple[Any, ...]) -> str:
    named = dict(zip(pairs.columns, cell, strict=True))
    words = (LABEL.condition(key, named[key]) for key in pairs.naming if named[key] is not None)
    return ", ".join(words) or "all"


def _notes(pairs: Pairs, num_lacking: int, shown: list[Compared]) -> list[str]:
    differing, (alone, other), lost = pairs.differing, pairs.num_unpaired, pairs.num_diverged
    single = sum(len(found) < MIN_PAIRS for found in pairs.cells.values())
    fewest = min(len(one.differences) for one in shown)
    smallest = f"{2.0 ** (1 - fewest):g}"
    words = {
        f"Within a pair seed and settings agree but for {', '.join(differing)}.": differing,
        f"Trials without a partner: {alone} of A, {other} of B.": True,
        f"On both sides, and left out: {counted(pairs.num_same, 'trial')}.": pairs.num_same,
        f"Diverged, and counted as the worst: {counted(lost, 'trial')}.": lost,
        f"Not shown, having one pair only: {counted(single, 'cell')}.": single,
        f"Not in the mean over cells, lacking one: {counted(num_lacking, 'seed')}.": num_lacking,
        f"n = {fewest} is no verdict: {MIN_SEEDS} seeds are needed, and the smallest p that "
        f"{fewest} can give is {smallest}.": fewest < MIN_SEEDS,
        f"p counts signs alone: that of {fewest} pairs is never below {smallest}, whatever their "
        "interval.": fewest == MIN_SEEDS,
        "The p of single cells is not corrected for their number.": len(shown) > 2,
    }
    return [text for text, holds in words.items() if holds]


FACTORS = ("Cell", "n", "B / A", "95 % by t", "p", "never A, B", "A", "B")
MEANING = (
    "B / A is how many times as many updates B takes as A: above 1, A is sooner. A and B are "
    "geometric means of updates; differences are log2 of B / A."
)


def compare_pace(first: Side, second: Side, level: float) -> Comparison:
    """Compare by the updates until the training accuracy first reached a level.

    Per pair it is log2 of B's updates over A's, each trial within the number of updates that both
    trained for; what never gets there counts as getting there at the end.
    """
    column = pace_column(level)
    found, ends = pair(first, second, column), pair(first, second, "training.iterations")
    logs: dict[Cell, dict[int, tuple[float, float]]] = {cell: {} for cell in found.cells}
    never: dict[Cell, dict[int, tuple[bool, bool]]] = {cell: {} for cell in found.cells}
    for cell, pairs in found.cells.items():
        for seed, (one, other) in pairs.items():
            cap = min(ends.cells[cell][seed])
            # So that A − B is the log2 of B / A.
            logs[cell][seed] = -math.log2(min(one, cap)), -math.log2(min(other, cap))
            never[cell][seed] = one >= cap, other >= cap
    compared = _compare(first, second, column, replace(found, cells=logs), never)
    notes = [MEANING, *compared.notes]
    lost = _count(flags for pairs in never.values() for flags in pairs.values())
    if any(lost):
        text = (
            "Never reached, and counted at the last update: {} trials of A, {} of B; ≥ and ≤ say "
            "which way that pulls the factor."
        )
        notes.insert(1, text.format(*lost))
    return replace(compared, columns=FACTORS, notes=tuple(notes))


def _count(never: Iterable[tuple[bool, bool]]) -> tuple[int, int]:
    first, second = zip(*never, strict=True)
    return sum(first), sum(second)
