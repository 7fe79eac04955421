"""What a figure shows, and that it is the same bytes every time."""

import random
import re
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.container import ErrorbarContainer

from pernn.errors import ConfigError
from pernn.lab.experiments import CATALOGUE, Contrast, FigureLayout, find_experiment
from pernn.lab.reports import draw, render
from pernn.lab.reports.figures import STRAIGHT, _in_steps
from pernn.lab.reports.forms import looks
from pernn.lab.reports.texts import Labels, footer, names_of
from reports.trials import ENCODING, experiment, trials

FEW = trials(("gru",), (4, 8))
MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


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


def test_settings_of_matplotlib_are_left_as_they_were() -> None:
    before = dict(mpl.rcParams)
    render(draw(experiment(), FEW), "svg")
    assert dict(mpl.rcParams) == before


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
    with pytest.raises(ConfigError, match="two trials at seed = 111"):
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


def test_a_path_in_steps_leads_through_the_same_places() -> None:
    """Exactly, over many steps, from each start of a part, closed or not."""
    noise = random.Random(5)
    places = [(noise.randrange(10**5) / 100, noise.randrange(10**5) / 100) for _ in range(500)]
    letters = ["M" if number % 50 == 0 else "L" for number in range(500)]
    for end in ("", "z"):
        pairs = zip(letters, places, strict=True)
        text = "".join(f"{letter} {x} {y} \n" for letter, (x, y) in pairs)
        path = STRAIGHT.sub(_in_steps, f'<path d="{text}{end}"/>')
        assert len(path) < len(text)
        assert path.endswith(f'{end}"/>')
        x = y = 0.0
        found = []
        for letter, one, two in re.findall(r"([Ml])(\S+?) ([^Mlz\"]+)", path):
            x, y = (float(one), float(two)) if letter == "M" else (x + float(one), y + float(two))
            found.append((round(x, 4), round(y, 4)))
        assert found == places
    curved = 'd="M 0 1 \nC 0 1 2 3 4 5 \nz\n"'
    assert STRAIGHT.sub(_in_steps, curved) == curved
