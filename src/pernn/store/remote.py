"""Files that leave the machine: at a path here, or at any address that fsspec knows."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pernn.errors import ConfigError, MachineError, PernnError, StoreError

from .files import replacing, storing

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


@runtime_checkable
class ByteStream(Protocol):
    """An open file, here or far away."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, fewer only at the end."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


@contextmanager
def open_url(place: str, mode: Literal["rb", "wb"]) -> Iterator[ByteStream]:
    """Open a file at a path of this machine or at an address such as `s3://bucket/name`.

    What is written appears whole: on this machine by a rename, elsewhere by a transaction of the
    file system where that has them (object stores, memory, SFTP; not FTP).

    Raises:
        ConfigError: If nothing knows the address's protocol.
        MachineError: If the package for the protocol is missing.
        StoreError: If it cannot be read or written.
    """
    address = ADDRESS.match(place)
    if address is None or address[1] in ("file", "local"):
        path = Path(place[address.end() :] if address else place)
        with storing(path):
            if mode == "wb":
                path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") if mode == "rb" else replacing(path) as file:
                yield file
        return
    try:
        # Costs more to import than most verbs take.
        from fsspec.core import url_to_fs
    except ImportError:
        raise MachineError(f"{address[0]} needs fsspec: pip install 'pernn[remote]'") from None
    try:
        system, path_there = url_to_fs(place)
        if mode == "rb":
            with system.open(path_there, mode) as file:
                yield file
        else:
            with system.transaction, system.open(path_there, mode) as file:
                yield file
    except PernnError:
        raise
    except ImportError as error:
        raise MachineError(f"{address[0]} needs another package: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{hide_credentials(place)}: {hide_credentials(str(error))}") from None
    except Exception as error:
        # Every protocol has exceptions of its own.
        said = hide_credentials(str(error)).partition("\n")[0] or type(error).__name__
        what = "read" if mode == "rb" else "written"
        raise StoreError(f"{hide_credentials(place)}: cannot be {what}: {said}") from error


def write_anywhere(place: str, content: bytes) -> None:
    """Write a whole file; the rest is as in `open_url`."""
    with open_url(place, "wb") as file:
        file.write(content)


def hide_credentials(text: str) -> str:
    """Leave out the user and password of every address in a text."""
    return CREDENTIALS.sub("", text)
