"""The page: what it says and shows, that nothing in it runs or loads, and that it is whole."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import AtLeast, Claim, Differs, Place
from pernn.lab.reports import FORMATS, Report
from pernn.lab.reports.drawings import draw_extra_figures
from reports.test_drawn import HEAT
from reports.trials import ENCODING, POINTS, experiment, finished, planned, stability, trials

HOSTILE = (
    '<script>alert("x")</script><img src=http://evil/ onerror=1>|\n\x1b[31m{{ 7*7 }} $\\frac{$'
)
NAMES = {"index.html", "report.md", "table.csv", "claims.json"} | {f"figure.{f}" for f in FORMATS}
OF_GRU = {"core.kind": "gru"}
MASTERS = AtLeast("token_accuracy", {"core.kind": "elman"}, "task.vocab_size", (4,), 0.95, "ours")
CLAIMS = tuple(
    Claim(name, f"It {name}.", Place("v3", "Fig. 2"), predicate)
    for name, predicate in {
        "helps": Differs("loss", OF_GRU, ENCODING, "task.vocab_size", sign=-1),
        "harms": Differs("loss", OF_GRU, ENCODING, "task.vocab_size"),
        "masters": MASTERS,
    }.items()
)


class Reader(HTMLParser):
    """Tags, attributes and visible words; complains about tags that do not close."""

    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = dict(attrs)
        assert not [name for name in names if name.startswith("on")]
        self.links += [str(names[name]) for name in ("href", "src", "xlink:href") if name in names]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


SVG = ("svg",)
"""Where a test does not look at the other formats, which take half of a report's time."""


def write(directory, records=None, formats=FORMATS, **changes):
    about = experiment(**{"claims": CLAIMS, **changes})
    records = trials() if records is None else records
    words = "pernn run it", ["Two cores."]
    return Report(about, "demo", records, planned(), *words, formats=formats).write(directory)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write(tmp_path_factory.mktemp("finished") / "new" / "sweep")


def read(report):
    reader = Reader()
    reader.feed(report.page.read_text())
    reader.close()
    assert reader.open == []
    return reader


def told(report):
    return " ".join(" ".join(read(report).words).split())


