"""Two sides compared by when their trainings reached an accuracy: factors of updates."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pernn.lab.experiments import pace_column

from .comparing import Compared, Comparison, compare_pairs, group_by_core
from .pace import as_factor
from .pairs import MIN_PAIRS, Cell, Side, pair

FACTORS = ("Cell", "n", "B / A", "95 % by t", "p", "never A, B", "A", "B")
MEANING = (
    "B / A is how many times as many updates B takes as A: above 1, A is sooner. A and B are "
    "geometric means of updates; differences are log2 of B / A."
)


@dataclass(frozen=True)
class Sooner(Compared):
    """What the factors of some pairs say; differences, interval and effect are of their log2.

    Attributes:
        num_never: Trials of A and of B that never reached the level; they count at the last update.
    """

    num_never: tuple[int, int]

    @property
    def factor(self) -> str:
        """The factor, with a sign where it is only known to be at least or at most that."""
        first, second = self.num_never
        sign = "≥ " if second and not first else "≤ " if first and not second else ""
        return f"{sign}{as_factor(self.interval).shown}"

    @property
    def nothing(self) -> str:
        """Why the factor says nothing: no trial got there, or all did by their first point."""
        if any(self.differences.values()):
            return ""
        return "never" if any(self.num_never) else "at once"

    @property
    def shown(self) -> tuple[str, ...]:
        """The row of a table, as `FACTORS` names it."""
        name, count, _, _, p, *_ = super().shown
        found = (self.factor, as_factor(self.interval).bounds, p)
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
