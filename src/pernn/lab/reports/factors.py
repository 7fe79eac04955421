"""Figures of factors: how many times as many updates the baseline took to a level."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from pernn.errors import ConfigError
from pernn.lab.experiments import Contrast, Experiment, pace_column

from .labels import Labels
from .pace import as_factor
from .pairs import MIN_PAIRS, Side
from .records import Record, matches, sides, sort_key
from .scales import Scale
from .series import LINES
from .sooner import Sooner, compare_pace


def draw_factors(
    axes: Axes, experiment: Experiment, x: Scale, records: Sequence[Record]
) -> list[int]:
    """Draw a line of factors per level with Student's t intervals; hollow where some never arrive.

    Args:
        axes: Of the panel.
        experiment: Its layout's metrics are the levels.
        x: The horizontal axis.
        records: Those of the panel.

    Returns:
        How many pairs are behind each point.
    """
    layout, label, counts = experiment.figure, Labels(experiment.labels), []
    axes.axhline(1, color="#000000", linewidth=0.8)
    for place, metric in enumerate(layout.metrics):
        found = _factors(layout.contrast, str(layout.x), records, metric)
        shift = min(0.09, 0.4 / len(layout.metrics)) * (place - (len(layout.metrics) - 1) / 2)
        look = LINES[(place + 1) % len(LINES)]
        factors = {at: as_factor(one.interval) for at, one in found.items()}
        axes.errorbar(
            [x.position(at, shift) for at in factors],
            [one.estimate for one in factors.values()],
            yerr=[
                [one.estimate - one.low for one in factors.values()],
                [one.high - one.estimate for one in factors.values()],
            ],
            label=label(metric),
            color=look["color"],
            linestyle=look["linestyle"] if x.numeric else "none",
            linewidth=1.3,
            elinewidth=1.1,
            capsize=2.2,
        )
        for at, one in found.items():
            axes.plot(
                [x.position(at, shift)],
                [factors[at].estimate],
                marker=_marker(one),
                markersize=5,
                color=look["color"],
                markerfacecolor="white" if any(one.num_never) else look["color"],
                zorder=3,
            )
        counts += [len(one.differences) for one in found.values()]
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return counts


def _marker(one: Sooner) -> str:
    """Return a circle, or where to the factor would move if all trials went on."""
    return {"≥": "^", "≤": "v"}.get(one.factor[0], "D" if any(one.num_never) else "o")


def _factors(
    contrast: Contrast | None, column: str, records: Sequence[Record], metric: str
) -> dict[Any, Sooner]:
    level = metric.removeprefix(pace_column(""))
    if contrast is None or level == metric:
        raise ConfigError(
            f"a figure of factors needs a contrast, and metrics such as {pace_column(0.9)}"
        )
    found = {}
    for at in sorted({one[column] for one in records if column in one}, key=sort_key):
        here = [one for one in records if one.get(column) == at and metric in one]
        treated, baseline = (
            Side(str(where), [one for one in here if matches(one, where)], where)
            for _, where in sides(contrast)
        )
        one, other = ({record["seed"] for record in side.records} for side in (treated, baseline))
        if len(one & other) >= MIN_PAIRS:
            (cell,) = compare_pace(treated, baseline, float(level)).cells
            if not cell.nothing:
                found[at] = cell
    return found
