"""Interactive charts of the study's page: Vega-Lite, whose scripts are bundled into the page.

They need the extra `report` (vl-convert-python, which brings the scripts). Without it the page has
its drawings and tables only.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pernn.experiments import Experiment

from .labels import Labels, names_of, value_of
from .series import line_order, looks
from .tables import Row


@cache
def chart_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; empty if the extra is not installed."""
    try:
        import vl_convert
    except ImportError:
        return ""
    # Its stub demands the snippet that the program itself does without.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    # Nothing in a script may look like its end.
    return bundle.replace("</script", "<\\/script")


def compiled(found: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with Vega's own specification, for which the page needs no compiler."""
    import vl_convert

    return {**found, "spec": vl_convert.vegalite_to_vega(found["spec"])}


def chart(experiment: Experiment, rows: Sequence[Row], anchor: str) -> dict[str, Any]:
    """Return where a chart stands and its Vega-Lite specification.

    Means with their intervals and every trial, a panel per condition as in the drawing. Values show
    under the pointer, and menus pick the metric and the line.

    Args:
        experiment: Its layout says what is an axis, a panel and a line.
        rows: From `summarise`, by the layout's columns.
        anchor: Of the chapter on the page.
    """
    layout, label = experiment.figure, Labels(experiment.labels)
    found = [dict(row.condition) for row in rows]
    order = line_order(experiment, found)
    styles = looks(layout.lines, order)
    named = {value: label.condition(layout.lines, value) for value in order}
    panels = [columns for columns in (layout.rows, layout.panels) if columns]
    values = [
        {
            "panel": " · ".join(label.condition(c, value_of(about, c)) for c in panels),
            "line": named[value_of(about, layout.lines)],
            "x": about.get(layout.x),
            "metric": label(metric),
            "n": len(measured.values),
            **_numbers(measured),
        }
        for about, row in zip(found, rows, strict=True)
        for metric, measured in row.metrics.items()
        if about.get(layout.x) is not None
    ]
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
    y = {"type": "quantitative", "title": None, "scale": {"zero": False}}
    tooltip = [
        {"field": "line", "title": "Line"},
        {"field": "x", "title": label(layout.x)},
        *({"field": name, "format": ".4g"} for name in ("mean", "low", "high")),
        {"field": "n"},
    ]
    seeds = {
        "transform": [{"flatten": ["values", "seeds"], "as": ["value", "seed"]}],
        "mark": {"type": "point", "filled": True, "size": 10, "opacity": 0.5},
        "encoding": {
            "y": {**y, "field": "value"},
            "tooltip": [*tooltip[:2], {"field": "seed"}, {"field": "value", "format": ".4g"}],
        },
    }
    mean = {
        "mark": {"type": "line", "point": True} if numeric else {"type": "point", "filled": True},
        "encoding": {"y": {**y, "field": "mean"}, "tooltip": tooltip},
    }  # fmt: skip
    spread = {
        "mark": {"type": "rule"},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    spec = {
        "description": experiment.question,
        "data": {"values": values},
        "params": [{
            "name": "metric",
            "value": label(layout.metrics[0]) if layout.form != "scatter" else metrics[0],
            "bind": {"input": "select", "options": metrics, "name": "Metric "},
        }, {
            "name": "line",
            "value": "all",
            "bind": {"input": "select", "options": ["all", *lines], "name": "Lines "},
        }],
        "transform": [
            {"filter": "datum.metric === metric && (line === 'all' || datum.line === line)"}
        ],
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": None},
        "columns": 3,
        "spec": {
            "width": 260,
            "height": 190,
            "encoding": {"x": x, "color": colour},
            "layer": [spread, mean, seeds],
        },
        "resolve": {"scale": {"y": "shared"}},
        "config": {"axis": {"gridOpacity": 0.3, "labelOverlap": True}, "legend": {"orient": "top"}},
    }  # fmt: skip
    return {"place": f"{anchor}-chart", "spec": spec}


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
