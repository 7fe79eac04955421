"""An experiment's figure drawn from records, always the same bytes."""

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import Any, Literal

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from pernn.lab.experiments import Experiment
from pernn.lab.trials import unroll

from .forms import (
    Series,
    are_apart,
    collect,
    collect_cells,
    colours,
    differences,
    draw_bands,
    draw_best,
    draw_cells,
    draw_factors,
    draw_points,
    draw_scatter,
)
from .panels import (
    Grid,
    Scale,
    begins_far_away,
    fit_metric,
    is_flat,
    is_share,
    late_values,
    tick_log,
)
from .records import Records, chosen_best
from .texts import SEPARATOR, footer_items, shorten, sizes

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
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 200.0,
}

TAGGED = re.compile(r'^( *)<g id="line(-?\d+)([^"]*)">\n(.*?)^\1</g>', re.DOTALL | re.MULTILINE)
"""A line's part of an SVG: its indent, the line's place, what its marks show, and the rest."""

PLACES = re.compile(r'(?<= )(?:d|x|y)="[^"]*"')
"""Where an SVG has coordinates, in points: no screen or printer shows a hundredth of one."""

STRAIGHT = re.compile(r'\bd="((?:[ML] \S+ \S+ \n)+)(z?)\s*"')
POINT = re.compile(r"([ML]) (\S+) (\S+) \n")
"""A path of straight lines in an SVG, and each of its points."""

LINK = re.compile(r'(\bid="|href="#|url\(#)')
"""Where an SVG names one of its parts."""

THEME = {
    "#000000": "var(--ink)",
    "#333333": "var(--ink)",
    "#555555": "var(--soft)",
    "#777777": "var(--soft)",
    "#dddddd": "var(--line)",
    "#ffffff": "var(--paper)",
}
"""Colours of figures that follow the theme of a page."""

LONGEST = 300
"""Characters of a title."""

FRAME = "frame"
"""What a page says beside a figure, and not in it."""

CHANCE = "Chance, 1 / K"


def draw(experiment: Experiment, records: Records, scale: str = "") -> Figure:
    """Draw panels × metrics in the layout's form, with n.

    Without records it is a figure that says so. It is not attached to any window system.
    """
    layout = experiment.figure
    with drawing():
        if not records:
            return _empty(experiment, "no finished trials yet")
        found = unroll(records, layout.table)
        if not found:
            return _empty(experiment, f"no finished trial has a table {layout.table!r}")
        grid = Grid(experiment, found)
        DRAWN.get(layout.form, _draw_lines)(grid)
        grid.name()
        _frame(grid, footer_items(experiment, records, scale))
        return grid.figure


def render(figure: Figure, form: Format) -> bytes:
    """Return a figure as a file's content, always the same bytes."""
    content = io.BytesIO()
    with drawing():
        figure.savefig(content, format=form, metadata=METADATA[form])
    if form != "svg":
        return content.getvalue()
    text = TAGGED.sub(r"\1<g>\n\4\1</g>", content.getvalue().decode())
    return PLACES.sub(_rounded, text).encode()


def inline(figure: Figure, prefix: str) -> str:
    """Return a figure for a page, in its colours, with values.

    The page has the title and the footer as text.

    Each part of a line is of the class `line0`, `line1` …, its entry of the legend of `key0` …;
    marks have a `title`, which a browser shows under the pointer. `prefix` begins the names of its
    parts, which no other drawing of the page may share.
    """
    content = io.StringIO()
    said = [text for text in figure.texts if text.get_gid() == FRAME]
    for part in said:
        part.set_visible(False)
    with drawing(), matplotlib.rc_context({"svg.fonttype": "none"}):
        about: Any = {"metadata": METADATA["svg"], "transparent": True, "bbox_inches": "tight"}
        figure.savefig(content, format="svg", **about)
    for part in said:
        part.set_visible(True)
    text = re.sub(r"<style.*?</style>|<!--.*?-->", "", content.getvalue(), flags=re.DOTALL)
    # Within a page a tenth will do; the outlines of marks, below ten points, keep two decimals.
    text = PLACES.sub(lambda found: re.sub(r"(\d\d\.\d)\d+", r"\1", _rounded(found)), text)
    text = STRAIGHT.sub(_in_steps, text)
    text = re.sub(r'<g id="(key\d+)">', r'<g class="\1">', TAGGED.sub(_titled, text))
    text = re.sub(r"#[0-9a-f]{6}\b", lambda found: THEME.get(found[0], found[0]), text)
    # A class names what only the ids of the drawing's own parts did.
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    return LINK.sub(rf"\g<1>{prefix}-", re.sub(r"\n *", "\n", text[text.index("<svg") :]))


