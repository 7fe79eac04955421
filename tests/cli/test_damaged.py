"""A damaged file of one trial or sweep is named and left out; what is whole goes on."""

import json
import random
import shutil

import pytest

from command_line import call as pernn
from pernn.lab.config import fingerprint
from pernn.lab.store import RunDirectory, Sweep, save_sweep, sealed
from store.finished import finish, logged, spec

NAME = "vocabulary_size-demo"
NUM_WHOLE = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Results of eight finished trials, five of them damaged, with a damaged sweep and a link."""
    root = tmp_path_factory.mktemp("damaged") / "results"
    lines = [{"update": 1, "kind": "train", "loss": 1.0, "token_accuracy": 0.25}]
    runs = [logged(root, spec(seed), random.Random(seed), lines) for seed in range(8)]
    (runs[0].path / "environment.json").write_text("[1]")
    environment = (runs[1].path / "environment.json").read_text()
    (runs[1].path / "environment.json").write_text(environment.replace("one", "two"))
    (runs[2].path / "metrics.jsonl").write_text("{\n")
    (runs[3].path / "metrics.jsonl").write_text('{"kind": "train", "loss": 1.0}\n')
    result = runs[4].read_result() or {}
    (runs[4].path / "result.json").write_text(json.dumps(sealed(result | {"diverged": 5})))
    save_sweep(root, Sweep(NAME, "vocabulary_size", "demo", {}, [run.fingerprint for run in runs]))
    (save_sweep(root, Sweep("torn-demo", "sorting", "demo", {}, [])) / "sweep.json").write_text("{")
    (root / "sweeps" / "linked").symlink_to(root / "sweeps" / NAME)
    return root.parent


def lines_naming(name, text):
    return sum(name in line for line in text.splitlines())


@pytest.mark.parametrize(
    ("words", "named", "said"),
    [
        (["report", NAME], (0, 1, 2, 3, 4), ""),
        (["report", "--all", "--out", "study.html"], (0, 1, 2, 3, 4), ""),
        (["export", NAME, "-o", "trials.csv"], (2, 3, 4), "7 of 8 trials"),
        (["export", NAME, "--curves", "-o", "curves.csv"], (2, 3, 4), "10 rows of 7 of 8 trials"),
        (["publish", NAME, "--to", "published"], (0, 1, 2, 3, 4), f"{NUM_WHOLE} published"),
    ],
)
def test_verbs_name_it_and_go_on(place, words, named, said):
    done = pernn(*words, cwd=place)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    assert said in done.stdout
    assert all(lines_naming(spec(seed).fingerprint(), done.stderr) == 1 for seed in named)


@pytest.fixture
def strange(tmp_path):
    """Two trials of no sweep, one of them of an unknown kind, and a sweep of an unknown study."""
    root = tmp_path / "results"
    finish(root, spec(0), random.Random(0))
    values = spec(1).dump()
    values["core"]["kind"] = "mingru"
    lost = RunDirectory(root, fingerprint(values))
    lost.path.mkdir()
    lost.write_spec(values)
    save_sweep(root, Sweep("own-demo", "own", "demo", {}, ["e" * 16]))
    return tmp_path, lost.fingerprint


def test_a_trial_of_an_unknown_kind_is_named(strange):
    folder, lost = strange
    for words, status in ((["resume", "train"], 4), (["report", "train"], 0)):
        done = pernn(*words, cwd=folder)
        assert done.returncode == status, done.stderr
        assert f"trial {lost} cannot be read: " in done.stderr
        assert "no kind 'mingru'" in done.stderr
    report = (folder / "results/sweeps/train/claims.json").read_text()
    assert json.loads(report)["num_planned"] == 1
    shutil.rmtree(folder / "results" / "runs" / spec(0).fingerprint())
    for verb in ("resume", "report"):
        done = pernn(verb, "train", cwd=folder)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith(f"pernn: trial {lost} cannot be read: ")


def test_a_sweep_of_an_unknown_experiment_is_in_nobodys_way(strange):
    folder, _ = strange
    said = "sweep own-demo: no experiment 'own'"
    for words in (["resume"], ["prune", "--yes"]):
        done = pernn(*words, cwd=folder)
        assert done.returncode == 4, done.stderr
        assert f"left out: {said}" in done.stderr
        assert "needs an entry point, see docs/extend.md" in done.stderr
        assert done.stdout != ""
    done = pernn("prune", "--all-checkpoints", "--yes", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_no_list_of_another_sweep_is_in_the_way(place):
    shutil.copytree(place / "results", place / "torn", symlinks=True)
    shutil.rmtree(place / "torn" / "sweeps" / NAME)
    for words in (["status"], ["report", "--all", "--out", "all.html"], ["resume", "-r", "torn"]):
        done = pernn(*words, cwd=place)
        assert "Traceback" not in done.stderr
        for name in ("torn-demo", "linked"):
            assert lines_naming(name, done.stderr) == 1
    assert NAME in pernn("status", cwd=place).stdout
    assert pernn("status", "torn-demo", cwd=place).returncode == 4
