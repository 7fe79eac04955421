"""How lines are drawn: points with error bars, lines in bands, violins."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes

from .scales import Scale
from .series import Quantiles, Series
from .statistics import Interval, student_interval

NUM_HEIGHTS = 160
"""Heights at which a violin's width is computed."""

BANDWIDTH = 0.012
"""Smoothing of violins, over the extent of their row."""


def draw_points(axes: Axes, x: Scale, series: Sequence[Series]) -> None:
    """Draw means with error bars, and every trial as a small dot beside its mean.

    Numbers stand where they are, joined by lines: a line moved sideways would look higher where
    values fall. Words have no order to join; marks of lines that share them stand side by side.
    """
    shared = len({value for line in series for value in line.points})
    several = shared < sum(len(line.points) for line in series)
    for place, line in enumerate(series):
        beside = place - (len(series) - 1) / 2 if several else 0.0
        if x.numeric:
            _points(axes, x, line, 0.0, min(0.09, 0.4 / len(series)) * (place + 1))
        else:
            _points(axes, x, line, 0.16 * beside, 0.1)


def draw_bands(axes: Axes, x: Scale, series: Sequence[Series]) -> None:
    """Draw means as lines in the band of their interval, and every trial as a thin line."""
    for line in series:
        at = sorted(line.points, key=x.values.index)
        places = [x.position(value) for value in at]
        intervals = _intervals(line, at)
        look = {"color": line.style["color"], "linestyle": line.style["linestyle"]}
        for seed in dict.fromkeys(seed for value in at for seed in line.points[value]):
            own = [value for value in at if seed in line.points[value]]
            axes.plot(
                [x.position(value) for value in own],
                [line.points[value][seed] for value in own],
                color=look["color"],
                linewidth=0.5,
                alpha=0.35,
                zorder=2,
            )
        axes.fill_between(
            places,
            [one.low if one.bounded else one.estimate for one in intervals],
            [one.high if one.bounded else one.estimate for one in intervals],
            color=look["color"],
            alpha=0.22,
            linewidth=0,
            zorder=2.5,
        )
        alone = {"marker": line.style["marker"], "markersize": 4.2} if len(at) == 1 else {}
        axes.plot(
            places,
            [one.estimate for one in intervals],
            label=line.label or None,
            linewidth=1.5,
            zorder=3,
            **look,
            **alone,
        )


def draw_violins(axes: Axes, x: Scale, series: Sequence[Series]) -> None:
    """Draw distributions, side by side where lines share a place.

    Their outline is the density between the quantiles, smoothed a little; all are equally wide.
    """
    drawn = [value for line in series for value in line.values]
    extent = max(drawn) - min(drawn) if drawn else 0.0
    share = 0.86 / max(len(series), 1)
    for place, line in enumerate(series):
        shift = share * (place - (len(series) - 1) / 2)
        look = {"color": line.style["color"], "zorder": 3}
        named = False
        for value in sorted(line.shapes, key=x.values.index):
            shape = line.shapes[value]
            heights, widths = outline(shape, BANDWIDTH * extent)
            reach = 0.42 * share * widths
            axes.fill_betweenx(
                heights,
                [x.position(value, shift - float(side)) for side in reach],
                [x.position(value, shift + float(side)) for side in reach],
                facecolor=(line.style["color"], 0.3),
                edgecolor=line.style["color"],
                linestyle=line.style["linestyle"],
                linewidth=0.8,
                label=None if named else line.label,
                zorder=2,
            )
            named = True
            middle = x.position(value, shift)
            axes.plot([middle] * 2, [shape.at(0.25), shape.at(0.75)], linewidth=2.6, **look)
            axes.plot(
                [middle],
                [shape.at(0.5)],
                marker=line.style["marker"],
                markersize=4.2,
                markerfacecolor="white",
                markeredgewidth=1.0,
                **look,
            )
            aside = x.position(value, shift + 0.3 * share)
            medians = [(aside, median) for median in line.points[value].values()]
            _dots(axes, medians, line, alpha=0.7, zorder=4)


def outline(
    shape: Quantiles, bandwidth: float
) -> tuple[Float64[np.ndarray, " heights"], Float64[np.ndarray, " heights"]]:
    """Return a violin's width at its heights, relative to its widest place.

    Between two quantiles the distribution is taken to be uniform; the sum is smoothed by a normal
    kernel, and cut at the lowest and highest quantile.

    Args:
        shape: The distribution.
        bandwidth: Standard deviation of the kernel, in the values' unit.

    Returns:
        Heights in the values' unit, and widths in [0, 1].
    """
    low, high = float(shape.values[0]), float(shape.values[-1])
    # Where all values are one the shape would be a line: it is a bar as thick as the kernel.
    spread = max(bandwidth, 1e-9 * max(abs(low), abs(high), 1.0))
    if high - low < spread:
        low, high = low - spread / 2, high + spread / 2
    heights = np.linspace(low, high, NUM_HEIGHTS)
    scaled = (heights[:, None] - shape.values[None, :]) / (spread * math.sqrt(2))
    below = np.vectorize(math.erf, otypes=[np.float64])(scaled) / 2
    lengths = np.diff(shape.values)
    apart = lengths > 1e-3 * spread
    uniform = (below[:, :-1] - below[:, 1:]) / np.where(apart, lengths, 1.0)
    centres = (scaled[:, :-1] + scaled[:, 1:]) / 2
    spike = np.exp(-(centres**2)) / (spread * math.sqrt(2 * math.pi))
    density = np.where(apart, uniform, spike) @ np.diff(shape.levels)
    widest = float(density.max())
    return heights, density / widest if widest > 0 else np.ones(NUM_HEIGHTS)


def _points(axes: Axes, x: Scale, line: Series, shift: float, aside: float) -> None:
    """Draw a line moved by `shift` steps of the axis, its trials `aside` of it."""
    at = sorted(line.points, key=x.values.index)
    intervals = _intervals(line, at)
    reach: list[list[float]] = [[], []]
    for interval in intervals:
        reach[0].append(interval.estimate - interval.low if interval.bounded else 0.0)
        reach[1].append(interval.high - interval.estimate if interval.bounded else 0.0)
    axes.errorbar(
        [x.position(value, shift) for value in at],
        [interval.estimate for interval in intervals],
        yerr=[[max(length, 0.0) for length in side] for side in reach],
        label=line.label or None,
        markersize=4.2,
        linewidth=1.3,
        elinewidth=1.1,
        capsize=2.2,
        zorder=3,
        **{**line.style, **({} if x.numeric else {"linestyle": "none"})},
    )
    raw = [
        (x.position(value, shift + aside), one)
        for value in at
        for one in line.points[value].values()
    ]
    _dots(axes, raw, line, alpha=0.5, zorder=2)


def _dots(
    axes: Axes, points: Sequence[tuple[float, float]], line: Series, alpha: float, zorder: float
) -> None:
    """Draw trials as small dots in a line's colour."""
    axes.plot(
        [place for place, _ in points],
        [value for _, value in points],
        linestyle="none",
        marker=".",
        markersize=4,
        markeredgewidth=0,
        color=line.style["color"],
        alpha=alpha,
        zorder=zorder,
    )


def _intervals(line: Series, at: Sequence[Any]) -> list[Interval]:
    return [student_interval(list(line.points[value].values())) for value in at]
