"""What a figure shows, and that it is the same bytes every time."""

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from pernn.errors import ConfigError
from pernn.experiments import Contrast, FigureLayout
from pernn.reports import bootstrap_interval, draw, render
from pernn.reports.figures import CHANCE
from pernn.reports.labels import Labels, footer
from reports.trials import ENCODING, experiment, trials

MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


def error_bars(axes: Any) -> list[ErrorbarContainer]:
    return [found for found in axes.containers if isinstance(found, ErrorbarContainer)]


def test_two_drawings_are_equal_bytes() -> None:
    one, two = draw(experiment(), trials()), draw(experiment(), trials())
    forms: list[Any] = ["svg", "pdf", "png"]
    first = {form: render(one, form) for form in forms}
    with mpl.rc_context({"font.size": 20, "svg.hashsalt": "other", "axes.facecolor": "red"}):
        again = {form: render(two, form) for form in reversed(forms)}
    for form in forms:
        assert again[form] == first[form], form
        assert first[form].startswith(MAGIC[form])
        assert b"Date" not in first[form]


def test_other_data_are_other_bytes() -> None:
    assert render(draw(experiment(), trials()), "svg") != render(
        draw(experiment(), trials()[:-8]), "svg"
    )


def test_settings_of_matplotlib_are_left_as_they_were() -> None:
    before = dict(mpl.rcParams)
    render(draw(experiment(), trials()), "svg")
    assert dict(mpl.rcParams) == before


def test_panels_stand_in_a_grid() -> None:
    figure = draw(experiment(), trials())
    assert len(figure.axes) == 2 * 3
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["GRU", "lstm", "", "", "", ""]
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["n = 5"] * 6
    assert figure.axes[0].get_ylabel() == "Token accuracy"
    assert "Position-encoded − Vanilla" in figure.axes[4].get_ylabel()
    assert figure.axes[4].get_xlabel() == "Vocabulary size K"


def test_lines_show_means_and_intervals() -> None:
    records = trials()
    first = draw(experiment(), records).axes[0]
    vanilla, encoded = error_bars(first)
    assert (vanilla.get_label(), encoded.get_label()) == ("Vanilla", "Position-encoded")
    values = [
        one["token_accuracy"]
        for one in records
        if (one["core.kind"], one["encoding.kind"], one["task.vocab_size"]) == ("gru", "none", 4)
    ]
    expected = bootstrap_interval(values)
    assert vanilla[0].get_ydata()[0] == pytest.approx(expected.estimate)
    segment = vanilla[2][0].get_segments()[0]
    assert segment[:, 1] == pytest.approx([expected.low, expected.high])


def test_every_trial_is_a_point() -> None:
    axes = draw(experiment(), trials()).axes[0]
    points = [line for line in axes.lines if line.get_marker() == "."]
    drawn = sorted(np.concatenate([line.get_ydata() for line in points]))
    expected = [one["token_accuracy"] for one in trials() if one["core.kind"] == "gru"]
    assert drawn == pytest.approx(sorted(expected))


def test_conditions_differ_by_more_than_colour() -> None:
    vanilla, encoded = error_bars(draw(experiment(), trials()).axes[0])
    for look in ("get_color", "get_marker", "get_linestyle"):
        assert getattr(vanilla[0], look)() != getattr(encoded[0], look)()


def test_last_row_shows_paired_differences_about_zero() -> None:
    records = trials()
    axes = draw(experiment(), records).axes[4]
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
    figure = draw(experiment(), trials())
    drawn = [[line for line in axes.lines if line.get_label() == CHANCE] for axes in figure.axes]
    assert [len(found) for found in drawn] == [1, 1, 0, 0, 0, 0]
    assert list(drawn[0][0].get_ydata()) == [1 / 4, 1 / 8, 1 / 16, 1 / 32]


def test_axes_have_the_values_as_ticks_and_accuracy_from_zero_to_one() -> None:
    axes = draw(experiment(), trials(vocab_sizes=(4, 1024))).axes[4]
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["4", "1,024"]
    first = draw(experiment(), trials()).axes[0]
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
    assert footer(experiment(), trials()) == (
        "preset as-run · precision fp32 · L = 32 · hidden size 128 · 1,000 iterations · "
        "n = 5 seeds · error bars: 95 % percentile bootstrap over seeds"
    )
    drawn = [text.replace("\u00a0", " ") for text in texts(draw(experiment(), trials()))]
    assert any(text.endswith("error bars: 95 % percentile bootstrap over seeds") for text in drawn)


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
    assert [line.get_label() for line in lines] == ["Vanilla", "Position-encoded", "random"]
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
        names = {"none": "none", "sinusoidal": "sinusoidal"}
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
    render(draw(experiment(question="$\\frac{$ <b>&"), trials()), "svg")


def test_labels_name_and_order() -> None:
    label = Labels({"b": "B", "a": "A"})
    assert label.order(["c", "a", "b", "a", 3]) == ["b", "a", 3, "c"]
    assert [label(value) for value in ("a", "c", 1024, 0.5, None)] == [
        "A",
        "c",
        "1,024",
        "0.5",
        "None",
    ]
