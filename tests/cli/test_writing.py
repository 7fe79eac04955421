"""What writes makes its folder, and says in one line where it cannot."""

import re
import shutil
from pathlib import Path

import pytest

from cli.tiny import sweep
from command_line import call as pernn
from command_line import succeed


@pytest.fixture(scope="module")
def damaged(finished, tmp_path_factory):
    """Results with a damaged trial, and an empty folder of published trials."""
    place = tmp_path_factory.mktemp("writing")
    results = shutil.copytree(finished, place / "results")
    (min((results / "runs").iterdir()) / "result.json").write_text("{")
    (place / "evidence").mkdir()
    return place


def test_a_trial_that_is_left_out_and_a_folder_in_a_files_place_are_named(damaged, tmp_path):
    results = damaged / "results"
    run, name = min((results / "runs").iterdir()).name, sweep(results).name
    label = rf"pernn: reverse_ordering lstm sinusoidal K=4 L=5 seed \d+ \({run}\)"
    done = pernn("publish", name, "-r", results, "--to", tmp_path)
    assert re.match(f"{label} of {name} left out: ", done.stderr)
    done = pernn("prune", name, "-r", results, "--dry-run")
    assert re.match(f"{label} left alone: ", done.stderr)
    done = pernn("report", "--all", "--out", "evidence", cwd=damaged)
    assert done.returncode == 4
    assert "Is a directory" in done.stderr
    assert "Drawing" not in done.stderr


def test_the_page_of_all_makes_its_folder(damaged, tmp_path):
    """As in a fresh clone, which has published trials and no results."""
    evidence = tmp_path / "evidence"
    results = damaged / "results"
    done = pernn("publish", sweep(results).name, "-r", results, "--to", evidence)
    assert done.returncode == 4
    done = succeed("report", "--all", cwd=tmp_path, PERNN_EVIDENCE=str(evidence))
    assert done.stdout.strip() == str(Path("results/study.html"))
    text = (tmp_path / "results" / "study.html").read_text()
    said = "Scorecard", 'id="sweep-0"', "How the networks learnt", "trials ran on", "pernn run"
    for words in said:
        assert words in text
