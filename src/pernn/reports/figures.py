"""Figures: an experiment's layout drawn from its records, the same bytes every time."""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pernn.errors import ConfigError
from pernn.experiments import Experiment

from .horizontal import Horizontal
from .labels import SEPARATOR, Labels, footer_items
from .statistics import (
    Record,
    bootstrap_interval,
    number,
    paired_differences,
    rank,
)
from .tables import clean

Format = Literal["svg", "pdf", "png"]
METADATA: dict[Format, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    "png": dict.fromkeys(("Software",)),
}
"""What matplotlib writes about itself and the day: left out, so that equal data are equal bytes."""

STYLE: dict[str, Any] = {
    "svg.hashsalt": "pernn",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.parse_math": False,
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 200.0,
}

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

DIFFERENCE = {"color": "#333333", "marker": "D", "linestyle": "-"}
"""A difference belongs to neither condition, so it has a look of its own."""

CHANCE = "Chance, 1 / K"


@dataclass(frozen=True)
class Series:
    """One line of one panel: horizontal value → the values of all seeds there."""

    style: Mapping[str, Any]
    label: str
    points: Mapping[Any, Sequence[float]]


def draw(experiment: Experiment, records: Sequence[Record]) -> Figure:
    """Draw panels × metrics; means with bootstrap intervals, every trial as a point, and n.

    Args:
        experiment: Its layout and labels say what is drawn and how it is called.
        records: Finished trials; none gives a figure that says so.

    Returns:
        The figure, not attached to any window system.

    Raises:
        ConfigError: If two trials compete for one point, or the layout cannot be drawn.
    """
    layout, label = experiment.figure, Labels(experiment.labels)
    with drawing():
        if not records:
            return _empty(experiment)
        panels = label.order(record.get(layout.panels) for record in records)
        metrics = (*layout.metrics, None) if layout.contrast else layout.metrics
        figure = Figure(
            figsize=(max(6.4, 2.9 * len(panels) + 0.6), 2.15 * len(metrics) + 1.5),
            layout="constrained",
        )
        grid = figure.subplots(len(metrics), len(panels), sharex="col", sharey="row", squeeze=False)
        for row, metric in enumerate(metrics):
            for column, panel in enumerate(panels):
                inside = [record for record in records if record.get(layout.panels) == panel]
                axes = grid[row, column]
                series = _series(experiment, inside, metric)
                _fill(axes, Horizontal(experiment, inside), series, metric)
                if row == 0:
                    axes.set_title(label(panel), loc="left", fontweight="bold")
                if row == len(metrics) - 1:
                    axes.set_xlabel(label(layout.x))
                if column == 0:
                    axes.set_ylabel(_quantity(experiment, metric))
        _frame(figure, experiment, list(grid[0]), records)
        return figure


def render(figure: Figure, form: Format) -> bytes:
    """Give a figure as a file's content; the same figure always gives the same bytes.

    Args:
        figure: From `draw`.
        form: `svg` and `pdf` for print, `png` (200 dots per inch) for the screen.
    """
    content = io.BytesIO()
    with drawing():
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()


def _series(experiment: Experiment, records: Sequence[Record], metric: str | None) -> list[Series]:
    """Collect the lines of a panel; without a metric, the paired differences of the first."""
    layout, label = experiment.figure, Labels(experiment.labels)
    if metric is None:
        return [_differences(experiment, records)]
    order = label.order(record.get(layout.lines) for record in records)
    if layout.contrast:
        first = [layout.contrast.baseline, layout.contrast.treated]
        order = first + [value for value in order if value not in first]
    points: dict[Any, dict[Any, list[float]]] = {value: {} for value in order}
    taken = set()
    for record in sorted(records, key=lambda record: rank(record["seed"])):
        line, at_x = record.get(layout.lines), record.get(layout.x)
        if (line, at_x, record["seed"]) in taken:
            raise ConfigError(
                f"two trials of seed {record['seed']} at {layout.lines} = {line}, "
                f"{layout.x} = {at_x}: the figure has one point for them"
            )
        taken.add((line, at_x, record["seed"]))
        value = number(record, metric)
        if value is not None:
            points[line].setdefault(at_x, []).append(value)
    # A line keeps its look in panels where another one is missing.
    looks = [LINES[place % len(LINES)] for place in range(len(order))]
    return [
        Series(look, label(value), points[value])
        for look, value in zip(looks, order, strict=True)
        if points[value]
    ]


