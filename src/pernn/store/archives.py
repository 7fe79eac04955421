"""Archives: a sweep's run directories as one tar; what comes out of one is checked before it is in.

The tar holds ordinary files with the names of the contract and nothing else.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

from pernn.errors import CorruptError, StoreError, VersionError

from .files import (
    MAX_RESULT_BYTES,
    make_directory,
    read_whole,
    refuse_links,
    storing,
    sync_directory,
    to_json,
)
from .remote import ByteStream
from .run_directory import RESULT, SPEC, RunDirectory
from .sweeps import MANIFEST, Sweep, parse_sweep, save_sweep, sweep_directory
from .tar_members import (
    ARCHIVE,
    CHUNK,
    Readable,
    decompressed,
    read_exactly,
    read_members,
    write_end,
    write_member,
)

FILES = (SPEC, "environment.json", "journal.jsonl", "metrics.jsonl", RESULT)
MEMBER = re.compile(
    r"runs/(?P<run>[0-9a-f]{16})/(?:"
    r"(?:spec|environment|result)\.json|(?:journal|metrics)\.jsonl|"
    r"checkpoints/update-\d{9,18}/(?:tensors\.safetensors|(?:state|manifest)\.json))",
    re.ASCII,
)
FOLDER = re.compile(r"runs(/[0-9a-f]{16}(/checkpoints(/update-\d{9,18})?)?)?/?", re.ASCII)
ABANDONED_SECONDS = 24 * 60 * 60
"""Age from which a folder of an unpacking is taken for the remains of a killed one."""

Fate = Literal["unpacked", "identical", "different", "damaged"]


@dataclass(frozen=True)
class Archived:
    """What was put into an archive.

    Attributes:
        runs: The runs that are in.
        left_out: Run → what is damaged in it.
    """

    runs: list[str]
    left_out: dict[str, str]


@dataclass(frozen=True)
class Unpacked:
    """What became of an archive.

    Attributes:
        sweep: Its sweep.
        fates: Run → whether it came in, was there already, is there and differs, or is damaged in
            the archive and was left out.
        sweep_fate: The same of the sweep's list of runs.
        damage: Run that was left out → why.
    """

    sweep: Sweep
    fates: dict[str, Fate]
    sweep_fate: Fate
    damage: dict[str, str]


def write_archive(
    root: Path, sweep: Sweep, runs: Sequence[str], file: ByteStream, *, checkpoints: bool = True
) -> Archived:
    """Write a sweep into an open file; equal directories give equal bytes.

    Each run is read and checked first; one that is damaged is left out.

    Args:
        root: Results directory.
        sweep: Its list of runs.
        runs: The runs to put in; those that were never begun are passed over.
        file: Where to; need not be seekable.
        checkpoints: Whether to take the checkpoints too.

    Raises:
        BusyError: If a process works on one of the runs.
        StoreError: If a file cannot be read.
    """
    taken: list[str] = []
    left_out: dict[str, str] = {}
    path = sweep_directory(root, sweep.name) / MANIFEST
    parse_sweep(path)
    content = read_whole(path, MAX_RESULT_BYTES)
    write_member(file, MANIFEST, len(content), BytesIO(content))
    for run in sorted(set(runs)):
        directory = RunDirectory(root, run)
        if not (directory.path / SPEC).exists():
            continue
        # What is finished does not change any more, and may lie on a disk that is read-only.
        done = (directory.path / RESULT).exists()
        with nullcontext() if done else directory.locked():
            try:
                check_run(directory, checkpoints=checkpoints)
            except (CorruptError, VersionError) as error:
                left_out[run] = str(error)
                continue
            for path in _files(directory, checkpoints=checkpoints):
                with storing(path), path.open("rb") as content_file:
                    size = os.fstat(content_file.fileno()).st_size
                    write_member(file, str(path.relative_to(root)), size, content_file)
        taken.append(run)
    write_end(file)
    return Archived(taken, left_out)


def check_run(run: RunDirectory, *, checkpoints: bool = True) -> None:
    """Read all that a run holds; raise StoreError if a part of it is missing or damaged."""
    if run.read_spec() is None:
        raise CorruptError(f"{run.path}: has no {SPEC}")
    run.read_result(), run.read_environment(), run.read_metrics()
    for update in run.checkpoints.updates() if checkpoints else ():
        run.checkpoints.load(update)


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


def read_archive(root: Path, file: ByteStream, source: str) -> Unpacked:
    """Take an archive's runs into a results directory.

    Each run appears whole or not at all, after its spec was compared with its fingerprint and its
    checkpoints with their checksums; one that is damaged is left out. What is there already is
    never overwritten.

    Args:
        root: Results directory; made if it is missing.
        file: The archive, plain or compressed with gzip; need not be seekable.
        source: What to call it in messages.

    Raises:
        CorruptError: If it holds anything but runs and their sweep, or ends in the middle.
        VersionError: If a newer pernn made it.
        StoreError: If there is no space, or the directory cannot be written.
    """
    with _staging(root) as stage:
        fates: dict[str, Fate] = {}
        damage: dict[str, str] = {}
        content = decompressed(file)
        members = _members(content, source)
        _, name, size = next(members, ("", "", 0))
        if name != MANIFEST:
            raise CorruptError(f"{source}: does not begin with {MANIFEST}: not made by {ARCHIVE}")
        _copy(content, size, stage, MANIFEST, source)
        try:
            sweep = parse_sweep(stage / MANIFEST)
        except CorruptError as error:
            raise CorruptError(f"{source}: {_inside(error, stage)}") from None

        def admit(run: str) -> None:
            try:
                fates[run] = _admit(root, stage, run)
            except (CorruptError, VersionError) as error:
                fates[run], damage[run] = "damaged", _inside(error, stage)

        current = ""
        for run, name, size in members:
            if not run or run in fates:
                raise CorruptError(f"{source}: holds {name!r} a second time")
            if current not in ("", run):
                admit(current)
            current = run
            _copy(content, size, stage, name, source)
        if current:
            admit(current)
        return Unpacked(sweep, fates, _admit_sweep(root, sweep), damage)


def _inside(error: StoreError, stage: Path) -> str:
    """Return what an error says, its file named as in the archive."""
    return str(error).replace(f"{stage}/", "")


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """Return a folder beside the runs, on the same disk, that is gone afterwards."""
    stage = root / f".unpacking.{os.getpid()}.{time.monotonic_ns()}.partial"
    refuse_links(root / "runs", root / "sweeps")
    with storing(root):
        make_directory(root / "runs")
        for remains in root.glob(".unpacking.*.partial"):
            # Another machine may be at work on the same directory, so only age tells.
            if time.time() - remains.lstat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(remains)
        stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _members(file: Readable, source: str) -> Iterator[tuple[str, str, int]]:
    """Yield run (empty: the list of runs), name and size of each file of an archive."""
    for info in read_members(file, source):
        if info.isdir() and FOLDER.fullmatch(info.name):
            continue
        found = MEMBER.fullmatch(info.name)
        if found is None and info.name != MANIFEST:
            raise CorruptError(f"{source}: holds {info.name!r}, which has no place in a run")
        yield "" if found is None else found["run"], info.name, info.size


def _copy(file: Readable, size: int, stage: Path, name: str, source: str) -> None:
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
                output.write(read_exactly(file, min(CHUNK, size - start), source))
            output.flush()
            os.fsync(output.fileno())


def _admit(root: Path, stage: Path, run: str) -> Fate:
    """Check a run that lies in the stage and move it to its place, unless there is one already."""
    staged, there = RunDirectory(stage, run), RunDirectory(root, run)
    check_run(staged)
    if os.path.lexists(there.path):
        refuse_links(there.path)
        return "identical" if _ends_alike(staged, there) else "different"
    with storing(there.path):
        for folder, _, _ in os.walk(staged.path, topdown=False):
            sync_directory(Path(folder))
        staged.path.rename(there.path)
        sync_directory(there.path.parent)
    return "unpacked"


def _ends_alike(one: RunDirectory, other: RunDirectory) -> bool:
    """Return whether two directories of one run hold the same spec and the same result, or none."""
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
