"""Forms of figures: points, bands, heat maps, scatter plots, factors."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.transforms import offset_copy

from pernn.errors import ConfigError, counted
from pernn.lab.config import grouped, nested
from pernn.lab.experiments import Columns, FigureLayout, names_of, pace_column

from .comparing import MIN_PAIRS, Compared, Side, compare_pace
from .panels import Grid, Scale
from .records import (
    Arm,
    Records,
    is_censored,
    matches,
    number,
    paired_differences,
    placed,
    sides,
    sort_key,
)
from .statistics import Interval, LowerBound, rank_correlation, student_interval
from .texts import value_of

LINES = (
    {"color": "#D55E00", "marker": "s", "linestyle": "--", "markerfacecolor": "white"},
    {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    {"color": "#009E73", "marker": "^", "linestyle": "-."},
    {"color": "#CC79A7", "marker": "D", "linestyle": ":"},
    {"color": "#E69F00", "marker": "v", "linestyle": "--"},
    {"color": "#56B4E9", "marker": "P", "linestyle": "-"},
    {"color": "#000000", "marker": "X", "linestyle": "-."},
)
"""Colours of Okabe and Ito (2008), told apart by marker and dash as well."""

ENCODING_KINDS = ("none", "sinusoidal", "repeated_embedding", "learned", "random")
"""Encodings whose look is the same in every figure, whichever of them it shows."""

CONDITIONS: Mapping[Any, Mapping[str, Any]] = {
    f"{target} among {disturbants}": {"color": colour, "marker": marker, "linestyle": dash}
    for target, colour, marker in (("Frequent", "#0072B2", "o"), ("Rare", "#D55E00", "s"))
    for disturbants, dash in (("Frequent", "-"), ("Rare", "--"))
}
"""The target decides the colour and the disturbants the dash, as in the paper's figure."""

BARS: Mapping[str, Any] = {"linewidth": 1.3, "elinewidth": 1.1, "capsize": 2.2}
"""How thick the lines of means and their error bars are."""

DIFFERENCE = {"color": "#333333", "marker": "D", "linestyle": "-"}
"""A difference belongs to neither condition, so it has a look of its own."""


@dataclass(frozen=True)
class Series:
    """One line of one panel."""

    style: Mapping[str, Any]  # how matplotlib is to draw it
    label: str  # its name in the legend; empty if it is not listed
    points: Mapping[Any, Mapping[Any, float]]  # horizontal value → seed → value
    place: int = 0  # among the lines of the figure, which the page shows and hides by it
    never: Container[Any] = ()  # horizontal values at which some trials never arrive

    def values(self, places: Container[Any] | None = None) -> list[float]:
        """Return all values, or those of some horizontal places only."""
        return [
            value
            for x, found in self.points.items()
            if places is None or x in places
            for value in found.values()
        ]

    def without(self, seeds: Container[Any]) -> "Series":
        """Return it without some seeds' values where there are others."""
        points = {
            x: {seed: value for seed, value in found.items() if seed not in seeds} or found
            for x, found in self.points.items()
        }
        return replace(self, points=points)