def _differences(experiment: Experiment, records: Sequence[Record]) -> Series:
    layout = experiment.figure
    if layout.contrast is None or layout.contrast.column != layout.lines:
        raise ConfigError(f"a figure's contrast must be between its lines, {layout.lines}")
    points: dict[Any, list[float]] = {}
    found = paired_differences(records, layout.metrics[0], layout.contrast, [layout.x])
    for (_, at_x), value in found.items():
        points.setdefault(at_x, []).append(value)
    return Series(DIFFERENCE, "", points)


def _fill(axes: Axes, x: Horizontal, series: Sequence[Series], metric: str | None) -> None:
    for place, line in enumerate(series):
        shift = 0.16 * (place - (len(series) - 1) / 2)
        _line(axes, x, line, shift)
    counts = [len(values) for line in series for values in line.points.values()]
    if counts:
        low, high = min(counts), max(counts)
        text = f"n = {low}" if low == high else f"n = {low}–{high}"
    else:
        text = "n = 0"
    axes.set_title(text, loc="right", fontsize=7.5, color="#555555")
    if metric is None:
        axes.axhline(0, color="#000000", linewidth=0.8)
        axes.margins(y=0.12)
    elif metric.endswith("_accuracy"):
        axes.set_ylim(-0.03, 1.03)
    else:
        values = [value for line in series for some in line.points.values() for value in some]
        if values and min(values) >= 0:
            top = max(axes.get_ylim()[1], max(values) * 1.05) or 1.0
            axes.set_ylim(-0.03 * top, top)
    if (metric, x.column) == ("token_accuracy", "task.vocab_size") and x.values:
        axes.plot(
            [x.position(value) for value in x.values],
            [1 / value for value in x.values],
            color="#777777",
            linewidth=0.9,
            linestyle=(0, (1, 1.5)),
            label=CHANCE,
            zorder=1,
        )
    x.fit(axes)


def _line(axes: Axes, x: Horizontal, line: Series, shift: float) -> None:
    at = sorted(line.points, key=x.values.index)
    intervals = [bootstrap_interval(line.points[value]) for value in at]
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
        **line.style,
    )
    raw = [(x.position(value, shift + 0.1), one) for value in at for one in line.points[value]]
    axes.plot(
        [place for place, _ in raw],
        [one for _, one in raw],
        linestyle="none",
        marker=".",
        markersize=5,
        markeredgewidth=0,
        color=line.style["color"],
        alpha=0.5,
        zorder=2,
    )


def _quantity(experiment: Experiment, metric: str | None) -> str:
    layout, label = experiment.figure, Labels(experiment.labels)
    if metric is not None:
        return textwrap.fill(label(metric), 24)
    contrast = layout.contrast
    sides = f"{label(contrast.treated)} − {label(contrast.baseline)}" if contrast else ""
    return f"{textwrap.fill(f'{label(layout.metrics[0])}:', 24)}\n{textwrap.fill(sides, 28)}"


def _frame(
    figure: Figure, experiment: Experiment, top: Sequence[Axes], records: Sequence[Record]
) -> None:
    entries: dict[str, Any] = {}
    for axes in top:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if CHANCE in entries:
        entries[CHANCE] = entries.pop(CHANCE)  # the measured lines come first
    width, height = figure.get_size_inches() * 72
    title = _balanced(clean(experiment.question), int(width / 6.2))
    # The layout keeps room for the title only, so two empty lines of it are the legend's.
    figure.suptitle("\n".join([*title, "", ""]), fontsize=11, linespacing=1.2)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper center",
        bbox_to_anchor=(0.5, 1 - (4 + 15.5 * len(title)) / height),
        ncols=len(entries),
    )
    # Lines break between items only: textwrap lets no-break spaces be.
    items = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in footer_items(experiment, records)]
    note = textwrap.wrap(SEPARATOR.join(items), int(width / 4.2))
    figure.supxlabel(
        "\n".join(line.removesuffix(SEPARATOR.rstrip()) for line in note),
        fontsize=7,
        color="#555555",
        x=0.01,
        ha="left",
    )
    # Settled here once: a layout made anew for each file's resolution would differ by rounding.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _balanced(text: str, width: int) -> list[str]:
    """Break a text into as few lines as fit, of about equal length."""
    fewest = len(textwrap.wrap(text, width))
    narrow = next((w for w in range(8, width) if len(textwrap.wrap(text, w)) <= fewest), width)
    return textwrap.wrap(text, narrow) or [""]


def _empty(experiment: Experiment) -> Figure:
    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    figure.suptitle("\n".join(_balanced(clean(experiment.question), 70)), fontsize=11)
    figure.text(0.5, 0.45, "no finished trials yet", ha="center", color="#555555")
    return figure


@contextmanager
def drawing() -> Iterator[None]:
    """Draw from matplotlib's own defaults and this style, whatever the user's settings are."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
