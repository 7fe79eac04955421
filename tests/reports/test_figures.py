"""What a figure shows, and that it is the same bytes every time."""

import random
import re
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from pernn.errors import ConfigError
from pernn.lab.experiments import CATALOGUE, FigureLayout, find_experiment
from pernn.lab.reports import Report, draw, render, to_csv
from pernn.lab.reports.figures import STRAIGHT, _in_steps, inline
from pernn.lab.reports.forms import looks
from pernn.lab.reports.panels import Scale, tick_log
from pernn.lab.reports.texts import Labels, footer, names_of
from reports.test_drawn import BANDS, DIFFERENCE, FACTORS, GRID, HEAT, SCATTER, paced
from reports.trials import (
    ENCODING,
    POINTS,
    by_condition,
    by_length,
    experiment,
    planned,
    stability,
    trial,
    trials,
)

FEW = trials(("gru",), (4, 8))
MAGIC = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def texts(figure):
    from matplotlib.text import Text

    return [found.get_text() for found in figure.findobj(Text)]


def test_two_drawings_are_equal_bytes_and_leave_settings_as_they_were():
    one, two = draw(experiment(), FEW), draw(experiment(), FEW)
    before = dict(mpl.rcParams)
    first = {form: render(one, form) for form in MAGIC}
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"font.size": 20, "svg.hashsalt": "other", "axes.facecolor": "red"}):
        again = {form: render(two, form) for form in reversed(MAGIC)}
    for form, magic in MAGIC.items():
        assert again[form] == first[form], form
        assert first[form].startswith(magic)
        assert b"Date" not in first[form]


def test_the_footer_says_how_it_was_made():
    records = [{**one, "training.learning_rate": 0.001} for one in trials()]
    expected = (
        "scale demo · preset as-run · precision fp32 · L = 32 · hidden size 128 · "
        "learning rate 0.001 · 1,000 updates · n = 5 seeds · error bars: 95 % by Student's t "
        "over seeds · small dots: trials, beside their mean"
    )
    assert footer(experiment(), records, "demo") == expected
    drawn = "\n\n".join(texts(draw(experiment(), records, "demo")))
    assert expected in drawn.replace("\u00a0", " ").replace("\n", " · ")
    # What stands on no axis is said.
    layout = FigureLayout("seed", "core.kind", "encoding.kind", ("loss",))
    few = [{**one, "task.rare_share": 0.125} for one in trials(vocab_sizes=(4,))]
    assert " · K = 4 · L = 32 · r = 0.125 · " in footer(experiment(figure=layout), few)
    assert " · K = 2 … 32 · " in footer(
        experiment(figure=layout), trials(vocab_sizes=(2, 4, 8, 16, 32))
    )


