"""Names that are imported on first use (PEP 562)."""

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def exports(package: str, *others: str) -> Callable[[str], Any]:
    """Make a package's `__all__`, `__dir__` and `__getattr__` from its own text.

    Public is what its `__init__.py` imports as itself, `from .gru import GRU as GRU`, which is also
    what type checkers take for public. Such an import below `if TYPE_CHECKING:` happens on first
    use.

    Args:
        package: Name of the package.
        others: Public names that it defines itself.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    tree = ast.parse(source)
    now = dict(_reexported(tree.body))
    later = {
        name: place
        for node in tree.body
        if isinstance(node, ast.If)
        for name, place in _reexported(node.body)
    }
    module.__all__ = names = sorted({*now, *later, *others})  # type: ignore[attr-defined]
    module.__dir__ = lambda: list(names)  # type: ignore[method-assign]

    def get(name: str) -> Any:
        if name not in later:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(later[name], package), name)
        setattr(module, name, value)
        return value

    return get


def _reexported(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield every name that is imported as itself, and its module."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            place = "." * node.level + (node.module or "")
            yield from ((one.name, place) for one in node.names if one.asname == one.name)
