"""Interactive charts of the study's page: Vega-Lite, whose scripts are bundled into the page.

They need the extra `report` (vl-convert-python, which brings the scripts). Without it the page has
its drawings and tables only.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pernn.errors import MachineError, one_line
from pernn.lab.experiments import Experiment, FigureLayout, names_of

from .labels import Labels, value_of
from .series import line_order, looks
from .tables import Row

NUM_FILES = 32
"""Files that vl-convert may open; where it cannot, its Rust panics, and prints its stack."""

Made = TypeVar("Made")


@cache
def chart_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; empty if the extra is not installed.

    Raises:
        MachineError: If vl-convert cannot run here.
    """
    try:
        import vl_convert
    except ImportError:
        return ""
    bundle = _convert(vl_convert.javascript_bundle)
    # Nothing in a script may look like its end.
    return bundle.replace("</script", "<\\/script")


def compiled(found: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with Vega's own specification, for which the page needs no compiler.

    Raises:
        MachineError: If vl-convert cannot run here.
    """
    import vl_convert

    return {**found, "spec": _convert(vl_convert.vegalite_to_vega, found["spec"])}


def _convert(convert: Callable[..., Made], *given: Any) -> Made:
    """Call vl-convert if it has room; a panic, which is no `Exception`, becomes one of ours."""
    try:
        with ExitStack() as room:
            for _ in range(NUM_FILES):
                room.enter_context(Path(os.devnull).open())
    except OSError as error:
        raise MachineError(
            f"the charts need {NUM_FILES} more open files: raise the limit (ulimit -n), or remove "
            "vl-convert-python for a page without charts"
        ) from error
    try:
        return convert(*given)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise MachineError(one_line(f"vl-convert failed, no charts are made: {error}")) from None


def chart(experiment: Experiment, rows: Sequence[Row], anchor: str) -> dict[str, Any]:
    """Return where a chart stands and its Vega-Lite specification.

    Means with their intervals and every trial, a panel per condition as in the drawing. Values show
    under the pointer, a menu picks the metric, and a box for each line shows or hides it.

    Args:
        experiment: Its layout says what is an axis, a panel and a line.
        rows: From `summarise`, by the layout's columns.
        anchor: Of the chapter on the page.
    """
    layout, label = experiment.figure, Labels(experiment.labels)
    order = line_order(experiment, [dict(row.condition) for row in rows])
    styles = looks(layout.lines, order)
    named = {value: label.condition(layout.lines, value) for value in order}
    values = _values(layout, label, rows, named)
    metrics = list(dict.fromkeys(one["metric"] for one in values))
    numeric = all(isinstance(one["x"], int | float) for one in values)
    x: dict[str, Any] = {"field": "x", "title": label(layout.x), "type": "ordinal"}
    if numeric:
        log = {"type": "log", "base": layout.x_base} if layout.x_base else {"zero": False}
        x |= {"type": "quantitative", "scale": log}
    else:
        x |= {"axis": {"labelAngle": 0}, "sort": None}
    lines = [named[value] for value in order]
    colour = {
        "field": "line",
        "title": ", ".join(map(label, names_of(layout.lines))),
        "scale": {"domain": lines, "range": [styles[value]["color"] for value in order]},
    }
    first = label(layout.metrics[0]) if layout.form != "scatter" else metrics[0]
    spec = {
        "description": experiment.question,
        "data": {"values": values},
        "params": [
            {
                "name": "metric",
                "value": first,
                "bind": {"input": "select", "options": metrics, "name": "Metric "},
            },
            *(
                {"name": f"shown{at}", "value": True, "bind": {"input": "checkbox", "name": line}}
                for at, line in enumerate(lines)
            ),
        ],
        "transform": [
            {"filter": "datum.metric === metric"},
            *map(_hidden, range(len(lines)), lines),
        ],
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": None},
        "columns": 3,
        "spec": {
            "width": 260,
            "height": 190,
            "encoding": {"x": x, "color": colour},
            "layer": _layers(label(layout.x), numeric=numeric),
        },
        "resolve": {"scale": {"y": "shared"}},
        "config": {"axis": {"gridOpacity": 0.3, "labelOverlap": True}, "legend": {"orient": "top"}},
    }
    return {"place": f"{anchor}-chart", "spec": spec}


def _values(
    layout: FigureLayout, label: Labels, rows: Sequence[Row], named: Mapping[Any, str]
) -> list[dict[str, Any]]:
    """Return the data: a record per condition and metric."""
    panels = [columns for columns in (layout.rows, layout.panels) if columns]
    return [
        {
            "panel": " · ".join(label.condition(c, value_of(about, c)) for c in panels),
            "line": named[value_of(about, layout.lines)],
            "x": label(at_x) if isinstance(at_x, tuple) else at_x,
            "metric": label(metric),
            "n": len(measured.values),
            **_numbers(measured),
        }
        for row in rows
        for about in [dict(row.condition)]
        if (at_x := value_of(about, layout.x)) is not None
        for metric, measured in row.metrics.items()
    ]


def _hidden(at: int, line: str) -> dict[str, str]:
    """Return the filter that leaves a line out while its box is not ticked."""
    return {"filter": f"shown{at} || datum.line !== {json.dumps(line)}"}


def _layers(x: str, *, numeric: bool) -> list[dict[str, Any]]:
    """Return what is drawn: intervals, means, then every trial."""
    y = {"type": "quantitative", "title": None, "scale": {"zero": False}}
    tooltip = [
        {"field": "line", "title": "Line"},
        {"field": "x", "title": x},
        *({"field": name, "format": ".4g"} for name in ("mean", "low", "high")),
        {"field": "n"},
    ]
    spread = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    dot = {"type": "point", "filled": True}
    trial = [*tooltip[:2], {"field": "seed"}, {"field": "value", "format": ".4g"}]
    return [
        {"mark": {"type": "rule"}, "encoding": spread},
        {
            "mark": {"type": "line", "point": True} if numeric else dot,
            "encoding": {"y": {**y, "field": "mean"}, "tooltip": tooltip},
        },
        {
            "transform": [{"flatten": ["values", "seeds"], "as": ["value", "seed"]}],
            "mark": {**dot, "size": 10, "opacity": 0.5},
            "encoding": {"y": {**y, "field": "value"}, "tooltip": trial},
        },
    ]


def _numbers(measured: Any) -> dict[str, Any]:
    """Return mean, interval (Student's t) and trials, rounded to what a tooltip shows."""
    interval = measured.student
    ends = (interval.low, interval.high) if interval.bounded else (interval.estimate,) * 2
    low, high = (float(f"{end:.6g}") for end in ends)
    return {
        "mean": float(f"{interval.estimate:.6g}"),
        "low": low,
        "high": high,
        "values": [float(f"{value:.6g}") for value in measured.values.values()],
        "seeds": [str(seed) for seed in measured.values],
    }
