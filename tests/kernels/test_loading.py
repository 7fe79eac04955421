"""Whether there are kernels, why not, and that nothing else depends on it."""

import os
import subprocess
import sys
from functools import cache
from unittest.mock import Mock

import pytest
import torch

from pernn.errors import MachineError
from pernn.kernels import describe_kernels, find_kernels, loading, without_kernels
from pernn.kernels.compilation import (
    CompilationError,
    cache_directory,
    choose_recipe,
    find_library,
)


@pytest.fixture
def undecided(monkeypatch):
    """Forget what was decided, so that it is decided anew."""
    monkeypatch.setattr(loading, "_decide", cache(loading._decide.__wrapped__))


def test_they_are_found_once_and_described():
    kernels = find_kernels()
    assert kernels is find_kernels()
    if kernels is None:
        assert describe_kernels().startswith("torch (")
    else:
        assert describe_kernels().startswith(f"compiled ({kernels.path.stem}")
        assert kernels.path.parent == cache_directory()


def test_they_can_be_left_out_for_a_while():
    before = find_kernels()
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


def test_what_the_compiler_says_is_one_line(tmp_path, monkeypatch):
    compiler = tmp_path / "cxx"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo 1\n'
        "echo some.cpp: fatal error: no such header >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CompilationError) as caught:
        find_library(choose_recipe())
    assert str(caught.value) == f"{compiler} failed: some.cpp: fatal error: no such header"
    assert [path.name for path in (tmp_path / "pernn").iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "pernn").write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CompilationError, match=r"File exists: .*pernn"):
        find_library(choose_recipe())


@pytest.mark.usefixtures("undecided")
def test_without_a_home_sources_or_setuptools_there_are_none(monkeypatch):
    monkeypatch.delenv("PERNN_KERNELS", raising=False)
    for raised in (RuntimeError("no home"), FileNotFoundError("gone"), ImportError("setuptools")):
        monkeypatch.setattr(loading, "find_library", Mock(side_effect=raised))
        monkeypatch.setattr(loading, "_decide", cache(loading._decide.__wrapped__))
        assert find_kernels() is None
        assert describe_kernels() == f"torch ({raised})"


def test_windows_has_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(CompilationError, match="not compiled on Windows"):
        choose_recipe()


def test_another_compiler_flag_or_source_is_another_library(monkeypatch, tmp_path):
    recipe = choose_recipe()
    names = {recipe.digest(), type(recipe)(recipe.compiler, (*recipe.flags, "-g")).digest()}
    for name in ("one.cpp", "two.h"):
        (tmp_path / name).write_text("int one;\n")
        monkeypatch.setattr("pernn.kernels.compilation.SOURCES", tmp_path)
        names.add(recipe.digest())
    assert len(names) == 4


def test_importing_the_modules_compiles_nothing(tmp_path):
    # As on Windows, and where setuptools is missing.
    script = (
        "import sys; sys.modules.update(fcntl=None, setuptools=None); "
        "import pernn.cores, pernn.models; pernn.cores.LSTM, pernn.models.VectorRNN; "
        "del sys.modules['fcntl']; import pernn.lab.training"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert not [*tmp_path.iterdir()]


def test_ids_beyond_the_table_are_refused():
    kernels = find_kernels()
    if kernels is None:
        pytest.skip(describe_kernels())
    tokens, weight = torch.tensor([[0], [5]]), torch.zeros(1, 16, 16)
    with pytest.raises(IndexError, match="token id 5 is none of 0 … 3"):
        kernels.operators.scan_forward(
            "elman", 16, 1, 2, 2, 0, torch.zeros(4, 16), None, tokens, weight, None, None, None
        )
    with pytest.raises(IndexError, match="target 4 is none of 0 … 3"):
        kernels.operators.cross_entropy(
            torch.zeros(1, 4), None, torch.tensor([4]), 1.0, True, torch.zeros(1),
            torch.zeros(1, dtype=torch.bool),
        )  # fmt: skip