def _rounded(found: re.Match[str]) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", found[0])


def _in_steps(found: re.Match[str]) -> str:
    """Return a path by its steps, which pack to a fifth less than its places."""
    path, before = "", (0, 0)
    for letter, x, y in POINT.findall(found[1]):
        # In hundredths, so that no step is rounded again.
        here = round(100 * float(x)), round(100 * float(y))
        origin = (0, 0) if letter == "M" else before
        step = (f"{(one - from_) / 100:g}" for one, from_ in zip(here, origin, strict=True))
        path += f"{'M' if letter == 'M' else 'l'}{' '.join(step)}"
        before = here
    return f'd="{path}{found[2]}"'


def _titled(found: re.Match[str]) -> str:
    indent, place, said, inside = found.groups()
    titles = said.split("|")[1:]
    if len(titles) == inside.count("<use "):
        each = iter(titles)
        inside = re.sub(
            r"(<use [^>]*?)/>", lambda use: f"{use[1]}><title>{next(each)}</title></use>", inside
        )
    elif len(titles) == 1:
        inside = f"<title>{titles[0]}</title>{inside}"
    return f'{indent}<g class="line{place}">\n{inside}{indent}</g>'


def _draw_lines(grid: Grid) -> None:
    experiment, layout = grid.experiment, grid.layout
    shown: dict[Axes, list[Series]] = {}
    for row, axes, panel, records in grid.panels():
        if row.metric is None:
            series = differences(grid, records)
            axes.axhline(0, color="#000000", linewidth=0.8)
            axes.margins(y=0.12)
        else:
            series = collect(grid, records, row.metric)
        series = [line.without(experiment.choosing) for line in series]
        (draw_bands if layout.form == "bands" else draw_points)(axes, grid.across[panel], series)
        _count(axes, [len(values) for line in series for values in line.points.values()])
        shown[axes] = series
    _name_metrics(grid)
    _fit_rows(grid, shown)
    best = chosen_best(experiment.claims, layout.x, grid.found)
    for row, axes, panel, records in grid.panels():
        x = grid.across[panel]
        if row.metric == "token_accuracy":
            _draw_chance(axes, x)
        if best and row.metric is not None:
            judged = [one for one in records if one["run"] in best]
            draw_best(grid, axes, x, judged, row.metric)
    grid.fit()


def _fit_rows(grid: Grid, shown: Mapping[Axes, Sequence[Series]]) -> None:
    """Fit the vertical axes: one for a row, and one of its own where it would hide a difference.

    Blocks of rows are compared by eye, so shares have one axis in all of them.
    """
    layout = grid.layout
    late = late_values(grid.across.values(), layout)
    for row in grid.rows:
        shares = bool(row.metric and is_share(row.metric))
        rows = [one for one in grid.rows if one.metric == row.metric] if shares else [row]
        alike = [axes for one in rows for axes in one.axes]
        drawn, settled = _values(shown, alike), _values(shown, row.axes, late)
        if begins_far_away(drawn, settled) and not shares:
            margin = 0.12 * (max(settled) - min(settled))
            for axes in row.axes:
                axes.set_ylim(min(settled) - margin, max(settled) + margin)
                if row.metric and layout.y_base:
                    fit_metric(axes, row.metric, settled, layout.y_base)
                _say(axes, "beginning left out")
            continue
        # A difference's axis has 0 on it.
        zero = [0.0] if row.metric is None else []
        flat = [
            axes
            for axes in row.axes
            if not (shares and layout.rows)
            and is_flat([*_values(shown, [axes]), *zero], drawn)
            and are_apart(shown[axes], zero)
        ]
        together = [axes for axes in row.axes if axes not in flat]
        for group in filter(None, (together, *([axes] for axes in flat))):
            others = alike if group is together else group
            own = _values(shown, others)
            ends = [end for axes in group for end in axes.get_ylim()]
            # What is drawn beyond the trials are the bounds of their intervals.
            reach = [end for axes in others if axes.has_data() for end in axes.dataLim.intervaly]
            for axes in group:
                axes.set_ylim(min(ends), max(ends))
                if row.metric is not None:
                    fit_metric(axes, row.metric, own, layout.y_base, reach)
                if group is not together:
                    _say(axes, "own scale")
        for left, axes in zip([None, *row.axes], row.axes, strict=False):
            axes.tick_params(labelleft=left is None or axes in flat or left in flat)


