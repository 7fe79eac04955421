"""Data that name code: what only reads executes none of it, and says so."""

import json
import shutil
from dataclasses import asdict, replace

import pytest

from cli.tiny import sweep
from command_line import call, python, succeed
from pernn.lab.config import fingerprint
from pernn.lab.store import list_sweeps, load_sweep, save_sweep
from pernn.lab.trials import publish

EVIL = """
from pathlib import Path

from pernn.lab.cores import CoreConfig

Path(__file__).with_name("executed").touch()


class Config(CoreConfig):
    def build(self, input_size, generator=None):
        raise NotImplementedError
"""
PLACE = "evilmod:Config"
SAID = "made with a part that is not loaded, 'evilmod:Config'"


@pytest.fixture
def folder(finished, tmp_path):
    """A folder as one clones it: a module, a sweep and published trials that name it."""
    (tmp_path / "evilmod.py").write_text(EVIL)
    results = shutil.copytree(finished, tmp_path / "results")
    stored = load_sweep(results, list_sweeps(results)[0])
    hostile = replace(stored, overrides={**stored.overrides, "core.kind": PLACE})
    publish(results, hostile, tmp_path / "evidence")
    save_sweep(results, hostile)
    (results / "runs" / stored.runs[0] / "result.json").unlink()
    return tmp_path


@pytest.fixture
def begun(finished, tmp_path):
    """A results directory with a run of two stages that was begun with somebody's core."""
    (tmp_path / "evilmod.py").write_text(EVIL)
    results = shutil.copytree(finished, tmp_path / "results")
    spec = json.loads(next(results.glob("runs/*/spec.json")).read_text())["spec"]
    first = {"task": {**spec["task"], "vocab_size": 2}, "training": spec["training"]}
    spec |= {"core": {**spec["core"], "kind": PLACE}, "pretraining": first}
    run = results / "runs" / fingerprint(spec)
    run.mkdir()
    values = {"format": 1, "fingerprint": run.name, "spec": spec}
    (run / "spec.json").write_text(json.dumps(values))
    return tmp_path


READING = [
    ("status",),
    ("status", "SWEEP"),
    ("report", "SWEEP"),
    ("report", "--all"),
    ("prune", "--yes"),
    ("export", "SWEEP", "-o", "out.csv"),
    ("compare", "seed=111", "seed=222", "--sweep", "SWEEP"),
    ("publish", "SWEEP", "--to", "other"),
]


def read(folder, words):
    name = sweep(folder / "results").name
    done = call(
        *[name if word == "SWEEP" else word for word in words],
        cwd=folder,
        PERNN_EVIDENCE="evidence",
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert not (folder / "executed").exists(), words
    return done


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_reading_verb_imports_no_part_that_data_name(folder, words):
    done = read(folder, words)
    needed = words not in {*READING[:2], READING[5], READING[7]}
    assert (SAID in done.stderr) == needed, done.stderr
    assert not needed or "if it is yours, set PERNN_PARTS=evilmod" in done.stderr


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_nor_one_that_a_run_was_begun_with(begun, words):
    done = read(begun, words)
    assert (SAID in done.stderr) == (words in (READING[3], READING[4])), done.stderr


def test_what_one_names_as_ones_own_is_imported(folder):
    name = sweep(folder / "results").name
    for parts in ("evilmod", "other, evilmod"):
        succeed("report", name, cwd=folder, PERNN_PARTS=parts)
        assert (folder / "executed").exists()
        (folder / "executed").unlink()


def test_an_entry_point_beside_the_data_is_not_installed(folder):
    about = folder / "evil-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    points = "[pernn.cores]\nevil = evilmod:Config\n[pernn.experiments]\nlure = evilmod:Config\n"
    (about / "entry_points.txt").write_text(points)
    results = folder / "results"
    stored = load_sweep(results, list_sweeps(results)[0])
    for changes in ({"overrides": {"core.kind": "evil"}}, {"experiment": "lure"}):
        save_sweep(results, replace(stored, **changes))
        assert asdict(load_sweep(results, stored.name))[next(iter(changes))] != ""
        done = read(folder, ("report", "SWEEP"))
        assert done.returncode == 2, done.stderr
        assert "no kind 'evil'" in done.stderr or "no experiment 'lure'" in done.stderr
    # Python itself puts the current folder on the path of a module that it runs.
    done = python("-m", "pernn", "report", stored.name, cwd=folder)
    assert "no experiment 'lure'" in done.stderr
    assert not (folder / "executed").exists()
