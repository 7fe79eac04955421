"""The public names, and what importing them costs."""

import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys

import pytest

import pernn.cores
import pernn.lab
from pernn import errors
from pernn.errors import PernnError

PACKAGES = sorted(
    module.name
    for module in [
        *pkgutil.iter_modules(pernn.__path__, "pernn."),
        *pkgutil.iter_modules(pernn.lab.__path__, "pernn.lab."),
    ]
    if module.name != "pernn.__main__"
)
EXPECTED = {
    "Constant", "Elman", "GRU", "GatedDelta", "LRU", "LSTM", "Learned", "MinGRU", "MinLSTM",
    "NoEncoding", "PernnError", "PositionEncoded", "PositionEncodedRNN", "Random",
    "RepeatedEmbedding", "S4D", "Sinusoidal", "__version__",
}  # fmt: skip
LAB = {
    "compare",
    "RunSpec", "execute", "from_pretrained", "load_curves", "load_model", "load_results", "run",
    "save_pretrained",
}  # fmt: skip


def test_the_names_are_those_promised():
    assert set(pernn.__all__) == EXPECTED
    assert dir(pernn) == sorted(EXPECTED)
    assert set(pernn.lab.__all__) == LAB
    assert dir(pernn.lab) == sorted(LAB)


@pytest.mark.parametrize("name", sorted(EXPECTED | LAB))
def test_every_name_resolves(name):
    value = getattr(pernn if name in EXPECTED else pernn.lab, name)
    assert name == "__version__" or value.__name__ == name
    assert name == "__version__" or value.__doc__


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_resolves(package):
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        assert getattr(module, name) is not None


def test_importing_and_listing_load_neither_torch_nor_numpy():
    light = ["pernn", "pernn.lab", "pernn.errors", "pernn.encodings", "pernn.cores"]
    code = "".join(f"import sys, {name}; dir({name})\n" for name in light)
    code += "print(sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)))\n"
    code += "import pernn.lab.config; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nFalse\n"


def test_the_version_is_the_installed_one():
    assert importlib.metadata.version("pernn") == pernn.__version__


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


ALL = [value for value in vars(errors).values() if isinstance(value, type)]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_a_pernn_error(error):
    assert issubclass(error, errors.PernnError)
    assert error.__doc__


def test_a_config_error_is_also_a_value_error():
    assert issubclass(errors.ConfigError, ValueError)


def test_the_drawn_tree_names_every_error():
    assert all(error.__name__ in errors.__doc__ for error in ALL)
