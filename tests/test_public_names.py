"""The public names, and what importing them costs."""

import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys

import pytest

import pernn.lab

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


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


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


def test_star_import_brings_all_names():
    names = {}
    exec("from pernn import *", names)  # noqa: S102 (a star import needs a namespace of its own)
    assert names.keys() >= EXPECTED


def test_importing_loads_neither_torch_nor_numpy():
    code = "import sys, pernn.lab; print(sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)))"
    assert run(code) == "[]"


def test_listing_names_loads_nothing_either():
    assert run("import sys, pernn.lab; dir(pernn.lab); print('torch' in sys.modules)") == "False"


def test_the_version_is_the_installed_one():
    try:
        installed = importlib.metadata.version("pernn")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed")
    assert installed == pernn.__version__
