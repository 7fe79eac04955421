"""Import of one's own parts and of other packages'."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import reduce
from importlib import import_module
from importlib.metadata import EntryPoint, distributions
from inspect import getattr_static
from operator import attrgetter
from pathlib import Path
from typing import Any

from pernn.errors import MachineError

VARIABLE = "PERNN_PARTS"
"""Modules of one's own parts, with commas between, that may be imported while data are read."""

_importing = ContextVar("importing", default=True)


@contextmanager
def own_parts_off() -> Iterator[None]:
    """Import no module that a kind names until the block ends.

    What is imported already, or named in `PERNN_PARTS`, counts. Also a decorator.
    """
    before = _importing.set(False)
    try:
        yield
    finally:
        _importing.reset(before)


def installed(group: str) -> dict[str, EntryPoint]:
    """Return what installed packages registered.

    It counts only if `PYTHONPATH` names it: `python -m` and scripts put it there by themselves.
    """
    counts = any(map(_is_current, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    folders = [folder for folder in sys.path if folder and (counts or not _is_current(folder))]
    points = (point for found in distributions(path=folders) for point in found.entry_points)
    return dict(reversed([(point.name, point) for point in points if point.group == group]))


def _is_current(folder: str) -> bool:
    with suppress(OSError):
        return folder != "" and Path(folder).samefile(os.curdir)
    return False


def import_place(place: str) -> Any:
    """Import what stands at `package.module:name`."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def import_named(place: str) -> Any:
    """Import what data name, or only find it if parts are off."""
    module, _, name = place.partition(":")
    if _importing.get() or module in os.environ.get(VARIABLE, "").split(","):
        return import_place(place)
    # A module's own `__getattr__` could import more.
    keys, loaded = name.split("."), sys.modules.get(module)
    found = reduce(lambda one, key: getattr_static(one, key, None), keys, loaded)
    if found is None:
        raise MachineError(
            f"made with a part that is not loaded, {place[:80]!r}: what only reads imports no code "
            f"that data name; if it is yours, set {VARIABLE}={module[:60]}"
        )
    return found
