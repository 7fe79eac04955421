"""The cache of compiled kernels. Never loads torch."""

import os
from contextlib import suppress
from pathlib import Path

VARIABLE = "PERNN_KERNELS"
"""Whether to use kernels: `auto`, `off` or `require`."""
TARGET_VARIABLE = "PERNN_KERNELS_TARGET"
"""Processor to compile for, as `-march` takes it: `native`, `x86-64-v3`, `cooperlake` …"""


def cache_directory() -> Path:
    """Return the folder for compiled libraries, `XDG_CACHE_HOME`/pernn or ~/.cache/pernn.

    Raises:
        OSError: If there is no home directory.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        # The XDG specification has a relative path ignored.
        return (root if root.is_absolute() else Path.home() / ".cache") / "pernn"
    except RuntimeError as error:
        raise FileNotFoundError("there is no home directory") from error


def library_path(digest: str) -> Path:
    """Return the place of a library."""
    return cache_directory() / f"kernels-{digest}.so"


def may_compile_first() -> bool:
    """Return whether the first trial may have to wait for the compiler."""
    with suppress(OSError):
        return os.environ.get(VARIABLE) != "off" and not any(cache_directory().glob("kernels-*.so"))
    return False
