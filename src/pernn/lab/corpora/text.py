"""Paragraphs of raw text in the form of WikiText-103."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Split = Literal["train", "valid", "test"]
Rules = Literal["as-run", "as-written"]
"""`as-run`: what the published program makes of a text. `as-written`: headings told by shape and
neighbours, pieces that give back the text exactly, a BOS row before the first token."""
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


@runtime_checkable
class Corpus(Protocol):
    """Raw text in three parts."""

    def lines(self, split: Split) -> Iterator[str]:
        """Return the raw lines of a part, without their line feeds."""
        ...

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file that is read.

        Raises:
            MachineError: If a file is missing; the message says how to get it.
        """
        ...


@dataclass(frozen=True)
class Line:
    """A line that is not blank.

    Attributes:
        text: The line without the space that ends every raw line. The one that begins it stays:
            SentencePiece marks words by the space before them, the first word too.
        level: 1 for an article's title, 2 and more for the headings below it, 0 for a paragraph.
    """

    text: str
    level: int

    def is_kept(self, rules: Rules) -> bool:
        """Return whether the line is a paragraph."""
        return not (self.text.startswith(" =") if rules == "as-run" else self.level)


def heading_level(line: str) -> int:
    """Return a heading's level, the signs on each side, or 0."""
    words = line.split()
    level = 0
    while level < len(words) and words[level] == words[-1 - level] == "=":
        level += 1
    return level if 2 * level < len(words) else 0


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Distinguish headings from paragraphs: headings look like headings and have blank neighbours.

    Lines inside tables and formulas look like headings too, but stand in running text. The ends of
    the text count as blank.
    """
    previous, current = "", ""
    first = True
    for following in lines:
        if not first:
            yield from _read(previous, current, following)
            previous = current
        current, first = following, False
    yield from _read(previous, current, "")


def _read(previous: str, line: str, following: str) -> Iterator[Line]:
    if is_blank(line):
        return
    alone = is_blank(previous) and is_blank(following)
    yield Line(line.removesuffix(" "), heading_level(line) if alone else 0)


def is_blank(line: str) -> bool:
    """Return whether a line has nothing but white space."""
    return not line or line.isspace()


def paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Return the paragraphs of raw lines, without headings and blank lines."""
    return (line.text for line in read_lines(lines) if not line.level)
