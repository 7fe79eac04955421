"""Files that are whole or absent: atomic writes, guarded reads, plain messages."""

import errno
import gc
import io
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from pernn.errors import CorruptError, StoreError, VersionError
from pernn.lab.config import checksum

FORMAT = 1
"""Version of everything under a results directory; a larger number is refused."""

MAX_BYTES = 2**28
"""Length of a log that is read whole; what pernn writes is a hundred times shorter."""

MAX_RESULT_BYTES = 2**26
"""Length of a result or a list of runs."""

MAX_SMALL_BYTES = 2**22
"""Length of every other JSON file: a spec, an environment, a manifest."""

ZEROS = bytes.maketrans(b"123456789E", b"000000000e")
FRACTION = b"." + b"0" * 20
"""Many digits of a fraction, all made 0, of which it may have as many as it likes."""
LONG = b"0" * 20
"""What a file has, all digits made 0, that may hold an integer of over 64 bits."""
HIGH = b"e000"
"""What it then has, without any plus, if a number may be beyond all floats."""
EXPONENT = re.compile(rb"[eE]\+?\d{3,}[\s,\]}]")
"""What it has if that was no digest of hexadecimal digits."""
BATCH = 1_000
"""Lines of a log that are read at once."""

CHECKSUM = "checksum"
"""Key of the digest of all other values of a file or line."""


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn the system's errors into one line with the path."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}; check space and permissions, "
            "then run the same command again: what was finished is kept"
        ) from error


@contextmanager
def naming_damage(complain: Callable[[str], None] | None) -> Iterator[None]:
    """Report what is damaged and go on, or raise it."""
    try:
        yield
    except StoreError as error:
        if complain is None:
            raise
        complain(str(error))


def write_atomically(
    path: Path, content: bytes | Iterable[bytes], check: Callable[[], None] = lambda: None
) -> None:
    """Replace a file in one step, on disk before this returns.

    Until then its content stays, and `check`, called last of all, may refuse the new one.
    """
    temporary = draft_of(path)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            check()
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)


def check_writable(path: Path) -> None:
    """Refuse a place for a file before there is anything to write."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        draft = draft_of(path)
        draft.touch()
        draft.unlink()


def draft_of(path: Path) -> Path:
    """Return a writer's own place for a file before its rename."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def sync(path: Path) -> None:
    """Put a file, or the entries of a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory and its parents, synced to disk."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    # Who made it at the same moment may not have come so far yet.
    for one in missing or [path]:
        sync(one.parent)


def to_json(values: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Return a mapping as JSON with a final newline, without NaN."""
    text = json.dumps(values, indent=indent, allow_nan=False, ensure_ascii=False)
    return text.encode() + b"\n"


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Add a checksum, by which readers notice changed values."""
    return {**values, CHECKSUM: checksum(values)}


def parse_json(content: bytes) -> dict[str, Any]:
    """Read a JSON object, and compare and remove its checksum."""
    values = from_json(content, allow_inf_nan=False)
    if not isinstance(values, dict):
        raise ValueError("expected a JSON object")  # noqa: TRY004 as for other damage
    if _is_suspect(content):
        _require_plain(values)
    expected = values.pop(CHECKSUM, None)
    if expected is not None and expected != checksum(values):
        raise ValueError("changed since it was written: its checksum does not fit")
    return values


def _is_suspect(content: bytes) -> bool:
    """Return whether JSON may hold a number of over 64 bits or beyond all floats."""
    # Far sooner than the expression alone, which took longer than to read the JSON.
    digits = content.translate(ZEROS, b"+").replace(FRACTION, b".")
    return LONG in digits or (HIGH in digits and EXPONENT.search(content) is not None)


def check_format(path: Path, values: Mapping[str, Any], newest: int = FORMAT) -> None:
    """Refuse what a newer version wrote."""
    found = values.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise CorruptError(f"{path}: has no format number")
    if found > newest:
        raise VersionError(
            f"{path}: written by a newer pernn (format {found}, this one reads {newest}): "
            "update the clone, or install a newer wheel"
        )


def _require_plain(value: Any) -> None:
    """Raise ValueError for a number of over 64 bits or beyond all floats."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _require_plain(inner)
    elif value in (inf, -inf) or (isinstance(value, int) and abs(value) >= 2**64):
        raise ValueError("holds a number of over 64 bits or beyond all floats")


def physical_memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def read_whole(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Read an ordinary file, never a pipe or a device."""
    with storing(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise CorruptError(f"{path}: not an ordinary file")
            if found.st_size > limit:
                raise CorruptError(f"{path}: {found.st_size:,} bytes, nothing that pernn wrote")
            return file.read()


def num_bytes_below(path: Path) -> int:
    """Return the bytes of a folder's files, without following links."""
    with storing(path):
        return sum(entry.lstat().st_size for entry in path.rglob("*") if not entry.is_dir())


def refuse_links(*paths: Path) -> None:
    """Refuse places that lead out of the results directory."""
    for path in paths:
        if path.is_symlink():
            raise StoreError(
                f"{path} is a symbolic link: pernn writes only inside the results directory; "
                "link the results directory itself, or put a directory in its place"
            )


def read_json(path: Path, limit: int = MAX_SMALL_BYTES) -> dict[str, Any]:
    """Read a JSON object."""
    content = read_whole(path, limit)
    try:
        return parse_json(content)
    except ValueError as error:
        raise CorruptError(f"{path}: {error}") from None


def read_json_if_any(path: Path, limit: int = MAX_SMALL_BYTES) -> dict[str, Any] | None:
    """Read a JSON object as `read_json` does, or return `None`."""
    try:
        return read_json(path, limit)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise


def iterate_lines(path: Path, *, strict: bool = True) -> Iterator[dict[str, Any]]:
    """Yield JSON lines, without a torn last one."""
    if path.exists():
        yield from parse_lines(path, read_whole(path), strict=strict)


def parse_lines(path: Path, content: bytes, *, strict: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a file's content as `iterate_lines` does."""
    number, remaining = 0, io.BytesIO(content)
    while lines := [*islice(remaining, BATCH)]:
        if (found := _parse_at_once(lines)) is not None:
            yield from found
            number += len(lines)
            continue
        for line in lines:
            number += 1
            if line.endswith(b"\n"):
                try:
                    values = parse_json(line[:-1])
                except ValueError as error:
                    if strict:
                        raise CorruptError(f"{path}, line {number}: {error}") from None
                else:
                    yield values


def _parse_at_once(lines: Sequence[bytes]) -> list[dict[str, Any]] | None:
    """Return the values of lines in a third of the time, or `None` if one may be damaged."""
    content = b"[%b]" % b",".join(lines)
    try:
        found: list[Any] = from_json(content, allow_inf_nan=False)
    except ValueError:
        return None
    whole = lines[-1].endswith(b"\n") and len(found) == len(lines) and not _is_suspect(content)
    if whole and all(type(one) is dict and CHECKSUM not in one for one in found):
        return found
    return None


@contextmanager
def gc_paused() -> Iterator[None]:
    """Look for no garbage until the block ends.

    Thousands of records are gone through again and again otherwise, for nothing: a sixth of the
    time of a report over 10,000 of them, and it takes no more memory without.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
