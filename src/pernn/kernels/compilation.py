"""Compilation of the C++ sources into the cache."""

import hashlib
import logging
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

LOGGER = logging.getLogger("pernn.kernels")
SOURCES = Path(__file__).parent / "source"
TIMEOUT_SECONDS = 600
TARGET_VARIABLE = "PERNN_KERNELS_TARGET"
"""Processor to compile for, as `-march` takes it: `native`, `x86-64-v3`, `cooperlake` …"""
PROBE = """
import sys, torch
torch.ops.load_library(sys.argv[1])
zeros = torch.zeros(1, 16)
torch.ops.pernn.scan_forward(
    "elman", 16, 1, 1, 1, 0, zeros, None, None, torch.zeros(1, 16, 16), None, None, None
)
"""
"""What a child process does first with a new library."""


class CompilationError(RuntimeError):
    """No library could be compiled."""


class Recipe(NamedTuple):
    """All that decides the library: compiler, or what calls it, and flags."""

    compiler: tuple[str, ...]
    flags: tuple[str, ...]

    def digest(self) -> str:
        """Name the library: another for another source, flag, compiler or PyTorch.

        Where the compiler looks at the processor by itself, another processor is another library.
        """
        version = _run(" ".join(self.compiler), *self.compiler, "--version")
        parts = [torch.__version__, version, *self.flags]
        if "-march=native" in self.flags:
            parts.append(_processor())
        digest = hashlib.sha256("\n".join(parts).encode())
        for path in sorted(SOURCES.iterdir()):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


def choose_recipe() -> Recipe:
    """Find the compiler and this processor's instructions."""
    if sys.platform == "win32":
        raise CompilationError("kernels are not compiled on Windows")
    named, *words = os.environ.get("CXX", "").split() or [""]
    candidates = [named] if named else ["c++", "g++", "clang++"]
    compiler = next(filter(None, map(shutil.which, candidates)), None)
    if compiler is None:
        raise CompilationError(f"no C++ compiler ({', '.join(candidates)}) was found")
    abi = int(torch.compiled_with_cxx11_abi())
    flags = ["-O3", "-std=c++20", "-shared", "-fPIC", "-fopenmp", f"-D_GLIBCXX_USE_CXX11_ABI={abi}"]
    target = choose_target()
    flags += [f"-march={target}"] if target else []
    return Recipe((compiler, *words), tuple(flags))


def choose_target() -> str:
    """Return what `-march` is told: `PERNN_KERNELS_TARGET`, else what PyTorch itself would use.

    PyTorch may have been told to use less than this processor can (`ATEN_CPU_CAPABILITY`).
    """
    named = os.environ.get(TARGET_VARIABLE)
    capability = torch.backends.cpu.get_cpu_capability()
    return named or {"AVX512": "native", "AVX2": "x86-64-v3"}.get(capability, "")


def cache_directory() -> Path:
    """Return the folder for compiled libraries, `XDG_CACHE_HOME`/pernn or ~/.cache/pernn."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pernn"


def find_library(recipe: Recipe) -> Path:
    """Return a recipe's library, compiled now if there is no sound one."""
    # Windows has none, and no recipe.
    import fcntl

    digest = recipe.digest()
    try:
        path = cache_directory() / f"kernels-{digest}.so"
        _make_private(path.parent)
        if not is_sound(path):
            with (path.parent / ".lock").open("a") as lock:
                # Where there are no locks, as on some network drives, each process compiles for
                # itself. A lock ends with its process.
                with suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_EX)
                # Another process may have made it meanwhile.
                if not is_sound(path):
                    compile_library(recipe, path)
    except OSError as error:
        raise CompilationError(f"{error}: set XDG_CACHE_HOME to a folder of your own") from error
    return path


def is_sound(path: Path) -> bool:
    """Return whether a library is ours and its digest holds."""
    # No link is followed, and no FIFO waits for a writer.
    careful = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | careful)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
                return False
            content = file.read()
    except OSError:
        return False
    return content[-32:] == hashlib.sha256(content[:-32]).digest()


def _is_ours(status: os.stat_result) -> bool:
    """Return whether only we or root can have written something."""
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def _make_private(folder: Path) -> None:
    """Make a folder that only its owner can write to, or make it so if it is ours already.

    Others may read: what root compiled serves every user.
    """
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o022:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~0o022)
        status = folder.stat()
    if not _is_ours(status):
        raise PermissionError(f"{folder} belongs to another user or can be written by others")


def compile_library(recipe: Recipe, path: Path) -> None:
    """Compile a library, try it, and move it into place."""
    # Takes a second, and needs setuptools, which PyTorch does not always bring with it.
    from torch.utils.cpp_extension import include_paths, library_paths

    LOGGER.warning("compiling kernels, once, about 20 s")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        # PyTorch's headers take most of the time: all sources share them.
        whole, made = Path(folder, "whole.cpp"), Path(folder, path.name)
        sources = sorted(SOURCES.glob("*.cpp"))
        whole.write_text("".join(f'#include "{source}"\n' for source in sources))
        files = [str(whole), "-include", str(SOURCES / "instructions.h"), "-o", str(made)]
        folders = [f"-I{one}" for one in include_paths()] + [f"-L{one}" for one in library_paths()]
        # Loaded already where this library will be.
        libraries = ["-lc10", "-ltorch_cpu"]
        command = [*recipe.compiler, *files, *recipe.flags, *folders, *libraries]
        _run(" ".join(recipe.compiler), *command)
        try_out(made)
        with made.open("ab") as file:
            file.write(hashlib.sha256(made.read_bytes()).digest())
        made.chmod(0o644)
        made.replace(path)


def try_out(library: Path) -> None:
    """Load a library in a child process, and compute with it."""
    # From where nobody else can put a module named torch.
    _run("the compiled library", sys.executable, "-c", PROBE, str(library), folder=library.parent)


def _run(what: str, *words: str, folder: Path | None = None) -> str:
    """Return what a program prints."""
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, errors="replace",
            timeout=TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilationError(f"{what} failed: {error}") from None
    if done.returncode:
        lines = [*done.stderr.splitlines(), f"exit status {done.returncode}"]
        said = next((line for line in lines if "error" in line.lower()), lines[0])
        raise CompilationError(f"{what} failed: {said}")
    return done.stdout


def _processor() -> str:
    """Distinguish processors that a shared home directory may see."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    words = ("model name", "flags", "Features")
    return "\n".join(sorted({line for line in lines if line.startswith(words)}))
