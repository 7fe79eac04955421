"""Differences and factors of two sides, with test and effect size."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from pernn.errors import counted
from pernn.lab.experiments import pace_column

from .pairs import MIN_PAIRS, Cell, Pairs, Side, pair
from .rules import MIN_SEEDS
from .statistics import (
    ROUNDING,
    Effect,
    Interval,
    SignFlipTest,
    effect_size,
    sign_flip_test,
    student_interval,
)
from .texts import Labels, clean, fill_template

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
        test: Exact test of it.
        effect: Its size; `None` where all differences are equal, or there are only two.
    """

    name: str
    differences: Mapping[int, float]
    means: tuple[float, float]
    interval: Interval
    test: SignFlipTest
    effect: Effect | None

    @property
    def shown(self) -> tuple[str, ...]:
        """The row of a table, as the comparison's `columns` name it."""
        effect = ("–", "–")
        if self.effect is not None:
            effect = (f"{self.effect.d_z:.3g}", f"{self.effect.g_z:.3g}")
        p = f"{'' if self.test.is_exact else '≈ '}{self.test.p_value:.3g}"
        found, count = self.interval, str(len(self.differences))
        means = map(found.show, self.means)
        return (self.name, count, found.shown, found.bounds, p, *effect, *means)


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
        one_core = self.overall and CORE not in self.pairs.columns
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
            "cells": [asdict(one) for one in self.cells],
            "overall": self.overall and asdict(self.overall),
            "by_core": [asdict(one) for one in self.by_core],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it."""
        import pandas as pd

        table = pd.DataFrame(self.rows, columns=list(self.columns)).to_html(index=False)
        return f"<p>{escape(self.title)}</p>{table}"

    def html(self, command: str) -> str:
        """Return one page that loads nothing.

        Args:
            command: What repeats it.
        """
        return fill_template(
            "compare.html.jinja",
            comparison=self,
            label=LABEL,
            command=clean(command),
        )


def compare(first: Side, second: Side, metric: str) -> Comparison:
    """Compare two sides by the differences within pairs.

    Arguments and errors are those of `pair`.
    """
    return compare_pairs(first.name, second.name, metric, pair(first, second, metric))


def compare_pairs(first: str, second: str, metric: str, pairs: Pairs) -> Comparison:
    """Compare what was paired.

    Args:
        first: Name of the side A.
        second: Name of the side B.
        metric: What the pairs are of.
        pairs: From `pair`.
    """
    cells = tuple(
        _compared(_name(pairs, cell), found)
        for cell, found in pairs.cells.items()
        if len(found) >= MIN_PAIRS
    )
    seeds = sorted({seed for found in pairs.cells.values() for seed in found})
    complete = {s for s in seeds if all(s in found for found in pairs.cells.values())}
    overall, by_core = _mean(pairs.cells, cells[0].name), _means_by_core(pairs)
    if by_core:
        complete = {seed for one in by_core for seed in one.differences}
    shown = [*cells, *(by_core or ([overall] if overall else []))]
    notes = _notes(pairs, len(seeds) - len(complete), shown)
    return Comparison(first, second, metric, pairs, cells, overall, tuple(by_core), tuple(notes))


def group_by_core(pairs: Pairs) -> dict[str, dict[Cell, Mapping[int, tuple[float, float]]]]:
    """Group cells by core, of cores that have several.

    There are no groups of one core alone.
    """
    if CORE not in pairs.columns:
        return {}
    place = pairs.columns.index(CORE)
    cores: dict[str, dict[Cell, Mapping[int, tuple[float, float]]]] = {}
    for cell, found in pairs.cells.items():
        cores.setdefault(LABEL(cell[place]), {})[cell] = found
    return {core: cells for core, cells in cores.items() if len(cells) > 1}


def _means_by_core(pairs: Pairs) -> list[Compared]:
    means = {core: _mean(cells, "") for core, cells in group_by_core(pairs).items()}
    return [replace(one, name=f"{core}, {one.name}") for core, one in means.items() if one]


def _mean(cells: Mapping[Cell, Mapping[int, tuple[float, float]]], single: str) -> Compared | None:
    """Return each seed's mean over cells; `None` if not two seeds have them all.

    Args:
        cells: Cell → seed → metric of A and of B.
        single: What a mean over one cell is called.
    """
    complete = sorted(set.intersection(*({*found} for found in cells.values())))
    if len(complete) < MIN_PAIRS:
        return None
    sums = {s: zip(*(found[s] for found in cells.values()), strict=True) for s in complete}
    means = {s: tuple(math.fsum(x) / len(x) for x in some) for s, some in sums.items()}
    name = f"mean over {len(cells)} cells" if len(cells) > 1 else single
    return _compared(name, {s: (one, other) for s, (one, other) in means.items()})


def _compared(name: str, found: Mapping[int, tuple[float, float]]) -> Compared:
    differences = {seed: _rounded(found[seed][0] - found[seed][1]) for seed in sorted(found)}
    values = list(differences.values())
    means = tuple(math.fsum(side) / len(found) for side in zip(*found.values(), strict=True))
    return Compared(
        name,
        differences,
        (means[0], means[1]),
        student_interval(values),
        sign_flip_test(values),
        effect_size(values),
    )


def _name(pairs: Pairs, cell: tuple[Any, ...]) -> str:
    named = dict(zip(pairs.columns, cell, strict=True))
    words = (LABEL.condition(key, named[key]) for key in pairs.naming if named[key] is not None)
    return ", ".join(words) or "all"


def _rounded(difference: float) -> float:
    """Return a difference, without what rounding leaves of equal numbers."""
    return 0.0 if abs(difference) <= ROUNDING else difference


def _notes(pairs: Pairs, num_incomplete: int, shown: list[Compared]) -> list[str]:
    fewest = min(len(one.differences) for one in shown)
    single = sum(len(found) < MIN_PAIRS for found in pairs.cells.values())
    lost = pairs.num_diverged
    words = {
        f"Within a pair seed and settings agree but for {', '.join(pairs.differing)}.": (
            pairs.differing
        ),
        f"Trials without a partner: {pairs.num_unpaired[0]} of A, {pairs.num_unpaired[1]} of B.": (
            True
        ),
        f"On both sides, and left out: {counted(pairs.num_same, 'trial')}.": pairs.num_same,
        f"Diverged, and counted as the worst: {counted(lost, 'trial')}.": lost,
        f"Not shown, having one pair only: {counted(single, 'cell')}.": single,
        f"Not in the mean over cells, lacking one: {counted(num_incomplete, 'seed')}.": (
            num_incomplete
        ),
        f"n = {fewest} is no verdict: {MIN_SEEDS} seeds are needed, and the smallest p that "
        f"{fewest} can give is {2.0 ** (1 - fewest):g}.": fewest < MIN_SEEDS,
        "The p of single cells is not corrected for their number.": len(shown) > 2,
    }
    return [text for text, holds in words.items() if holds]


FACTORS = ("Cell", "n", "B / A", "95 % by t", "p", "never A, B", "A", "B")
MEANING = (
    "B / A is how many times as many updates B takes as A: above 1, A is sooner. A and B are "
    "geometric means of updates; differences are log2 of B / A."
)


@dataclass(frozen=True)
class Sooner(Compared):
    """The factors of some pairs, tested as log2.

    Attributes:
        num_never: Trials of A and of B that never reached the level; they count at the last update.
    """

    num_never: tuple[int, int]

    @property
    def factor(self) -> str:
        """The factor, with ≥ or ≤ where only that is known."""
        first, second = self.num_never
        sign = "≥ " if second and not first else "≤ " if first and not second else ""
        return f"{sign}{self.interval.as_factor().shown}"

    @property
    def nothing(self) -> str:
        """The reason for no factor: `never` or `at once`, else nothing."""
        if any(self.differences.values()):
            return ""
        return "never" if any(self.num_never) else "at once"

    @property
    def shown(self) -> tuple[str, ...]:
        """The row of a table, as `FACTORS` names it."""
        name, count, _, _, p, *_ = super().shown
        found = (self.factor, self.interval.as_factor().bounds, p)
        if self.nothing:
            found = (self.nothing, "–", "–")
        means = (f"{2**-mean:,.0f}" for mean in self.means)
        return (name, count, *found, "{}, {}".format(*self.num_never), *means)


@dataclass(frozen=True)
class Paced(Comparison):
    """Two sides compared by factors.

    Attributes:
        cells: Each cell that has two pairs, in order.
    """

    cells: tuple[Sooner, ...]


def compare_pace(first: Side, second: Side, level: float) -> Paced:
    """Compare by the updates until the training accuracy first reached a level.

    Per pair it is log2 of B's updates over A's, each trial within the number of updates that both
    trained for; what never gets there counts as getting there at the end.

    Args:
        first: Side A, whose records have the columns of this level.
        second: Side B.
        level: Share of right tokens.

    Raises:
        ConfigError: As `pair` does.
    """
    column = pace_column(level)
    found, ends = pair(first, second, column), pair(first, second, "training.iterations")
    logs: dict[Cell, dict[int, tuple[float, float]]] = {}
    never: dict[Cell, dict[int, tuple[bool, bool]]] = {}
    for cell, pairs in found.cells.items():
        logs[cell], never[cell] = {}, {}
        for seed, (one, other) in pairs.items():
            cap = min(ends.cells[cell][seed])
            # So that A − B is the log2 of B / A.
            logs[cell][seed] = -math.log2(min(one, cap)), -math.log2(min(other, cap))
            never[cell][seed] = one >= cap, other >= cap
    compared = compare_pairs(first.name, second.name, column, replace(found, cells=logs))

    def count(one: Compared, cells: Iterable[Cell]) -> Sooner:
        lost = [never[cell][seed] for cell in cells for seed in one.differences]
        num_never = (sum(a for a, _ in lost), sum(b for _, b in lost))
        return Sooner(**vars(one), num_never=num_never)

    shown = (cell for cell, pairs in logs.items() if len(pairs) >= MIN_PAIRS)
    cells = tuple(count(one, [cell]) for one, cell in zip(compared.cells, shown, strict=True))
    overall = compared.overall and count(compared.overall, logs)
    groups = group_by_core(found).items()
    by_core = tuple(
        count(one, cells)
        for one in compared.by_core
        for core, cells in groups
        if one.name.startswith(f"{core}, ")
    )
    lost = [flags for pairs in never.values() for flags in pairs.values()]
    notes = [MEANING, *compared.notes]
    if any(map(any, lost)):
        text = (
            "Never reached, and counted at the last update: {} trials of A, {} of B; ≥ and ≤ say "
        )
        text += "which way that pulls the factor."
        notes.insert(1, text.format(sum(a for a, _ in lost), sum(b for _, b in lost)))
    new = {"columns": FACTORS, "cells": cells, "overall": overall, "by_core": by_core}
    return Paced(**{**vars(compared), **new, "notes": tuple(notes)})
