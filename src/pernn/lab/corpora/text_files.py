"""The three files of a text of one's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pernn.errors import CorruptError, MachineError

from .folders import sha256, using
from .text import SPLITS, Split
from .wikitext import raw_lines


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
        with using(path):
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
        with using(self.folder):
            return {path.name: sha256(path) for path in paths}
