"""What a figure shows, and that it is the same bytes every time."""

from dataclasses import replace
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from pernn.errors import ConfigError
from pernn.lab.experiments import CATALOGUE, Contrast, FigureLayout, find_experiment
from pernn.lab.reports import draw, render, student_interval
from pernn.lab.reports.figures import CHANCE
from pernn.lab.reports.series import looks
from pernn.lab.reports.texts import Labels, footer, names_of
from reports.trials import ENCODING, experiment, trials

FEW = trials(("gru",), (4, 8))
MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


@cache
def usual() -> Any:
    """The figure of the usual trials, to be looked at only."""
    return draw(experiment(), trials())


def error_bars(axes: Any) -> list[ErrorbarContainer]:
    return [found for found in axes.containers if isinstance(found, ErrorbarContainer)]


def test_two_drawings_are_equal_bytes() -> None:
    one, two = draw(experiment(), FEW), draw(experiment(), FEW)
    forms: list[Any] = ["svg", "pdf", "png"]
    first = {form: render(one, form) for form in forms}
    with mpl.rc_context({"font.size": 20, "svg.hashsalt": "other", "axes.facecolor": "red"}):
        again = {form: render(two, form) for form in reversed(forms)}
    for form in forms:
        assert again[form] == first[form], form
        assert first[form].startswith(MAGIC[form])
        assert b"Date" not in first[form]


def test_other_data_are_other_bytes() -> None:
    one, other = draw(experiment(), FEW), draw(experiment(), FEW[:-4])
    assert render(one, "svg") != render(other, "svg")


def test_settings_of_matplotlib_are_left_as_they_were() -> None:
    before = dict(mpl.rcParams)
    render(draw(experiment(), FEW), "svg")
    assert dict(mpl.rcParams) == before


def test_panels_stand_in_a_grid() -> None:
    figure = usual()
    assert len(figure.axes) == 2 * 3
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["GRU", "LSTM", "", "", "", ""]
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["n = 5"] * 6
    assert figure.axes[0].get_ylabel() == "Token accuracy"
    assert "Position-encoded − Vanilla" in figure.axes[4].get_ylabel()
    assert figure.axes[4].get_xlabel() == "Vocabulary size K"


def test_panels_of_a_second_row_share_the_axis_of_their_column() -> None:
    updates = {4: 10, 8: 20, 16: 30, 32: 40, 64: 50}
    records = [
        {**one, "training.iterations": updates[one["task.vocab_size"]]}
        for one in trials(("gru",), tuple(updates))
    ]
    layout = FigureLayout(
        x="training.iterations",
        panels="task.vocab_size",
        lines="encoding.kind",
        metrics=("token_accuracy",),
        form="bands",
    )
    figure = draw(experiment(figure=layout), records)
    for axes, update in zip(figure.axes, updates.values(), strict=True):
        low, high = axes.get_xlim()
        assert low < update < high


def test_lines_show_means_and_intervals() -> None:
    records = trials()
    first = usual().axes[0]
    vanilla, encoded = error_bars(first)
    assert (vanilla.get_label(), encoded.get_label()) == ("Vanilla", "Position-encoded")
    values = [
        one["token_accuracy"]
        for one in records
        if (one["core.kind"], one["encoding.kind"], one["task.vocab_size"]) == ("gru", "none", 4)
    ]
    expected = student_interval(values)
    assert vanilla[0].get_ydata()[0] == pytest.approx(expected.estimate)
    segment = vanilla[2][0].get_segments()[0]
    assert segment[:, 1] == pytest.approx([expected.low, expected.high])


def test_every_trial_is_a_point() -> None:
    axes = usual().axes[0]
    points = [line for line in axes.lines if line.get_marker() == "."]
    drawn = sorted(np.concatenate([line.get_ydata() for line in points]))
    expected = [one["token_accuracy"] for one in trials() if one["core.kind"] == "gru"]
    assert drawn == pytest.approx(sorted(expected))


