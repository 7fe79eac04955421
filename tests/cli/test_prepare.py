"""`pernn prepare`: text made ready beforehand, and what is said where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LITTLE = (
    "--scale=demo",
    '--set=task.corpus={"kind":"grammar","num_paragraphs":301,"num_held_out":40,"num_words":400}',
    "--set=task.vocab_size=320",
)


def prepare(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pernn", "prepare", *words],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PERNN_DATA": str(data), "COLUMNS": "200"},
    )  # fmt: skip


def test_text_is_prepared_once(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((), 3, "Salesforce/wikitext"),
        (("sorting",), 2, "there is nothing to prepare"),
        (("languagemodelling",), 2, "did you mean 'language_modelling'"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    done = prepare(tmp_path, *words)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
