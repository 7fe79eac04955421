"""Archives: a sweep's run directories as one tar; what comes out of one is checked before it is in.

The tar holds ordinary files with the names of the contract and nothing else, so it is read header
by header: no link, no device, no extension that could name another place is ever followed.
"""

import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

from pernn.errors import CorruptError, StoreError, VersionError

from .files import read_json, refuse_links, storing, sync_directory, to_json
from .remote import ByteStream
from .run_directory import RESULT, RunDirectory
from .sweeps import MANIFEST, Sweep, parse_sweep, save_sweep, sweep_directory

FILES = ("spec.json", "environment.json", "journal.jsonl", "metrics.jsonl", RESULT)
MEMBER = re.compile(
    r"runs/(?P<run>[0-9a-f]{16})/(?:"
    r"(?:spec|environment|result)\.json|(?:journal|metrics)\.jsonl|"
    r"checkpoints/update-\d{9,18}/(?:tensors\.safetensors|(?:state|manifest)\.json))",
    re.ASCII,
)
FOLDER = re.compile(r"runs(/[0-9a-f]{16}(/checkpoints(/update-\d{9,18})?)?)?/?", re.ASCII)
ARCHIVE = "pernn archive"
CHUNK = 2**20
MAX_MANIFEST_BYTES = 2**26
ABANDONED_SECONDS = 24 * 60 * 60
"""Age from which a folder of an unpacking is taken for the remains of a killed one."""

Fate = Literal["unpacked", "identical", "different"]


@dataclass(frozen=True)
class Unpacked:
    """What became of an archive.

    Attributes:
        sweep: Its sweep.
        fates: Run → whether it came in, was there already, or is there and differs.
        sweep_fate: The same of the sweep's list of runs.
    """

    sweep: Sweep
    fates: dict[str, Fate]
    sweep_fate: Fate


def write_archive(
    root: Path, sweep: Sweep, runs: Sequence[str], file: ByteStream, *, checkpoints: bool = True
) -> list[str]:
    """Write a sweep into an open file; equal directories give equal bytes.

    Args:
        root: Results directory.
        sweep: Its list of runs.
        runs: The runs to put in; those that were never begun are passed over.
        file: Where to; need not be seekable.
        checkpoints: Whether to take the checkpoints too.

    Returns:
        The runs that were put in.

    Raises:
        BusyError: If a process works on one of the runs.
        StoreError: If a file cannot be read.
    """
    taken = []
    content = read_json_bytes(sweep_directory(root, sweep.name) / MANIFEST)
    _add(file, MANIFEST, len(content), BytesIO(content))
    for run in sorted(set(runs)):
        directory = RunDirectory(root, run)
        if directory.read_spec() is None:
            continue
        # What is finished does not change any more, and may lie on a disk that is read-only.
        done = directory.read_result() is not None
        with nullcontext() if done else directory.locked():
            for path in _files(directory, checkpoints=checkpoints):
                with storing(path), path.open("rb") as content_file:
                    size = os.fstat(content_file.fileno()).st_size
                    _add(file, str(path.relative_to(root)), size, content_file)
        taken.append(run)
    file.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    return taken


def read_json_bytes(path: Path) -> bytes:
    """Give a JSON file as it was written, after checking it."""
    read_json(path)
    with storing(path):
        return path.read_bytes()


def _files(directory: RunDirectory, *, checkpoints: bool) -> list[Path]:
    """List a run's files in the order of their names."""
    found = [directory.path / name for name in FILES]
    if checkpoints:
        folder = directory.checkpoints
        for update in folder.updates():
            found += folder.files(update)
    found = [path for path in found if path.exists()]
    refuse_links(directory.path, directory.checkpoints.path, *found, *{p.parent for p in found})
    return sorted(found)