def looks(column: Columns, order: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
    """Map conditions to colour, marker and dash.

    Encodings have theirs by name; what else tells conditions of one encoding apart has marker and
    dash. Others have looks in turn, first those that no usual encoding has.
    """
    if column == "condition" and set(order) <= CONDITIONS.keys():
        return {value: CONDITIONS[value] for value in order}
    names = names_of(column)
    if "encoding.kind" not in names:
        return {value: LINES[(place + 2) % len(LINES)] for place, value in enumerate(order)}
    parts = [(value,) if isinstance(column, str) else value for value in order]
    told = [dict(zip(names, some, strict=True)) for some in parts]
    # Codes that the task gives stand for an encoding.
    kinds = [one.get("task.codes") or one["encoding.kind"] for one in told]
    known = list(dict.fromkeys([*ENCODING_KINDS, *kinds]))
    found: dict[Any, Mapping[str, Any]] = {}
    for place, (value, kind) in enumerate(zip(order, kinds, strict=True)):
        own, earlier = LINES[known.index(kind) % len(LINES)], kinds[:place].count(kind)
        other = LINES[(earlier + 1) % len(LINES)] if earlier else own
        found[value] = {**other, "color": own["color"]}
    return found


def points_of(
    layout: FigureLayout, records: Records, metric: str
) -> dict[Any, dict[Any, dict[Any, float]]]:
    """Sort measured values of a metric by line, horizontal value and seed."""
    having = [one for one in records if number(one, metric) is not None]
    having.sort(key=lambda one: sort_key(one["seed"]))
    each = placed(having, ("seed", *names_of(layout.lines), *names_of(layout.x))).values()
    lines = grouped((value_of(one, layout.lines), one) for one in each)
    return {
        line: nested((value_of(one, layout.x), one["seed"], float(one[metric])) for one in own)
        for line, own in lines.items()
    }


def collect(grid: Grid, records: Records, metric: str) -> list[Series]:
    """Collect the lines of a panel that have anything to show.

    A line keeps its look in panels where another is missing.
    """
    layout, order = grid.layout, grid.order
    points, styles = points_of(layout, records, metric), looks(layout.lines, order)
    never = grouped(
        (value_of(one, layout.lines), value_of(one, layout.x))
        for one in records
        if is_censored(one, metric)
    )
    return [
        Series(
            styles[value],
            grid.label.condition(layout.lines, value),
            points[value],
            place,
            never.get(value, ()),
        )
        for place, value in enumerate(order)
        if value in points
    ]


def differences(grid: Grid, records: Records) -> list[Series]:
    """Collect a panel's paired differences, a line per treated condition."""
    layout, order = grid.layout, grid.order
    contrast, names = layout.contrast, names_of(layout.lines)
    if contrast is None or contrast.column != names[0]:
        raise ConfigError(f"a figure's contrast must be between its lines, {layout.lines}")
    alone = layout.form == "difference"
    treated: list[Any] = [contrast.treated]
    if len(names) > 1:
        treated = [line for line in order if line[0] == contrast.treated]
    # Alone, a line is called by what it differs in beside the contrast.
    columns = names[1:] if len(names) > 2 else names[-1]
    others = [line[1:] if len(names) > 2 else line[1] if names[1:] else line for line in treated]
    styles = looks(columns, others) if alone else looks(layout.lines, order)
    series = []
    for place, (line, other) in enumerate(zip(treated, others, strict=True)):
        where = dict(zip(names, line, strict=True)) if len(names) > 1 else {}
        one = replace(contrast, treated_where={**contrast.treated_where, **where})
        if alone:
            both = {name: value for name, value in where.items() if name != contrast.column}
            one = replace(one, baseline_where={**contrast.baseline_where, **both})
        found = paired_differences(records, layout.metrics[0], one, names_of(layout.x))
        points = nested((at_x, seed, value) for (seed, at_x), value in found.items())
        name = grid.label.condition(columns, other) if alone and len(treated) > 1 else ""
        look = styles[other if alone else line] if len(treated) > 1 else DIFFERENCE
        series.append(Series(look, name, points, place if alone else -1))
    return [line for line in series if line.points]


def are_apart(series: Sequence[Series], zero: Sequence[float]) -> bool:
    """Return whether some place has intervals apart from each other or zero."""
    for at in {x for line in series for x in line.points}:
        found = [one for line in series if at in line.points for one in _intervals(line, [at])]
        ends = [(one.low, one.high) for one in found if one.bounded]
        ends += [(value, value) for value in zero]
        if ends and max(low for low, _ in ends) > min(high for _, high in ends):
            return True
    return False


def tag(line: Series, said: Sequence[str] = ()) -> str:
    """Return an artist's id: its line, and each mark's value.

    `inline` turns it into what the page shows under the pointer, `render` leaves it out.
    """
    name = f"{line.label}, " if line.label else ""
    # In these signs matplotlib would write the id in another way.
    marks = [(name + one).replace("|", "/").replace('"', "'") for one in said]
    return "|".join([f"line{line.place}", *marks])


def draw_points(axes: Axes, x: Scale, series: Sequence[Series]) -> None:
    """Draw means with error bars, trials as small dots beside them.

    Numbers stand where they are, joined by lines, and only their error bars side by side: a line
    moved sideways would look higher where values fall. Words have no order to join; marks of lines
    that share them stand side by side.
    """
    shared = len({value for line in series for value in line.points})
    several = shared < sum(len(line.points) for line in series)
    for place, line in enumerate(series):
        beside = place - (len(series) - 1) / 2 if several else 0.0
        if x.numeric:
            aside = min(0.09, 0.4 / len(series)) * (place + 1)
            _points(axes, x, line, 0.0, aside, 5 / len(series) * beside)
        else:
            _points(axes, x, line, 0.16 * beside, 0.1)


RING: Mapping[str, Any] = {"marker": "o", "ls": "none", "mfc": "none", "mew": 1.6}
"""A mark around another."""
OWN_BEST = "Own best, chosen by other seeds"


def draw_best(grid: Grid, axes: Axes, x: Scale, records: Records, metric: str) -> None:
    """Ring each line's best and tell the difference in room made below.

    The vertical axis is fitted before; `records` are those judged at their best values.
    """
    layout, label = grid.layout, grid.label
    axes.plot([], [], label=OWN_BEST, color="#000000", markersize=9, **RING)
    for line in collect(grid, records, metric):
        for at, values in line.points.items():
            # Rings of one place lie within each other.
            look = {"markersize": 9 + 3 * line.place, "color": line.style["color"], **RING}
            mean = np.mean([*values.values()])
            axes.plot(x.position(at), mean, clip_on=False, zorder=4, gid=tag(line), **look)
    contrasts = [getattr(one.predicate, "contrast", None) for one in grid.experiment.claims]
    contrast = layout.contrast or next(filter(None, contrasts), None)
    if not contrast or contrast.columns != {layout.lines}.difference(names_of(layout.panels)):
        return
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= high])
    axes.set_ylim(low - 0.22 * (high - low), high)
    found = [*paired_differences(records, metric, contrast).values()]
    if found:
        interval = student_interval(found)
        told = f"{'+' * (interval.estimate > 0)}{interval}, n = {len(found)}".replace("-", "−")
        told = f"{label(contrast.treated)} − {label(contrast.baseline)}, each at its best:\n{told}"
        axes.text(0.03, 0.03, told, transform=axes.transAxes, fontsize=7.5)


