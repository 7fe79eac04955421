"""Headings, paragraphs, and the text that the grammar writes."""

from hashlib import sha256
from itertools import islice

import pytest

from corpora.conftest import paragraphs
from pernn.errors import CorruptError
from pernn.lab.corpora import Grammar, Wikitext, heading_level
from pernn.lab.corpora.text import SPLITS, read_lines

LITTLE = Grammar(num_paragraphs=200, num_held_out=60, num_words=64)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        (" = Valve = ", 1),
        (" = = Gameplay = = ", 2),
        (" = = = Units = = = ", 3),
        (" = E = mc² = ", 1),
        (" = = Odd = ", 1),
        (" = open ", 0),
        (" = = ", 0),
        (" = ", 0),
        ("", 0),
        (" plain text . ", 0),
        (" =Close= ", 0),
    ],
)
def test_headings_have_signs_on_both_sides(line, level):
    assert heading_level(line) == level


@pytest.mark.parametrize(
    ("lines", "levels", "as_written", "as_run"),
    [
        # A title in running text is a paragraph; the published program drops it, too.
        (
            [" ", " = A = ", " ", " one ", " = Table = ", " two ", "", " = = B = = ", " ", " x "],
            [1, 0, 0, 0, 2, 0],
            [" one", " = Table =", " two", " x"],
            [" one", " two", " x"],
        ),
        # That drops every line with a leading sign.
        (
            [" one ", " =x ", "= two ", " three = "],
            [0, 0, 0, 0],
            [" one", " =x", "= two", " three ="],
            [" one", "= two", " three ="],
        ),
        # A title beside only one blank line is a paragraph; the ends of the text are blank.
        ([" ", " = A = ", " x "], [0, 0], [" = A =", " x"], [" x"]),
        ([" x ", " = A = ", " "], [0, 0], [" x", " = A ="], [" x"]),
        ([" = A = ", " "], [1], [], []),
        # A text of one line has no title.
        ([" = A = "], [0], [" = A ="], []),
        ([], [], [], []),
    ],
)
def test_what_is_kept_of_a_text(lines, levels, as_written, as_run):
    found = list(read_lines(lines))
    assert [line.level for line in found] == levels
    assert list(paragraphs(lines)) == as_written
    for rules, kept in (("as-written", as_written), ("as-run", as_run)):
        assert [line.text for line in found if line.is_kept(rules)] == kept


def test_the_grammar_writes_the_form_of_wikitext_and_no_paragraph_twice():
    lines = list(LITTLE.lines("train"))
    assert all(line == " " or (line[0] == line[-1] == " ") for line in lines)
    levels = {line.level for line in read_lines(lines)}
    assert levels == {0, 1, 2, 3}
    text = "\n".join(lines)
    assert all(sign in text for sign in ("@-@", "@,@", "@.@"))
    assert not text.isascii()
    body = list(paragraphs(lines))
    assert len(body) == 200
    assert any(heading_level(line) for line in body)
    parts = [set(paragraphs(LITTLE.lines(split))) for split in SPLITS]
    assert [len(part) for part in parts] == [200, 60, 60]
    assert len(set.union(*parts)) == 320
    long = max(paragraphs(Grammar(num_paragraphs=400, num_words=64).lines("train")), key=len)
    assert len(long.split()) > 1024


def test_the_grammar_is_a_function_of_its_parameters():
    assert list(LITTLE.lines("valid")) == list(
        Grammar(num_paragraphs=9, num_held_out=60, num_words=64).lines("valid")
    )
    other = Grammar(num_paragraphs=200, num_held_out=60, num_words=64, seed=1)
    assert list(islice(other.lines("train"), 9)) != list(islice(LITTLE.lines("train"), 9))
    # If this fails, data of old trials change, too.
    text = "\n".join(LITTLE.lines("train"))
    assert sha256(text.encode()).hexdigest()[:16] == "f9bb4c749554d0a5"


def test_raw_files_are_utf8_split_at_line_feeds_only(tmp_path):
    text = " a\u2028b\x85c\x0bd \n \n e\r \n"
    (tmp_path / "wiki.test.raw").write_bytes(text.encode())
    assert list(Wikitext(tmp_path).lines("test")) == [" a\u2028b\x85c\x0bd ", " ", " e\r "]
    (tmp_path / "wiki.test.raw").write_bytes(b" caf\xe9 \n")
    with pytest.raises(CorruptError, match="not UTF-8"):
        list(Wikitext(tmp_path).lines("test"))
