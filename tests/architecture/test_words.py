"""One word per thing: what docs/glossary.md retires stands nowhere in the source and the pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PENDING: tuple[str, ...] = ()
PAGES = [
    *ROOT.glob("src/pernn/**/*.py"),
    *ROOT.glob("src/pernn/**/*.jinja"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/reproduce/*.md"),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]


def retired():
    """Every term in backticks in the last column of a table."""
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    return [term for row in rows for term in re.findall("`([^`]+)`", row.split("|")[-2])]


def uses(term, text):
    """The lines that use a term as words of their own."""
    if term not in text:  # which is soon found out
        return []
    before, after = (
        (r"(?<!\w)" if term[0].isalnum() else ""),
        (r"(?!\w)" if term[-1].isalnum() else ""),
    )
    pattern = re.compile(before + re.escape(term) + after)
    return [line.strip() for line in text.splitlines() if pattern.search(line)]


def test_the_glossary_retires_words():
    assert len(retired()) > 30
    assert uses("seam", "the seam of")
    assert uses(".codes(", "x.codes(3)")
    assert not uses("seam", "seamless")


def test_no_retired_word_is_used():
    terms, found = retired(), {}
    for page in PAGES:
        name, text = str(page.relative_to(ROOT)), page.read_text()
        if page != GLOSSARY and not name.startswith(PENDING):
            found |= {(name, term): lines for term in terms if (lines := uses(term, text))}
    assert not found
