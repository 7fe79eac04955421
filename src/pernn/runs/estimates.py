"""What trials will take on this machine: time, disk and memory, measured once and remembered.

A few updates of every kind of trial are made in worker processes (`measuring`). What they took is
kept in the user's cache directory, by shape, code and machine; that file may be deleted any time.
"""

import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.filesize import decimal

from pernn.errors import MachineError, StoreError
from pernn.kernels import cache_directory
from pernn.store import NUM_LATEST, num_bytes_below, read_json, to_json, write_atomically

from .environment import describe_commit, describe_versions
from .spec import RunSpec

MEASURING_SECONDS = 60.0
"""Time for measurements before a sweep; of kinds that are left the others tell the range."""
LONG_HOURS = 24.0
"""Work of more than this is begun only if somebody says so."""
CGROUP = Path("/sys/fs/cgroup")
Measured = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Estimate:
    """What trials need and what is free.

    Attributes:
        hours: Least and most, all of them together; `None` if nothing was measured.
        num_kinds: Number of kinds of trials.
        num_measured: Those that were measured here.
        disk: Bytes of all of them when they are done, and of checkpoints being written.
        memory: Bytes of those that run at a time.
        free_disk: Bytes that are free where results go.
        free_memory: Bytes that are free for this process and its children.
        failures: Why kinds do not fit into the memory.
        num_slow: How many kinds did too few updates in `MEASURING_SECONDS` to be measured.
    """

    hours: tuple[float, float] | None
    num_kinds: int
    num_measured: int
    disk: int
    memory: int
    free_disk: int
    free_memory: int
    failures: Sequence[str] = ()
    num_slow: int = 0

    def describe(self) -> str:
        """Return the estimate as half a sentence."""
        if self.hours is None:
            return "not measured on this machine"
        low, high = map(show_hours, self.hours)
        time = low if low == high else f"{low} to {high}"
        unmeasured = self.num_kinds - self.num_measured
        some = f" ({self.num_measured} of {self.num_kinds} kinds measured)" if unmeasured else ""
        return (
            f"{time}{some}, {decimal(self.disk)} of disk ({decimal(self.free_disk)} free), "
            f"{decimal(self.memory)} of memory ({decimal(self.free_memory)} free)"
        )

    @property
    def is_long(self) -> bool:
        """Whether it is more than a day's work, or so slow that nothing could be measured."""
        return self.num_slow > 0 if self.hours is None else self.hours[0] > LONG_HOURS

    def check(self) -> None:
        """Refuse what does not fit.

        Raises:
            MachineError: If disk or memory do not suffice.
        """
        for reason in self.failures:
            raise MachineError(f"{reason}, or try with --force")
        for what, needed, free, advice in (
            ("disk", self.disk, self.free_disk, "choose another --results, free some"),
            ("memory", self.memory, self.free_memory, "use fewer --jobs"),
        ):
            if needed > free:
                raise MachineError(
                    f"needs about {decimal(needed)} of {what} and {decimal(free)} are free: "
                    f"{decimal(needed - free)} too little; {advice}, or try with --force"
                )


def estimate(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    jobs: int,
    threads: int,
    device: str,
    measure: bool = True,
    on_measure: Callable[[int], None] = lambda count: None,
) -> Estimate:
    """Estimate what trials will take on this machine.

    Args:
        specs: What is still to do; what is on disk of it already counts as free.
        root: Results directory, which may not exist yet.
        jobs: Trials at a time.
        threads: CPU threads of each.
        device: As for `execute`.
        measure: Whether kinds that nobody measured before are measured now.
        on_measure: Told how many kinds are going to be measured, if any.
    """
    stages = {stage.fingerprint(): stage for spec in specs for stage in spec.stages}
    kinds = {run: _key(stage, jobs, threads, device) for run, stage in stages.items()}
    known = read_known("update_seconds")
    missing = {key: stages[run] for run, key in kinds.items() if key not in known}
    failures: list[str] = []
    num_slow = 0
    if missing and measure:
        on_measure(len(missing))
        found = measure_kinds(missing, jobs=jobs, threads=threads, device=device)
        failures = [one["error"] for one in found.values() if not one.get("fits", True)]
        num_slow = len(missing.keys() - found.keys())
        fresh = {key: one for key, one in found.items() if "error" not in one}
        remember(fresh)
        known |= fresh
    mine = {run: known[key] for run, key in kinds.items() if key in known}
    sizes = [_sizes(stages[run], one) for run, one in mine.items()]
    largest = sorted((one["memory"] for one in mine.values()), reverse=True)[:jobs]
    place = next(one for one in (root.absolute(), *root.absolute().parents) if one.exists())
    there = [root / "runs" / run for run in stages]
    return Estimate(
        hours=_hours(stages, mine, jobs),
        num_kinds=len({*kinds.values()}),
        num_measured=len({kinds[run] for run in mine}),
        disk=sum(disk for disk, _ in sizes) + sum(sorted(d for _, d in sizes)[-jobs:]),
        memory=sum(largest),
        free_disk=shutil.disk_usage(place).free + sum(map(_bytes_below, there)),
        free_memory=measure_free_memory(),
        failures=failures,
        num_slow=num_slow,
    )