def test_equal_records_are_equal_bytes(report, tmp_path):
    again = write(tmp_path, trials()[::-1])
    for first, second in zip(report.paths, again.paths, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_page_says_it_all_and_what_decided(report):
    text = told(report)
    assert text.index("✔ supported") < text.index("✘ contradicted") < text.index("Figure")
    for said in (
        "– not run", "80 of 80 trials finished", "pernn run it", "Two cores.",
        "training.precision fp32", f"{trials()[0]['token_accuracy']:.6g}", trials()[-1]["run"],
    ):  # fmt: skip
        assert said in text
    assert "incomplete" not in text
    assert "core.kind gru" not in text
    assert {path.name for path in report.paths} == NAMES
    assert {path.name for path in report.page.parent.iterdir()} == NAMES
    assert report.page.name == "index.html"
    assert [one.verdict for one in report.verdicts] == ["supported", "contradicted", "not run"]
    verdict, text = report.verdicts[0], told(report)
    markdown = (report.page.parent / "report.md").read_text().replace("\\", "")
    assert verdict.quantity == "Loss, Position-encoded − Vanilla, mean over Vocabulary size K"
    for one in (text, markdown):
        assert f"{verdict.interval.estimate:.4g}" in one
        assert verdict.intervals in one
        assert verdict.cells[3].bootstrap.bounds in one
    assert "Each of the 4 cells" in text
    reader = read(report)
    assert "svg" in reader.tags
    assert not {"script", "link", "iframe", "img", "object"} & set(reader.tags)
    inside = [link for link in reader.links if link.startswith("#")]
    assert set(reader.links) - set(inside) <= NAMES
    styles = re.findall(r"url\(([^)]*)\)", report.page.read_text())
    assert all(target.strip("'\"").startswith("#") for target in styles)
    assert "default-src 'none'" in report.page.read_text()


def test_parts_of_ones_own_come_first_with_short_names_and_paired_numbers(report, tmp_path):
    found = trials(cores=("gru", "mine.mingru:MinGRUConfig"))
    own = write(tmp_path, found)
    page = own.page.read_text()
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads[:2] == ["Your own parts", "Figure"]
    assert heads[2].startswith("Claims, and what")
    ((name, compared),) = own.own
    assert name == "MinGRU: Position-encoded − Vanilla"
    assert f"<td>{name}</td>" in page
    assert f"- {name}, " in (tmp_path / "report.md").read_text().replace("\\", "")
    assert "mine.mingru:MinGRUConfig" not in re.sub(
        r"<details.*?</details>", "", page, flags=re.DOTALL
    )
    accuracy = dict.fromkeys(("sinusoidal", "none"), 0.0)
    own_trials = [one for one in found if one["core.kind"] != "gru"]
    for one in own_trials:
        accuracy[one["encoding.kind"]] += one["token_accuracy"]
    gain = (accuracy["sinusoidal"] - accuracy["none"]) / (len(own_trials) / 2)
    assert compared.overall.interval.estimate == pytest.approx(gain)
    assert report.own == []
    assert "Your own parts" not in report.page.read_text()
    assert write(tmp_path / "one", trials(("mine:Own",), seeds=(111,))).own == []


def test_unfinished_sweeps_lost_trials_and_no_claims_are_told(tmp_path):
    report = write(tmp_path, trials()[:-5], SVG)
    for text in (report.page.read_text(), (tmp_path / "report.md").read_text()):
        assert "75 of 80 trials finished" in text
    values = json.loads((tmp_path / "claims.json").read_text())
    assert (values["num_finished"], values["num_planned"]) == (75, 80)
    empty = write(tmp_path, [], SVG)
    assert "0 of 80 trials finished" in empty.page.read_text()
    assert "No finished trials yet." in " ".join(read(empty).words)
    assert {verdict.verdict for verdict in empty.verdicts} == {"not run"}
    records = finished()[:-1]
    records[0] |= {"diverged": 9, "loss": 9.0}
    report = write(tmp_path, records, SVG)
    text = " ".join(read(report).words)
    assert "79 of 80 trials finished, 1 of them diverged and counted as the worst" in text
    verdict = report.verdicts[0]
    assert (verdict.num_diverged, verdict.num_missing) == (1, 0)
    assert "1 trial diverged and counts as the worst" in text
    assert "How these are judged" in report.page.read_text()
    bare = write(tmp_path, [], SVG, claims=()).page.read_text()
    assert "No claims are attached" in bare
    assert "How these are judged" not in bare


def test_hostile_words_are_shown_and_do_nothing(tmp_path):
    records = [
        {**record, "core.kind": HOSTILE, "preset": HOSTILE, "run": HOSTILE, HOSTILE: HOSTILE}
        for record in trials(cores=("gru",))
    ]
    hostile = Claim("x", HOSTILE, Place(HOSTILE, HOSTILE), CLAIMS[0].predicate, None, HOSTILE)
    about = experiment(question=HOSTILE, source=HOSTILE, claims=(hostile, *CLAIMS))
    more: Any = (HOSTILE, [HOSTILE])
    report = Report(about, HOSTILE, records, planned()[:40], *more, formats=SVG).write(tmp_path)
    reader = read(report)
    assert not {"script", "img"} & set(reader.tags)
    page = report.page.read_text()
    assert "<script" not in page
    assert "{{ 7*7 }}" in page
    assert "\x1b" not in "".join(report.verdicts[0].detail)
    markdown = (tmp_path / "report.md").read_text()
    # The command stands in a block of code, where nothing is markup.
    outside = [line for line in markdown.splitlines() if not line.startswith("    ")]
    assert not [line for line in outside if "<" in line]
    assert "\x1b" not in markdown
    table = (tmp_path / "table.csv").read_text()
    (kind,) = {line["core.kind"] for line in csv.DictReader(io.StringIO(table))}
    assert "\n" not in kind
    assert "\x1b" not in table


LAYOUT = replace(HEAT, rows="encoding.kind")
MAIN = replace(POINTS, metrics=("token_accuracy",), contrast=None, x_base=None)
FIGURES = {"loss_and_accuracy": replace(MAIN, x="loss", form="scatter"), "by_position": LAYOUT}
CAPTIONS = {**experiment().labels, "by_position": "Similarity <by> position"}
FURTHER = {f"{stem}.{form}" for stem in FIGURES for form in ("svg", "pdf", "png")}
DRAWN = {"figure": MAIN, "more_figures": FIGURES, "labels": CAPTIONS}


@pytest.fixture(scope="module")
def illustrated(tmp_path_factory):
    records = [one for one in stability((111, 222)) if one["core.kind"] == "gru"]
    return write(tmp_path_factory.mktemp("further"), records, **DRAWN)


def test_further_figures_are_written_and_shown_under_the_main_one(illustrated):
    names = {path.name for path in illustrated.paths}
    assert names == NAMES | FURTHER
    assert {path.name for path in illustrated.page.parent.iterdir()} == names
    page, text = read(illustrated), told(illustrated)
    # Without a label, the name itself; in the order of the experiment.
    assert text.index("Loss and accuracy.") < text.index("Similarity <by> position.")
    assert text.index("Similarity <by> position.") < text.index("Means over trials")
    assert page.tags.count("svg") == 3
    assert "image" in page.tags  # the colour bar, which the page may show
    assert "img-src data:" in illustrated.page.read_text()
    assert set(page.links) >= FURTHER
    source = illustrated.page.read_text()
    names = re.findall(r'\bid="([^"]+)"', source)
    assert len(names) == len(set(names))
    links = set(re.findall(r'(?:href="#|url\(#)([^")]+)', source))
    assert links <= set(names)
    markdown = (illustrated.page.parent / "report.md").read_text()
    assert markdown.index("(figure.png)") < markdown.index("(loss_and_accuracy.png)")
    assert "![Similarity &lt;by&gt; position](by_position.png)" in markdown


def test_a_figure_without_its_table_says_so(tmp_path):
    records = trials(("gru",), (32,), (111,))
    written = write(tmp_path, records, **DRAWN | {"more_figures": {"by_position": LAYOUT}})
    assert "no finished trial has a table 'stability_map'" in "".join(read(written).words)
    nothing = write(tmp_path / "none", [], **DRAWN)
    assert {path.name for path in nothing.paths} == NAMES | FURTHER
    assert "".join(read(nothing).words).lower().count("no finished trials yet") >= 2


def test_a_scatter_plot_may_be_the_main_figure():
    about = experiment(figure=FIGURES["loss_and_accuracy"])
    summary = Report(about, "demo", trials(("gru",), (32,)), planned(), "command")
    assert summary.by == ("core.kind", "encoding.kind")
    assert summary.metrics == ("token_accuracy", "loss")
    assert [row.num_seeds for row in summary.rows] == [5, 5]


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


@pytest.mark.parametrize("stem", ["figure", "table", "index", "Up", "a/b", "", "a.b"])
def test_names_of_other_files_are_refused(stem):
    with pytest.raises(ConfigError, match=r"figure's name"):
        experiment(more_figures={stem: LAYOUT})
