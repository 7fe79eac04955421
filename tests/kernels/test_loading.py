"""Whether there are kernels, why not, what computes here, and what outside settings decide it."""

import os
from functools import cache
from unittest.mock import Mock

import pytest
import torch

from command_line import python
from pernn.errors import MachineError
from pernn.kernels import (
    describe_arithmetic,
    describe_kernels,
    find_kernels,
    loading,
    without_kernels,
)
from pernn.kernels.compilation import cache_directory, choose_target
from pernn.lab.runs import describe_environment


@pytest.fixture
def undecided(monkeypatch):
    monkeypatch.setattr(loading, "_decide", cache(loading._decide.__wrapped__))


def test_they_are_found_once_and_can_be_left_out_for_a_while():
    before = find_kernels()
    if before is None:
        assert describe_kernels().startswith("torch (")
    else:
        assert describe_kernels().startswith(f"compiled ({before.path.stem}")
        assert before.path.parent == cache_directory()
    with without_kernels():
        assert find_kernels() is None
        assert describe_kernels().startswith("torch")
        with without_kernels():
            pass
        assert find_kernels() is None
    assert find_kernels() is before


@pytest.mark.usefixtures("undecided")
def test_wishes(monkeypatch):
    monkeypatch.setenv("PERNN_KERNELS", "yes")
    with pytest.raises(MachineError, match="auto or off, got 'yes'"):
        find_kernels()
    monkeypatch.setenv("PERNN_KERNELS", "off")
    assert find_kernels() is None
    assert describe_kernels() == "torch (PERNN_KERNELS=off)"


@pytest.mark.usefixtures("undecided")
def test_without_a_compiler_there_are_none_and_training_says_so_once(monkeypatch):
    said = []
    monkeypatch.setattr(loading.LOGGER, "warning", lambda text, *more: said.append(text % more))
    monkeypatch.delenv("PERNN_KERNELS", raising=False)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert find_kernels() is None
    assert find_kernels() is None
    assert said == [
        "no compiled kernels, training is slower: no C++ compiler (no-such-compiler) was found"
    ]


@pytest.mark.usefixtures("undecided")
def test_without_a_home_sources_or_setuptools_there_are_none(monkeypatch):
    monkeypatch.delenv("PERNN_KERNELS", raising=False)
    for raised in (RuntimeError("no home"), FileNotFoundError("gone"), ImportError("setuptools")):
        monkeypatch.setattr(loading, "find_library", Mock(side_effect=raised))
        monkeypatch.setattr(loading, "_decide", cache(loading._decide.__wrapped__))
        assert find_kernels() is None
        assert describe_kernels() == f"torch ({raised})"


def test_importing_the_modules_compiles_nothing(tmp_path):
    # As on Windows, and where setuptools is missing.
    script = (
        "import sys; sys.modules.update(fcntl=None, setuptools=None); "
        "import pernn.cores, pernn.models; pernn.cores.LSTM, pernn.models.VectorRNN; "
        "del sys.modules['fcntl']; import pernn.lab.training"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = python("-c", script, env=environment)
    assert done.returncode == 0, done.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("token", [4, 5, -1])
def test_ids_beyond_the_table_are_refused(token):
    kernels = find_kernels()
    if kernels is None:
        pytest.skip(describe_kernels())
    tokens, weight = torch.tensor([[0], [token]]), torch.zeros(1, 16, 16)
    with pytest.raises(IndexError, match=f"token id {token} is none of 0 … 3"):
        torch.ops.pernn.scan_forward(
            "elman", 16, 1, 2, 2, 0, torch.zeros(4, 16), None, tokens, weight, None, None, None
        )
    with pytest.raises(IndexError, match="target 4 is none of 0 … 3"):
        torch.ops.pernn.cross_entropy(
            torch.zeros(1, 4), None, torch.tensor([4]), 1.0, True, torch.zeros(1),
            torch.zeros(1, dtype=torch.bool),
        )  # fmt: skip
    none = torch.empty(0)
    torch.ops.pernn.cross_entropy(
        torch.empty(0, 0), None, none.long(), 1.0, True, none, none.bool()
    )


def test_one_line_says_what_computes():
    kernels, capability = find_kernels(), torch.backends.cpu.get_cpu_capability()
    said = describe_arithmetic()
    assert said.count("\n") == 0
    if kernels is not None:
        assert kernels.instructions in ("AMX", capability) or choose_target()
        assert f"compiled kernels (PyTorch: {capability}" in said
        assert (1 in kernels.product_parts) == said.startswith("AMX")
    with without_kernels():
        assert f"no compiled kernels (PyTorch: {capability}" in describe_arithmetic()
        assert describe_kernels() in describe_arithmetic()


def test_a_run_records_the_variables_that_change_bits(monkeypatch):
    for name in loading.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert describe_environment(torch.device("cpu"))["variables"] == {}
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    found = describe_environment(torch.device("cpu"))
    assert found["variables"] == {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert found["arithmetic"] == describe_arithmetic()
    assert "oneDNN: at most AVX2" in found["arithmetic"]