def draw_bands(axes: Axes, x: Scale, series: Sequence[Series]) -> None:
    """Draw means in their interval's band, trials thin, single places as points."""
    # A line or band of one place would not be seen.
    draw_points(axes, x, [line for line in series if len(line.points) == 1])
    for line in series:
        if len(line.points) == 1:
            continue
        at = sorted(line.points, key=x.values.index)
        places = [x.position(value) for value in at]
        means, low, high = _ends(_intervals(line, at))
        colour = line.style["color"]
        by_seed = nested(
            (seed, place, value)
            for place, one in zip(places, at, strict=True)
            for seed, value in line.points[one].items()
        )
        thin: Mapping[str, Any] = {"color": colour, "linewidth": 0.5, "alpha": 0.35, "zorder": 2}
        for seed, own in by_seed.items():
            axes.plot([*own], [*own.values()], gid=tag(line, [f"seed {seed}"]), **thin)
        about: Mapping[str, Any] = {"color": colour, "gid": tag(line)}
        axes.fill_between(places, low, high, alpha=0.22, linewidth=0, zorder=2.5, **about)
        thick = {"linestyle": line.style["linestyle"], "linewidth": 1.5, "zorder": 3}
        axes.plot(places, means, label=line.label or None, **thick, **about)


def _points(
    axes: Axes, x: Scale, line: Series, shift: float, aside: float, bars: float = 0.0
) -> None:
    """Draw a line moved by `shift` steps of the axis, its trials `aside`, its bars some points."""
    at = sorted(line.points, key=x.values.index)
    intervals = _intervals(line, at)
    means, low, high = _ends(intervals)
    places = [x.position(value, shift) for value in at]
    names = [x.label.condition(x.column, value) for value in at]
    said = [
        f"{name}: {one.shown} {one.bounds}, n = {len(line.points[value])}"
        for name, one, value in zip(names, intervals, at, strict=True)
    ]
    arrived = [n for n, value in enumerate(at) if value not in line.never]
    never = [n for n, value in enumerate(at) if value in line.never]
    drawn = axes.errorbar(
        places,
        means,
        yerr=[means - low, high - means],
        label=line.label or None,
        markersize=4.2,
        markevery=arrived,
        zorder=3,
        **BARS,
        **{**line.style, **({} if x.numeric else {"linestyle": "none"})},
    )
    beside = offset_copy(axes.transData, axes.get_figure(root=True), bars, units="points")
    for part in drawn.get_children():
        part.set_gid(tag(line))
        if part is not drawn[0]:
            part.set_transform(beside)
    drawn[0].set_gid(tag(line, [said[n] for n in arrived]))
    if never:
        hollow = [(places[n], means[n], said[n]) for n in never]
        _marks(axes, line, hollow, marker="^", ms=5, mfc="white", zorder=3.5)
    raw = [
        (x.position(value, shift + aside), one, f"{name}, seed {seed}: {one:.4g}")
        for name, value in zip(names, at, strict=True)
        for seed, one in line.points[value].items()
    ]
    _marks(axes, line, raw, marker=".", ms=4, mew=0, alpha=0.5, zorder=2)