@pytest.mark.parametrize("length", [1, 30, 90])
def test_a_legend_stays_in_the_figure_however_long_its_names(length):
    names = {kind: f"{kind} " + "word " * (length // 5) for kind in ("none", "sinusoidal")}
    figure = draw(experiment(labels=names), FEW)
    figure.canvas.draw()
    (legend,) = figure.legends
    extent, bounds = legend.get_window_extent(), figure.bbox
    assert bounds.x0 <= extent.x0 < extent.x1 <= bounds.x1
    assert extent.y0 > max(axes.get_window_extent().y1 for axes in figure.axes)
    said = " ".join(text.get_text() for text in legend.get_texts())
    assert {*names} <= {*said.split()}


def test_a_quotation_mark_in_a_name_leaves_no_id_in_a_file():
    figure = draw(experiment(labels={"sinusoidal": 'the "usual" code'}), FEW)
    assert "line1|" not in render(figure, "svg").decode()
    page = inline(figure, "x")
    assert "line1|" not in page
    assert "the 'usual' code, " in page


INTERVALS = "bands or error bars: 95 % by Student's t over seeds · thin lines or dots: trials"
CORRELATED = "rank correlation, 95 % percentile bootstrap over seeds"


@pytest.mark.parametrize(
    ("form", "records", "ends"),
    [
        (BANDS, by_length(), INTERVALS),
        (HEAT, stability(), "colours: means over seeds · hatched: no trial"),
        (SCATTER, stability(), CORRELATED),
    ],
)
def test_the_footer_explains_the_form_and_mixed_presets(form, records, ends):
    records[0]["preset"] = "as-written"
    text = footer(experiment(figure=form), records)
    assert text.startswith("mixed presets: as-run, as-written · ")
    assert text.endswith(ends)


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_no_column_is_shown_by_its_name(name):
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


def test_blocks_of_a_share_have_one_axis_beside_the_line_of_chance():
    about = replace(POINTS, rows="preset", metrics=("token_accuracy",), contrast=None)
    records = [
        {**one, "preset": preset, "token_accuracy": lift + one["token_accuracy"] / 10}
        for preset, lift in (("as-run", 0.02), ("as-written", 0.12))
        for one in trials(("gru",))
    ]
    first, second = draw(experiment(figure=about), records).axes
    assert first.get_ylim() == second.get_ylim()


def test_conditions_and_encodings_look_the_same_in_every_figure():
    kinds = ["none", "sinusoidal", "repeated_embedding", "learned", "random", "other"]
    every = looks("encoding.kind", kinds)
    assert len({one["color"] for one in every.values()}) == 6
    assert [every[kind]["color"] for kind in kinds[:2]] == ["#D55E00", "#0072B2"]
    for some in (["repeated_embedding", "none"], ["random", "sinusoidal"]):
        assert looks("encoding.kind", some) == {kind: every[kind] for kind in some}
    # With a further column they keep their colour, and other columns leave it to them.
    pairs = [(kind, company) for kind in kinds[:2] for company in ("rare", "frequent")]
    found = looks(("encoding.kind", "company"), pairs)
    assert [found[pair] for pair in pairs[::2]] == [every[kind] for kind in kinds[:2]]
    assert [found[pair]["color"] for pair in pairs[1::2]] == ["#D55E00", "#0072B2"]
    assert len({(one["color"], one["linestyle"]) for one in found.values()}) == 4
    codes = looks(("encoding.kind", "task.codes"), [("none", None), ("none", "onset")])
    others = [*looks("task.kind", ["one", "two"]).values(), codes["none", "onset"]]
    assert not {one["color"] for one in others} & {"#D55E00", "#0072B2"}
    order = [f"{a} among {b}" for a in ("Frequent", "Rare") for b in ("Frequent", "Rare")]
    found = looks("condition", order)
    assert [found[name]["linestyle"] for name in order] == ["-", "--", "-", "--"]
    assert [found[name]["color"] for name in order] == 2 * ["#0072B2"] + 2 * ["#D55E00"]


LINES = FigureLayout("task.vocab_size", "core.kind", "encoding.kind", ("loss",))
WORDS = replace(LINES, x=("seed", "core.kind"))


WITH_WORDS = replace(POINTS, x="encoding.kind", lines="task.vocab_size")
BETWEEN_PANELS = replace(POINTS, contrast=replace(ENCODING, column="core.kind"))
TWICE = "two trials at seed = 111"


@pytest.mark.parametrize(
    ("layout", "changes", "said"),
    [
        (WORDS, {"form": "bands"}, "'bands' has one column along its axis"),
        (WORDS, {"contrast": ENCODING}, "along words shows no contrast"),
        (DIFFERENCE, {"contrast": None}, "needs a contrast"),
        (FACTORS, {"contrast": None}, "needs a contrast"),
        (SCATTER, {"contrast": ENCODING}, "shows no contrast"),
        (HEAT, {"metrics": ("similarity", "loss")}, "one metric"),
    ],
)
def test_impossible_layouts_are_refused(layout, changes, said):
    with pytest.raises(ConfigError, match=said):
        replace(layout, **changes)


@pytest.mark.parametrize(
    ("layout", "records", "said"),
    [
        (WITH_WORDS, trials(), "encoding.kind needs positive numbers"),
        (BETWEEN_PANELS, trials(), "must be between its lines"),
        (POINTS, trials() * 2, TWICE),
        (replace(GRID, panels="target"), by_condition(), TWICE),
        (replace(HEAT, panels="core.kind"), stability(), TWICE),
    ],
)
def test_impossible_figures_are_refused(layout, records, said):
    with pytest.raises(ConfigError, match=said):
        draw(experiment(figure=layout), records)


def test_a_form_that_nobody_draws_is_refused():
    layout = replace(HEAT)
    vars(layout)["form"] = "heats"  # beartype, which only tests have, refuses it elsewhere
    with pytest.raises(ConfigError, match="form is invalid: expected one of points, "):
        layout.__post_init__()


def test_labels_name_and_order():
    names = {"b": "B", "a": "A", "rare": "Rare", "frequent": "Frequent", "rare, rare": "Both"}
    label = Labels(names)
    assert label.order(["c", "a", "b", "a", 3]) == ["b", "a", 3, "c"]
    values = ("a", "c", 1024, 0.5, None, "core.kind")
    assert [label(value) for value in values] == ["A", "c", "1,024", "0.5", "–", "Core"]
    columns = ("target", "disturbants")
    pairs = [("frequent", "rare"), ("rare", "frequent"), ("rare", "rare")]
    # A pair with a name of its own stands where its name does.
    assert label.order(pairs) == [pairs[1], pairs[0], pairs[2]]
    first = Labels({"rare, rare": "Both", **names})
    assert first.order(pairs) == [pairs[2], pairs[1], pairs[0]]
    assert label.condition(columns, pairs[2]) == "Both"
    assert label.condition(columns, pairs[0]) == "Target: Frequent, Disturbants: Rare"
    sizes = Labels({"training.batch_size": "Batch", "256": "Large"})
    found = [sizes.condition("training.batch_size", size) for size in (64, 256, None)]
    assert found == ["Batch: 64", "Large", "Batch: –"]
    gru = Labels({"gru": "GRU"})
    assert gru.condition(("core.kind", "size"), ("gru", 8)) == "GRU, size: 8"
    assert gru.condition(("core.kind", "condition"), ("x", "Y")) == "Core: x, Y"


def test_cells_lie_halfway_between_their_values():
    label = Labels({})
    rows = [trial(p=p, word=str(p), power=4**p) for p in (0, 2, 4)]
    assert Scale("p", None, label, rows).edges() == [-1, 1, 3, 5]
    assert Scale("word", None, label, rows).edges() == [-0.5, 0.5, 1.5, 2.5]
    assert Scale("p", None, label, rows[1:2]).edges() == [1.5, 2.5]
    assert Scale("power", 4, label, rows[:1]).edges() == [0.5, 2]


def test_means_of_trials_that_never_arrive_are_lower_bounds():
    """In figure, footer and tables, not in `table.csv`."""
    layout = replace(FACTORS, form="points", contrast=None)
    about, records = experiment(figure=layout), paced(1.1, 1.3, 1.2, 4.0, 8.0)
    figure = draw(about, records)
    (hollow,) = (line for line in figure.axes[1].lines if line.get_marker() == "^")
    assert hollow.get_gid().endswith("|Vanilla, Vocabulary size K: 8: ≥ 870 [687, 1053], n = 5")
    marks = {one.get_label(): one[0].get_markevery() for one in figure.axes[1].containers}
    assert (marks["Vanilla"], marks["Position-encoded"]) == ([], [0])
    assert footer(about, records).endswith(
        "△, ≥ in tables: some trials never arrive, so at least that"
    )
    assert "△" not in footer(about, paced(1.1, 1.3))
    report = Report(about, "demo", records, planned(), "command", formats=())
    assert "| ≥ 870 \\[687, 1053\\] |" in report.table()
    assert "<td>≥ 870 [687, 1053]<br>" in report.html()
    assert "≥" not in to_csv(report.rows, report.all_metrics)


@pytest.mark.parametrize(
    ("low", "high", "base", "ticks"),
    [
        (0.05, 2000, 10, [0.1, 1, 10, 100, 1000]),
        (0.15, 5, 10, [0.2, 0.5, 1, 2, 5]),
        (75, 900, 10, [100, 200, 500]),
        (3, 400, 2, [4, 8, 16, 32, 64, 128, 256]),
        (0.8, 3.1, 2, [1, 1.5, 2, 3]),
        (500, 508, 10, [500, 501, 502, 503, 504, 505, 506, 507, 508]),
    ],
)
def test_ticks_of_a_logarithmic_axis(low, high, base, ticks):
    axes = Figure().add_subplot()
    axes.set_yscale("log", base=base)
    axes.set_ylim(low, high)
    tick_log(axes.yaxis, base)
    shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
    assert shown == pytest.approx(ticks)
    assert axes.get_yticklabels(minor=True) == []


def test_a_path_in_steps_leads_through_the_same_places():
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