def test_conditions_differ_by_more_than_colour() -> None:
    vanilla, encoded = error_bars(usual().axes[0])
    for look in ("get_color", "get_marker", "get_linestyle"):
        assert getattr(vanilla[0], look)() != getattr(encoded[0], look)()


def test_last_row_shows_paired_differences_about_zero() -> None:
    records = trials()
    axes = usual().axes[4]
    (line,) = error_bars(axes)
    by_encoding = {
        code: [
            one["token_accuracy"]
            for one in records
            if (one["core.kind"], one["task.vocab_size"], one["encoding.kind"]) == ("gru", 32, code)
        ]
        for code in ("none", "sinusoidal")
    }
    difference = np.mean(by_encoding["sinusoidal"]) - np.mean(by_encoding["none"])
    assert line[0].get_ydata()[-1] == pytest.approx(difference)
    assert any(list(found.get_ydata()) == [0, 0] for found in axes.lines)


def test_chance_is_drawn_for_token_accuracy_over_vocabularies_only() -> None:
    figure = usual()
    drawn = [[line for line in axes.lines if line.get_label() == CHANCE] for axes in figure.axes]
    assert [len(found) for found in drawn] == [1, 1, 0, 0, 0, 0]
    assert list(drawn[0][0].get_ydata()) == [1 / 4, 1 / 8, 1 / 16, 1 / 32]


def test_axes_have_the_values_as_ticks_and_accuracy_from_zero_to_one() -> None:
    axes = draw(experiment(), trials(vocab_sizes=(4, 1024))).axes[4]
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["4", "1,024"]
    first = usual().axes[0]
    low, high = first.get_ylim()
    assert -0.1 < low < 0
    assert 1 < high < 1.1


def test_many_ticks_are_thinned() -> None:
    sizes = tuple(2**power for power in range(1, 15))
    labels = draw(experiment(), trials(vocab_sizes=sizes)).axes[-1].get_xticklabels()
    assert len(labels) == 7


def test_the_number_of_trials_is_a_range_if_it_differs() -> None:
    figure = draw(experiment(), trials()[:-2])
    assert [axes.get_title(loc="right") for axes in figure.axes[:2]] == ["n = 5", "n = 4–5"]
    assert figure.axes[5].get_title(loc="right") == "n = 4–5"


def test_one_trial_and_no_pair_can_be_drawn() -> None:
    figure = draw(experiment(), trials()[:1])
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["n = 1", "n = 1", "n = 0"]
    render(figure, "png")


def test_the_footer_says_how_it_was_made() -> None:
    records = [{**one, "training.learning_rate": 0.001} for one in trials()]
    expected = (
        "scale demo · preset as-run · precision fp32 · L = 32 · hidden size 128 · "
        "learning rate 0.001 · 1,000 updates · n = 5 seeds · error bars: 95 % by Student's t "
        "over seeds · small dots: trials, beside their mean"
    )
    assert footer(experiment(), records, "demo") == expected
    drawn = [
        text.replace("\u00a0", " ").replace("\n", " · ")
        for text in texts(draw(experiment(), records, "demo"))
    ]
    assert expected in drawn
    # What stands on no axis is said: K, and r where a task leaves it to the preset.
    layout = FigureLayout("seed", "core.kind", "encoding.kind", ("loss",))
    few = [{**one, "task.rare_share": None} for one in trials(vocab_sizes=(4,))]
    assert " · K = 4 · L = 32 · r = 0.125 · " in footer(experiment(figure=layout), few)
    assert " · K = 2 … 32 · " in footer(
        experiment(figure=layout), trials(vocab_sizes=(2, 4, 8, 16, 32))
    )


def test_nothing_that_a_line_joins_is_moved_sideways() -> None:
    for axes in usual().axes:
        for line in error_bars(axes):
            assert list(line[0].get_xdata()) == [4, 8, 16, 32]
    words = replace(experiment().figure, x="core.kind", panels="task.vocab_size", x_base=None)
    lines = error_bars(draw(experiment(figure=words), trials()).axes[0])
    assert {line[0].get_linestyle() for line in lines} == {"None"}
    assert lines[0][0].get_xdata()[0] < 0 < lines[1][0].get_xdata()[0]