def _marks(
    axes: Axes, line: Series, marks: Sequence[tuple[float, float, str]], **look: Any
) -> None:
    """Draw unconnected marks of a line: where each is, and what the page says of it."""
    x, y, said = zip(*marks, strict=True)
    axes.plot(x, y, ls="none", color=line.style["color"], gid=tag(line, said), **look)


def _intervals(line: Series, at: Sequence[Any]) -> list[Interval]:
    found = [student_interval([*line.points[value].values()]) for value in at]
    return [
        LowerBound(**vars(one)) if value in line.never else one
        for one, value in zip(found, at, strict=True)
    ]


def _ends(intervals: Iterable[Interval]) -> Float64[np.ndarray, "3 values"]:
    """Return means and their bounds, the mean itself where there are none."""
    ends = [
        (one.estimate, one.low, one.high) if one.bounded else (one.estimate,) * 3
        for one in intervals
    ]
    return np.array(ends).reshape(-1, 3).T


RISING, DIVERGING = "viridis", "RdBu"
"""Colour maps: from little to much, and from negative to positive with white at 0."""

TRIFLE = 0.1
"""Share of the larger side up to which the smaller side of 0 has no colours of its own."""


Colours = tuple[Normalize, str]
"""What colour a number has: the numbers that have one, and the colour map."""

Means = Float64[np.ndarray, "rows columns"]
"""By row of the vertical axis and column of the horizontal one; NaN if there is none."""


def collect_cells(
    layout: FigureLayout, x: Scale, y: Scale, records: Records, metric: str
) -> tuple[Means, list[int]]:
    """Average a metric over each cell's seeds, and count these."""
    means = np.full((len(y.values), len(x.values)), np.nan)
    counts = []
    for value, points in points_of(layout, records, metric).items():
        for at, seeds in points.items():
            means[y.values.index(value), x.values.index(at)] = np.mean([*seeds.values()])
            counts.append(len(seeds))
    return means, counts


