"""Bands, violins, blocks of rows and conditions of any kind in figures."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from pernn.errors import ConfigError
from pernn.lab.experiments import Contrast, FigureLayout
from pernn.lab.reports import draw, render, student_interval
from pernn.lab.reports.labels import Labels, footer
from pernn.lab.reports.marks import outline
from pernn.lab.reports.series import Quantiles
from reports.trials import (
    ENCODING,
    SEEDS,
    by_condition,
    by_length,
    distributions,
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
VIOLINS = FigureLayout(
    x="dimension",
    panels="core.kind",
    lines="encoding.kind",
    metrics=("cosine_similarity", "loss"),
    contrast=ENCODING,
    x_base=2,
    table="cosine",
    form="violins",
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
ALL = [(BANDS, by_length), (VIOLINS, distributions), (BLOCKS, by_condition)]
NAMED = ("bands", "violins", "blocks")


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


def shapes(axes: Any) -> list[PolyCollection]:
    return [found for found in axes.collections if isinstance(found, PolyCollection)]


def test_bands_are_means_in_their_intervals_and_a_line_per_trial() -> None:
    records = by_length()
    axes = draw(experiment(figure=BANDS), records).axes[0]
    means = {line.get_label(): line for line in axes.lines if line.get_linewidth() > 1}
    assert list(means) == ["Vanilla", "Position-encoded"]
    own = [line for line in axes.lines if line.get_linewidth() < 1]
    assert len(own) == 2 * 5
    values = [
        one["tables"]["by_length"]["token_accuracy"][0]
        for one in records
        if one["encoding.kind"] == "none"
    ]
    expected = student_interval(values)
    assert means["Vanilla"].get_ydata()[0] == pytest.approx(expected.estimate)
    assert sorted(line.get_ydata()[0] for line in own)[:1] == pytest.approx([min(values)])
    corners = shapes(axes)[0].get_paths()[0].vertices
    at_first = sorted({*corners[corners[:, 0] == 5][:, 1]})
    assert at_first == pytest.approx([expected.low, expected.high])
    assert not axes.containers  # no error bars


def test_long_axes_have_round_ticks() -> None:
    axes = draw(experiment(figure=BANDS), by_length()).axes[-1]
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert 3 <= len(ticks) <= 8
    assert all(tick == round(tick) for tick in ticks)


def test_violins_show_all_tokens_and_each_trials_median() -> None:
    records = distributions()
    figure = draw(experiment(figure=VIOLINS), records)
    first = figure.axes[0]
    assert len(shapes(first)) == 2 * 3
    medians = [
        one["tables"]["cosine"]["q50"][0]
        for one in records
        if (one["core.kind"], one["encoding.kind"], one["task.vocab_size"]) == ("gru", "none", 8)
    ]
    corners = shapes(first)[0].get_paths()[0].vertices[:, 1]
    # All trials' tokens together reach as far as the outermost trial's.
    ends = (min(medians) - 0.1, max(medians) + 0.1)
    assert (corners.min(), corners.max()) == pytest.approx(ends)
    dots = [line for line in first.lines if line.get_marker() == "."]
    assert sorted(dots[0].get_ydata()) == pytest.approx(sorted(medians))
    bar = next(line for line in first.lines if len(line.get_xdata()) == 2)
    tokens = [np.linspace(one - 0.1, one + 0.1, 5001) for one in medians]
    assert list(bar.get_ydata()) == pytest.approx(
        np.quantile(np.concatenate(tokens), [0.25, 0.75]), abs=1e-4
    )
    assert not shapes(figure.axes[2])  # the second metric has no quantiles
    assert "Position-encoded − Vanilla" in figure.axes[4].get_ylabel()


def test_outlines_have_the_shape_of_the_density() -> None:
    levels = np.array([0.0, 0.5, 1.0])
    heights, widths = outline(Quantiles(levels, np.array([0.0, 1.0, 3.0])), 0.01)
    assert (heights[0], heights[-1]) == (0.0, 3.0)
    assert widths[np.abs(heights - 0.5).argmin()] == pytest.approx(1.0)
    assert widths[np.abs(heights - 2.0).argmin()] == pytest.approx(0.5)
    for width in (0.0, 0.1):
        flat = outline(Quantiles(levels, np.array([0.5, 0.5, 0.5])), width)
        assert np.isfinite(flat).all()
        assert flat[1].max() == pytest.approx(1.0)


def test_quantiles_must_rise() -> None:
    records = distributions()
    records[0]["tables"]["cosine"]["q50"] = [9.0]
    with pytest.raises(ConfigError, match="never fall"):
        draw(experiment(figure=VIOLINS), records)


def test_rows_are_blocks_of_metrics() -> None:
    figure = draw(experiment(figure=GRID), by_condition())
    assert len(figure.axes) == 2 * 2 * 4
    named = [[text.get_text() for text in axes.texts] for axes in figure.axes[::4]]
    assert named == [["GRU"], ["GRU"], ["LSTM"], ["LSTM"]]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[1] == "Target: frequent\nDisturbants: rare"
    assert not any(titles[4:])
    assert figure.axes[4].get_ylabel() == "num_sequences"


def test_one_axis_serves_a_row_of_panels_whose_signs_differ() -> None:
    layout = replace(POINTS, contrast=None, metrics=("score",))
    records = [
        {**one, "score": 1.0 if one["core.kind"] == "gru" else -1.0 * one["task.vocab_size"]}
        for one in trials()
    ]
    low, high = draw(experiment(figure=layout), records).axes[0].get_ylim()
    assert low < -32
    assert high > 1


def test_shares_have_the_whole_axis() -> None:
    layout = replace(POINTS, contrast=None, metrics=("solved_or_stuck", "ascending_pair_share"))
    records = [{**one, "solved_or_stuck": 0.0, "ascending_pair_share": 0.9} for one in trials()]
    for axes in draw(experiment(figure=layout), records).axes:
        assert axes.get_ylim() == (-0.03, 1.03)


def test_blocks_of_rows_have_one_axis_for_a_share() -> None:
    layout = replace(
        POINTS,
        contrast=None,
        metrics=("solved_or_stuck",),
        panels="encoding.kind",
        rows="core.kind",
    )
    records = [
        {**one, "solved_or_stuck": 0.85 if one["core.kind"] == "gru" else 0.95} for one in trials()
    ]
    axes = draw(experiment(figure=layout), records).axes
    assert len(axes) == 4
    for one in axes:
        assert one.get_ylim() == pytest.approx((0.838, 0.962))


@pytest.mark.parametrize(("low", "ends"), [(0.85, (0.838, 0.962)), (0.5, (-0.03, 1.03))])
def test_shares_that_lie_close_together_have_an_axis_of_their_own(
    low: float, ends: tuple[float, float]
) -> None:
    layout = replace(POINTS, contrast=None, metrics=("solved_or_stuck",))
    records = [
        {**one, "solved_or_stuck": low if one["core.kind"] == "gru" else 0.95} for one in trials()
    ]
    for axes in draw(experiment(figure=layout), records).axes:
        assert axes.get_ylim() == pytest.approx(ends)


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


def test_conditions_of_one_trial_are_lines() -> None:
    records = trials()
    for record in records:
        table = {"feedback": ["own output", "truth"], "token_accuracy": [0.2, 0.9]}
        record["tables"] = {"by_feedback": table}
    layout = replace(
        POINTS,
        panels=("core.kind", "encoding.kind"),
        lines="feedback",
        contrast=Contrast("feedback", "truth", "own output"),
        metrics=("token_accuracy",),
        table="by_feedback",
    )
    figure = draw(experiment(figure=layout), records)
    assert len(figure.axes) == 2 * 4
    gain = figure.axes[4].containers[0][0].get_ydata()
    assert list(gain) == pytest.approx([0.7] * 4)


def test_a_table_that_no_trial_has_is_said() -> None:
    figure = draw(experiment(figure=BANDS), trials())
    assert "no finished trial has a table 'by_length'" in [text.get_text() for text in figure.texts]


def test_two_rows_at_one_point_are_told_apart() -> None:
    layout = replace(GRID, panels="target")
    with pytest.raises(ConfigError, match="they differ in disturbants"):
        draw(experiment(figure=layout), by_condition())


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
    assert "violins: quantiles" in footer(experiment(figure=VIOLINS), distributions())


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


def test_a_block_without_a_metric_has_no_row_for_it() -> None:
    layout = replace(POINTS, rows="task.kind", metrics=("token_accuracy", "ascending_pair_share"))
    records = [{**one, "task.kind": "reverse_ordering"} for one in trials()]
    records += [
        {**one, "task.kind": "sorting", "ascending_pair_share": 0.999, "run": f"s{number}"}
        for number, one in enumerate(trials())
    ]
    labels = [axes.get_ylabel() for axes in draw(experiment(figure=layout), records).axes]
    pairs = [name for name in labels if "ascending" in name]
    # A row of token accuracy and of the contrast in both blocks, of the pairs in one.
    assert len(pairs) == 1
    assert len([name for name in labels if name]) == 5