def _values(
    shown: Mapping[Axes, Sequence[Series]], panels: Sequence[Axes], places: Set[Any] | None = None
) -> list[float]:
    """Return all values of some panels, or those of some horizontal places."""
    lines = (line for axes in panels for line in shown[axes])
    return [value for line in lines for value in line.values(places)]


def _draw_heat(grid: Grid) -> None:
    layout = grid.layout
    (metric,) = layout.metrics
    y = Scale(layout.lines, layout.y_base, grid.label, grid.found)
    panels = [
        (axes, x, *collect_cells(layout, x, y, records, metric))
        for _, axes, panel, records in grid.panels()
        for x in [grid.across[panel]]
    ]
    colour = colours([means for *_, means, _ in panels])
    for axes, x, means, counts in panels:
        draw_cells(axes, x, y, means, colour)
        _count(axes, counts)
    grid.fit()
    for row in grid.rows:
        y.tick(row.axes[0].yaxis)
        row.axes[0].set_ylabel(grid.label(layout.lines))
    for axes in grid.all_axes:
        axes.autoscale()  # to the cells' edges
    about: Any = {"label": grid.label(metric), "pad": 0.015, "aspect": 40}
    grid.figure.colorbar(ScalarMappable(*colour), ax=grid.all_axes, **about)


def _draw_scatters(grid: Grid) -> None:
    layout = grid.layout
    for row, axes, _, records in grid.panels():
        draw_scatter(grid, axes, records, str(row.metric))
        if layout.x_base:
            axes.set_xscale("log", base=layout.x_base)
        if layout.y_base:
            axes.set_yscale("log", base=layout.y_base)
    _name_metrics(grid)


def _draw_factors(grid: Grid) -> None:
    layout = grid.layout
    for _, axes, panel, records in grid.panels():
        _count(axes, draw_factors(grid, axes, grid.across[panel], records))
    for first in (row.axes[0] for row in grid.rows):
        # Panels of a row share the axis: factors that lie close need more numbers than powers of 2.
        tick_log(first.yaxis, 2)
        if layout.contrast:
            names = map(grid.label, (layout.contrast.baseline, layout.contrast.treated))
            first.set_ylabel(f"Updates (log scale),\n{' / '.join(names)}")
    grid.fit()


DRAWN = {"heat": _draw_heat, "scatter": _draw_scatters, "factors": _draw_factors}
"""What draws the forms that are not lines of means."""


def _count(axes: Axes, counts: Sequence[int]) -> None:
    axes.set_title(sizes(counts), loc="right", fontsize=7.5, color="#555555")


def _say(axes: Axes, said: str) -> None:
    """Put a remark above the number of seeds."""
    told = f"{said}\n{axes.get_title(loc='right')}"
    axes.set_title(told, loc="right", fontsize=7.5, color="#555555")


