"""Names that are imported on first use, so that listing results never loads torch (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a package's `__getattr__` from public name → relative module."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(names[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
