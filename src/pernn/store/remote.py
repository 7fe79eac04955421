"""Files at any URL: a path here, or whatever fsspec has a protocol for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pernn.errors import ConfigError, MachineError, PernnError, StoreError


@runtime_checkable
class ByteStream(Protocol):
    """An open file, here or far away."""

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes, fewer only at the end."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


@contextmanager
def open_url(url: str, mode: Literal["rb", "wb"]) -> Iterator[ByteStream]:
    """Open a file at a URL or path; what is written appears when it is complete.

    Raises:
        ConfigError: If the protocol is unknown.
        MachineError: If its package is missing.
        StoreError: If it cannot be read or written.
    """
    # Costs more to import than most verbs take.
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    try:
        system, path = url_to_fs(url)
        if mode == "rb":
            with system.open(path, mode) as file:
                yield file
        elif isinstance(system, LocalFileSystem):
            with _whole(Path(path)) as file:
                yield file
        else:
            with system.transaction, system.open(path, mode) as file:
                yield file
    except PernnError:
        raise
    except ImportError as error:
        raise MachineError(f"{url}: {error}") from None
    except OSError as error:
        raise StoreError(f"{url}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{url}: {error}") from None
    except Exception as error:
        # Every protocol has exceptions of its own.
        raise StoreError(f"{url}: {type(error).__name__}: {error}") from error


@contextmanager
def _whole(path: Path) -> Iterator[ByteStream]:
    """Write a file here beside its place and rename it at the end."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
