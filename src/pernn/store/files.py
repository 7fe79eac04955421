"""Files that are whole or absent: atomic writes, guarded reads, plain messages."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pernn.errors import CorruptError, StoreError

FORMAT = 1
"""Version of everything under a results directory; a larger number is refused."""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn the system's errors into one line that names the path and the way out."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}; check space and permissions, "
            "then run the same command again: what was finished is kept"
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step, on disk before this returns.

    Raises:
        StoreError: If it cannot be written; the old content is then untouched.
    """
    temporary = draft_of(path)
    with storing(path):
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(path.parent)


def draft_of(path: Path) -> Path:
    """Give the place where a file is written before it is renamed; no two writers share one."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def sync_directory(path: Path) -> None:
    """Put a directory's entries on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(values: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Give a mapping as JSON text with a final newline; NaN and infinity are refused."""
    text = json.dumps(values, indent=indent, allow_nan=False, ensure_ascii=False)
    return text.encode() + b"\n"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        StoreError: If the file cannot be read.
        CorruptError: If it is not a JSON object.
    """
    with storing(path):
        content = path.read_bytes()
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        raise CorruptError(f"{path}: not valid JSON: delete it to have it made anew") from None
    if not isinstance(values, dict):
        raise CorruptError(f"{path}: expected a JSON object: delete it to have it made anew")
    return values


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines; a last line cut short by a kill is left out.

    Raises:
        CorruptError: If a whole line is not a JSON object.
    """
    if not path.exists():
        return []
    with storing(path):
        content = path.read_bytes()
    records = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise CorruptError(f"{path}, line {number}: not valid JSON") from None
        if not isinstance(record, dict):
            raise CorruptError(f"{path}, line {number}: expected a JSON object")
        records.append(record)
    return records
