"""Pace: how many updates a training took until its accuracy first reached a level.

Training accuracy is that of fresh batches, so it is no memory of them. The reasons for each choice
are in docs/decisions/0030-updates-to-a-level.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pernn.experiments import LEVELS, pace_column

from .records import Record, number
from .statistics import Interval

Curve = Mapping[str, Sequence[Any]]
"""A learning curve as it is published: `update` and `token_accuracy`, equally long."""

CENSORED = "_censored"
"""End of the column that says whether a level was never reached."""


class Pace(NamedTuple):
    """When a level was reached.

    Attributes:
        updates: At most the cap.
        censored: Whether the level was never reached, so that `updates` is the cap.
    """

    updates: float
    censored: bool


def updates_to(
    level: float, updates: Sequence[float], accuracies: Sequence[float], cap: float
) -> Pace:
    """Return when a curve first reaches a level, interpolated in the logarithm of updates.

    Nothing is smoothed: the first crossing counts, even where a noisy curve falls below again.
    What is reached by the first point counts as reached there.

    Args:
        level: In the accuracies' unit.
        updates: Positive and rising.
        accuracies: One per update.
        cap: Updates of the whole training.
    """
    points = list(zip(updates, accuracies, strict=True))
    if points and points[0][1] >= level:
        return Pace(min(float(points[0][0]), cap), censored=False)
    for (before, low), (after, high) in pairwise(points):
        if high >= level:
            share = (level - low) / (high - low)
            crossing = float(before ** (1 - share) * after**share)
            return Pace(min(crossing, cap), censored=crossing > cap)
    return Pace(cap, censored=True)


def with_pace(
    records: Iterable[Record], read: Callable[[str], Curve], levels: Iterable[float] = LEVELS
) -> list[Record]:
    """Return records with the columns `updates_to_0.5`, `updates_to_0.5_censored` … beside theirs.

    A level that a trial never reached counts as reached at its last update, and is said to be
    censored; so are all levels of a trial that diverged, as it counts as the worst. Trials without
    a curve of accuracies get no columns.

    Args:
        records: Finished trials.
        read: Run → its learning curve as it is published, empty if it has none.
        levels: Shares of right tokens.
    """
    levels = list(levels)
    return [{**record, **_columns(record, read(record["run"]), levels)} for record in records]


def restrict_together(records: Iterable[Record], column: str) -> list[Record]:
    """Return the records that have a pace, each within the number of updates that all of them did.

    A trial that went on for longer than another, and reached the level after that one had ended,
    is censored there: otherwise the longer training would count as the slower one.

    Args:
        records: Finished trials, or rows of a table.
        column: From `with_pace`.
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
    """Whether a trial that has a pace never reached the level."""
    return bool(record[f"{column}{CENSORED}"])


def as_factor(interval: Interval) -> Interval:
    """Return a factor for its log2."""
    return Interval(2**interval.estimate, 2**interval.low, 2**interval.high, interval.method)


def is_pace(column: str) -> bool:
    """Whether a column is one that `with_pace` adds."""
    return column.startswith(pace_column(""))


def _columns(record: Record, curve: Curve, levels: Iterable[float]) -> dict[str, Any]:
    known = zip(curve.get("update", ()), curve.get("token_accuracy", ()), strict=False)
    points = [point for point in known if None not in point]
    if not points:
        return {}
    updates, accuracies = zip(*points, strict=True)
    cap = float(record.get("training.iterations") or updates[-1])
    found: dict[str, Any] = {}
    for level in levels:
        pace = updates_to(level, updates, accuracies, cap)
        pace = Pace(cap, censored=True) if "diverged" in record else pace
        name = pace_column(level)
        found |= {name: pace.updates, f"{name}{CENSORED}": pace.censored}
    return found
