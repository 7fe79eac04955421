"""The published trials of this repository: pages are rebuilt from them, trials trained again."""

import functools
import hashlib
import json
import math
import os
import re
import shutil
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import pernn.lab
from command_line import call
from pernn.errors import ConfigError
from pernn.lab.config import flatten
from pernn.lab.evidence import make_study, read_reports
from pernn.lab.reports import matches
from pernn.lab.reports.statistics import Interval
from pernn.lab.runs import RunSpec, describe_environment, execute
from pernn.lab.store import (
    RunDirectory,
    describe_publication,
    list_publications,
    read_registrations,
)
from pernn.lab.sweeps import plan_again
from pernn.lab.trials import read_published
from predicted import predicted_and_found
from rebuild import EVIDENCE, FILLED, PAGES, ROOT, fill, rebuild, replication_parts, write_pace
from reports.test_drawn import agree

SAME = ("processor", "device", "threads", "kernels", "arithmetic", "variables", "cpu_capability")
"""What makes a class of machine, within which every bit is the same; and versions."""
MAX_BYTES = 16_000_000

if not list_publications(EVIDENCE):
    pytest.skip("nothing is published yet", allow_module_level=True)
pytest.importorskip("pyarrow")


def test_it_is_small_and_has_a_trial_of_each_kind_whichever_file_it_lies_in():
    name = "tuned_vocabulary_size-small-77d93bcd"
    of_file = describe_publication(EVIDENCE / f"{name}.parquet").runs
    frame = pernn.lab.load_results(EVIDENCE, name)
    assert len(frame) == json.loads((PAGES / name / "claims.json").read_text())["num_finished"]
    assert len(frame) > len(of_file)
    assert frame["sweeps"].str.contains(name).all()
    assert sum(path.stat().st_size for path in list_publications(EVIDENCE)) < MAX_BYTES
    assert [where for where in KINDS if not cheapest(where)] == []


@pytest.fixture
def without_study(monkeypatch):
    monkeypatch.setattr("rebuild.write_study", lambda *words: 0)


@pytest.mark.slow  # ten seconds a sweep: the next two compare all verdicts, and one sweep's pages
@pytest.mark.usefixtures("without_study")
def test_pages_are_what_the_records_give(tmp_path):
    """If this fails: make evidence."""
    pages = tmp_path / PAGES.relative_to(ROOT)
    pages.mkdir(parents=True)
    for name in ("report", "pace"):
        shutil.copy(PAGES / f"{name}.md", pages)
    filled = [tmp_path / one.relative_to(ROOT) for one in FILLED]
    for own, page in zip(FILLED, filled, strict=True):
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(own, page)
    rebuild(EVIDENCE, pages, pytest.fail, filled, jobs=2)
    assert compare(tmp_path) >= 5 * len(list_publications(EVIDENCE)) + 3 + len(FILLED)


def test_verdicts_on_pages_are_what_the_records_give():
    """If this fails: make evidence."""
    studies = read_reports(EVIDENCE, pytest.fail)
    paths = [PAGES / "report.md", *FILLED]
    folders = {path.parent for path in paths}
    parts = {one: replication_parts(studies, os.path.relpath(PAGES, one)) for one in folders}
    for path in paths:
        assert fill(path.read_text(), parts[path.parent]) == path.read_text(), path
    counts = parts[ROOT]["counts"]
    of_paper, own = counts.split(". ")
    assert re.fullmatch("Of 137 claims of the paper: .*40 not run", of_paper)
    assert re.fullmatch("Of 189 claims of our own: .*52 in other settings.", own)
    expected = (PAGES / "expectations.json").read_text()
    page = predicted_and_found(expected, studies, read_registrations())
    assert page == (PAGES / "predicted.md").read_text()


