"""Folders of language data on this machine."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pernn.errors import CorruptError
from pernn.lab.store import checksum, read_json_if_any

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
    path = raw_folder(name) / ABOUT
    try:
        found = read_json_if_any(path)
    except CorruptError:
        raise CorruptError(
            f"{path}: not what was written: delete it and prepare the text again"
        ) from None
    return found and {
        key: found[key] for key in ("kind", "name", "digest", "paragraphs", "unit") if key in found
    }


def list_texts() -> list[str]:
    """List the names under which texts of one's own are kept."""
    return sorted(path.parents[1].name for path in data_root().glob(f"*/raw/{ABOUT}"))


def prepared_folder(name: str, vocab_size: int, parameters: Mapping[str, Any]) -> Path:
    """Return the folder of a corpus that is prepared with these parameters.

    Args:
        name: The corpus.
        vocab_size: Number of pieces.
        parameters: Plain JSON values, all that decides what is in the folder.
    """
    digest = checksum(parameters)[:16]
    return data_root() / "prepared" / f"{name}-{vocab_size}-{digest}"


def sha256(path: Path) -> str:
    """Digest a file of any size."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
