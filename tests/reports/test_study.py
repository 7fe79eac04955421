"""The page of a whole study: every claim, nothing from outside, names as text."""

import base64
import gzip
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pytest

from pernn.lab.experiments import (
    PLANNED,
    Choice,
    Claim,
    Differs,
    EveryTrial,
    Place,
    experiment_names,
    find_experiment,
)
from pernn.lab.reports import Report, draw_curves, write_study
from pernn.lab.reports.drawings import _conditions
from pernn.lab.trials import Trial, settings_of
from reports.test_page import CLAIMS, HOSTILE, Reader
from reports.trials import ENCODING, curves, experiment, planned, trials

LONG = "x" * 10_000
RIGHT_TO_LEFT = "\u202egnp.exe"


class Page(Reader):
    """Also tells scripts from words, and reads the scorecard."""

    def __init__(self):
        super().__init__()
        self.scripts: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("link", "input"):
            super().handle_starttag(tag, attrs)

    def handle_data(self, data):
        kept = self.scripts if self.open and self.open[-1] == "script" else self.words
        kept.append(data)


MADE_BY = {"packages": {"pernn": "0.1.0"}, "commit": "abcdef"}


def chapter(**changes):
    about = {"experiment": experiment(claims=CLAIMS), "scale": "demo", "records": trials()}
    about |= {"planned": planned(), "command": "pernn run it", "notes": ["Two cores."]}
    about |= {"trials": [Trial("a", {}, {"metrics": {}}, {**MADE_BY}, {})], "formats": ()}
    return Report(**{**about, **changes})


def unpack(path):
    packed = re.findall(r'<script type="text/plain">(.*?)</script>', path.read_text())
    return [gzip.decompress(base64.b64decode(one)).decode() for one in packed]


def read(path):
    page = Page()
    page.feed(path.read_text())
    page.close()
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study([chapter()], tmp_path_factory.mktemp("study") / "study.html")


def num_counted(name):
    """Count claims of an experiment without sweeps; those that name a smaller scale do not."""
    claims = find_experiment(name).claims
    return sum(not claim.name.endswith(("_small", "_demo")) for claim in claims)


LINE = re.compile(r'<tr id="([^"]*)" data-verdict="([^"]*)" data-experiment="([^"]*)">')


def counts_of(path):
    return re.search(r'class="progress">(.*?)</p>', path.read_text())[1]