def test_no_registered_verdict_has_changed():
    """The smallest effect and errors were added to them; a digest has all else, to nine digits."""
    registered = json.loads((ROOT / "tests/golden/verdicts.json").read_text())
    found = {}
    for page in PAGES.glob("*/claims.json"):
        content = json.loads(page.read_text(), parse_float=lambda text: f"{float(text):.9g}")
        if any(claim.get("registration") == "registered" for claim in content["claims"]):
            assert page.parent.name in registered, "add its digest to tests/golden/verdicts.json"
        for claim in content["claims"]:
            claim.pop("detectable", None)
            for one in (claim, *claim["cells"]):
                one.pop("errors", None)
        found[page.parent.name] = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    # An exploratory sweep that is published later is not among them.
    assert {name: found[name].hexdigest() for name in registered} == registered


def test_the_page_of_all_sweeps_opens_fast(tmp_path):
    """By its size and its elements; chapters are packed until they are opened."""
    page = tmp_path / "study.html"
    make_study(tmp_path / "none", page, pytest.fail, EVIDENCE, jobs=2)
    elements = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: elements.append(tag)
    parser.feed(page.read_text(encoding="utf-8"))
    assert page.stat().st_size < 5_000_000
    assert 10_000 < len(elements) < 20_000


@pytest.mark.usefixtures("without_study")
def test_pages_of_the_smallest_sweep_are_what_its_records_give(tmp_path):
    """If this fails: make evidence."""
    folder = tmp_path / "smallest"
    folder.mkdir()
    # Trials that several sweeps share stand in one file alone.
    for path in sorted(list_publications(EVIDENCE), key=lambda path: path.stat().st_size):
        sweep = describe_publication(path)
        if plan_again(sweep).specs.keys() == {*sweep.runs}:
            break
    shutil.copy(path, folder)
    root = tmp_path / "root"
    rebuild(folder, root / PAGES.relative_to(ROOT), pytest.fail)
    assert compare(root) >= 5


def test_the_page_on_pace_is_what_the_records_give(tmp_path):
    """If this fails: make evidence."""
    pages = tmp_path / PAGES.relative_to(ROOT)
    pages.mkdir(parents=True)
    text = (PAGES / "pace.md").read_text()
    (pages / "pace.md").write_text(re.sub(r"(?s)(<!-- (\w+) -->).*?(<!-- /\2 -->)", r"\1\3", text))
    assert len((pages / "pace.md").read_text()) < len(text) / 2
    write_pace(read_reports(EVIDENCE, pytest.fail), pages)
    assert compare(tmp_path) == 2


def test_two_settings_are_compared_as_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("PERNN_EVIDENCE", str(EVIDENCE))
    words = ["encoding.kind=sinusoidal", "encoding.kind=none", "--sweep", "delayed_addition"]
    words += ["--scale", "small", "--until", "0.5", "-r", tmp_path]
    found = json.loads(call("compare", *words, "--json").stdout)
    assert [one["num_never"] for one in found["cells"]] == [[0, 0], [0, 0], [0, 8]]
    page = (PAGES / "pace.md").read_text()
    for cell in found["cells"]:
        log2 = cell["interval"]
        factor = Interval(*(2 ** log2[name] for name in ("estimate", "low", "high")), "")
        assert f"{factor.shown} \\[{factor.low:.2f}, {factor.high:.2f}\\]" in page
    where = {"sweep": "delayed_addition-small", "results": tmp_path}
    same = pernn.lab.compare(*words[:2], until=0.5, **where)
    assert json.loads(json.dumps(same.dump())) == found
    shown = same._repr_html_()
    assert shown.startswith(f"<p>{same.title}</p>")
    assert shown.count("<tr") == 1 + len(same.rows)
    with pytest.raises(ConfigError, match="no sweep 'delayed_addition-small'"):
        pernn.lab.compare(*words[:2], **where, evidence=None)
    done = call("compare", *words, "--metric", "loss")
    assert (done.returncode, "no metric beside it" in done.stderr) == (2, True)


def test_the_report_tells_how_two_kinds_of_processor_compare():
    found = json.loads(call("compare", EVIDENCE, EVIDENCE / "amd_epyc", "--json").stdout)
    assert (found["num_pairs"], found["differing"]) == (32, [])
    assert "of the four intervals includes zero" in (PAGES / "report.md").read_text()
    intervals = [cell["interval"] for cell in found["cells"]]
    assert [one["low"] < 0 < one["high"] for one in intervals] == 4 * [True]


