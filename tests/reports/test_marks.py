"""Bands, differences, blocks of rows and conditions of any kind in figures."""

from dataclasses import replace
from typing import Any

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import Contrast, FigureLayout
from pernn.lab.reports import draw, render
from pernn.lab.reports.texts import Labels, footer
from reports.trials import (
    ENCODING,
    SEEDS,
    by_condition,
    by_length,
    experiment,
    trials,
)

POINTS = experiment().figure
BANDS = FigureLayout(
    x="length",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("token_accuracy",),
    contrast=ENCODING,
    table="by_length",
    form="bands",
)
DIFFERENCE = FigureLayout(
    x="position",
    panels="core.kind",
    rows=("target",),
    lines=("disturbants", "encoding.kind"),
    metrics=("token_accuracy",),
    contrast=Contrast("disturbants", "rare", "frequent"),
    table="by_position",
    form="difference",
)
GRID = FigureLayout(
    x="position",
    panels=("target", "disturbants"),
    lines="encoding.kind",
    rows="core.kind",
    metrics=("token_accuracy", "num_sequences"),
    table="by_position",
    form="bands",
)
BLOCKS = replace(GRID, metrics=("token_accuracy",))
ALL = [(BANDS, by_length), (DIFFERENCE, by_condition), (BLOCKS, by_condition)]
NAMED = ("bands", "difference", "blocks")


@pytest.mark.parametrize("num_seeds", [0, 1, 3])
@pytest.mark.parametrize(("layout", "make"), ALL, ids=NAMED)
def test_every_form_is_drawn_the_same_twice(layout: Any, make: Any, num_seeds: int) -> None:
    about = experiment(figure=layout)
    one = draw(about, make(seeds=SEEDS[:num_seeds]))
    drawn = render(one, "svg")
    if num_seeds > 1:
        assert render(draw(about, make(seeds=SEEDS[:num_seeds])), "svg") == drawn
    counts = {axes.get_title(loc="right") for axes in one.axes}
    assert counts == ({f"n = {num_seeds}"} if num_seeds else set())


@pytest.mark.parametrize(("layout", "make"), ALL[:2], ids=NAMED[:2])
def test_records_in_any_order_are_one_figure(layout: Any, make: Any) -> None:
    about = experiment(figure=layout)
    forwards, backwards = (
        render(draw(about, made), "svg")
        for made in (make(seeds=SEEDS[:2]), make(seeds=SEEDS[:2])[::-1])
    )
    assert forwards == backwards


@pytest.mark.parametrize(
    ("baseline", "treated", "labels", "legend"),
    [
        (256, 64, {}, ["Batch size: 64", "Batch size: 256"]),
        (64, 256, {"training.batch_size": "Batch"}, ["Batch: 64", "Batch: 256"]),
        (64, 256, {"64": "Small", "256": "Large"}, ["Small", "Large"]),
        (None, 256, {}, ["Batch size: –", "Batch size: 256"]),
    ],
)
def test_lines_may_be_numbers(
    baseline: Any, treated: Any, labels: dict[str, str], legend: list[str]
) -> None:
    column = "training.batch_size"
    layout = replace(
        POINTS, lines=column, contrast=Contrast(column, treated, baseline), metrics=("loss",)
    )
    records = []
    for one in trials():
        size = baseline if one["encoding.kind"] == "none" else treated
        records.append({**one, **({} if size is None else {column: size})})
    figure = draw(experiment(figure=layout, labels=labels), records)
    (found,) = figure.legends
    assert [text.get_text() for text in found.get_texts()] == legend
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["n = 5"] * 4


def test_a_table_that_no_trial_has_is_said() -> None:
    figure = draw(experiment(figure=BANDS), trials())
    assert "no finished trial has a table 'by_length'" in [text.get_text() for text in figure.texts]


def test_two_rows_at_one_point_are_told_apart() -> None:
    layout = replace(GRID, panels="target")
    with pytest.raises(ConfigError, match="they differ in disturbants"):
        draw(experiment(figure=layout), by_condition())
    with pytest.raises(ConfigError, match="needs a contrast"):
        replace(DIFFERENCE, contrast=None)


def test_many_lines_have_a_legend_of_several_rows() -> None:
    layout = replace(GRID, panels="encoding.kind", lines=("target", "disturbants"), rows=None)
    records = [one for one in by_condition() if one["core.kind"] == "gru"]
    figure = draw(experiment(figure=layout), records)
    (legend,) = figure.legends
    box, top = legend.get_window_extent(), figure.axes[0].get_tightbbox()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y0 >= top.y1


def test_the_footer_explains_the_form_and_mixed_presets() -> None:
    records = by_length()
    records[0]["preset"] = "as-written"
    text = footer(experiment(figure=BANDS), records)
    assert text.startswith("mixed presets: as-run, as-written · ")
    assert text.endswith("bands: 95 % by Student's t over seeds · thin lines: trials")


def test_joint_conditions_have_names_and_an_order() -> None:
    label = Labels({"rare": "Rare", "frequent": "Frequent", "rare, frequent": "Rare among F"})
    columns = ("target", "disturbants")
    pairs = [("frequent", "rare"), ("rare", "frequent"), ("rare", "rare")]
    # A pair with a name of its own stands where its name does.
    assert label.order(pairs) == [pairs[2], pairs[0], pairs[1]]
    first = Labels({"rare, frequent": "Rare among F", "rare": "Rare", "frequent": "Frequent"})
    assert first.order(pairs) == [pairs[1], pairs[2], pairs[0]]
    assert label.condition(columns, pairs[1]) == "Rare among F"
    assert label.condition(columns, pairs[0]) == "Target: Frequent, Disturbants: Rare"
