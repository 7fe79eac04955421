"""The records as a data set of the hub, read by the packages that read such folders."""

import json
import random
from pathlib import Path

import pytest

from command_line import call, succeed
from pernn.lab.store import Sweep, save_sweep
from store.finished import finish, spec

card_of = pytest.importorskip("huggingface_hub").DatasetCard
parquet = pytest.importorskip("pyarrow.parquet")
PUBLISHED = Path(__file__).parents[1] / "evidence"


def test_sweeps_and_published_trials_are_a_data_set(tmp_path):
    root, place = tmp_path / "results", tmp_path / "dataset"
    runs = [finish(root, spec(seed), random.Random(seed)).fingerprint for seed in range(3)]
    save_sweep(root, Sweep("vocabulary_size-own", "vocabulary_size", "paper", {}, runs[:2]))
    succeed("export", "--hub", place, "-r", root, PERNN_EVIDENCE=str(PUBLISHED))
    card = card_of.load(place / "README.md")
    configs = {one["config_name"]: one["data_files"] for one in card.data.configs}
    published = {path.stem for path in PUBLISHED.glob("*.parquet")}
    assert {"vocabulary_size-own", "train", "vocabulary_size-small", *published} <= configs.keys()
    assert "vocabulary_size-small.curves" in configs
    assert card.data.license == "mit"
    assert {*configs.values()} == {
        str(path.relative_to(place)) for path in place.rglob("*.parquet")
    }
    rows = parquet.read_table(place / configs["vocabulary_size-own"]).to_pylist()
    assert [row["run"] for row in rows] == runs[:2]
    assert [row["run"] for row in parquet.read_table(place / configs["train"]).to_pylist()] == [
        runs[2]
    ]
    for name, file in configs.items():
        table = parquet.read_table(place / file)
        assert table.num_rows, name
    claims = json.loads((place / "claims.json").read_text())["claims"]
    assert {one["sweep"] for one in claims} == {"vocabulary_size-own", *published}
    assert "| vocabulary_size-own | 2 | 2 | 2 | `pernn run" in (place / "README.md").read_text()
    assert call("export", "--hub", place, "-o", "x.csv", "-r", root).returncode == 2
    assert call("export", "-r", root).returncode == 2
    nothing = call("export", "--hub", place, "-r", tmp_path / "none", "--ignore-published")
    assert (nothing.returncode, nothing.stderr.count("\n")) == (2, 1)
