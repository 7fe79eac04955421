"""The tar of an archive, header by header: ordinary files only, plain or compressed with gzip.

No link, no device, no extension that could name another place is ever followed.
"""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from typing import Protocol, cast, runtime_checkable

from pernn.errors import ConfigError, CorruptError

from .remote import ByteStream, hide_credentials, open_url

PLAIN, COMPRESSED = (".tar",), (".tar.gz", ".tgz")
ARCHIVE = "pernn archive"
CHUNK = 2**20
LEVEL = 6
"""Of gzip: weights hardly shrink, and 9 takes three times as long."""
GZIP = b"\x1f\x8b"
MAX_PADDING = 2**20
"""Zeros after the end that other programs fill their last record with."""


@runtime_checkable
class Readable(Protocol):
    """A stream to be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, fewer only at the end."""


@contextmanager
def create_archive(place: str) -> Iterator[ByteStream]:
    """Open an archive for writing, plain or compressed as its ending says.

    Raises:
        ConfigError: If the ending is another one.
        StoreError: If it cannot be written; the rest is as in `open_url`.
    """
    name = place.lower()
    if not name.endswith(PLAIN + COMPRESSED):
        known = ", ".join(PLAIN + COMPRESSED)
        raise ConfigError(
            f"{hide_credentials(place)} is invalid: expected a name that ends in one of {known}"
        )
    with open_url(place, "wb") as file:
        if name.endswith(PLAIN):
            yield file
            return
        # Without name and time, equal archives stay equal.
        with gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed:  # type: ignore[call-overload]
            yield packed


def write_member(file: ByteStream, name: str, size: int, content: Readable) -> None:
    """Write a header without owner, date or rights, which differ from day to day, and a file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    file.write(info.tobuf(tarfile.GNU_FORMAT))
    for start in range(0, size, CHUNK):
        file.write(read_exactly(content, min(CHUNK, size - start), name))
    file.write(b"\0" * (-size % tarfile.BLOCKSIZE))


def write_end(file: ByteStream) -> None:
    """Write what ends a tar."""
    file.write(b"\0" * 2 * tarfile.BLOCKSIZE)


def read_members(file: Readable, source: str) -> Iterator[tarfile.TarInfo]:
    """Yield each header; the caller reads the content of a file before the next is asked for.

    Only plain headers are understood: links, devices and headers that change the meaning of the
    next one (long names, other sizes) are refused, and so is what comes after the end.
    """
    while any(block := read_exactly(file, tarfile.BLOCKSIZE, source)):
        try:
            info = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise CorruptError(f"{source}: not a tar: {error}") from None
        if not (info.isdir() and info.size == 0) and (
            info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.size < 0
        ):
            raise CorruptError(
                f"{source}: {info.name!r} is no ordinary file: not made by {ARCHIVE}"
            )
        yield info
        read_exactly(file, -info.size % tarfile.BLOCKSIZE, source)
    end = read_exactly(file, tarfile.BLOCKSIZE, source)
    # A gzip is read beyond its end, where its own checksum stands.
    if (
        any(end)
        or any(rest := read_up_to(file, MAX_PADDING + 1, source))
        or len(rest) > MAX_PADDING
    ):
        raise CorruptError(f"{source}: goes on after its end: not made by {ARCHIVE}")


def read_exactly(file: Readable, size: int, source: str) -> bytes:
    """Read this many bytes; raise CorruptError if there are fewer."""
    content = read_up_to(file, size, source)
    if len(content) < size:
        raise CorruptError(f"{source}: ends in the middle")
    return content


def read_up_to(file: Readable, size: int, source: str) -> bytes:
    """Read this many bytes, fewer only at the end."""
    try:
        return bytes(file.read(size))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CorruptError(f"{source}: damaged gzip: {error}") from None


def decompressed(file: ByteStream) -> Readable:
    """Return a stream, decompressed if it begins like gzip, whatever its name."""
    stream = BufferedReader(cast(RawIOBase, file))
    packed = stream.peek(len(GZIP)).startswith(GZIP)
    return cast(Readable, gzip.GzipFile(fileobj=stream) if packed else stream)
