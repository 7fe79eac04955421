"""The lines of a panel, collected from its records."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.experiments import Columns, Experiment, FigureLayout, names_of

from .records import Record, number, paired_differences, placed, sort_key
from .texts import Labels, value_of

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

DIFFERENCE = {"color": "#333333", "marker": "D", "linestyle": "-"}
"""A difference belongs to neither condition, so it has a look of its own."""


@dataclass(frozen=True)
class Series:
    """One line of one panel.

    Attributes:
        style: How matplotlib is to draw it.
        label: Its name in the legend; empty if it is not listed.
        points: Horizontal value → seed → value.
        place: Among the lines of the figure, which the page shows and hides by it.
    """

    style: Mapping[str, Any]
    label: str
    points: Mapping[Any, Mapping[Any, float]]
    place: int = 0

    @property
    def values(self) -> list[float]:
        """All values."""
        return [value for found in self.points.values() for value in found.values()]

    def values_at(self, places: Container[Any]) -> list[float]:
        """Return the values of some horizontal places only."""
        return [
            value for x, found in self.points.items() if x in places for value in found.values()
        ]


def line_order(experiment: Experiment, records: Sequence[Record]) -> list[Any]:
    """Order the lines' conditions, the contrast's baseline and treatment first."""
    layout = experiment.figure
    order = Labels(experiment.labels).order(value_of(record, layout.lines) for record in records)
    if layout.contrast and layout.contrast.column == layout.lines:
        first: list[Any] = [layout.contrast.baseline, layout.contrast.treated]
        if any(sort_key(value)[0] for value in first):  # numbers stay in the order of their size
            order = first + [value for value in order if value not in first]
        else:
            order = sorted({*order, *first}, key=sort_key)
    return order


def looks(column: Columns, order: Sequence[Any]) -> dict[Any, Mapping[str, Any]]:
    """Map conditions to colour, marker and dash.

    Encodings have theirs by name, others in turn.

    Args:
        column: What tells the conditions apart.
        order: All conditions of the figure.
    """
    if column == "condition" and set(order) <= CONDITIONS.keys():
        return {value: CONDITIONS[value] for value in order}
    if column != "encoding.kind":
        return {value: LINES[place % len(LINES)] for place, value in enumerate(order)}
    names = [*ENCODING_KINDS, *(value for value in order if value not in ENCODING_KINDS)]
    return {value: LINES[names.index(value) % len(LINES)] for value in order}


def points_of(
    layout: FigureLayout, records: Sequence[Record], metric: str
) -> dict[Any, dict[Any, dict[Any, float]]]:
    """Sort measured values of a metric by line, horizontal value and seed.

    Raises:
        ConfigError: If two records compete for one place.
    """
    having = [one for one in records if number(one, metric) is not None]
    having.sort(key=lambda one: sort_key(one["seed"]))
    found: dict[Any, dict[Any, dict[Any, float]]] = {}
    for one in placed(having, ("seed", *names_of(layout.lines), *names_of(layout.x))).values():
        points = found.setdefault(value_of(one, layout.lines), {})
        points.setdefault(value_of(one, layout.x), {})[one["seed"]] = float(one[metric])
    return found


def collect(
    experiment: Experiment,
    records: Sequence[Record],
    metric: str,
    order: Sequence[Any],
) -> list[Series]:
    """Collect the lines of a panel.

    Args:
        experiment: Its layout says what a line is.
        records: Those of the panel.
        metric: What is shown.
        order: All lines of the figure: a line keeps its look in panels where another is missing.

    Returns:
        The lines that have anything to show.

    Raises:
        ConfigError: If two records compete for one point.
    """
    layout, label = experiment.figure, Labels(experiment.labels)
    points, styles = points_of(layout, records, metric), looks(layout.lines, order)
    return [
        Series(styles[value], label.condition(layout.lines, value), points[value], place)
        for place, value in enumerate(order)
        if value in points
    ]


def differences(
    experiment: Experiment, records: Sequence[Record], order: Sequence[Any]
) -> list[Series]:
    """Collect a panel's paired differences, a line per treated condition.

    Args:
        experiment: Its layout has the contrast.
        records: Those of the panel.
        order: All lines of the figure.

    Raises:
        ConfigError: If they are not between the figure's lines, or two records compete.
    """
    layout = experiment.figure
    contrast, names = layout.contrast, names_of(layout.lines)
    if contrast is None or contrast.column != names[0]:
        raise ConfigError(f"a figure's contrast must be between its lines, {layout.lines}")
    label, alone = Labels(experiment.labels), layout.form == "difference"
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
        points: dict[Any, dict[Any, float]] = {}
        found = paired_differences(records, layout.metrics[0], one, names_of(layout.x))
        for (seed, at_x), value in found.items():
            points.setdefault(at_x, {})[seed] = value
        name = label.condition(columns, other) if alone and len(treated) > 1 else ""
        look = styles[other if alone else line] if len(treated) > 1 else DIFFERENCE
        series.append(Series(look, name, points, place if alone else -1))
    return [line for line in series if line.points]
