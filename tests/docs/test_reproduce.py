"""Pages of the experiments: short, and with the findings of every published sweep."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/reproduce").glob("*.md"))
FINDINGS = [
    ROOT / f"{page}.md"
    for page in (
        "README",
        "docs/evidence/report",
        "docs/evidence/mechanism",
        "docs/article/article",
    )
]
NOT_COUNTED = (
    re.compile(r"<!-- (\w+) \S+ -->.*?<!-- /\1 -->", re.DOTALL),
    re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE),
    re.compile(r"^(?:    |\|).*$", re.MULTILINE),
)
"""Filled parts; fenced code; indented code and tables."""


def count_words(page: str) -> int:
    """Count the words that are written by hand."""
    for part in NOT_COUNTED:
        page = part.sub("", page)
    return len(page.split())


def test_what_is_filled_and_code_and_tables_do_not_count() -> None:
    page = "One <!-- effect a/b -->1 [0, 2]<!-- /effect -->.\n\n| a | b |\n\n    pernn run\n\n"
    assert count_words(f"{page}```sh\nmake\n```\n\n- two\n  three\n") == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    assert count_words(page.read_text()) <= (400 if page.stem == "README" else 300)


INTERVAL = re.compile(r"[−+-]?\d+(?:\.\d+)?(?:\s+nats)?\s+\[[−+-]?\d+(?:\.\d+)?,\s+[−+-]?\d")


@pytest.mark.parametrize("page", [*FINDINGS, *PAGES], ids=lambda page: page.stem)
def test_no_interval_is_printed_by_hand(page: Path) -> None:
    assert not INTERVAL.search(NOT_COUNTED[0].sub("", page.read_text()))


def test_an_interval_printed_by_hand_is_found() -> None:
    assert INTERVAL.search("it falls by −0.020 nats [−0.036, −0.003] at first")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_fences_are_paired_and_python_between_them_parses(page: Path) -> None:
    text = page.read_text()
    fences = re.findall(r"^```(\w*)$", text, re.MULTILINE)
    assert all(fences[::2])
    assert not any(fences[1::2])
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        ast.parse(block)


def test_every_published_sweep_has_its_findings_on_its_page() -> None:
    for claims in (ROOT / "docs/evidence").glob("*/claims.json"):
        sweep = claims.parent.name
        page = ROOT / f"docs/reproduce/{sweep.partition('-')[0]}.md"
        assert f"<!-- findings {sweep} -->" in page.read_text(), sweep
