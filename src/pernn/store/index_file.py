"""The index's file: opened under a lock, set aside when it is damaged, replaced by memory."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from .files import storing
from .index_schema import UnsoundIndexError, check_tables, is_empty, make_tables

INDEX, INDEX_LOCK, DAMAGED = "index.sqlite", "index.lock", "index.damaged.sqlite"
ENDS = ("-journal", "-wal", "-shm", "")
"""What SQLite appends to the name for its own files, and the file itself, last."""

READER_SECONDS, WRITER_SECONDS = 5.0, 0.5
"""How long a reader, and a run that registers itself, wait for another writer."""

UNSOUND = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_MISMATCH,
}
"""Errors by which a file is no index; others mean that it cannot be used now."""

FAULTS = (sqlite3.Error, OSError, UnsoundIndexError, UnicodeError)
"""What may be raised where an index is read or written."""


class IndexFile(sqlite3.Connection):
    """A connection to the file; it holds the index's lock, shared, for as long as it is open."""

    held: int | None = None

    def close(self) -> None:
        """Close the file, then free the lock."""
        super().close()
        if self.held is not None:
            os.close(self.held)
            self.held = None


def open_index(root: Path, seconds: float) -> sqlite3.Connection:
    """Open the index, made if there is none yet.

    Raises:
        OSError: If it cannot be made.
        UnsoundIndexError: If the file is no index of this version.
    """
    if not (root / "runs").is_dir():
        raise FileNotFoundError(root)
    held = _acquire(root, fcntl.LOCK_SH, seconds)
    if any((root / f"{INDEX}{end}").is_symlink() for end in ENDS):
        # SQLite would follow it, and write elsewhere.
        os.close(held)
        raise UnsoundIndexError("a link in place of the file")
    try:
        path = (root / INDEX).absolute()
        connection = sqlite3.connect(path, timeout=seconds, isolation_level=None, factory=IndexFile)
    except BaseException:
        os.close(held)
        raise
    connection.held = held
    try:
        if is_empty(connection):
            with writing(connection):
                # Another process may have been faster.
                if is_empty(connection):
                    make_tables(connection)
        check_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def copy_to_memory(root: Path) -> sqlite3.Connection:
    """Give a copy of the file in memory, where that can be read but not written.

    Raises:
        sqlite3.Error: If it cannot be read.
        UnsoundIndexError: If the file is no index of this version.
    """
    address = f"{(root / INDEX).absolute().as_uri()}?mode=ro"
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=READER_SECONDS)) as file:
            check_tables(file)
            file.backup(copy)
        check_tables(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def open_in_memory() -> sqlite3.Connection:
    """Give the same tables in memory, empty."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection)
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Be the only writer; all of the block is written, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _locked(root: Path, kind: int, seconds: float) -> Iterator[None]:
    descriptor = _acquire(root, kind, seconds)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire(root: Path, kind: int, seconds: float) -> int:
    """Take the lock that keeps the index's file in its place while it is open.

    Raises:
        OSError: If it cannot be had soon.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(root / INDEX_LOCK, flags, 0o644)
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > end:
                os.close(descriptor)
                raise
            time.sleep(0.01)
        else:
            return descriptor


def is_unsound(error: Exception) -> bool:
    """Say whether an error means that the index's file is damaged."""
    if isinstance(error, sqlite3.Error):
        # The extended codes have the plain one in their last byte; what is no UTF-8 has none.
        code = getattr(error, "sqlite_errorcode", None)
        return code is None or code & 0xFF in UNSOUND
    return isinstance(error, UnsoundIndexError | UnicodeError)


def set_aside(root: Path) -> None:
    """Rename a damaged index, unless some process still uses the file.

    Without that, a journal of the old file could be applied to the new one.
    """
    with suppress(OSError), _locked(root, fcntl.LOCK_EX, WRITER_SECONDS):
        for end in ENDS:
            with suppress(FileNotFoundError):
                (root / f"{INDEX}{end}").replace(root / f"{DAMAGED}{end}")


def remove(root: Path) -> None:
    """Delete the index.

    Raises:
        StoreError: If that is not allowed, or another process uses it for too long.
    """
    with storing(root / INDEX), _locked(root, fcntl.LOCK_EX, READER_SECONDS):
        for end in ENDS:
            (root / f"{INDEX}{end}").unlink(missing_ok=True)
