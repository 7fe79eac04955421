"""Where nothing is found, messages name the folders that were looked in, and what to set."""

from pathlib import Path

import pytest

from command_line import call as pernn


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
def test_outside_a_clone_the_place_of_published_trials_is_named(
    tmp_path: Path, words: list[str]
) -> None:
    done = pernn(*words, cwd=tmp_path, PERNN_EVIDENCE="")
    said = done.stderr + done.stdout
    assert str(tmp_path / "results") in said
    assert f"looked for in {tmp_path / 'evidence'} (there: 0 published sweeps)" in said
    assert "PERNN_EVIDENCE names another folder, such as `evidence` of a clone" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["report", "sorting-smal"], ["export", "sorting-smal", "-o", "records.csv"]]
)
def test_a_misspelt_sweep_is_looked_for_among_those_published(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "sorting-small.parquet").touch()
    told = pernn(*words, cwd=tmp_path, PERNN_EVIDENCE="").stderr
    assert told.endswith(", did you mean 'sorting-small'?\n")
    (tmp_path / "evidence" / "sorting-small.parquet").unlink()
    told = pernn(*words, cwd=tmp_path, PERNN_EVIDENCE="").stderr
    assert f"no sweep 'sorting-smal' in {tmp_path / 'results'}" in told
    assert f"looked for in {tmp_path / 'evidence'} (there: 0 published sweeps)" in told


def test_a_comparison_of_nothing_says_where_it_looked(tmp_path: Path) -> None:
    words = ["compare", "encoding.kind=sinusoidal", "encoding.kind=nonee"]
    done = pernn(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert f"no finished trials to select from in {tmp_path / 'results'}" in done.stderr
    assert "by --sweep" in done.stderr
