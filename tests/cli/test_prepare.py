"""`pernn prepare`: text made ready beforehand, and what is said where there is none."""

import json
from pathlib import Path

import pytest

from command_line import call
from pernn.lab.runs import RunSpec

LITTLE = (
    "--scale=demo",
    '--set=task.corpus={"kind":"grammar","num_paragraphs":301,"num_held_out":40,"num_words":400}',
    "--set=task.vocab_size=320",
)


def prepare(data, *words):
    return call("prepare", *words, PERNN_DATA=str(data))


def test_text_is_prepared_once(tmp_path):
    done = prepare(tmp_path, "language_modelling", *LITTLE)
    assert done.returncode == 0, done.stderr
    assert "training the pieces" in done.stdout
    folder = Path(done.stdout.splitlines()[-1].partition(": ")[2])
    assert folder.parent == tmp_path / "prepared"
    made = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = prepare(tmp_path, "language_modelling", *LITTLE)
    assert again.returncode == 0
    assert "training the pieces" not in again.stdout
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == made


@pytest.mark.parametrize("words", [("run", "language_modelling", *LITTLE), ("train", "trial.json")])
def test_a_run_without_the_package_is_refused_before_anything_is_announced(tmp_path, words):
    """Ten trials failed one by one, after all of them had been measured."""
    (tmp_path / "sentencepiece.py").write_text("raise ImportError")
    spec = RunSpec().override({"task": {"kind": "language_modelling", "corpus": "grammar"}})
    (tmp_path / "trial.json").write_text(json.dumps(spec.dump()))
    done = call(*words, cwd=tmp_path, PYTHONPATH=str(tmp_path), PERNN_DATA=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith("pernn: preparing and decoding text needs sentencepiece: ")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert not list(tmp_path.glob("results/*"))
