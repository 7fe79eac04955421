"""The public names, imported on first use, and what importing them costs."""

import importlib
import importlib.metadata
import pkgutil

import pytest

import pernn.lab
from command_line import python
from pernn import errors
from pernn.errors import MAX_MESSAGE, PernnError, install_command

FOUND = [
    *pkgutil.iter_modules(pernn.__path__, "pernn."),
    *pkgutil.iter_modules(pernn.lab.__path__, "pernn.lab."),
]
PACKAGES = sorted(module.name for module in FOUND if module.name != "pernn.__main__")
EXPECTED = {
    "Constant", "Elman", "GRU", "GatedDelta", "LRU", "LSTM", "Learned", "MinGRU", "MinLSTM",
    "NoEncoding", "PernnError", "PositionEncoded", "PositionEncodedRNN", "Random",
    "RepeatedEmbedding", "S4D", "Sinusoidal", "__version__",
}  # fmt: skip
LAB = {"RunSpec", "compare", "execute", "load_curves", "load_model", "load_results", "run"}


def test_the_names_are_those_promised():
    assert set(pernn.__all__) == EXPECTED
    assert dir(pernn) == sorted(EXPECTED)
    assert set(pernn.lab.__all__) == LAB
    assert dir(pernn.lab) == sorted(LAB)
    for name in (EXPECTED | LAB) - {"__version__"}:
        value = getattr(pernn if name in EXPECTED else pernn.lab, name)
        assert value.__name__ == name
        assert value.__doc__
    with pytest.raises(AttributeError, match="module 'pernn' has no attribute 'annotations'"):
        pernn.annotations  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_resolves(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", ())
    assert {*names} <= {*dir(module)}
    assert all(getattr(module, name) is not None for name in names)


def test_the_version_is_the_installed_one():
    try:
        installed = importlib.metadata.version("pernn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed")
    assert installed == pernn.__version__


CORPORA = """
import pernn.lab.corpora as package
[getattr(package, name) for name in package.__all__]
package.LanguageModellingConfig()
"""
# What only reads may load the reference.
READING = """
from pernn.lab.config import own_parts_off
from pernn.lab.cores import CORES
with own_parts_off():
    CORES.find("pernn.lab.reference:TransformerConfig")
"""
REPORTING = "from pernn.lab.reports import Report, judge_all"
LIGHT = [
    ("import pernn, pernn.errors, pernn.encodings, pernn.cores", {"torch"}),
    ("import pernn.lab.config", {"torch"}),
    ("import pernn.lab; dir(pernn.lab)", {"torch", "numpy", "pydantic"}),
    (CORPORA, {"torch", "sentencepiece", "pyarrow"}),
    (READING, {"torch"}),
    ("import pernn.lab.reports", {"torch", "matplotlib", "jinja2"}),
    (REPORTING, {"torch", "matplotlib.pyplot"}),
]


@pytest.mark.parametrize(("code", "heavy"), LIGHT)
def test_what_is_light_loads_nothing_heavy(code, heavy):
    code += "\nimport sys; print(*sys.modules)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert not heavy & {*done.stdout.split()}


@pytest.mark.parametrize(
    ("missing", "said"),
    [("pydantic", install_command("lab")), ("fcntl", "pernn.lab needs Linux or macOS")],
)
def test_what_the_laboratory_needs_is_said(missing, said):
    code = f"import sys; sys.modules[{missing!r}] = None; from pernn.lab import run"
    done = python("-c", code)
    *_, last = done.stderr.splitlines()
    assert last.startswith("ModuleNotFoundError: ")
    assert last.endswith(f": {said}")


def test_every_error_is_a_pernn_error_in_the_drawn_tree_with_a_bounded_message():
    for error in [value for value in vars(errors).values() if isinstance(value, type)]:
        assert issubclass(error, errors.PernnError)
        assert error.__doc__
        assert error.__name__ in errors.__doc__
    assert issubclass(errors.ConfigError, ValueError)
    assert str(PernnError("a" * (MAX_MESSAGE + 5))) == "a" * MAX_MESSAGE + " … (5 characters more)"
