import importlib
import subprocess
import sys

import pytest

import pernn.cores
from pernn.errors import PernnError

LIGHT = ["pernn", "pernn.errors", "pernn.lab.config", "pernn.encodings", "pernn.cores"]


def test_importing_loads_no_torch():
    code = "".join(f"import sys, {name}; print('torch' in sys.modules)\n" for name in LIGHT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert dict(zip(LIGHT, done.stdout.split(), strict=True)) == dict.fromkeys(LIGHT, "False")


def test_a_name_is_imported_once_and_kept(monkeypatch):
    monkeypatch.delitem(vars(pernn.cores), "GRU", raising=False)
    first = pernn.cores.GRU
    assert vars(pernn.cores)["GRU"] is first


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(
        AttributeError, match=r"module 'pernn.cores' has no attribute 'Transformer'"
    ):
        pernn.cores.Transformer  # noqa: B018


def test_only_what_is_imported_as_itself_is_public(tmp_path, monkeypatch):
    text = """
from typing import TYPE_CHECKING
from pernn.lazy import exports
from .now import ONE as ONE, other
if TYPE_CHECKING:
    from .later import TWO as TWO, hidden
    from pernn.errors import PernnError as PernnError
__getattr__ = exports(__name__, "__version__")
__version__ = "1"
"""
    (tmp_path / "lazily").mkdir()
    (tmp_path / "lazily" / "__init__.py").write_text(text)
    (tmp_path / "lazily" / "now.py").write_text("ONE, other = 1, 1")
    (tmp_path / "lazily" / "later.py").write_text("TWO, hidden = 2, 2")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("lazily")
    assert package.__all__ == ["ONE", "PernnError", "TWO", "__version__"]
    assert "lazily.later" not in sys.modules
    assert (package.ONE, package.TWO, package.PernnError) == (1, 2, PernnError)
    with pytest.raises(AttributeError, match="no attribute 'hidden'"):
        package.hidden  # noqa: B018
    for name in ("lazily", "lazily.now", "lazily.later"):
        monkeypatch.delitem(sys.modules, name)