def test_the_end_of_a_training_can_be_read() -> None:
    updates = list(range(10, 210, 10))
    records = [
        {
            **one,
            "tables": {
                "t": {
                    "update": updates,
                    "perplexity": [
                        30 + (one["encoding.kind"] == "none") + 900 / u for u in updates
                    ],
                }
            },
        }
        for one in trials(("gru",), (4,))
    ]
    layout = replace(
        experiment().figure, x="update", x_base=None, metrics=("perplexity",), table="t"
    )
    for y_base in (None, 2):
        first, _ = draw(
            experiment(figure=replace(layout, form="bands", y_base=y_base)), records
        ).axes
        low, high = first.get_ylim()
        assert 25 < low < 34.5 < high < 60
        assert first.texts[-1].get_text() == "beginning, out of range: 48 … 121"


def test_four_conditions_look_like_the_papers() -> None:
    order = [f"{a} among {b}" for a in ("Frequent", "Rare") for b in ("Frequent", "Rare")]
    found = looks("condition", order)
    assert [found[name]["linestyle"] for name in order] == ["-", "--", "-", "--"]
    assert [found[name]["color"] for name in order] == 2 * ["#0072B2"] + 2 * ["#D55E00"]


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_no_column_is_shown_by_its_name(name: str) -> None:
    found = find_experiment(name)
    columns = {claim.predicate.metric for claim in found.claims}
    for layout in (found.figure, *found.more_figures.values()):
        for some in (layout.x, layout.panels, layout.lines, layout.rows):
            columns.update(names_of(some))
        columns.update(layout.metrics)
    for claim in found.claims:
        predicate: Any = claim.predicate
        columns.update(predicate.where)
        columns.add(predicate.along if hasattr(predicate, "along") else predicate.cells)
        for contrast in (getattr(predicate, part, None) for part in ("contrast", "between")):
            if contrast:
                columns |= {contrast.column, *contrast.treated_where, *contrast.baseline_where}
    label = Labels(found.labels)
    shown = {column: label(column) for column in columns}
    assert not {c for c, text in shown.items() if text == c or "_" in text or "." in text}


def test_nothing_finished_is_said() -> None:
    figure = draw(experiment(), [])
    assert "no finished trials yet" in texts(figure)
    assert render(figure, "svg") == render(draw(experiment(), []), "svg")


def test_words_on_the_axis_stand_at_equal_steps() -> None:
    layout = FigureLayout(
        x="encoding.kind", panels="core.kind", lines="task.length", metrics=("loss",)
    )
    records = [one for one in trials() if one["task.vocab_size"] == 4]
    axes = draw(experiment(figure=layout), records).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Vanilla", "Position-encoded"]
    assert list(axes.get_xticks()) == [0, 1]


def test_conditions_of_several_columns_stand_in_the_order_of_their_names() -> None:
    columns = ("encoding.kind", "encoding.masked")
    layout = FigureLayout(x=columns, panels="core.kind", lines="task.length", metrics=("loss",))
    records = [
        {**one, "encoding.masked": f"phase {number}"}
        for one in trials(cores=("gru",))
        for number in range(6)
        if one["task.vocab_size"] == 4
    ]
    names = {"sinusoidal, phase 3": "Third first", "encoding.kind, encoding.masked": "Arm"}
    about = experiment(figure=layout)
    axes = draw(replace(about, labels={**names, **about.labels}), records).axes[0]
    found = [tick.get_text() for tick in axes.get_xticklabels()]
    assert len(found) == 12
    assert found[:2] == ["Third first", "Vanilla, phase 0"]
    assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {90}
    assert axes.get_xlabel() == "Arm"


def test_several_columns_along_an_axis_are_words_alone() -> None:
    parts = {"x": ("seed", "core.kind"), "panels": "core.kind", "lines": "encoding.kind"}
    with pytest.raises(ConfigError, match="along words shows no contrast"):
        FigureLayout(**parts, metrics=("loss",), contrast=ENCODING)
    with pytest.raises(ConfigError, match="'bands' has one column along its axis"):
        FigureLayout(**parts, metrics=("loss",), form="bands")


