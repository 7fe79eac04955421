"""A prepared corpus on disk: checked ids in memory-mapped files."""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt16, UInt32

from pernn.errors import CorruptError, StoreError, VersionError

from .folders import canonical, sha256, using
from .pieces import CHARACTERS, Pieces
from .text import SPLITS, Split

FORMAT = 1
"""Version of a prepared folder; a larger number is refused."""
MANIFEST, MODEL = "manifest.json", "pieces.model"

Ids = UInt16[np.ndarray, " pieces"] | UInt32[np.ndarray, " pieces"]


def ids_file(split: Split) -> str:
    """Return the name of the file of a part's ids."""
    return f"{split}.ids.bin"


def offsets_file(split: Split) -> str:
    """Return the name of the file of paragraphs' beginnings."""
    return f"{split}.offsets.bin"


FILES = (MODEL, *(name(split) for split in SPLITS for name in (ids_file, offsets_file)))


def ids_type(vocab_size: int) -> str:
    """Choose the narrowest of two types that holds every id."""
    return "<u2" if vocab_size <= 2**16 else "<u4"


def seal(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add a manifest's own digest."""
    return {**manifest, "manifest_sha256": hashlib.sha256(canonical(manifest)).hexdigest()}


class EncodedCorpus:
    """Ids of three parts, read when they are asked for.

    Args:
        folder: What `prepare` made. Every file is read once to compare its SHA-256, which costs
            about a second per gigabyte.

    Raises:
        CorruptError: If a file is missing or does not hold what was written.
        VersionError: If a newer pernn prepared it.
        StoreError: If a file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = self._read_manifest()
        for name in FILES:
            self._check(name)
        self.vocab_size: int = self.manifest["vocab_size"]

    @property
    def digest(self) -> str:
        """SHA-256 of the pieces and of all ids."""
        files = self.manifest["files"]
        return hashlib.sha256(canonical({name: files[name] for name in FILES})).hexdigest()

    @property
    def has_characters(self) -> bool:
        """True if tokens are characters: fewer may exist than asked for."""
        return bool(self.manifest["pieces"]["model_type"] == CHARACTERS["model_type"])

    def num_paragraphs(self, split: Split) -> int:
        """Count the paragraphs of a part."""
        return len(self._offsets[split]) - 1

    def lengths(self, split: Split) -> Int64[np.ndarray, " paragraphs"]:
        """Return the number of pieces of each paragraph."""
        return np.diff(self._offsets[split])

    def ids(self, split: Split, index: int, max_length: int | None = None) -> Ids:
        """Return a paragraph's ids, at most `max_length`, read-only.

        Raises:
            IndexError: If there is no such paragraph.
        """
        if not 0 <= index < self.num_paragraphs(split):
            raise IndexError(f"{split} has no paragraph {index}")
        start, stop = (int(edge) for edge in self._offsets[split][index : index + 2])
        if max_length is not None:
            stop = min(stop, start + max_length)
        return self._ids[split][start:stop]

    def text(self, split: Split, index: int) -> str:
        """Return one paragraph of the raw text, without trailing space.

        Raises:
            MachineError: If SentencePiece is missing.
        """
        return self.pieces.decode(self.ids(split, index).astype(np.int64))

    @cached_property
    def pieces(self) -> Pieces:
        """The model that the text was encoded with."""
        with using(self.folder):
            return Pieces((self.folder / MODEL).read_bytes())

    @cached_property
    def _ids(self) -> dict[Split, Ids]:
        kind = ids_type(self.vocab_size)
        return {split: self._map(ids_file(split), kind) for split in SPLITS}

    @cached_property
    def _offsets(self) -> dict[Split, Int64[np.ndarray, " edges"]]:
        return {split: self._map(offsets_file(split), "<i8") for split in SPLITS}

    def _map(self, name: str, kind: str) -> Any:
        with using(self.folder / name):
            return np.memmap(self.folder / name, dtype=kind, mode="r")

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / MANIFEST
        try:
            manifest = json.loads(path.read_bytes())
            version, seal_found = manifest["format"], manifest.pop("manifest_sha256")
        except FileNotFoundError:
            raise self._corrupt(MANIFEST, "is missing") from None
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._corrupt(MANIFEST, "is not a manifest") from None
        if isinstance(version, int) and version > FORMAT:
            raise VersionError(
                f"{path}: format {version} was written by a newer pernn, this one reads up to "
                f"{FORMAT}: update pernn, or delete the folder to prepare it again"
            )
        if seal(manifest)["manifest_sha256"] != seal_found:
            raise self._corrupt(MANIFEST, "is not what was written")
        return dict(manifest)

    def _check(self, name: str) -> None:
        try:
            with using(self.folder / name):
                found = sha256(self.folder / name)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise self._corrupt(name, "is missing") from None
            raise
        if found != self.manifest["files"].get(name):
            raise self._corrupt(name, "is not what was written")

    def _corrupt(self, name: str, what: str) -> CorruptError:
        return CorruptError(
            f"{self.folder / name} {what}: delete the folder {self.folder} to have the corpus "
            "prepared again"
        )
