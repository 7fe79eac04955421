"""Compiled libraries are loaded only if they are ours, whole, and were seen to load."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from pernn.ownership import read_trusted


class CompilationError(Exception):
    """No library could be made; the message says why, in one line."""


PROBE = """
import sys, torch
torch.ops.load_library(sys.argv[1])
torch.ops.pernn.factor_panel()
zeros = torch.zeros(1, 16)
torch.ops.pernn.scan_forward(
    "elman", 16, 1, 1, 1, 0, zeros, None, None, torch.zeros(1, 16, 16), None, None, None
)
"""
"""What a child process does first with a new library."""
PROBE_SECONDS = 300


def is_sound(path: Path) -> bool:
    """Return whether a library is what was put there: by length, digest, owner and mode."""
    try:
        return read_trusted(note_of(path)) == _describe(read_trusted(path))
    except OSError:
        return False


def note_of(path: Path) -> Path:
    """Return the place of the line beside a library that says its digest and length."""
    return path.with_name(f"{path.name}.sha256")


def keep(made: Path, path: Path) -> None:
    """Put a new library in its place once it was seen to load, its digest beside it, both on disk.

    Args:
        made: The library, in a temporary folder beside its place.
        path: Its place; whatever is there is replaced.

    Raises:
        CompilationError: If it ends the process that loads it.
        OSError: If it cannot be kept.
    """
    try_out(made)
    note = made.with_name("note")
    note.write_bytes(_describe(made.read_bytes()))
    for source, place in ((made, path), (note, note_of(path))):
        source.chmod(0o600)
        _sync(source)
        if place.is_dir() and not place.is_symlink():
            place.rename(made.with_name(f"old {place.name}"))
        source.replace(place)
    _sync(path.parent)


def try_out(library: Path) -> None:
    """Load a library in a child process, and compute with it.

    Raises:
        CompilationError: If the child does not survive.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, str(library)],
            # Where nobody else can put a module named torch.
            cwd=library.parent,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CompilationError(f"the compiled library did not load in {PROBE_SECONDS} s") from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise CompilationError(f"the compiled library ends the process that loads it by {name}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CompilationError(f"the compiled library cannot be loaded: {last}")


def _describe(content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()} {len(content)}\n".encode()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
