"""The cache of compiled kernels. Never loads torch."""

import os
from pathlib import Path

VARIABLE = "PERNN_KERNELS"
"""Whether to use kernels: `auto` or `off`."""
TARGET_VARIABLE = "PERNN_KERNELS_TARGET"
"""Processor to compile for, as `-march` takes it: `native`, `x86-64-v3`, `cooperlake` …"""


def cache_directory() -> Path:
    """Return the folder for compiled libraries, `XDG_CACHE_HOME`/pernn or ~/.cache/pernn."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pernn"


def library_path(digest: str) -> Path:
    """Return the place of a library."""
    return cache_directory() / f"kernels-{digest}.so"
