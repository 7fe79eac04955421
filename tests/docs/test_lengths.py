"""Pages keep within their words: what is written by hand, without code and generated parts."""

import csv
import re
from pathlib import Path

import pytest

from pernn.lab.experiments.grids import VALIDATION_SEEDS, first_seeds

ROOT = Path(__file__).parents[2]
EXPERIMENTS = tuple(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/reproduce/*.md")))
DECISIONS = tuple(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/decisions/0*.md"))
BOUNDS = {
    ("docs/run_directory.md", "docs/reliability.md"): 1_950,
    ("docs/sweeps.md",): 950,
    ("docs/statistics.md",): 950,
    ("docs/extend.md",): 850,
    ("docs/performance.md",): 600,
    ("ARCHITECTURE.md",): 900,
    ("CONTRIBUTING.md",): 500,
    ("docs/quickstart.md",): 350,
    ("docs/faq.md",): 400,
    ("docs/pytorch.md",): 550,
    ("docs/analysis.md",): 830,
    ("docs/commands.md",): 200,
    ("docs/roadmap.md",): 250,
    ("docs/glossary.md",): 350,
    ("docs/evidence/report.md",): 1_850,
    ("docs/evidence/mechanism.md",): 2_210,
    ("docs/article/article.md",): 1_000,
    ("docs/evidence/README.md",): 450,
    ("docs/evidence/pilots.md",): 600,
    EXPERIMENTS: 4_960,
    DECISIONS: 2_500,
}
IN_ALL = 22_000
"""Words of everything that is written by hand."""
GENERATED = {"docs/evidence/pace.md", "docs/evidence/predicted.md"}
RECORDS = {"CHANGELOG.md", "docs/evidence/plan.md"}
"""What was noted at its time and stays; so do the plans."""


def num_words(text):
    """Words between code blocks and between marks; a word has a letter or a digit."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- (\w+)(?: \S+)? -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)
    return sum(any(map(str.isalnum, word)) for word in text.split())


@pytest.mark.parametrize(("pages", "bound"), BOUNDS.items(), ids=lambda value: str(value)[:60])
def test_a_page_keeps_within_its_words(pages, bound):
    assert sum(num_words((ROOT / page).read_text(encoding="utf-8")) for page in pages) <= bound


@pytest.mark.parametrize(("pages", "bound"), [(EXPERIMENTS, 300), (DECISIONS, 120)])
def test_an_experiment_is_told_in_a_page_and_a_decision_in_half(pages, bound):
    lengths = {page: num_words((ROOT / page).read_text(encoding="utf-8")) for page in pages}
    assert {page: length for page, length in lengths.items() if length > bound} == {}


def test_every_file_of_pilots_is_named_and_what_is_written_by_hand_keeps_within_its_words():
    folders = ("*.md", "docs/*.md", "docs/[!e]*/*.md", "docs/evidence/*.md", "notebooks/*.md")
    pages = {path.relative_to(ROOT).as_posix() for folder in folders for path in ROOT.glob(folder)}
    assert pages > GENERATED | RECORDS
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages - GENERATED - RECORDS]
    assert sum(map(num_words, texts)) <= IN_ALL
    page = (FOLDER.parent / "pilots.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\(pilots/(\w+\.csv)\)", page)) == [path.name for path in FILES]


FOLDER = ROOT / "docs" / "evidence" / "pilots"
FILES = sorted(FOLDER.glob("*.csv"))
MEASURED = ("accuracy", "value", "updates_to_0.9", "accuracy_frequent_among_frequent")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_pilot_has_a_seed_of_a_final_run(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    final = {*first_seeds(100), *VALIDATION_SEEDS}
    unknown = [row for row in rows if not row["seed"]]
    assert all(row["note"] == "seed not recorded" for row in unknown)
    assert final.isdisjoint(int(row["seed"]) for row in rows if row["seed"])
    (column,) = [name for name in MEASURED if name in rows[0]]
    for row in rows:
        assert None not in row.values()
        assert re.fullmatch(r">?\d+(\.\d+)?|never", row[column]) or row["note"] == "stopped"
