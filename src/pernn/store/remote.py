"""Files that leave the machine: at a path here, or at any address that fsspec knows."""

import re
from pathlib import Path

from pernn.errors import ConfigError, MachineError, StoreError

from .files import storing, write_atomically

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


def write_anywhere(place: str, content: bytes) -> None:
    """Write a whole file at a path of this machine or at an address such as `s3://bucket/name`.

    It appears whole: on this machine by a rename, elsewhere by a transaction of the file system
    where that has them (object stores, memory, SFTP; not FTP).

    Raises:
        ConfigError: If nothing knows the address's protocol.
        MachineError: If the package for the protocol is missing.
        StoreError: If it cannot be written.
    """
    address = ADDRESS.match(place)
    if address is None or address[1] in ("file", "local"):
        path = Path(place[address.end() :] if address else place)
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        return
    try:
        # Costs more to import than most verbs take.
        from fsspec.core import url_to_fs
    except ImportError:
        raise MachineError(f"{address[0]} needs fsspec: pip install 'pernn[remote]'") from None
    try:
        system, path_there = url_to_fs(place)
        with system.transaction, system.open(path_there, "wb") as file:
            file.write(content)
    except ImportError as error:
        raise MachineError(f"{address[0]} needs another package: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{hide_credentials(place)}: {hide_credentials(str(error))}") from None
    except Exception as error:
        # Every protocol has exceptions of its own.
        said = hide_credentials(str(error)).partition("\n")[0] or type(error).__name__
        raise StoreError(f"{hide_credentials(place)}: cannot be written: {said}") from error


def hide_credentials(text: str) -> str:
    """Leave out the user and password of every address in a text."""
    return CREDENTIALS.sub("", text)