def test_every_claim_stands_on_the_scorecard_and_nothing_is_loaded_from_outside(study):
    text = study.read_text()
    lines = LINE.findall(text)
    others = [name for name in experiment_names() if name != "vocabulary_size"]
    assert len(lines) == sum([len(CLAIMS), *map(num_counted, others)])
    of_sweep = [verdict for _, verdict, name in lines if name == "vocabulary_size"]
    assert of_sweep == ["supported", "contradicted", "not run"]
    assert {verdict for _, verdict, name in lines if name != "vocabulary_size"} == {"not run"}
    ids = re.findall(r'<tr id="([^"]*)"', text)
    assert len(ids) == len(set(ids)) > 100
    assert set(map(unquote, re.findall(r'<a class="link" href="#([^"]*)"', text))) == set(ids)
    assert f"claim-vocabulary_size-{CLAIMS[0].name}" in ids
    words = " ".join(" ".join(read(study).words).split())
    for one in (
        "smaller than the paper", "0.1.0 (abcdef)", "pernn run it", "Two cores.", "demo",
        "preset as-run", f"{trials()[0]['token_accuracy']:.6g}", "no finished trials",
    ):  # fmt: skip
        assert one in words
    text, page = study.read_text(), read(study)
    assert not {"iframe", "img", "object"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    assert "default-src 'none'" in text
    assert "unsafe-inline' 'unsafe-eval'" not in text
    assert len(page.scripts) == 1
    one = trials()[0]
    name = "Vocabulary size K: 4, seed 111"
    assert f"<title>Vanilla, {name}: {one['token_accuracy']:.4g}</title>" in text
    means = re.findall(r"<title>Position-encoded, Vocabulary size K: 4: ([^<]*)</title>", text)
    assert all(re.fullmatch(r"\S+ \[\S+, \S+\], n = 5", mean) for mean in means)
    assert len(means) == 4  # two networks, two metrics
    assert f'<tr title="{one["run"]}"><td>GRU, Vanilla, {name}</td>' in text
    colours = set(re.findall(r"(?:fill|stroke): (#\w+)", text))
    assert colours == {"#d55e00", "#0072b2"}


def test_a_claim_counts_once_by_its_planned_sweep(tmp_path):
    """Of one experiment: the demo, its whole grid at `small`, and a cell with other widths."""
    part = {
        "records": [one for one in trials() if one["core.kind"] == "lstm"],
        "planned": [spec for spec in planned() if spec.core.kind == "lstm"],
        "changes": "core.hidden_size=96",
        "is_restricted": True,
    }
    chapters = [chapter(), chapter(scale="small"), chapter(scale="small", **part)]
    page = write_study(chapters, tmp_path / "study.html")
    first, second, *_ = re.findall(r"<table[^>]*claims.*?</table>", page.read_text(), re.DOTALL)
    whole = len(CLAIMS)
    assert [name for *_, name in LINE.findall(first)].count("vocabulary_size") == whole
    links = re.findall(r'href="#(sweep-\d)">vocabulary_size', page.read_text())
    assert links[:whole] == ["sweep-1"] * whole
    # What the cell's trials are not about is not asked; of the demo nothing is missing.
    apart = [verdict for _, verdict, _ in LINE.findall(second)]
    assert "not run" not in apart
    assert 0 < len(apart) < 2 * whole
    every = sum(map(num_counted, experiment_names()))
    own = len(find_experiment("vocabulary_size").claims)
    numbers = [int(number) for number in re.findall(r"(\d+) ", counts_of(page))]
    assert sum(numbers) == every - own + whole


def test_claims_on_the_same_numbers_count_once_unless_trials_stand_at_the_last_update(tmp_path):
    first = CLAIMS[0]
    opposite = replace(first, name="again", predicate=replace(first.predicate, sign=-1))
    about = experiment(claims=(first, opposite))
    page = write_study([chapter(experiment=about)], tmp_path / "study.html")
    assert f"the numbers of vocabulary_size: {first.name}, counted there" in page.read_text()
    counts = counts_of(page)
    assert "1 supported" in counts
    assert "1 same numbers" in counts
    assert "contradicted" not in counts
    about = experiment(claims=(first, replace(first, name="again")))
    found = chapter(experiment=about)
    vars(found)["verdicts"] = tuple(replace(one, is_cut=True) for one in found.verdicts)
    counts = counts_of(write_study([found], tmp_path / "study.html"))
    assert "2 supported" in counts
    assert "same numbers" not in counts
    any_share = ("task.vocab_size", PLANNED, (0.5,), 0.5, "any share")
    claims = []
    for kind in ("none", "sinusoidal"):
        where = {"core.kind": "lstm", "encoding.kind": kind}
        predicate = EveryTrial("token_accuracy", where, *any_share)
        claims.append(replace(CLAIMS[0], name=f"all_{kind}", predicate=predicate))
    about = experiment(claims=tuple(claims))
    counts = counts_of(write_study([chapter(experiment=about)], tmp_path / "study.html"))
    assert "2 supported" in counts
    assert "same numbers" not in counts


def test_chapters_after_the_first_are_packed_and_own_ones_are_first(tmp_path):
    own = experiment(name="own", claims=())
    best = experiment(name="tuned_vocabulary_size", claims=())
    chapters = [chapter(), chapter(experiment=best), chapter(experiment=own)]
    path = write_study(chapters, tmp_path / "study.html")
    found = re.findall(
        r'<section id="sweep-\d">.*?<span class="soft">(\w+)', path.read_text(), re.DOTALL
    )
    assert found == ["own", "tuned_vocabulary_size", "vocabulary_size"]
    packed = unpack(path)
    assert len(packed) == 2
    assert all("pernn run it" in one and "<svg" in one for one in packed)
    assert path.read_text().count("<svg") == 1


def test_hostile_names_are_text(tmp_path):
    names = (HOSTILE, LONG, RIGHT_TO_LEFT)
    records = [
        {**one, "core.kind": names[place % 3], "run": f"{HOSTILE}{place}"}
        for place, one in enumerate(trials(("gru",), (4,)))
    ]
    about = experiment(name=HOSTILE, question=HOSTILE, source=LONG, claims=CLAIMS)
    hostile = chapter(experiment=about, scale=HOSTILE, records=records, command=LONG, notes=names)
    path = write_study([hostile], tmp_path / "study.html")
    page, text = read(path), path.read_text()
    assert "img" not in page.tags
    assert "<script>alert" not in text
    assert "{{ 7*7 }}" in text
    assert "\u202e" not in text
    assert LONG not in text
    assert "x" * 300 in text
    assert text.count("<script") == 1


def drawn(monkeypatch, records, lines, **about):
    """Return the drawing of learning curves, and its figure."""
    figures: list[Any] = []
    keep = lambda figure, stem: figures.append(figure) or ""  # noqa: E731
    monkeypatch.setattr("pernn.lab.reports.drawings.inline", keep)
    found = draw_curves(experiment(**about), curves(records, lines), "demo", ("svg",))
    return found, figures[0]


def test_steep_training_losses_fall_without_a_jump(monkeypatch):
    """A test's line has the mean loss since the test before: far above a steep curve."""
    lines = [
        {"update": u, "kind": kind, "loss": loss, "token_accuracy": 1 - loss}
        | ({"train_loss": 0.8} if kind == "test" else {})
        for u in range(10, 210, 10)
        for loss in [2.0 ** (-u / 10)]
        for kind in (["train", "test"] if u % 50 == 0 else ["train"])
    ]
    _, figure = drawn(monkeypatch, trials(("gru",), (4,)), lines)
    training, tests, accuracy = figure.axes
    for axes, updates in ((training, range(10, 210, 10)), (tests, (50, 100, 150, 200))):
        for line in axes.lines:
            assert list(line.get_xdata()) == list(updates)
            assert list(line.get_ydata()) == pytest.approx([2.0 ** (-u / 10) for u in updates])
    assert list(accuracy.lines[0].get_xdata()) == [50, 100, 150, 200]


def test_curves_have_no_empty_panels_and_fit_a_screen(monkeypatch):
    """Cores with vocabularies of their own, more than can be drawn: the extremes of each."""
    cells = {"elman": (2, 4, 8), "gru": (4, 8, 16), "lstm": (16, 32, 64, 128)}
    cells["s4d"] = (256, 512, 1024)
    records = [one for core, sizes in cells.items() for one in trials((core,), sizes, (111, 222))]
    records = [{**record, "run": f"{place}"} for place, record in enumerate(records)]
    lines = [{"update": u, "kind": k, "loss": 1.0} for u in (5, 10) for k in ("train", "test")]
    curves_of, figure = drawn(monkeypatch, records, lines)
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["n = 2"] * 2 * 8
    assert figure.get_size_inches()[1] <= 15
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert len(list(filter(None, titles))) == 8
    for core, sizes in cells.items():
        own = [title for title in titles if core in title.lower()]
        assert [title.rpartition(" ")[2] for title in own] == [
            f"{size:,}" for size in (sizes[0], sizes[-1])
        ]
    assert curves_of.caption.endswith("(8 of 13 conditions)")
    assert curves_of.contents.keys() == {"learning_curves.svg"}
    for said in ("thin lines or dots: trials", "scale demo", "n = 2 seeds"):
        assert said in curves_of.footer


def test_of_tuned_sweeps_the_curves_are_those_that_are_judged(monkeypatch):
    """Of nine values eight are tried by the seed that chooses alone."""
    choice = Choice("core.hidden_size", "token_accuracy", (111,))
    claim = Claim(
        "helps", "It.", Place("v3", "x"), Differs("loss", {}, ENCODING, "core.kind"), choice=choice
    )
    records = [
        {**one, "core.hidden_size": size, "run": f"{size}-{one['run']}"}
        for size in range(1, 10)
        for one in trials(("gru",), (4,), (111, 222, 333) if size == 4 else (111,))
    ]
    lines = [{"update": u, "kind": "train", "loss": 1.0} for u in (5, 10)]
    curves_of, figure = drawn(monkeypatch, records, lines, claims=(claim,))
    assert curves_of.caption == "How the networks learnt (1 of 9 conditions)"
    (axes,) = figure.axes
    assert axes.get_title(loc="right") == "n = 2"
    assert curves_of.caption in figure.get_suptitle()


def test_curves_call_networks_by_the_codes_that_the_task_gives():
    vanilla = trials(("gru",), (4,), (111,))[0]
    records = [{**vanilla, "task.codes": code, "run": code} for code in ("noise", "keys")]
    settings = settings_of(curves(records, []))
    assert _conditions(experiment().figure, settings)[1] == "task.codes"


def test_a_sweep_that_has_no_chapter_is_no_experiment_that_was_not_run(tmp_path):
    page = write_study([chapter()], tmp_path / "study.html", {"sorting-small-1": "sorting"})
    said = page.read_text()
    assert "pernn report sorting-small-1<" in said
    assert "pernn run zipf --scale demo" in said
    assert "pernn run sorting --scale demo" not in said
