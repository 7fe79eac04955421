"""How lines are drawn: points with error bars, or lines in bands."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from .scales import Scale
from .series import Series
from .statistics import Interval, student_interval


def tag(line: Series, said: Sequence[str] = ()) -> str:
    """Return an artist's id, which names its line and what each mark shows.

    `inline` turns it into what the page shows under the pointer, `render` leaves it out.
    """
    name = f"{line.label}, " if line.label else ""
    marks = [(name + one).replace("|", "/") for one in said]
    return "|".join([f"line{line.place}", *marks])


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
                gid=tag(line, [f"seed {seed}"]),
            )
        axes.fill_between(
            places,
            [one.low if one.bounded else one.estimate for one in intervals],
            [one.high if one.bounded else one.estimate for one in intervals],
            color=look["color"],
            alpha=0.22,
            linewidth=0,
            zorder=2.5,
            gid=tag(line),
        )
        alone = {"marker": line.style["marker"], "markersize": 4.2} if len(at) == 1 else {}
        axes.plot(
            places,
            [one.estimate for one in intervals],
            label=line.label or None,
            linewidth=1.5,
            zorder=3,
            gid=tag(line),
            **look,
            **alone,
        )


def _points(axes: Axes, x: Scale, line: Series, shift: float, aside: float) -> None:
    """Draw a line moved by `shift` steps of the axis, its trials `aside` of it."""
    at = sorted(line.points, key=x.values.index)
    intervals = _intervals(line, at)
    reach: list[list[float]] = [[], []]
    for interval in intervals:
        reach[0].append(interval.estimate - interval.low if interval.bounded else 0.0)
        reach[1].append(interval.high - interval.estimate if interval.bounded else 0.0)
    drawn = axes.errorbar(
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
    for part in drawn.get_children():
        part.set_gid(tag(line))
    names = [x.label.condition(x.column, value) for value in at]
    drawn[0].set_gid(
        tag(
            line,
            [
                f"{name}: {one.shown} {one.bounds}, n = {len(line.points[value])}"
                for name, one, value in zip(names, intervals, at, strict=True)
            ],
        )
    )
    raw = [
        (x.position(value, shift + aside), one, f"{name}, seed {seed}: {one:.4g}")
        for name, value in zip(names, at, strict=True)
        for seed, one in line.points[value].items()
    ]
    axes.plot(
        [place for place, *_ in raw],
        [value for _, value, _ in raw],
        linestyle="none",
        marker=".",
        markersize=4,
        markeredgewidth=0,
        color=line.style["color"],
        alpha=0.5,
        zorder=2,
        gid=tag(line, [said for *_, said in raw]),
    )


def _intervals(line: Series, at: Sequence[Any]) -> list[Interval]:
    return [student_interval(list(line.points[value].values())) for value in at]
