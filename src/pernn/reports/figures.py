"""Figures: an experiment's layout drawn from its records, the same bytes every time."""

import io
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pernn.experiments import Experiment

from .forms import draw_bands, draw_points, draw_violins
from .horizontal import Horizontal
from .labels import SEPARATOR, Labels, footer_items, value_of
from .series import Series, collect, differences, line_order
from .statistics import Record
from .tables import clean
from .unrolled import unroll

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

FORMS: dict[str, Callable[[Axes, Horizontal, Sequence[Series]], None]] = {
    "points": draw_points,
    "bands": draw_bands,
    "violins": draw_violins,
}

SHARES = ("solved", "stuck")
"""Metrics from 0 to 1 whose names do not end in `_accuracy` or `_share`."""

CHANCE = "Chance, 1 / K"


@dataclass(frozen=True)
class Row:
    """One row of panels: a metric, or the differences of the first, of one block."""

    block: Any
    metric: str | None


def draw(experiment: Experiment, records: Sequence[Record]) -> Figure:
    """Draw panels × metrics in the layout's form, with n.

    Args:
        experiment: Its layout and labels say what is drawn and how it is called.
        records: Finished trials; none gives a figure that says so.

    Returns:
        The figure, not attached to any window system.

    Raises:
        ConfigError: If two trials compete for one point, or the layout cannot be drawn.
        CorruptError: If the layout's table is none.
    """
    layout, label = experiment.figure, Labels(experiment.labels)
    with drawing():
        if not records:
            return _empty(experiment, "no finished trials yet")
        found = unroll(records, layout.table)
        if not found:
            return _empty(experiment, f"no finished trial has a table {layout.table!r}")
        panels = label.order(value_of(record, layout.panels) for record in found)
        metrics = (*layout.metrics, None) if layout.contrast else layout.metrics
        blocks = label.order(value_of(record, layout.rows) for record in found)
        rows = [Row(block, metric) for block in blocks for metric in metrics]
        figure = Figure(
            figsize=(max(6.4, 2.9 * len(panels) + 0.6), 2.15 * len(rows) + 1.5),
            layout="constrained",
        )
        grid = figure.subplots(len(rows), len(panels), sharex="col", sharey="row", squeeze=False)
        columns = [
            [record for record in found if value_of(record, layout.panels) == panel]
            for panel in panels
        ]
        across = [Horizontal(experiment, column) for column in columns]
        order = line_order(experiment, found)
        for row, axes_of_row in zip(rows, grid, strict=True):
            inside = [
                [one for one in column if value_of(one, layout.rows) == row.block]
                for column in columns
            ]
            _draw_row(experiment, row, list(axes_of_row), across, inside, order)
        for axes, panel in zip(grid[0], panels, strict=True):
            title = label.condition(layout.panels, panel, separator="\n")
            axes.set_title(_wrapped(title, 32), loc="left", fontweight="bold")
        for axes, x in zip(grid[-1], across, strict=True):
            x.fit(axes)
            axes.set_xlabel(label(layout.x))
        _frame(figure, experiment, list(grid.flat), records)
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


def _draw_row(
    experiment: Experiment,
    row: Row,
    grid: Sequence[Axes],
    across: Sequence[Horizontal],
    inside: Sequence[Sequence[Record]],
    order: Sequence[Any],
) -> None:
    layout = experiment.figure
    violins = layout.form == "violins" and row.metric == layout.metrics[0]
    form = "points" if layout.form == "violins" and not violins else layout.form
    drawn = []
    for axes, x, records in zip(grid, across, inside, strict=True):
        if row.metric is None:
            series = differences(experiment, records)
        else:
            series = collect(experiment, records, row.metric, order, distributions=violins)
        FORMS[form](axes, x, series)
        axes.set_title(_count(series), loc="right", fontsize=7.5, color="#555555")
        if (row.metric, x.column) == ("token_accuracy", "task.vocab_size"):
            _draw_chance(axes, x)
        drawn += [value for line in series for value in line.values]
    _limit(grid, row.metric, drawn, free=violins)
    grid[0].set_ylabel(_quantity(experiment, row.metric))
    if layout.rows:
        name = Labels(experiment.labels).condition(layout.rows, row.block, separator="\n")
        grid[0].annotate(
            _wrapped(name, 26),
            xy=(0, 0.5),
            xycoords=grid[0].yaxis.label,
            xytext=(-3, 0),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="center",
            fontsize=9.5,
            fontweight="bold",
        )


def _limit(
    grid: Sequence[Axes], metric: str | None, values: Sequence[float], *, free: bool
) -> None:
    """Set the vertical axis that a row of panels shares."""
    if metric is None:
        for axes in grid:
            axes.axhline(0, color="#000000", linewidth=0.8)
            axes.margins(y=0.12)
    elif not free and (metric.endswith(("_accuracy", "_share")) or metric in SHARES):
        grid[0].set_ylim(-0.03, 1.03)
    elif not free and values and min(values) >= 0:
        top = max(grid[0].get_ylim()[1], max(values) * 1.05) or 1.0
        grid[0].set_ylim(-0.03 * top, top)


def _count(series: Sequence[Series]) -> str:
    counts = [len(values) for line in series for values in line.points.values()]
    low, high = min(counts, default=0), max(counts, default=0)
    return f"n = {low}" if low == high else f"n = {low}–{high}"


def _draw_chance(axes: Axes, x: Horizontal) -> None:
    axes.plot(
        [x.position(value) for value in x.values],
        [1 / value for value in x.values],
        color="#777777",
        linewidth=0.9,
        linestyle=(0, (1, 1.5)),
        label=CHANCE,
        zorder=1,
    )


def _quantity(experiment: Experiment, metric: str | None) -> str:
    layout, label = experiment.figure, Labels(experiment.labels)
    if metric is not None:
        return textwrap.fill(label(metric), 24)
    contrast = layout.contrast
    sides = f"{label(contrast.treated)} − {label(contrast.baseline)}" if contrast else ""
    return f"{textwrap.fill(f'{label(layout.metrics[0])}:', 24)}\n{textwrap.fill(sides, 28)}"


def _frame(
    figure: Figure, experiment: Experiment, grid: Sequence[Axes], records: Sequence[Record]
) -> None:
    entries: dict[str, Any] = {}
    for axes in grid:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if CHANCE in entries:
        entries[CHANCE] = entries.pop(CHANCE)  # the measured lines come first
    width, height = figure.get_size_inches() * 72
    title = _balanced(clean(experiment.question), int(width / 6.2))
    num_rows = math.ceil(sum(5.0 * len(name) + 48 for name in entries) / width) if entries else 1
    # The layout keeps room for the title only, so empty lines of it are the legend's.
    figure.suptitle("\n".join([*title, "", *[""] * num_rows]), fontsize=11, linespacing=1.2)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="upper center",
        bbox_to_anchor=(0.5, 1 - (4 + 15.5 * len(title)) / height),
        ncols=max(1, math.ceil(len(entries) / num_rows)),
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


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


def _empty(experiment: Experiment, why: str) -> Figure:
    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    figure.suptitle("\n".join(_balanced(clean(experiment.question), 70)), fontsize=11)
    figure.text(0.5, 0.45, why, ha="center", color="#555555")
    return figure


@contextmanager
def drawing() -> Iterator[None]:
    """Draw from matplotlib's own defaults and this style, whatever the user's settings are."""
    with matplotlib.style.context(STYLE, after_reset=True):
        yield
