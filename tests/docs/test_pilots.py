"""Pilots are data: every one has a seed that no final run uses, and a number or a reason."""

import csv
import re
from pathlib import Path

import pytest

from pernn.lab.experiments.grids import MAX_SEEDS, VALIDATION_SEEDS, first_seeds

FOLDER = Path(__file__).parents[2] / "docs" / "evidence" / "pilots"
FILES = sorted(FOLDER.glob("*.csv"))
MEASURED = ("accuracy", "value", "updates_to_0.9", "accuracy_frequent_among_frequent")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_pilot_has_a_seed_of_a_final_run(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    final = {*first_seeds(MAX_SEEDS), *VALIDATION_SEEDS}
    unknown = [row for row in rows if not row["seed"]]
    assert all(row["note"] == "seed not recorded" for row in unknown)
    assert final.isdisjoint(int(row["seed"]) for row in rows if row["seed"])
    (column,) = [name for name in MEASURED if name in rows[0]]
    for row in rows:
        assert None not in row.values()
        assert re.fullmatch(r">?\d+(\.\d+)?|never", row[column]) or row["note"] == "stopped"


def test_every_file_is_named_on_the_page():
    page = (FOLDER.parent / "pilots.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\(pilots/(\w+\.csv)\)", page)) == [path.name for path in FILES]
