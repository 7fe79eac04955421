"""Further figures: written, listed, shown beside the main one, or visibly left out."""

import re
from dataclasses import replace

import pytest

from pernn.errors import ConfigError
from pernn.lab.reports import Report, write_report
from pernn.lab.reports.drawings import draw_extra_figures
from reports.test_drawn import HEAT, POINTS
from reports.test_page import NAMES, read
from reports.trials import experiment, planned, stability, trials

LAYOUT = replace(HEAT, rows="encoding.kind")
MAIN = replace(POINTS, metrics=("token_accuracy",), contrast=None, x_base=None)
FIGURES = {"loss_and_accuracy": replace(MAIN, x="loss", form="scatter"), "by_position": LAYOUT}
CAPTIONS = {**experiment().labels, "by_position": "Similarity <by> position"}
FURTHER = {f"{stem}.{form}" for stem in FIGURES for form in ("svg", "pdf", "png")}


def made():
    return [one for one in stability((111, 222)) if one["core.kind"] == "gru"]


def write(directory, records, **changes):
    about = experiment(**{"figure": MAIN, "more_figures": FIGURES, "labels": CAPTIONS, **changes})
    return write_report(about, "demo", records, planned(), directory, "pernn run it")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write(tmp_path_factory.mktemp("further"), made())


def test_further_figures_are_written_and_listed(report):
    names = {path.name for path in report.paths}
    assert names == NAMES | FURTHER
    assert {path.name for path in report.page.parent.iterdir()} == names


def test_the_page_shows_them_under_the_main_one(report):
    page = read(report)
    text = " ".join(" ".join(page.words).split())
    # Without a label, the name itself; in the order of the experiment.
    assert text.index("Loss and accuracy.") < text.index("Similarity <by> position.")
    assert text.index("Similarity <by> position.") < text.index("Means over trials")
    assert page.tags.count("svg") == 3
    assert "image" not in page.tags  # which a page that loads nothing would not show
    assert set(page.links) >= FURTHER
    source = report.page.read_text()
    names = re.findall(r'\bid="([^"]+)"', source)
    assert len(names) == len(set(names))
    links = set(re.findall(r'(?:href="#|url\(#)([^")]+)', source))
    assert links <= set(names)
    markdown = (report.page.parent / "report.md").read_text()
    assert markdown.index("(figure.png)") < markdown.index("(loss_and_accuracy.png)")
    assert "![Similarity &lt;by&gt; position](by_position.png)" in markdown


def test_a_figure_without_its_table_is_visibly_left_out(tmp_path):
    records = trials(("gru",), (32,), (111,))
    written = write(tmp_path, records, more_figures={"by_position": LAYOUT})
    assert {path.name for path in written.paths} == NAMES
    said = "no finished trial has a table 'stability_map'"
    assert said in "".join(read(written).words)
    assert f"*Similarity &lt;by&gt; position*: {said}." in (tmp_path / "report.md").read_text()
    nothing = write(tmp_path / "none", [])
    assert {path.name for path in nothing.paths} == NAMES
    assert "".join(read(nothing).words).lower().count("no finished trials yet") >= 2


def test_a_scatter_plot_may_be_the_main_figure():
    about = experiment(figure=FIGURES["loss_and_accuracy"])
    summary = Report(about, "demo", trials(("gru",), (32,)), planned(), "command")
    assert summary.by == ("core.kind", "encoding.kind")
    assert summary.metrics == ("token_accuracy", "loss")
    assert [row.num_seeds for row in summary.rows] == [5, 5]


@pytest.mark.parametrize("stem", ["figure", "table", "index", "Up", "a/b", "", "a.b"])
def test_names_of_other_files_are_refused(stem):
    with pytest.raises(ConfigError, match=r"figure's name|another file"):
        experiment(more_figures={stem: LAYOUT})


def test_a_figure_of_a_part_of_the_trials(tmp_path):
    records = trials(("elman", "gru"), (32, 64), (111, 222))
    part = {"part": replace(MAIN, where={"core.kind": ("gru", "lstm")})}
    about = experiment(figure=MAIN, more_figures=part)
    (drawn,) = draw_extra_figures(about, records, "demo")
    alone = [one for one in records if one["core.kind"] == "gru"]
    same = experiment(figure=MAIN, more_figures={"part": MAIN})
    assert drawn.contents == draw_extra_figures(same, alone, "demo")[0].contents
    for others in (alone, [one for one in records if one not in alone], []):
        assert not draw_extra_figures(about, others, "demo")
    with pytest.raises(ConfigError, match="where"):
        experiment(figure=part["part"])