def colours(panels: Sequence[Means]) -> Colours:
    """Choose the colours of a figure.

    They go from the smallest to the largest mean that is drawn. Where means lie on both sides of 0,
    none of them a trifle beside the other, the colours diverge from 0, equally far on both sides.
    """
    drawn = np.concatenate([means.ravel() for means in panels])
    drawn = drawn[~np.isnan(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
    if min(-low, high) > TRIFLE * max(-low, high):
        reach = max(-low, high)
        return Normalize(-reach, reach), DIVERGING
    # One value alone has some colour, too.
    return Normalize(low, high if high > low else low + 1.0), RISING


def draw_cells(axes: Axes, x: Scale, y: Scale, means: Means, colour: Colours) -> None:
    """Draw a panel's cells, hatched where there is no value."""
    (norm, colour_map), cells = colour, np.ma.masked_invalid(means)
    axes.grid(visible=False)
    axes.patch.set(facecolor="#ffffff", edgecolor="#c4c4c4", hatch="//////", linewidth=0)
    if y.base:
        axes.set_yscale("log", base=y.base)
    axes.pcolormesh(x.edges(), y.edges(), cells, norm=norm, cmap=colour_map, linewidth=0)


Point = tuple[float, float, Any, Any]
"""Both numbers, line and seed of one trial, or row of its table."""


def collect_pairs(layout: FigureLayout, records: Records, metric: str) -> list[Point]:
    """Take both numbers from records that have them, sorted."""
    pairs = [
        (x, y, value_of(record, layout.lines), record["seed"])
        for record in records
        if (x := number(record, str(layout.x))) is not None
        and (y := number(record, metric)) is not None
    ]
    return sorted(pairs, key=lambda one: (sort_key(one[3]), sort_key(one[2]), *one[:2]))


DOTS = {"linestyle": "none", "markersize": 4.0, "markeredgewidth": 0.8, "alpha": 0.75, "zorder": 3}
"""How the points of a scatter plot differ from those of a line."""


def draw_scatter(grid: Grid, axes: Axes, records: Records, metric: str) -> None:
    """Draw every point, with the correlation as the title."""
    layout = grid.layout
    points, styles = collect_pairs(layout, records, metric), looks(layout.lines, grid.order)
    for value in grid.order:
        own = [(x, y) for x, y, line, _ in points if line == value]
        if own:
            name = grid.label.condition(layout.lines, value)
            axes.plot(*zip(*own, strict=True), label=name, **{**styles[value], **DOTS})
    if points:
        x, y, _, seeds = zip(*points, strict=True)
        number_of = f"{len(points):,} points of {counted(len({*seeds}), 'seed')}"
        told = f"ρ = {rank_correlation(x, y, seeds)}, {number_of}"
        axes.set_title(told, loc="right", fontsize=7.5, color="#555555")
    axes.grid(visible=True, axis="both")


def draw_factors(grid: Grid, axes: Axes, x: Scale, records: Records) -> list[int]:
    """Draw a line of factors per level with Student's t intervals.

    Marks are hollow where some trials never arrive. Returns how many pairs each is of.
    """
    layout, counts = grid.layout, []
    arms = sides(layout.contrast) if layout.contrast else []
    axes.axhline(1, color="#000000", linewidth=0.8)
    for place, metric in enumerate(layout.metrics):
        found = _factors(arms, str(layout.x), records, metric)
        shift = min(0.09, 0.4 / len(layout.metrics)) * (place - (len(layout.metrics) - 1) / 2)
        look = LINES[(place + 2) % len(LINES)]
        faces = ["white" if any(one.num_never or ()) else look["color"] for one in found.values()]
        means, low, high = _ends(one.interval.as_factor() for one in found.values())
        places = [x.position(at, shift) for at in found]
        axes.errorbar(
            places,
            means,
            yerr=[means - low, high - means],
            label=grid.label(metric),
            color=look["color"],
            linestyle=look["linestyle"] if x.numeric else "none",
            **BARS,
        )
        axes.scatter(places, means, 25, faces, edgecolors=look["color"], zorder=3)
        counts += [len(one.differences) for one in found.values()]
    axes.set_yscale("log", base=2)
    return counts


def _factors(
    arms: Sequence[Arm], column: str, records: Records, metric: str
) -> dict[Any, Compared]:
    level = float(metric.removeprefix(pace_column("")))
    found = {}
    for at in sorted({one[column] for one in records if column in one}, key=sort_key):
        here = [one for one in records if one.get(column) == at and metric in one]
        treated, baseline = (
            Side(str(where), [one for one in here if matches(one, where)], where)
            for _, where in arms
        )
        one, other = ({record["seed"] for record in side.records} for side in (treated, baseline))
        if len(one & other) >= MIN_PAIRS:
            (cell,) = compare_pace(treated, baseline, level).cells
            if not cell.nothing:
                found[at] = cell
    return found
