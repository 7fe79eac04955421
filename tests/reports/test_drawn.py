"""What every form of figure draws is what it drew when it was looked at.

After a wanted change: `PYTHONPATH=tests:docs python tests/reports/test_drawn.py`; then look at the
diff.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from pernn.lab.experiments import Contrast, FigureLayout
from pernn.lab.reports import draw
from reports.test_pace import pairs
from reports.trials import (
    CONDITIONS,
    ENCODING,
    POINTS,
    by_condition,
    by_length,
    columns,
    experiment,
    stability,
    trials,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "figures.json"
FEW, TWO = (111, 222, 333), (111, 222)
Records = list[dict[str, Any]]
wide = partial(trials, vocab_sizes=(4, 1024), seeds=FEW)
small = partial(trials, vocab_sizes=(4,), seeds=FEW)

BY_LENGTH = ("length", "core.kind", "encoding.kind", ("token_accuracy",))
BANDS = FigureLayout(*BY_LENGTH, contrast=ENCODING, table="by_length", form="bands")
DIFFERENCE = FigureLayout(
    "position", "core.kind", ("disturbants", "encoding.kind"), ("token_accuracy",),
    rows=("target",), contrast=Contrast("disturbants", "rare", "frequent"), table="by_position",
    form="difference",
)  # fmt: skip
GRID = FigureLayout(
    "position", ("target", "disturbants"), "encoding.kind", ("token_accuracy", "num_sequences"),
    rows="core.kind", table="by_position", form="bands",
)  # fmt: skip
HEAT = FigureLayout(
    "update", "condition", "position", ("similarity",),
    rows=("core.kind", "encoding.kind"), table="stability_map", form="heat",
)  # fmt: skip
SCATTER = FigureLayout(
    "similarity", "condition", "encoding.kind", ("target_accuracy",),
    rows="core.kind", table="stability_map", form="scatter",
)  # fmt: skip


def scored(about, gru, lstm):
    values = {"gru": gru, "lstm": lstm}
    records = [{**one, "solved_or_stuck": values[one["core.kind"]]} for one in wide()]
    return replace(about, contrast=None, metrics=("solved_or_stuck",)), records


def near_one():
    """Trials of which one core's are so near 1 that they would be a line."""
    records = wide()
    for one in records:
        if one["core.kind"] == "lstm":
            one["token_accuracy"] = 1 - (1 - one["token_accuracy"]) / 100
    return records


def lengthened():
    """Trials that were trained for longer the larger the vocabulary is."""
    sizes = (4, 8, 16, 32, 64)
    found = trials(("gru",), sizes, FEW[:1])
    return [r | {"training.iterations": 10 * sizes.index(r["task.vocab_size"])} for r in found]


def fed_back():
    table = {"feedback": ["own output", "truth"], "token_accuracy": [0.2, 0.9]}
    return [{**one, "tables": {"by_feedback": table}} for one in small()]


def falling():
    """Trials whose perplexity falls from far above what is shown."""
    records, updates = trials(("gru",), (4,), FEW), list(range(10, 210, 10))
    for one in records:
        perplexity = [30 + (one["encoding.kind"] == "none") + 900 / u for u in updates]
        one["tables"] = {"t": {"update": updates, "perplexity": perplexity}}
    return records


def of_gru(records):
    return [one for one in records if one["core.kind"] == "gru"]


def keep_rows(record, wanted):
    table = record["tables"]["stability_map"]
    rows = zip(*table.values(), strict=True)
    kept = [row for row in rows if wanted(dict(zip(table, row, strict=True)))]
    record["tables"]["stability_map"] = columns(table, kept)


def with_holes():
    """Of two trials each, one without a value, the others without the last update."""
    records = of_gru(stability(FEW[:2]))
    records[0]["tables"]["stability_map"]["similarity"][0] = None
    for record in records[1:]:
        keep_rows(record, lambda row: row["update"] < 40)
    return records


def paced(*factors):
    return [one | {"core.kind": "gru"} for one in pairs(*factors)]


FACTORS = replace(POINTS, metrics=("updates_to_0.8", "updates_to_0.9"), x_base=None, form="factors")


def of_signs():
    """Scores above 0 in one panel, and below it in the other."""
    records = wide()
    for one in records:
        one["score"] = 1.0 if one["core.kind"] == "gru" else -1.0 * one["task.vocab_size"]
    return replace(POINTS, contrast=None, metrics=("score",)), records


def arms():
    """Trials of conditions of two columns; one of them has a name of its own."""
    cells = product(trials(("gru",), (4,)), range(6))
    return [{**one, "encoding.masked": f"phase {number}"} for one, number in cells]


def beyond(form, metric, base, *values):
    """Two seeds, between which an interval reaches far beyond both."""
    about = {"core.kind": "gru", "encoding.kind": "none"}
    cells = product((8, 16), enumerate(values))
    found = [about | {"task.length": n, "seed": seed, metric: one} for n, (seed, one) in cells]
    return replace(SHORT, metrics=(metric,), y_base=base, form=form), found


