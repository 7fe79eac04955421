"""Quickstart and questions: every command of pernn runs, in order, in one folder."""

from pathlib import Path

import pytest

from command_line import call
from docs.test_extend import recipe
from docs.test_readme import blocks, commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("quickstart.md", "faq.md")]
SHORTER = ("--set", "training.iterations=20", "--seeds", "1", "--jobs", "2")
"""Appended to trainings that a reader waits for, but for those that the page itself shortens."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("reader")
    (place / "mingru.py").write_text(recipe("core")[0], encoding="utf-8")
    return place


@pytest.mark.slow  # a minute; the verbs and their options have tests of their own
def test_the_commands_run_as_printed(folder):
    ran = 0
    for page in PAGES:
        for line in commands(page.read_text(encoding="utf-8")):
            program, *words = [word.strip("'\"") for word in line.split()]
            if program != "pernn":
                continue
            if words[0] == "run" and "training.iterations=400" not in words:
                words += SHORTER
            done = call(*words, cwd=folder, PERNN_EVIDENCE=str(ROOT / "evidence"))
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            ran += 1
    assert ran > 20


@pytest.mark.slow  # after the commands above
def test_the_results_are_read_from_python(folder, monkeypatch, capsys):
    (block,) = blocks("python", PAGES[0].read_text(encoding="utf-8"))
    monkeypatch.chdir(folder)
    exec(block, {})  # noqa: S102
    assert "PositionEncodedRNN" in capsys.readouterr().out