def compare(root):
    """Compare rebuilt pages with the committed ones; return how many there are."""
    drawn_here = any(PAGES.glob("*/figure.svg")) and mpl.__version__ == pinned("matplotlib")
    compared = 0
    for made in root.rglob("*"):
        committed = ROOT / made.relative_to(root)
        if made.is_dir() or made.suffix == ".html":
            continue
        if made.suffix == ".svg":
            assert not drawn_here or made.read_bytes() == committed.read_bytes(), made
        elif made.suffix == ".json":
            values = (json.loads(path.read_text()) for path in (made, committed))
            agree(*values, made, rel=1e-6, abs=1e-12)
        else:
            assert made.read_text() == committed.read_text(), made
        compared += 1
    return compared


def pinned(package):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


@functools.cache
def trials():
    return {one.run: one for one in read_published(EVIDENCE)}


@functools.cache
def settings_of_trials():
    return [(one, flatten(RunSpec.load(one.spec).dump())) for one in trials().values()]


def cheapest(where):
    """The published trial of a kind that is trained again soonest, with what must precede it."""
    found = [one for one, settings in settings_of_trials() if matches(settings, where)]
    return min(found, key=lambda one: (sum(one.core_seconds.values()), one.run), default=None)


def versions(environment):
    return {name: environment["packages"].get(name) for name in ("torch", "numpy")}


def siblings(one):
    spec = {**one.spec, "seed": None}
    found = (other for other in trials().values() if other.run != one.run)
    return [other for other in found if {**other.spec, "seed": None} == spec]


def numbers(result):
    """A result's metrics, and what an anatomy found, as means over its levels."""
    found = result["tables"].get("anatomy", {})
    return result["metrics"] | {name: np.mean(column) for name, column in found.items()}


CORES = (
    "elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta",
    "pernn.lab.reference:TransformerConfig",
)  # fmt: skip
KINDS = [
    # A seed that is judged: rates that were tried and not chosen have three others.
    *({"core.kind": core, "seed": 111} for core in CORES),
    {"task.corpus.kind": "sotu", "seed": 111},
    *({"task.kind": kind} for kind in ("coded_reversal", "longer_inputs", "zipf")),
    {"encoding.kind": "constant"},
    {"encoding.masked": "output"},
    {"encoding.frequencies": "[0.392699]"},
    {"training.encoding_schedule": "early"},
    *({"analysis.kind": kind} for kind in ("anatomy", "descent")),
]
"""Every core that experiments ran, and what the experiments between accounts brought."""


@pytest.mark.slow
@pytest.mark.evidence
@pytest.mark.parametrize("where", KINDS, ids=str)
def test_a_published_trial_is_trained_again(where, tmp_path):
    import torch

    one = cheapest(where)
    threads = one.environment["threads"]
    torch.set_num_threads(threads)
    for stage in reversed(RunSpec.load(one.spec).stages):
        result = execute(stage, tmp_path, device="cpu", threads=threads).result
    here = describe_environment(torch.device("cpu")) | {"threads": threads}
    there = one.environment
    if versions(here) == versions(there) and all(here[k] == there.get(k) for k in SAME):
        for key in ("weights_sha256", "metrics", "tables"):
            assert result[key] == one.result[key]
        return
    if "analysis" not in one.spec:
        lines = RunDirectory(tmp_path, one.run).read_metrics()
        first = next(line for line in lines if line["kind"] == "train")
        assert first["update"] == one.curves["update"][0]
        assert first["loss"] == pytest.approx(one.curves["loss"][0], rel=1e-3)
    others = siblings(one)
    assert len(others) > 2, "too few published seeds to compare with"
    for name, value in numbers(result).items():
        values = [numbers(other.result)[name] for other in (one, *others)]
        spread = np.std(values, ddof=1) * math.sqrt(1 + 1 / len(values))
        reach = max(0.01, stats.t.ppf(0.9995, len(values) - 1) * spread)
        assert abs(value - np.mean(values)) <= reach, name
