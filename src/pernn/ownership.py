"""What is executed must be ours: files and folders that nobody else can have written."""

import os
import stat
from pathlib import Path

MOST_BYTES = 2**28
"""Length of a file that is read whole; compiled kernels are a hundred times shorter."""


def complaint(status: os.stat_result) -> str | None:
    """Return in a few words why others could have written this; `None` if only we or root could."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (id {status.st_uid})"
    if status.st_mode & 0o022:
        return f"can be written by others (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def read_trusted(path: Path) -> bytes:
    """Return a file's content if it is a regular file that only we or root can have written.

    Raises:
        OSError: If it is not, or cannot be read.
    """
    # A FIFO would otherwise wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise PermissionError(f"{path} is not a regular file of at most {MOST_BYTES} bytes")
        if reason := complaint(status):
            raise PermissionError(f"{path} {reason}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can write to, or make it so if it is ours already.

    Raises:
        PermissionError: If it belongs to another user.
        OSError: If it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o022:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~0o022)
        status = folder.stat()
    if reason := complaint(status):
        raise PermissionError(f"{folder} {reason}")
