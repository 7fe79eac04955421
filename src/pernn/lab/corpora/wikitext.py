"""WikiText-103 as raw text, or Parquet files of the same lines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pernn.errors import CorruptError, MachineError, install_command

from .folders import sha256, using
from .text import Split

ENDINGS = ("raw", "tokens", "txt")
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
        for ending in ENDINGS:
            path = self.folder / f"wiki.{split}.{ending}"
            if path.is_file():
                return [path]
        found = sorted(self.folder.glob(f"{PARQUET_NAMES[split]}-*.parquet"))
        if not found:
            raise MachineError(missing(self.folder, split))
        return found

    def lines(self, split: Split) -> Iterator[str]:
        """Return the raw lines of a part, without their line feeds.

        Raises:
            MachineError: If a file is missing, or pyarrow to read it.
            CorruptError: If a file is not UTF-8 text, or no Parquet file with a column `text`.
            StoreError: If a file cannot be read.
        """
        for path in self.files(split):
            with using(path):
                yield from _parquet_lines(path) if path.suffix == ".parquet" else raw_lines(path)

    def sources(self) -> Mapping[str, str]:
        """Return the SHA-256 of every file by its name."""
        files = [*self.files("train"), *self.files("valid"), *self.files("test")]
        with using(self.folder):
            return {path.name: sha256(path) for path in files}


def missing(folder: Path, split: Split) -> str:
    """Return what was looked for, and how to get it."""
    names = ", ".join(f"wiki.{split}.{ending}" for ending in ENDINGS)
    return (
        f"{folder}: no text of the {split} part: looked for {names} and "
        f"{PARQUET_NAMES[split]}-*.parquet. WikiText-103 (CC BY-SA) is the dataset "
        "Salesforce/wikitext on Hugging Face, its config wikitext-103-raw-v1: on a machine with "
        "access run\n"
        "    hf download Salesforce/wikitext --repo-type dataset "
        "--include 'wikitext-103-raw-v1/*' --local-dir wikitext\n"
        f"and copy the *.parquet files of wikitext/wikitext-103-raw-v1 into {folder} "
        "(PERNN_DATA names another data folder)"
    )


def raw_lines(path: Path) -> Iterator[str]:
    """Return the lines of a file without their line feeds.

    Raises:
        CorruptError: If it is not UTF-8 text.
    """
    # Only line feeds end lines: the text has other characters that Python would split at.
    with path.open(encoding="utf-8", newline="\n") as file:
        try:
            for line in file:
                yield line.removesuffix("\n")
        except UnicodeDecodeError as error:
            raise CorruptError(
                f"{path}: not UTF-8 text ({error.reason}): download it again"
            ) from None


def _parquet_lines(path: Path) -> Iterator[str]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MachineError(f"{path}: Parquet needs pyarrow: {install_command('parquet')}") from None
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["text"]):
                for row in batch.column("text").to_pylist():
                    yield from row.removesuffix("\n").split("\n")
    except (pa.ArrowException, KeyError, AttributeError) as error:
        raise CorruptError(
            f"{path}: no Parquet file with a column 'text' ({error}): download it again"
        ) from None