def test_a_line_keeps_its_look_where_another_is_missing() -> None:
    records = [
        one for one in trials() if (one["core.kind"], one["encoding.kind"]) != ("lstm", "none")
    ]
    both, one = (error_bars(axes) for axes in draw(experiment(), records).axes[:2])
    assert [line.get_label() for line in one] == ["Position-encoded"]
    assert one[0][0].get_color() == both[1][0].get_color()


def test_more_conditions_have_a_line_each() -> None:
    records = trials(cores=("gru",)) + [
        {**one, "encoding.kind": "random"}
        for one in trials(cores=("gru",))
        if one["encoding.kind"] == "none"
    ]
    lines = error_bars(draw(experiment(), records).axes[0])
    assert [line.get_label() for line in lines] == ["Vanilla", "Position-encoded", "Random"]
    assert len({line[0].get_color() for line in lines}) == 3


def test_points_stand_on_their_ticks_where_each_line_has_its_own() -> None:
    layout = FigureLayout(
        x="encoding.kind",
        panels="core.kind",
        lines="encoding.kind",
        metrics=("token_accuracy",),
    )
    records = [one for one in trials() if one["task.vocab_size"] == 4]
    axes = draw(experiment(figure=layout), records).axes[0]
    assert [list(line[0].get_xdata()) for line in error_bars(axes)] == [[0.0], [1.0]]


def test_encodings_look_the_same_in_every_figure() -> None:
    def drawn(encodings: tuple[str, ...], contrast: Contrast) -> dict[str, Any]:
        records = [
            {**one, "encoding.kind": code}
            for code in encodings
            for one in trials(cores=("gru",), seeds=(111,))
            if one["encoding.kind"] == "none"
        ]
        layout = replace(experiment().figure, contrast=contrast, metrics=("token_accuracy",))
        kinds = ("none", "sinusoidal", "repeated_embedding", "learned", "random")
        names = {kind: kind for kind in kinds}
        axes = draw(experiment(figure=layout, labels=names), records).axes[0]
        return {line.get_label(): line[0].get_color() for line in error_bars(axes)}

    every = drawn(
        ("none", "sinusoidal", "repeated_embedding", "learned", "random", "other"), ENCODING
    )
    assert len(set(every.values())) == 6
    assert (every["none"], every["sinusoidal"]) == ("#D55E00", "#0072B2")
    some = drawn(
        ("repeated_embedding", "none", "sinusoidal"),
        replace(ENCODING, treated="repeated_embedding"),
    )
    assert list(some) == ["none", "repeated_embedding", "sinusoidal"]
    turned = drawn(("random", "sinusoidal"), Contrast("encoding.kind", "random", "sinusoidal"))
    assert some.items() | turned.items() <= every.items()


def test_impossible_layouts_are_refused() -> None:
    logarithmic = replace(experiment().figure, x="encoding.kind", lines="task.vocab_size")
    with pytest.raises(ConfigError, match="positive numbers"):
        draw(experiment(figure=logarithmic), trials())
    across = replace(experiment().figure, contrast=replace(ENCODING, column="core.kind"))
    with pytest.raises(ConfigError, match="must be between its lines"):
        draw(experiment(figure=across), trials())
    with pytest.raises(ConfigError, match="two trials of seed 111"):
        draw(experiment(), trials() * 2)


def test_dollars_are_no_mathematics() -> None:
    render(draw(experiment(question="$\\frac{$ <b>&"), FEW), "svg")


def test_labels_name_and_order() -> None:
    label = Labels({"b": "B", "a": "A"})
    assert label.order(["c", "a", "b", "a", 3]) == ["b", "a", 3, "c"]
    assert [label(value) for value in ("a", "c", 1024, 0.5, None)] == [
        "A",
        "c",
        "1,024",
        "0.5",
        "–",
    ]
