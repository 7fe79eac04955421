"""Scatter plots: two numbers of each trial, or of each row of its table, and their correlation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pernn.errors import counted
from pernn.lab.experiments import Experiment, FigureLayout

from .labels import Labels, value_of
from .records import Record, number, sort_key
from .scales import is_share, log_ends, tick_log
from .series import looks
from .statistics import Interval, rank_correlation

MANY = 150
"""With more points than this in a panel they are smaller."""


@dataclass(frozen=True)
class Point:
    """One trial, or row of its table, that has both numbers."""

    x: float
    y: float
    line: Any
    seed: Any


def collect_pairs(layout: FigureLayout, records: Sequence[Record], metric: str) -> list[Point]:
    """Take both numbers from the records that have them, in an order that is theirs alone."""
    pairs = [
        Point(x, y, value_of(record, layout.lines), record["seed"])
        for record in records
        if (x := number(record, str(layout.x))) is not None
        and (y := number(record, metric)) is not None
    ]
    return sorted(pairs, key=lambda one: (sort_key(one.seed), sort_key(one.line), one.x, one.y))


def draw_scatter(
    axes: Axes, experiment: Experiment, points: Sequence[Point], order: Sequence[Any]
) -> None:
    """Draw every point in the look of its line, and say in the title how they are correlated."""
    layout, label = experiment.figure, Labels(experiment.labels)
    styles = looks(layout.lines, order)
    for value in order:
        own = [point for point in points if point.line == value]
        if own:
            axes.plot(
                [point.x for point in own],
                [point.y for point in own],
                label=label.condition(layout.lines, value),
                color=styles[value]["color"],
                marker=styles[value]["marker"],
                markerfacecolor=styles[value].get("markerfacecolor", styles[value]["color"]),
                linestyle="none",
                markersize=3.0 if len(points) > MANY else 4.4,
                markeredgewidth=0.8,
                alpha=0.75,
                zorder=3,
            )
    axes.set_title(correlation_text(points), loc="right", fontsize=7.5, color="#555555")
    axes.grid(visible=True, axis="both")


def correlation_text(points: Sequence[Point]) -> str:
    """Return Spearman's correlation, its interval over seeds, and n."""
    seeds = [point.seed for point in points]
    num_seeds = len(set(seeds))
    count = f"n = {len(points):,}"
    if num_seeds and len(points) > num_seeds:
        count += f" of {counted(num_seeds, 'seed')}"
    if not points:
        return count
    found = rank_correlation([one.x for one in points], [one.y for one in points], seeds)
    return f"{_shown(found)}, {count}"


def fit_number(axes: Axes, column: str, values: Sequence[float], base: int | None) -> None:
    """Scale the horizontal axis to the numbers of a column, shares from 0 to 1."""
    if is_share(column):
        axes.set_xlim(-0.03, 1.03)
    elif base and values:
        ends = log_ends(column, values)
        axes.set_xscale("log", base=base)
        axes.set_xlim(*ends)
        tick_log(axes.xaxis, ends, base)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _shown(found: Interval) -> str:
    if math.isnan(found.estimate):
        return "ρ undefined"
    # A sign of its own width keeps −0.00 from being read as a hyphen and a number.
    text = f"ρ = {_two(found.estimate)}"
    return f"{text} [{_two(found.low)}, {_two(found.high)}]" if found.bounded else text


def _two(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
