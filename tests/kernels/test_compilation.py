"""Compilation: for which processor, and anew where what is kept is damaged or not ours."""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from pernn.kernels import compilation, describe_kernels, find_kernels
from pernn.kernels.compilation import CompilationError, choose_recipe, find_library, try_out

STRANGER = 54321
DIGEST = 32
"""Bytes at the end of a library that is kept."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(scope="module")
def library():
    """The true library; its compilation is what takes long."""
    kernels = find_kernels()
    if kernels is None:
        pytest.skip(describe_kernels())
    return kernels.path.read_bytes()[:-DIGEST]


@pytest.fixture
def compiler(library, tmp_path, monkeypatch):
    """A compiler that gives the true library at once, and notes each time that it is asked."""
    source, script = tmp_path / "true.so", tmp_path / "cxx"
    source.write_bytes(library)
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo 1\n'
        f'echo asked >> {tmp_path}/asked\nwhile [ "$1" != -o ]; do shift; done\n'
        f'exec cp {source} "$2"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation, "try_out", lambda made: None)
    return source


@pytest.fixture
def kept(compiler):
    return find_library(choose_recipe())


def num_asked(compiler):
    return len((compiler.parent / "asked").read_text().splitlines())


FOREIGN = np._core._multiarray_umath.__file__
DAMAGE = {
    "cut": lambda path: os.truncate(path, 8192),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a foreign library": lambda path: (path.unlink(), shutil.copy(FOREIGN, path)),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link": lambda path: path.symlink_to(path.rename(path.with_name("elsewhere.so"))),
    "open to all": lambda path: path.chmod(0o666),
    "no digest": lambda path: os.truncate(path, path.stat().st_size - DIGEST),
    "a stranger's": lambda path: os.chown(path, STRANGER, STRANGER),
}


@pytest.mark.parametrize("damage", [*list(DAMAGE)[:-1], pytest.param([*DAMAGE][-1], marks=as_root)])
def test_what_does_not_verify_is_compiled_anew(kept, compiler, library, damage):
    assert find_library(choose_recipe()) == kept
    assert num_asked(compiler) == 1
    DAMAGE[damage](kept)
    assert find_library(choose_recipe()) == kept
    assert num_asked(compiler) == 2
    assert kept.read_bytes()[:-DIGEST] == library
    assert not kept.is_symlink()
    assert kept.stat().st_uid == os.geteuid()
    assert kept.stat().st_mode & 0o777 == 0o644
    assert find_library(choose_recipe()) == kept
    assert num_asked(compiler) == 2


def test_many_at_once_compile_it_once_and_say_so(compiler, monkeypatch):
    said = []
    monkeypatch.setattr(compilation.LOGGER, "warning", said.append)
    script = compiler.parent / "cxx"
    script.write_text(script.read_text().replace("echo asked", "sleep 1; echo asked"))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(find_library, [choose_recipe()] * 4))
    assert len(set(found)) == 1
    assert num_asked(compiler) == 1
    assert said == ["compiling kernels, once, about 20 s"]


def test_a_compiler_may_be_called_by_another_program(compiler, monkeypatch):
    monkeypatch.setenv("CXX", f"env WORD=a {os.environ['CXX']}")
    find_library(choose_recipe())
    assert num_asked(compiler) == 1


def test_a_cache_is_read_by_all_and_written_by_its_owner(compiler):
    """What root compiled, as in an image, serves other users."""
    before = os.umask(0)
    try:
        path = find_library(choose_recipe())
    finally:
        os.umask(before)
    assert path.parent.stat().st_mode & 0o777 == 0o755
    path.parent.chmod(0o777)
    assert find_library(choose_recipe()) == path
    assert path.parent.stat().st_mode & 0o777 == 0o755


@as_root
def test_a_cache_of_somebody_else_is_not_used(kept):
    os.chown(kept.parent, STRANGER, STRANGER)
    with pytest.raises(CompilationError, match=r"pernn belongs to another user .* XDG_CACHE_HOME"):
        find_library(choose_recipe())


def test_a_library_that_kills_its_process_is_found_out_in_a_child(compiler, monkeypatch):
    monkeypatch.setattr(compilation, "try_out", try_out)
    try_out(compiler)
    # Its headers are whole, and what they speak of is not there.
    os.truncate(compiler, compiler.stat().st_size // 2)
    with pytest.raises(CompilationError, match="the compiled library"):
        find_library(choose_recipe())
    cache = compiler.parent / "cache" / "pernn"
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_what_the_compiler_says_is_one_line(compiler):
    script = compiler.parent / "cxx"
    version = script.read_text().partition("echo asked")[0]
    script.write_text(version + "echo some.cpp: fatal error: no such header >&2\nexit 1\n")
    with pytest.raises(CompilationError) as caught:
        find_library(choose_recipe())
    assert str(caught.value) == f"{script} failed: some.cpp: fatal error: no such header"
    cache = compiler.parent / "cache" / "pernn"
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written_is_named(compiler):
    (compiler.parent / "cache").mkdir()
    (compiler.parent / "cache" / "pernn").write_text("a file, not a folder")
    with pytest.raises(CompilationError, match=r"File exists: .*pernn"):
        find_library(choose_recipe())


def test_another_compiler_flag_or_source_is_another_library(monkeypatch, tmp_path):
    recipe = choose_recipe()
    names = {recipe.digest(), type(recipe)(recipe.compiler, (*recipe.flags, "-g")).digest()}
    for name in ("one.cpp", "two.h"):
        (tmp_path / name).write_text("int one;\n")
        monkeypatch.setattr(compilation, "SOURCES", tmp_path)
        names.add(recipe.digest())
    assert len(names) == 4


def test_a_named_target_is_one_library_for_all_processors(monkeypatch):
    digests = set()
    for target in ("native", "x86-64-v3", "x86-64-v2"):
        monkeypatch.setenv("PERNN_KERNELS_TARGET", target)
        recipe = choose_recipe()
        assert f"-march={target}" in recipe.flags
        digests.add(recipe.digest())
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(compilation, "_processor", lambda: "another processor")
            digests.add(recipe.digest())
    # Only the native library depends on the processor.
    assert len(digests) == 4


def test_kernels_follow_what_pytorch_may_use(monkeypatch):
    monkeypatch.delenv("PERNN_KERNELS_TARGET", raising=False)
    for capability, target in (("AVX512", "native"), ("AVX2", "x86-64-v3"), ("DEFAULT", "")):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda one=capability: one)
        assert compilation.choose_target() == target


def test_windows_has_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(CompilationError, match="not compiled on Windows"):
        choose_recipe()