def of_two_tasks():
    both = [{**one, "task.kind": "reverse_ordering"} for one in small()]
    more = {"task.kind": "sorting", "ascending_pair_share": 0.999}
    return both + [{**one, **more, "run": f"s{place}"} for place, one in enumerate(small())]


def at_first():
    records = of_gru(stability(FEW[:2]))
    for record in records:
        keep_rows(record, lambda row: (row["condition"], row["position"]) == (CONDITIONS[0], 1))
    return records


TWO_TASKS = replace(POINTS, rows="task.kind", metrics=("token_accuracy", "ascending_pair_share"))
BY_UPDATE = replace(POINTS, x="update", x_base=None)
MAPPED = ("perplexity", "target_accuracy")
LOGARITHMIC = replace(BY_UPDATE, metrics=MAPPED, table="stability_map", y_base=10)
SHORT = FigureLayout("task.length", "core.kind", "encoding.kind", ("loss",), form="bands")
SIZES = [*trials(("gru",), (8,), TWO), *trials(("lstm",), (1024,), TWO)]
ARMS = FigureLayout(("encoding.kind", "encoding.masked"), "core.kind", "task.length", ("loss",))
ACCURACY = replace(POINTS, metrics=("token_accuracy",), contrast=None)
SAME = [one | {"token_accuracy": 0.9999 + one["seed"] / 10**8} for one in small()]
ENDS = [("token_accuracy", None, 0.56, 0.58), ("token_accuracy", None, 0.2, 0.4)]
ENDS += [("loss", None, 0.1, 0.3), ("loss", 2, 10.0, 11.0), ("loss", 2, 1.0, 3.0)]
ENDS = [(form, *one) for form in ("points", "bands") for one in ENDS]
WORDS = FigureLayout("encoding.kind", "core.kind", "task.length", ("loss",))
FED_BACK = FigureLayout(
    "task.vocab_size", ("core.kind", "encoding.kind"), "feedback", ("token_accuracy",),
    contrast=Contrast("feedback", "truth", "own output"), table="by_feedback",
)  # fmt: skip
LENGTHENED = FigureLayout(
    "training.iterations", "task.vocab_size", "encoding.kind", ("token_accuracy",), form="bands"
)
FALLING = replace(BY_UPDATE, metrics=("perplexity",), table="t", form="bands")
ARRIVING = replace(FACTORS, form="points", contrast=None, y_base=2)
SHARES = replace(POINTS, panels="encoding.kind", rows="core.kind")
BY_CORE = replace(POINTS, x="core.kind", panels="task.vocab_size", x_base=None)
THIRD = [{**one, "encoding.kind": "random"} for one in small()[::2]]
WITHOUT = [r for r in small() if (r["core.kind"], r["encoding.kind"]) != ("lstm", "none")]
POWERS = tuple(2**power for power in range(1, 15))
CASES: dict[str, Callable[[], tuple[FigureLayout, Records]]] = {
    "points": lambda: (POINTS, wide()),
    "points, one trial": lambda: (POINTS, wide()[:1]),
    "points, some trials missing": lambda: (POINTS, wide()[:-2]),
    "points, a line missing": lambda: (POINTS, WITHOUT),
    "points, three conditions": lambda: (POINTS, [*small(), *THIRD]),
    "points, many ticks": lambda: (POINTS, trials(("gru",), POWERS, FEW[:1])),
    "points, one core near 1": lambda: (POINTS, near_one()),
    "points along lines by words": lambda: (BY_CORE, wide()),
    "points along words": lambda: (WORDS, small()),
    "points along words, a line each": lambda: (replace(WORDS, lines="encoding.kind"), small()),
    "points, conditions of one trial": lambda: (FED_BACK, fed_back()),
    "points of a share, far apart": lambda: scored(POINTS, 0.5, 0.95),
    "points of a share, near each other": lambda: scored(POINTS, 0.85, 0.95),
    "points of a share, one value": lambda: scored(POINTS, 0.0, 0.0),
    "points, signs differ in a row": of_signs,
    "points, a metric of one block": lambda: (TWO_TASKS, of_two_tasks()),
    "points of a share, in blocks": lambda: scored(SHARES, 0.85, 0.95),
    "points along words of two columns": lambda: (ARMS, arms()),
    "points, a chance near": lambda: (ACCURACY, trials(("gru",), (32,), TWO)),
    "points, nearly equal": lambda: (ACCURACY, SAME),
    "points, other vocabularies": lambda: (replace(SHORT, form="points"), SIZES),
    "points, other vocabularies in blocks": lambda: (
        replace(SHORT, form="points", panels="preset", rows="core.kind"),
        SIZES,
    ),
    **{f"{' '.join(map(str, one))}, far beyond": partial(beyond, *one) for one in ENDS},
    "bands of one place": lambda: (SHORT, SIZES[:4]),
    "bands": lambda: (BANDS, by_length(FEW)),
    "bands, a panel for each end": lambda: (LENGTHENED, lengthened()),
    "bands, beginning out of range": lambda: (FALLING, falling()),
    "bands, logarithmic": lambda: (replace(FALLING, y_base=2), falling()),
    "bands, one axis logarithmic": lambda: (replace(LOGARITHMIC, form="bands"), at_first()),
    "points, one axis logarithmic": lambda: (LOGARITHMIC, at_first()),
    "bands in blocks": lambda: (GRID, by_condition(FEW[:2])),
    "difference": lambda: (DIFFERENCE, by_condition(FEW)),
    "heat": lambda: (HEAT, of_gru(stability(FEW))),
    "heat, negative": lambda: (HEAT, of_gru(stability(FEW[:2], shift=-0.5))),
    "heat with holes": lambda: (HEAT, with_holes()),
    "scatter": lambda: (SCATTER, of_gru(stability(FEW))),
    "scatter, one seed": lambda: (SCATTER, of_gru(stability(FEW[:1]))),
    "points, some trials never arrive": lambda: (ARRIVING, paced(1.1, 1.3, 1.2, 4.0, 8.0)),
    "factors": lambda: (FACTORS, paced(1.1, 1.3, 1.2, 4.0, 8.0)),
    "factors, close together": lambda: (FACTORS, paced(1.1, 1.3, 1.2, 1.25, 1.15)),
    "factors, one pair": lambda: (FACTORS, paced(1.1)),
    "factors, none arrives": lambda: (
        FACTORS,
        [one | {"updates_to_0.9": 1024.0} for one in paced(1.1, 1.3)],
    ),
}


