"""Heat maps, scatter plots and logarithmic vertical axes."""

from dataclasses import replace
from typing import Any

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import FigureLayout
from pernn.lab.reports import draw, render
from pernn.lab.reports.panels import Scale, log_ticks
from pernn.lab.reports.texts import Labels, footer
from reports.trials import CONDITIONS, ENCODING, SEEDS, experiment, stability, trial, trials

HEAT = FigureLayout(
    x="update",
    panels="condition",
    rows=("core.kind", "encoding.kind"),
    lines="position",
    metrics=("similarity",),
    table="stability_map",
    form="heat",
)
SCATTER = FigureLayout(
    x="similarity",
    panels="condition",
    rows="core.kind",
    lines="encoding.kind",
    metrics=("target_accuracy",),
    table="stability_map",
    form="scatter",
)


def select(records: list[dict[str, Any]], core: str, **wanted: Any) -> list[dict[str, Any]]:
    """Trials of one core, and of their table the rows that have these values."""
    found = []
    for record in records:
        table = record["tables"]["stability_map"]
        keep = [
            n
            for n in range(len(table["update"]))
            if all(table[name][n] == value for name, value in wanted.items())
        ]
        less = {name: [values[n] for n in keep] for name, values in table.items()}
        if record["core.kind"] == core:
            found.append({**record, "tables": {"stability_map": less}})
    return found


@pytest.mark.parametrize("num_seeds", [0, 1, 5])
@pytest.mark.parametrize("layout", [HEAT, SCATTER], ids=["heat", "scatter"])
def test_both_are_drawn_the_same_twice_from_records_in_any_order(
    layout: FigureLayout, num_seeds: int
) -> None:
    about = experiment(figure=layout)
    records = select(stability(SEEDS[:num_seeds]), "gru", condition=CONDITIONS[0])
    one = draw(about, records)
    drawn = render(one, "svg")
    assert b"<image" not in drawn  # which a page that loads nothing would not show
    if num_seeds == 1:
        assert render(draw(about, records[::-1]), "svg") == drawn
    if not records:
        assert "no finished trials yet" in [text.get_text() for text in one.texts]


def test_blocks_are_named_by_what_speaks_for_itself() -> None:
    label = Labels({"gru": "GRU"})
    assert label.condition(("core.kind", "size"), ("gru", 8)) == "GRU, size: 8"
    assert label.condition(("core.kind", "condition"), ("x", "Y")) == "Core: x, Y"


def test_cells_lie_halfway_between_their_values() -> None:
    label = Labels({})
    rows = [trial(p=p, word=str(p)) for p in (1, 2, 6)]
    assert Scale("p", None, label, rows).edges() == [0.5, 1.5, 4, 8]
    assert Scale("word", None, label, rows).edges() == [-0.5, 0.5, 1.5, 2.5]
    assert Scale(("p", "word"), None, label, rows).edges() == [-0.5, 0.5, 1.5, 2.5]
    powers = [trial(p=p) for p in (1, 4, 16)]
    assert Scale("p", 2, label, powers).edges() == pytest.approx([0.5, 2, 8, 32])
    assert Scale("p", None, label, rows[:1]).edges() == [0.5, 1.5]
    assert Scale("p", 2, label, rows[:1]).edges() == pytest.approx([0.5, 2])


def test_two_rows_in_one_cell_are_told_apart() -> None:
    layout = replace(HEAT, panels="core.kind")
    with pytest.raises(ConfigError, match="they differ in condition"):
        draw(experiment(figure=layout), stability(SEEDS[:1]))


def test_trials_are_points_too_and_axes_may_be_logarithmic() -> None:
    layout = replace(
        SCATTER, x="loss", panels="core.kind", rows=None, table=None, x_base=10, y_base=10
    )
    layout = replace(layout, metrics=("damerau_levenshtein",))
    records = [{**one, "loss": one["loss"] + 0.1, "damerau_levenshtein": 1.0} for one in trials()]
    figure = draw(experiment(figure=layout), records)
    assert [axes.get_title(loc="right") for axes in figure.axes] == [
        "ρ undefined, n = 40 of 5 seeds"
    ] * 2
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("log", "log")
    with pytest.raises(ConfigError, match="loss needs positive numbers"):
        draw(experiment(figure=layout), [{**one, "loss": 0.0} for one in records])


def test_footers_explain_the_signs() -> None:
    records = stability(SEEDS[:1])
    text = footer(experiment(figure=HEAT), records)
    assert text.endswith("colours: means over seeds · hatched: no trial")
    text = footer(experiment(figure=SCATTER), records)
    assert "ρ: Spearman’s rank correlation, 95 % percentile bootstrap over seeds" in text


def test_impossible_layouts_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="shows no contrast"):
        replace(SCATTER, contrast=ENCODING)
    with pytest.raises(ConfigError, match="one metric"):
        replace(HEAT, metrics=("similarity", "perplexity"))
    with pytest.raises(ConfigError, match="at least 2"):
        replace(HEAT, y_base=1)


def test_a_logarithmic_axis_needs_positive_numbers() -> None:
    layout = replace(
        experiment().figure,
        x="update",
        x_base=None,
        metrics=("perplexity",),
        table="stability_map",
        y_base=10,
    )
    records = select(stability(SEEDS[:2]), "gru", condition=CONDITIONS[0], position=1)
    records[0]["tables"]["stability_map"]["perplexity"][0] = 0.0
    with pytest.raises(ConfigError, match="perplexity needs positive numbers"):
        draw(experiment(figure=layout), records)


@pytest.mark.parametrize(
    ("low", "high", "base", "ticks"),
    [
        (0.05, 2000, 10, [0.1, 1, 10, 100, 1000]),
        (0.05, 5, 10, [0.1, 0.3, 1, 3]),
        (75, 900, 10, [100, 200, 500]),
        (100, 400, 10, [100, 150, 200, 300, 400]),
        (3, 40, 2, [4, 8, 16, 32]),
        (500, 520, 10, [500, 505, 510, 515, 520]),
    ],
)
def test_ticks_of_a_logarithmic_axis(
    low: float, high: float, base: int, ticks: list[float]
) -> None:
    found = log_ticks(low, high, base)
    assert found == ticks