def _draw_chance(axes: Axes, x: Scale) -> None:
    """Draw what guessing would give, along vocabularies where it is in sight."""
    low, high = axes.get_ylim()
    if x.column == "task.vocab_size" and any(low <= 1 / value <= high for value in x.values):
        # A line of one place would not be seen.
        shifts = (0.0,) if len(x.values) > 1 else (-0.3, 0.3)
        axes.plot(
            [x.position(value, shift) for value in x.values for shift in shifts],
            [1 / value for value in x.values for _ in shifts],
            color="#777777",
            linewidth=0.9,
            linestyle=(0, (1, 1.5)),
            label=CHANCE,
            zorder=1,
        )


def _name_metrics(grid: Grid) -> None:
    """Name the vertical axis of each row, by its metric or its difference."""
    label, layout = grid.label, grid.layout
    for row in grid.rows:
        name = label(layout.metrics[0] if row.metric is None else row.metric)
        text = textwrap.fill(name if row.metric else f"{name}:", 24)
        if layout.contrast and row.metric is None:
            sides = map(label, (layout.contrast.treated, layout.contrast.baseline))
            text += f"\n{textwrap.fill(' − '.join(sides), 28)}"
        row.axes[0].set_ylabel(text)


def _frame(grid: Grid, footer: Sequence[str]) -> None:
    figure, entries = grid.figure, dict[str, Any]()
    for axes in grid.all_axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    width, height = figure.get_size_inches() * 72
    title = textwrap.wrap(shorten(grid.experiment.question, LONGEST), int(width / 6.2))
    names = [textwrap.fill(name, int(width / 5.0) - 12) for name in entries]
    num_columns, num_rows = _legend_size(names, width)
    # The layout keeps room for the title only, so empty lines of it are the legend's.
    figure.suptitle(
        "\n".join([*title, "", *[""] * num_rows]), fontsize=11, linespacing=1.2, gid=FRAME
    )
    if entries:
        legend = figure.legend(
            list(entries.values()),
            names,
            loc="upper center",
            bbox_to_anchor=(0.5, 1 - (4 + 15.5 * len(title)) / height),
            ncols=num_columns,
        )
        places = [_place_of(handle) for handle in entries.values()]
        for place, *parts in zip(places, legend.legend_handles, legend.get_texts(), strict=True):
            for part in filter(None, parts):
                part.set_gid(f"key{place}" if place else None)
    # Lines break between items only: textwrap lets no-break spaces be.
    items = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in footer]
    note = textwrap.wrap(SEPARATOR.join(items), int(width / 4.2))
    figure.supxlabel(
        "\n".join(line.strip(SEPARATOR) for line in note),
        fontsize=7,
        color="#555555",
        x=0.01,
        ha="left",
        gid=FRAME,
    )
    # Settled here once: a layout made anew for each file's resolution would differ by rounding.
    figure.draw_without_rendering()
    # Not "none": that leaves a placeholder, for which every file is drawn twice.
    figure.set_layout_engine(None)


def _legend_size(names: Sequence[str], width: float) -> tuple[int, int]:
    """Return the columns of a legend that fit, in few rows, and its lines of text."""
    for num_rows in range(1, len(names) + 1):
        num_columns = math.ceil(len(names) / num_rows)
        # As matplotlib fills them, one after the other.
        columns = [list(some) for some in np.array_split(np.array(names, object), num_columns)]
        lines = [[line for name in some for line in name.split("\n")] for some in columns]
        if num_columns == 1 or sum(5.0 * max(map(len, some)) + 48 for some in lines) <= width:
            return num_columns, max(map(len, lines))
    return 1, 0


def _place_of(handle: Any) -> str:
    """Return the place among the figure's lines that an artist's tag has; empty without one."""
    tag = (handle[0] if isinstance(handle, tuple) else handle).get_gid() or ""
    return tag.partition("|")[0].removeprefix("line")


def _empty(experiment: Experiment, why: str) -> Figure:
    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    figure.suptitle(textwrap.fill(shorten(experiment.question, LONGEST), 70), fontsize=11)
    figure.text(0.5, 0.45, why, ha="center", color="#555555")
    return figure


def drawing() -> AbstractContextManager[None]:
    """Draw in this style, whatever the user's settings."""
    return matplotlib.style.context(STYLE, after_reset=True)
