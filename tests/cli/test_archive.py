"""`pernn prune`, `pernn archive` and `pernn unpack` as a user meets them."""

import json
import shutil
from pathlib import Path

from cli.tiny import sweep
from command_line import call as pernn


def test_archived_pruned_and_unpacked_again(finished: Path, tmp_path: Path) -> None:
    finished = shutil.copytree(finished, tmp_path / "results")
    name, file, there = sweep(finished).name, tmp_path / "a.tar", tmp_path / "there"
    done = pernn("archive", name, "-r", finished, "-o", file, "--json")
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == 5
    asked = pernn("prune", name, "-r", finished)
    assert asked.returncode == 2
    assert "say --yes" in asked.stderr
    dry = json.loads(pernn("prune", name, "-r", finished, "--dry-run", "--json").stdout)
    done = pernn("prune", name, "-r", finished, "--yes", "--json")
    assert json.loads(done.stdout) == {**dry, "dry_run": False}
    assert dry["num_checkpoints"] == 5
    assert len(list(finished.glob("runs/*/checkpoints/update-*"))) == 5
    unpacked = pernn("unpack", file, "-r", there, "--json")
    assert json.loads(unpacked.stdout)["runs"] == dict.fromkeys(runs, "unpacked")
    assert len(list(there.glob("runs/*/checkpoints/update-*"))) == 10
    assert pernn("report", name, "-r", there).returncode == 0
    again = pernn("unpack", file, "-r", finished)
    assert (again.returncode, "5 identical" in again.stdout) == (0, True)
    (there / "runs" / runs[0] / "result.json").unlink()
    other = pernn("unpack", file, "-r", there)
    assert other.returncode == 1
    assert f"{runs[0]} is here already and differs" in other.stderr
    assert pernn("archive", name, "-r", finished, "-o", "nowhere://x.tar").returncode == 2
    assert pernn("archive", name, "-r", finished, "-o", tmp_path / "x.zip").returncode == 2
    (there / "runs" / runs[1] / "environment.json").write_text("{")
    part = pernn("archive", name, "-r", there, "-o", tmp_path / "part.tgz", "--json")
    assert (part.returncode, json.loads(part.stdout)["runs"]) == (1, [runs[0], *runs[2:]])
    assert f"{runs[1]} left out" in part.stderr
    assert pernn("unpack", tmp_path / "absent.tar", "-r", there).returncode == 4