def _add(file: ByteStream, name: str, size: int, content: ByteStream) -> None:
    """Write a header without owner, date or rights, which differ from day to day, and a file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    file.write(info.tobuf(tarfile.GNU_FORMAT))
    for start in range(0, size, CHUNK):
        file.write(_read_exactly(content, min(CHUNK, size - start), name))
    file.write(b"\0" * (-size % tarfile.BLOCKSIZE))


def read_archive(root: Path, file: ByteStream, source: str) -> Unpacked:
    """Take an archive's runs into a results directory.

    Each run appears whole or not at all, after its spec was compared with its fingerprint and its
    checkpoints with their checksums. What is there already is never overwritten.

    Args:
        root: Results directory; made if it is missing.
        file: The archive; need not be seekable.
        source: What to call it in messages.

    Raises:
        CorruptError: If it holds anything but runs and their sweep, or they are damaged.
        VersionError: If a newer pernn made it.
        StoreError: If there is no space, or the directory cannot be written.
    """
    with _staging(root) as stage:
        fates: dict[str, Fate] = {}
        members = _members(file, source)
        name, size = next(members, ("", 0))
        if name != MANIFEST or size > MAX_MANIFEST_BYTES:
            raise CorruptError(f"{source}: does not begin with {MANIFEST}: not made by {ARCHIVE}")
        _copy(file, size, stage, MANIFEST, source)
        try:
            sweep = parse_sweep(stage / MANIFEST)
        except CorruptError as error:
            raise CorruptError(f"{source}: {error}") from None
        current = ""
        for name, size in members:
            found = MEMBER.fullmatch(name)
            run = "" if found is None else found["run"]
            if not run or run in fates:
                raise CorruptError(f"{source}: holds {name!r}, which has no place in a run")
            if run != current and current:
                fates[current] = _admit(root, stage, current, source)
            current = run
            _copy(file, size, stage, name, source)
        if current:
            fates[current] = _admit(root, stage, current, source)
        return Unpacked(sweep, fates, _admit_sweep(root, sweep))


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """Give a folder beside the runs, on the same disk, that is gone afterwards."""
    stage = root / f".unpacking.{os.getpid()}.{time.monotonic_ns()}.partial"
    refuse_links(root / "runs", root / "sweeps")
    with storing(root):
        (root / "runs").mkdir(parents=True, exist_ok=True)
        for remains in root.glob(".unpacking.*.partial"):
            # Another machine may be at work on the same directory, so only age tells.
            if time.time() - remains.lstat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(remains)
        stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _members(file: ByteStream, source: str) -> Iterator[tuple[str, int]]:
    """Give name and size of each file; the caller reads its content before the next is asked for.

    Only plain headers are understood: links, devices and headers that change the meaning of the
    next one (long names, other sizes) are refused.
    """
    while True:
        block = _read_exactly(file, tarfile.BLOCKSIZE, source)
        if not any(block):
            return
        try:
            info = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise CorruptError(f"{source}: not an uncompressed tar: {error}") from None
        if info.isdir() and FOLDER.fullmatch(info.name) and info.size == 0:
            continue
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.size < 0:
            raise CorruptError(
                f"{source}: {info.name!r} is no ordinary file: not made by {ARCHIVE}"
            )
        yield info.name, info.size
        _read_exactly(file, -info.size % tarfile.BLOCKSIZE, source)


def _read_exactly(file: ByteStream, size: int, source: str) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise CorruptError(f"{source}: ends in the middle")
    return content


def _copy(file: ByteStream, size: int, stage: Path, name: str, source: str) -> None:
    """Write the next bytes to a file that must not exist yet."""
    target = stage / name
    with storing(target):
        if size > shutil.disk_usage(stage).free:
            raise StoreError(f"{source}: {target.name} of {size:,} bytes is more than is free here")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            output = target.open("xb")
        except FileExistsError:
            raise CorruptError(f"{source}: holds {target.name} of a run twice") from None
        with output:
            for start in range(0, size, CHUNK):
                output.write(_read_exactly(file, min(CHUNK, size - start), source))
            output.flush()
            os.fsync(output.fileno())


def _admit(root: Path, stage: Path, run: str, source: str) -> Fate:
    """Check a run that lies in the stage and move it to its place, unless there is one already."""
    staged, there = RunDirectory(stage, run), RunDirectory(root, run)
    try:
        if staged.read_spec() is None:
            raise CorruptError("it has no spec.json")
        staged.read_result(), staged.read_environment(), staged.read_metrics()
        for update in staged.checkpoints.updates():
            staged.checkpoints.load(update)
    except VersionError:
        raise
    except StoreError as error:
        raise CorruptError(f"{source}: run {run}: {error}") from None
    if os.path.lexists(there.path):
        refuse_links(there.path)
        return "identical" if _ends_alike(staged, there) else "different"
    with storing(there.path):
        for folder in (staged.checkpoints.path, staged.path):
            if folder.is_dir():
                sync_directory(folder)
        staged.path.rename(there.path)
        sync_directory(there.path.parent)
    return "unpacked"


def _ends_alike(one: RunDirectory, other: RunDirectory) -> bool:
    """Say whether two directories of one run hold the same spec and the same result, or none."""
    try:
        specs = one.read_spec(), other.read_spec()
        results = one.read_result(), other.read_result()
    except StoreError:
        return False
    return specs[0] == specs[1] and results[0] == results[1]


def _admit_sweep(root: Path, sweep: Sweep) -> Fate:
    """Write the sweep's list of runs, unless there is one already."""
    path = sweep_directory(root, sweep.name) / MANIFEST
    if not os.path.lexists(path):
        save_sweep(root, sweep)
        return "unpacked"
    try:
        same = to_json(vars(parse_sweep(path))) == to_json(vars(sweep))
    except StoreError:
        same = False
    return "identical" if same else "different"
