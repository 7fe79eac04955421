"""Bands, differences, blocks of rows and conditions of any kind in figures."""

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.collections import PolyCollection

from pernn.errors import ConfigError
from pernn.lab.experiments import Contrast, FigureLayout
from pernn.lab.reports import draw, render, student_interval
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


def test_a_difference_stands_alone_with_a_line_for_each_other_condition() -> None:
    records = by_condition()
    figure = draw(experiment(figure=DIFFERENCE), records)
    assert len(figure.axes) == 2 * 2
    assert figure.axes[0].get_ylabel().endswith("rare − frequent")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Vanilla", "Position-encoded"]
    vanilla, encoded = (bars[0] for bars in figure.axes[0].containers)
    assert (vanilla.get_color(), encoded.get_color()) == ("#D55E00", "#0072B2")
    expected = []
    for one in records:
        if (one["core.kind"], one["encoding.kind"]) == ("gru", "none"):
            table = one["tables"]["by_position"]
            cells = zip(
                *(table[name] for name in ("target", "disturbants", "position")), strict=True
            )
            at = dict(zip(cells, table["token_accuracy"], strict=True))
            expected.append(at["frequent", "rare", 1] - at["frequent", "frequent", 1])
    assert vanilla.get_ydata()[0] == pytest.approx(sum(expected) / len(expected))
    with pytest.raises(ConfigError, match="needs a contrast"):
        replace(DIFFERENCE, contrast=None)


def test_a_panel_that_would_be_a_line_has_an_axis_of_its_own() -> None:
    records = [
        {**one, "token_accuracy": 1 - (1 - one["token_accuracy"]) / 100}
        if one["core.kind"] == "lstm"
        else one
        for one in trials()
    ]
    first, second, *_ = draw(experiment(), records).axes
    assert first.get_ylim() == (-0.03, 1.03)
    low, high = second.get_ylim()
    assert 0.98 < low < min(one["token_accuracy"] for one in records if one["core.kind"] == "lstm")
    assert 1 < high < 1.01
    assert second.yaxis.get_tick_params()["labelleft"]
    alike, other, *_ = draw(experiment(), trials()).axes
    assert alike.get_ylim() == other.get_ylim()
    assert not other.yaxis.get_tick_params()["labelleft"]


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
