"""What the index has of a run or a sweep: rows read from its files, and a sign of their change."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, StoreError

from .run_directory import JOURNAL, RESULT, SPEC, RunDirectory, flatten
from .status import read_status
from .sweeps import MANIFEST, load_sweep, sweep_directory

TICK_NS = 20_000_000
"""A file that changed this shortly before it was read may change again without a later date."""

MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class RunRows:
    """What the index holds of one run.

    Attributes:
        row: Values of the columns of `runs`.
        settings: Dotted path → value of its spec; empty if that cannot be read.
        metrics: Name → value; empty unless it is finished.
    """

    row: tuple[Any, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


def sign(folder: str, names: tuple[str, ...]) -> tuple[str, int]:
    """Describe files as the file system does: dates, sizes and inodes.

    Returns:
        A text that changes whenever one of the files does, and the latest date in nanoseconds.
    """
    parts, latest = [], 0
    for name in names:
        try:
            found = os.stat(f"{folder}/{name}")  # noqa: PTH116 three per run: a Path takes longer
        except OSError:
            parts.append("-")
            continue
        parts.append(f"{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_size}.{found.st_ino}")
        latest = max(latest, found.st_mtime_ns, found.st_ctime_ns)
    return " ".join(parts), latest


def sign_run(folder: str) -> str:
    """Describe the files of a run that the index has something of."""
    return sign(folder, (SPEC, RESULT, JOURNAL))[0]


def may_stay(signature: str) -> bool:
    """Say whether a run with this signature is finished: then it changes only with its files."""
    return signature.split(" ")[1] != "-" and not signature.endswith("?")


def read_run(root: Path, run: str, *, own: bool = False) -> RunRows | None:
    """Read what the index holds of a run; `None` if there is no such directory.

    Args:
        root: Results directory.
        run: Its fingerprint.
        own: Whether this process has just written it: nobody else changed it meanwhile.
    """
    directory = RunDirectory(root, run)
    if not directory.path.is_dir():
        return None
    # Before the files are read: a change while that lasts must show afterwards.
    signature, latest = sign(str(directory.path), (SPEC, RESULT, JOURNAL))
    if not own and time.time_ns() - latest < TICK_NS:
        signature += " ?"
    status = read_status(root, run)
    settings: dict[str, Any] = {}
    result: Mapping[str, Any] = {}
    begun = finished = None
    with suppress(StoreError, OSError, RecursionError):
        settings = flatten(directory.read_spec() or {})
    with suppress(StoreError, OSError):
        result = (directory.read_result() or {}) if status.standing == "done" else {}
    with suppress(StoreError, OSError):
        journal = directory.read_journal()
        begun = next((line.get("time") for line in journal), None)
        ends = [line.get("time") for line in journal if line.get("event") == "finished"]
        finished = ends[-1] if ends and result else None
    values = (status.standing, status.update, status.event, status.reason, begun, finished)
    found = (result.get("num_parameters"), result.get("weights_sha256"), signature)
    return RunRows(
        tuple(storable(value) for value in (run, *values, *found)),
        {text(path): storable(value) for path, value in settings.items()},
        {text(name): storable(value) for name, value in result.get("metrics", {}).items()},
    )


def sign_sweep(root: Path, name: str) -> str:
    """Describe the file of a sweep."""
    folder = root / "sweeps" / name
    signature, latest = sign(str(folder), (MANIFEST,))
    return f"{signature} ?" if time.time_ns() - latest < TICK_NS else signature


def read_sweep(root: Path, name: str) -> tuple[tuple[str, ...], list[str]] | None:
    """Read the row of a sweep and its runs; `None` if it is none or damaged."""
    try:
        signature = sign_sweep(root, sweep_directory(root, name).name)
        sweep = load_sweep(root, name)
    except (ConfigError, StoreError, OSError):
        return None
    overrides = json.dumps(sweep.overrides, sort_keys=True)
    row = (name, str(sweep.experiment), str(sweep.scale), overrides, signature)
    return tuple(text(value) for value in row), [text(run) for run in sweep.runs]


def storable(value: Any) -> Any:
    """Give a value as SQLite can hold it; numbers keep all their digits."""
    match value:
        case None | float():
            return value
        case int():
            return int(value) if abs(value) <= MAX_INTEGER else str(value)
        case str():
            return text(value)
        case _:
            try:
                return text(json.dumps(value))
            except RecursionError:
                return None


def text(value: str) -> str:
    """Give a text that can be written as UTF-8: half a surrogate pair becomes a question mark."""
    return value.encode("utf-8", "replace").decode()
