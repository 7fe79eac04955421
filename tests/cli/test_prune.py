"""`pernn prune` as a user meets it."""

import json
import shutil
from pathlib import Path

from cli.tiny import sweep
from command_line import call as pernn


def test_what_is_no_longer_needed_is_deleted_when_told(finished: Path, tmp_path: Path) -> None:
    finished = shutil.copytree(finished, tmp_path / "results")
    name = sweep(finished).name
    asked = pernn("prune", name, "-r", finished)
    assert asked.returncode == 2
    assert "say --yes" in asked.stderr
    dry = json.loads(pernn("prune", name, "-r", finished, "--dry-run", "--json").stdout)
    assert len(list(finished.glob("runs/*/checkpoints/update-*"))) == 10
    done = pernn("prune", name, "-r", finished, "--yes", "--json")
    assert json.loads(done.stdout) == {**dry, "dry_run": False}
    assert dry["num_checkpoints"] == 5
    assert len(list(finished.glob("runs/*/checkpoints/update-*"))) == 5
    assert pernn("report", name, "-r", finished).returncode == 0


def test_results_of_two_machines_are_brought_together_by_copying(
    finished: Path, tmp_path: Path
) -> None:
    here = shutil.copytree(finished, tmp_path / "here")
    name, (run, other, *_) = sweep(here).name, sorted((here / "runs").iterdir())
    shutil.rmtree(run)
    assert "4 of 5" in pernn("export", name, "-r", here, "-o", tmp_path / "x.csv").stdout
    shutil.copytree(finished / "runs" / run.name, run)
    assert "5 of 5" in pernn("export", name, "-r", here, "-o", tmp_path / "x.csv").stdout
    result = other / "result.json"
    result.write_bytes(result.read_bytes()[:-20])
    cut = pernn("export", name, "-r", here, "-o", tmp_path / "x.csv")
    assert (cut.returncode, "4 of 5" in cut.stdout) == (4, True)
    assert f"{other.name}/result.json" in cut.stderr
