"""`pernn status` and `export` as a user meets them."""

import json
import os
import pty
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import call, python
from pernn.lab.evidence import make_study
from pernn.lab.lookup import list_single_runs, read_plan
from pernn.lab.runs import tell_apart
from pernn.lab.store import RunDirectory, Sweep, save_sweep
from pernn.lab.sweeps import make_report
from store.finished import begin, finish, spec

FULL = Path("/dev/full")
EVIL = "\x1b[2J\x1b]0;title\x07<script>[red]\u202eevil\x9b31m"


def pernn(root, *words, columns=200):
    return call(*words, "-r", root, columns=columns)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("reading") / "results"
    runs = [finish(root, spec(seed), random.Random(seed)).fingerprint for seed in range(3)]
    failed = begin(root, spec(10))
    failed.note("failed", update=7, reason=EVIL)
    paused = begin(root, spec(11))
    paused.note("paused", update=9, reason="asked to")
    save_sweep(
        root, Sweep("study-demo", "study", "demo", {}, [*runs, failed.fingerprint, "e" * 16])
    )
    save_sweep(root, Sweep("other-demo", "other", "demo", {}, [paused.fingerprint]))
    return root


def on_a_terminal(*arguments):
    """Run Python on a pseudo-terminal; give its exit status and all that it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "200", "LINES": "50", "TERM": "xterm"},
    )
    os.close(theirs)
    said, end = b"", time.monotonic() + 240
    while time.monotonic() < end:
        try:
            said += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    return process.wait(timeout=240), said.decode()


def test_signs_that_a_locale_lacks_are_question_marks():
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = python("-m", "pernn", "show", "vocabulary_size", env={**os.environ, **ascii_only})
    assert done.returncode == 0, done.stderr
    assert "Damerau?Levenshtein" in done.stdout
    words = ("show", "vocabulary_size", "--json")
    done = python("-m", "pernn", *words, env={**os.environ, **ascii_only})
    assert "Damerau–Levenshtein" in json.dumps(json.loads(done.stdout), ensure_ascii=False)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_one_line():
    with FULL.open("w") as full:
        words = [sys.executable, "-m", "pernn", "list"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "pernn: No space left on device\n")


def test_control_characters_do_nothing_on_a_terminal(results):
    words = ("-m", "pernn", "status", "study-demo", "-r", str(results))
    status, said = on_a_terminal(*words)
    assert status == 0, said
    assert "script" in said
    assert "evil" in said
    for sign in ("\x1b[2J", "\x1b]0;", "\x07", "\x9b", "\u202e"):
        assert sign not in said
    # What looks like markup is shown, not obeyed.
    assert "[red]" in said


def test_status_says_why(results):
    rows = json.loads(pernn(results, "status", "other-demo", "--json").stdout)["other-demo"]
    assert [(row["state"], row["reason"]) for row in rows] == [("stopped", "asked to")]
    assert rows[0]["run"] in (paused := pernn(results, "status", "other-demo", columns=80).stdout)
    assert "asked to" in paused
    rows = json.loads(pernn(results, "status", "study-demo", "--json").stdout)["study-demo"]
    assert rows[0]["update"] == spec(0).num_updates
    counts = json.loads(pernn(results, "status", "--json").stdout)
    assert counts["study-demo"] == {"finished": 3, "failed": 1, "waiting": 1}
    head = pernn(results, "status", columns=80).stdout.splitlines()[1]
    assert pernn(results, "status", "study-demo", columns=40).stderr.endswith("all with --json\n")
    # A state that no trial is in takes no room.
    states = ["waiting", "stopped", "finished", "failed"]
    assert sorted(head.replace("┃", " ").split()) == sorted(["Sweep", "Trials", *states])


def test_trials_of_one_label_are_told_apart_and_long_tables_are_lines(tmp_path):
    one = spec(1)
    specs = {"a": one, "b": one.override({"core.hidden_size": 16}), "c": spec(2)}
    label = one.label
    widths = "core.hidden_size={0} encoding.size={0} embedding_size={0}"
    assert tell_apart(specs) == {
        "a": f"{label} {widths.format(8)}",
        "b": f"{label} {widths.format(16)}",
        "c": spec(2).label,
    }
    runs = [f"{number:016x}" for number in range(300)]
    (tmp_path / "runs").mkdir()
    save_sweep(tmp_path, Sweep("long-demo", "long", "demo", {}, runs))
    lines = pernn(tmp_path, "status", "long-demo").stdout.splitlines()
    # Columns without an entry are left out.
    assert lines[0].split() == ["Trial", "State", "Run"]
    assert [line.split() for line in lines[1:]] == [[run, "waiting", run] for run in runs]


def test_status_shows_what_runs_and_how_long_it_takes(results):
    run = RunDirectory(results, spec(10).fingerprint())
    with run.locked():
        run.note("resumed", update=0)
        time.sleep(0.1)
        run.append_metrics({"update": 1234, "kind": "train", "loss": 1.0})
        for words, name in (((), spec(10).label), (("study-demo",), run.fingerprint)):
            said = pernn(results, "status", *words, columns=200).stdout
            (row,) = [line for line in said.splitlines() if "1,234 of" in line]
            assert name in row
            assert re.search(r", about .* left ", row)


def test_status_reads_names_of_trials(tmp_path):
    """A run whose spec is gone keeps its fingerprint."""
    known, torn = (begin(tmp_path, spec(seed)) for seed in (11, 12))
    (torn.path / "spec.json").unlink()
    save_sweep(
        tmp_path, Sweep("study-demo", "study", "demo", {}, [known.fingerprint, torn.fingerprint])
    )
    with known.locked(), torn.locked():
        text = pernn(tmp_path, "status", columns=200).stdout
    assert spec(11).label in text
    assert known.fingerprint not in text
    assert torn.fingerprint in text


def test_no_address_but_curves_and_the_page_of_all(results, tmp_path):
    address = "ftp://me:secret@host/b.csv"
    refused = call("export", "study-demo", "-o", address, "-r", results, cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "not an address" in refused.stderr
    assert "secret" not in refused.stderr
    assert not list(tmp_path.iterdir())
    done = pernn(results, "export", "study-demo", "--curves", "-o", tmp_path / "curves.csv")
    assert done.returncode == 0, done.stderr
    assert "rows of 3 of" in done.stdout
    done = pernn(results, "export", "study-demo", "--table", "by_update", "-o", tmp_path / "a.csv")
    assert done.stdout.startswith("3 rows of 3 of 5 trials written to ")
    page = tmp_path / "study.html"
    done = pernn(results, "report", "--all", "--out", page)
    assert done.returncode == 4
    assert done.stderr.count("left out: sweep") == 2
    assert done.stdout.strip() == str(page)
    assert '<table id="scorecard" class="claims">' in page.read_text()


def test_trials_of_no_sweep_are_listed_reported_and_exported(tmp_path, one_format):
    analysed = spec(5).override({"analysis": {"num_per_condition": 4}})
    for seed in range(3):
        finish(tmp_path, spec(seed), random.Random(seed)).write_environment({"threads": 1})
    for one in (analysed, spec(5)):
        finish(tmp_path, one, random.Random(5))
    planned = [spec(0).fingerprint(), analysed.fingerprint()]
    save_sweep(tmp_path, Sweep("study-demo", "study", "demo", {}, planned))
    # Seed 0 is the sweep's, and seed 5 is what its other trial analyses.
    alone = {spec(seed).fingerprint() for seed in (1, 2)}
    assert {*list_single_runs(tmp_path)} == alone
    found = json.loads(pernn(tmp_path, "status", "--json").stdout)
    assert found == {"study-demo": {"finished": 2}, "train": {"finished": 2}}
    assert spec(1).label in pernn(tmp_path, "status", "train").stdout
    out = tmp_path / "alone.json"
    assert pernn(tmp_path, "export", "train", "-o", out).returncode == 0
    assert {row["run"] for row in json.loads(out.read_text())} == alone
    plan = read_plan(tmp_path, "train", pytest.fail)
    report = make_report(tmp_path, plan, pytest.fail)
    assert spec(2).label in (report.page.parent / "figure.svg").read_text()
    assert "<title>train · pernn</title>" in report.page.read_text()
    # A report is no sweep.
    assert {*list_single_runs(tmp_path)} == alone
    page = tmp_path / "study.html"
    assert make_study(tmp_path, page, lambda said: None) == 1
    assert "How did the trials that belong to no sweep end?" in page.read_text()
    assert "no sweep 'train'" in pernn(tmp_path / "empty", "status", "train").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["report", "vocabulary_size", "--scale", "small"],
        ["report", "--all"],
        ["export", "vocabulary_size", "-o", "records.csv"],
        ["compare", "encoding.kind=none", "encoding.kind=sinusoidal", "--sweep", "sorting"],
        ["status"],
    ],
)
def test_outside_a_clone_the_place_of_published_trials_is_named(tmp_path, words):
    done = call(*words, cwd=tmp_path, PERNN_EVIDENCE="")
    said = done.stderr + done.stdout
    assert str(tmp_path / "results") in said
    assert f"looked for in {tmp_path / 'evidence'} (there: 0 published sweeps)" in said
    assert "PERNN_EVIDENCE names another folder, such as `evidence` of a clone" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["report", "sorting-smal"], ["export", "sorting-smal", "-o", "records.csv"]]
)
def test_a_misspelt_sweep_is_looked_for_among_those_published(tmp_path, words):
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "sorting-small.parquet").touch()
    told = call(*words, cwd=tmp_path, PERNN_EVIDENCE="").stderr
    assert told.endswith(", did you mean 'sorting-small'?\n")
    (tmp_path / "evidence" / "sorting-small.parquet").unlink()
    told = call(*words, cwd=tmp_path, PERNN_EVIDENCE="").stderr
    assert f"no sweep 'sorting-smal' in {tmp_path / 'results'}" in told
    assert f"looked for in {tmp_path / 'evidence'} (there: 0 published sweeps)" in told
