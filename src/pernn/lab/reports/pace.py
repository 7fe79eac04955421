"""Pace: columns that say how many updates a training took to a level of accuracy."""

import math
from collections.abc import Iterable

from pernn.lab.experiments import pace_column
from pernn.lab.trials import CENSORED

from .records import Record, number
from .statistics import Interval


def restrict_together(records: Iterable[Record], column: str) -> list[Record]:
    """Return the records that have a pace, each within the number of updates that all of them did.

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
    """Whether a trial that has a pace never reached the level."""
    return bool(record[f"{column}{CENSORED}"])


def as_factor(interval: Interval) -> Interval:
    """Return a factor for its log2."""
    return Interval(2**interval.estimate, 2**interval.low, 2**interval.high, interval.method)


def is_pace(column: str) -> bool:
    """Whether a column says how many updates a level took."""
    return column.startswith(pace_column(""))