def rounded(values):
    """Return numbers with four digits, NaN and what is masked as text, the rest as it is."""
    if isinstance(values, (list, tuple, np.ndarray)):
        return [rounded(one) for one in np.ma.getdata(values)]
    if isinstance(values, (str, bool)) or values is None:
        return values
    return float(f"{float(values):.4g}") if np.isfinite(values) else str(values)


def shape(found):
    """Return what a band, an error bar or a heat map looks like, and where it is."""
    looks = [type(found).__name__, [to_hex(one) for one in found.get_facecolor()[:1]]]
    if isinstance(found, LineCollection):
        return [*looks, rounded([list(one) for one in found.get_segments()])]
    if found.get_array() is None:
        corners = {tuple(rounded(one)) for path in found.get_paths() for one in path.vertices}
        return [*looks, sorted(map(list, corners))]
    colours = np.ma.filled(np.ma.asarray(found.get_array(), dtype=float), np.nan)
    return [type(found).__name__, found.get_cmap().name, *map(rounded, (found.get_clim(), colours))]


def aside(drawn):
    """Return by how many pixels error bars stand beside their marks."""
    places = [one.get_transform().transform((4, 0.5))[0] for one in (drawn[0], *drawn[2])]
    return rounded(np.subtract(places[1:], places[0]))


def panel(axes):
    return {
        "titles": [axes.get_title(loc=place) for place in ("left", "right")],
        "labels": [axes.get_xlabel(), axes.get_ylabel()],
        "scales": [axes.get_xscale(), axes.get_yscale()],
        "ends": rounded([axes.get_xlim(), axes.get_ylim()]),
        "ticks": [
            [one.get_text() for one in axis.get_ticklabels()] if axis.get_visible() else []
            for axis in (axes.xaxis, axes.yaxis)
        ],
        "turned": sorted({one.get_rotation() for one in axes.get_xticklabels()}),
        "shown": axes.yaxis.get_tick_params().get("labelleft"),
        "texts": [one.get_text() for one in axes.texts],
        "hatch": axes.patch.get_hatch(),
        "lines": [
            [
                "" if str(one.get_label()).startswith("_") else one.get_label(),
                one.get_color(),
                to_hex(one.get_markerfacecolor()),
                one.get_marker(),
                one.get_linestyle(),
                one.get_linewidth(),
                *(rounded(one.get_data(orig=False))),
            ]
            for one in axes.lines
        ],
        "errors": [[one.get_label(), aside(one)] for one in axes.containers],
        "offset": axes.yaxis.get_offset_text().get_text(),
        "shapes": [shape(one) for one in axes.collections],
    }


def drawn(name, step=1):
    about, records = CASES[name]()
    figure = draw(experiment(figure=about), records[::step])
    legends = [[text.get_text() for text in one.get_texts()] for one in figure.legends]
    found = {"legends": legends, "panels": [*map(panel, figure.axes)]}
    return json.loads(json.dumps(found))


def agree(one, other, place, **tolerance):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), place
        for key in one:
            agree(one[key], other[key], f"{place}, {key}", **tolerance)
    elif isinstance(one, list):
        assert len(one) == len(other), place
        for number, pair in enumerate(zip(one, other, strict=True)):
            agree(*pair, f"{place} {number}", **tolerance)
    elif isinstance(one, float):
        assert one == pytest.approx(other, **tolerance), place
    else:
        assert one == other, place


@pytest.mark.parametrize("name", CASES)
def test_a_figure_shows_what_it_did(name):
    """In whatever order its trials come."""
    golden = json.loads(GOLDEN.read_text())
    assert golden.keys() == CASES.keys()
    agree(drawn(name, -1), golden[name], name, rel=1e-3, abs=1e-6)


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(drawn(name), ensure_ascii=False)}" for name in CASES)
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
