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
