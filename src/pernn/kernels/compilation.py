"""From C++ to a shared library: which compiler, which flags, where the result is kept."""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

from pernn.ownership import make_private

from .cache import TARGET_VARIABLE, cache_directory, library_path
from .keeping import CompilationError, is_sound, keep

SOURCES = Path(__file__).parent / "source"
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Recipe:
    """All that decides the library.

    Attributes:
        compiler: Path of the compiler.
        flags: What it is told, but for files.
    """

    compiler: str
    flags: tuple[str, ...]

    def digest(self) -> str:
        """Name the library: another for another source, flag, compiler or PyTorch.

        Where the compiler looks at the processor by itself, another processor is another library.
        """
        parts = [torch.__version__, _version(self.compiler), *self.flags]
        if "-march=native" in self.flags:
            parts.append(_processor())
        content = "\n".join(parts).encode()
        digest = hashlib.sha256(content)
        for path in sorted(SOURCES.iterdir()):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


def choose_recipe() -> Recipe:
    """Find the compiler (`CXX`, else c++, g++ or clang++) and what this processor can do.

    Raises:
        CompilationError: If there is no compiler.
    """
    named = os.environ.get("CXX")
    candidates = [named] if named else ["c++", "g++", "clang++"]
    compiler = next(filter(None, map(shutil.which, candidates)), None)
    if compiler is None:
        raise CompilationError(f"no C++ compiler ({', '.join(candidates)}) was found")
    abi = int(torch.compiled_with_cxx11_abi())
    flags = ["-O3", "-std=c++20", "-shared", "-fPIC", "-fopenmp", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    target = choose_target()
    return Recipe(compiler, (*flags, f"-march={target}") if target else tuple(flags))


def choose_target() -> str:
    """Return what `-march` is told: `PERNN_KERNELS_TARGET`, else what PyTorch itself would use.

    PyTorch may have been told to use less than this processor can (`ATEN_CPU_CAPABILITY`).
    """
    named = os.environ.get(TARGET_VARIABLE)
    capability = torch.backends.cpu.get_cpu_capability()
    return named or {"AVX512": "native", "AVX2": "x86-64-v3"}.get(capability, "")


def find_library(recipe: Recipe) -> Path:
    """Return the library of a recipe, compiled now if it is not there yet, whole and ours.

    Raises:
        CompilationError: If it cannot be compiled or kept.
    """
    path = library_path(recipe.digest())
    try:
        make_private(path.parent)
    except OSError as error:
        raise CompilationError(
            f"{_said(path.parent, error)}: set XDG_CACHE_HOME to a folder of your own"
        ) from error
    if not is_sound(path):
        with _locked(cache_directory()):
            # Another process may have made it meanwhile.
            if not is_sound(path):
                compile_library(recipe, path)
    return path


def _said(path: Path, error: OSError) -> str:
    """Turn an error into one line that names the path."""
    return f"{path}: {error.strerror}" if error.strerror else str(error)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process compile and the others wait; the lock ends with its process."""
    try:
        lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CompilationError(_said(folder, error)) from error
    try:
        # Where there are no locks, as on some network drives, each process compiles for itself.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def compile_library(recipe: Recipe, path: Path) -> None:
    """Compile to a file beside its place, try it in a child process, then move it there.

    Raises:
        CompilationError: If that fails.
    """
    # `-lc10` and `-ltorch_cpu` are loaded already where this library will be.
    words: list[str] = [
        recipe.compiler,
        *recipe.flags,
        "-include",
        str(SOURCES / "instructions.h"),
        *(f"-I{folder}" for folder in cpp_extension.include_paths()),
        *(f"-L{folder}" for folder in cpp_extension.library_paths()),
        "-lc10",
        "-ltorch_cpu",
    ]
    try:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            # PyTorch's headers take most of the time: all sources share them.
            whole, made = Path(folder, "whole.cpp"), Path(folder, path.name)
            sources = sorted(SOURCES.glob("*.cpp"))
            whole.write_text("".join(f'#include "{source}"\n' for source in sources))
            _run([words[0], str(whole), *words[1:], "-o", str(made)])
            keep(made, path)
    except OSError as error:
        raise CompilationError(_said(path.parent, error)) from error


def _run(words: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CompilationError(f"{words[0]} took more than {TIMEOUT_SECONDS} s") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        first = (errors or done.stderr.splitlines() or ["no message"])[0]
        raise CompilationError(f"{words[0]} failed: {first}")


def _version(compiler: str) -> str:
    try:
        done = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CompilationError(f"{compiler} does not answer: {error}") from error
    return done.stdout


def _processor() -> str:
    """Distinguish processors that a shared home directory may see."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    words = ("model name", "flags", "Features")
    return "\n".join(sorted({line for line in lines if line.startswith(words)}))