def measure_kinds(
    kinds: Mapping[str, RunSpec],
    *,
    jobs: int,
    threads: int,
    device: str,
    seconds: float = MEASURING_SECONDS,
) -> dict[str, dict[str, Any]]:
    """Measure kinds of trials in worker processes: key → what was measured, or an error.

    The smallest and the largest come first, then those in between, as far as time allows; the
    smallest before all others, so that time allows at least for that.
    """
    sizes = {key: _size(spec.dump()) for key, spec in kinds.items()}
    ordered = sorted(kinds, key=lambda key: sizes[key])
    order = [ordered.pop(-1 if i % 2 else 0) for i in range(len(ordered))]
    where = {"jobs": jobs, "threads": threads, "device": device, "seconds": seconds}
    lines = [where, *({"key": key, "spec": kinds[key].dump()} for key in order)]
    process = subprocess.run(
        [sys.executable, "-m", f"{__package__}.measuring"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"OMP_NUM_THREADS": str(threads), **os.environ},
        text=True,
        check=False,
    )
    found: dict[str, dict[str, Any]] = {}
    for line in process.stdout.splitlines():
        with suppress(ValueError, KeyError):
            one = json.loads(line)
            found[one.pop("key")] = one
    return found


def _key(spec: RunSpec, jobs: int, threads: int, device: str) -> str:
    """Name what decides the time of an update: its shape, the code, the machine."""
    training = {"batch_size": spec.training.batch_size, "precision": spec.training.precision}
    shape = spec.dump() | {"training": training, "pretraining": None, "seed": 0}
    machine = [platform.node(), os.cpu_count(), jobs, threads, device]
    kernels = os.environ.get("PERNN_KERNELS")
    text = json.dumps([shape, describe_code(), machine, kernels], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def describe_code() -> dict[str, str | None]:
    """Return the versions that decide how long anything takes."""
    return {**describe_versions(("pernn", "torch")), "commit": describe_commit()}


def _size(value: Any) -> float:
    """Multiply all numbers of a spec: it only tells which trials are likely to be the extremes."""
    if isinstance(value, Mapping):
        return math.fsum(_size(inner) for inner in value.values())
    return math.log1p(abs(value)) if isinstance(value, int | float) else 0.0


def _hours(stages: Mapping[str, RunSpec], mine: Measured, jobs: int) -> tuple[float, float] | None:
    """Add up the quartiles of the updates' times; what was not measured may be like any other."""
    if not mine:
        return None
    quartiles = {
        run: np.quantile(one["update_seconds"], (0.25, 0.75)).tolist() for run, one in mine.items()
    }
    extremes = min(one[0] for one in quartiles.values()), max(one[1] for one in quartiles.values())
    low = high = 0.0
    for run, spec in stages.items():
        training, (least, most) = spec.training, quartiles.get(run, extremes)
        count = training.iterations if spec.analysis is None else len(spec.analysed_updates)
        rounds = count / training.evaluation_interval + count / training.checkpoint_interval
        low += count * least
        high += count * most + max(1, rounds) * mine.get(run, {}).get("round_seconds", 0.0)
    jobs = min(jobs, len(stages))
    return low / jobs / 3600, high / jobs / 3600


def _sizes(spec: RunSpec, one: Mapping[str, Any]) -> tuple[int, int]:
    """Return bytes of a finished run's files, and of a checkpoint that is being written."""
    checkpoint = one.get("checkpoint", 0)
    training = spec.training
    kept = count_checkpoints(spec) if checkpoint else 0
    lines = training.iterations / training.log_interval
    # An evaluation is a line of the metrics and a row of the result.
    lines += 2 * training.iterations / training.evaluation_interval
    return int(kept * checkpoint + lines * one.get("line", 0) + one.get("rest", 0)), checkpoint


def count_checkpoints(spec: RunSpec) -> int:
    """Return how many checkpoints a finished training keeps."""
    training = spec.training
    last, interval = training.iterations, training.checkpoint_interval
    saved = {*range(interval, last, interval)[-NUM_LATEST:], last}
    kept = set(sorted(saved)[-NUM_LATEST:])
    if training.keep_interval is not None:
        kept |= set(range(0, last + 1, math.lcm(interval, training.keep_interval))) - {0}
    return len(kept)


def _bytes_below(folder: Path) -> int:
    """Add up a folder's files; nothing if one vanishes meanwhile."""
    with suppress(StoreError):
        return num_bytes_below(folder) if folder.is_dir() else 0
    return 0


def _known_path() -> Path:
    return cache_directory() / "measurements.json"


def read_known(field: str | None = None) -> dict[str, Any]:
    """Read what was measured before; whatever is wrong with the file, it is made anew.

    Args:
        field: Measurements that lack it, those of another sort, are left out.
    """
    try:
        known = read_json(_known_path())
    except StoreError:
        return {}
    measured = {key: one for key, one in known.items() if isinstance(one, dict)}
    return {key: one for key, one in measured.items() if field is None or one.get(field)}


def remember(found: Mapping[str, Any]) -> None:
    """Add measurements to what is known, if the file can be written."""
    with suppress(StoreError, OSError):
        _known_path().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(_known_path(), to_json({**read_known(), **found}))


def measure_free_memory() -> int:
    """Return the bytes that can be had without swapping, as far as the system tells."""
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        (available,) = (line for line in lines if line.startswith("MemAvailable:"))
        free.append(int(available.split()[1]) * 1024)
    with suppress(OSError, ValueError):
        # "max" where a container has no limit of its own.
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        cached = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        free.append(limit - used + int(cached["inactive_file"]))
    return max(0, min(free))


def show_hours(hours: float) -> str:
    """Return a time as people write it."""
    if hours < 1:
        return f"{hours * 60:.0f} minutes" if hours > 1 / 60 else "a minute"
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:,.0f} days"
