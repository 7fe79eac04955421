import subprocess
import sys

import pytest

import pernn.cores
from pernn.lazy import exports

LIGHT = ["pernn", "pernn.cores", "pernn.encodings", "pernn.errors", "pernn.config"]


@pytest.mark.parametrize("module", LIGHT)
def test_importing_loads_no_torch(module):
    code = f"import sys, {module}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_name_is_imported_once_and_kept(monkeypatch):
    monkeypatch.delitem(vars(pernn.cores), "GRU", raising=False)
    first = pernn.cores.GRU
    assert vars(pernn.cores)["GRU"] is first


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(
        AttributeError, match=r"module 'pernn.cores' has no attribute 'Transformer'"
    ):
        pernn.cores.Transformer  # noqa: B018


def test_a_relative_module_is_found():
    get = exports("pernn.cores", {"Elman": ".elman"})
    assert get("Elman").__name__ == "Elman"
