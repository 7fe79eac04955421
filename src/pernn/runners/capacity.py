"""What a sweep needs of this machine, held against what is free."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pernn.errors import ConfigError, MachineError
from pernn.runs import RunSpec, estimate_footprint

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Capacity:
    """Bytes that trials need, and that are free.

    Attributes:
        disk: Needed by all of them when they are done, and for the checkpoints being written.
        memory: Needed by those that run at a time.
        free_disk: Free where results go.
        free_memory: Free for this process and its children.
    """

    disk: int
    memory: int
    free_disk: int
    free_memory: int

    def check(self) -> None:
        """Make sure that everything fits.

        Raises:
            MachineError: If disk or memory do not suffice.
        """
        if self.disk > self.free_disk:
            raise MachineError(
                f"needs about {show_bytes(self.disk)} of disk and {show_bytes(self.free_disk)} "
                f"are free: {show_bytes(self.disk - self.free_disk)} too little; choose another "
                "--results, free some, or try with --force"
            )
        if self.memory > self.free_memory:
            raise MachineError(
                f"needs about {show_bytes(self.memory)} of memory and "
                f"{show_bytes(self.free_memory)} are free: "
                f"{show_bytes(self.memory - self.free_memory)} too little; use fewer --jobs, or "
                "try with --force"
            )


def measure_capacity(specs: Sequence[RunSpec], jobs: int, root: Path) -> Capacity:
    """Estimate what trials need and measure what is free.

    Args:
        specs: What is still to do; what is on disk of it already counts as free.
        jobs: Trials at a time.
        root: Results directory, which may not exist yet.
    """
    found = [estimate_footprint(spec) for spec in specs]
    largest = sorted(found, key=lambda one: one.memory)[-jobs:]
    drafts = sum(sorted(one.draft for one in found)[-jobs:])
    place = root.absolute()
    while not place.exists():
        place = place.parent
    there = sum(_size(root / "runs" / spec.fingerprint()) for spec in specs)
    return Capacity(
        disk=sum(one.disk for one in found) + drafts,
        memory=sum(one.memory for one in largest),
        free_disk=shutil.disk_usage(place).free + there,
        free_memory=measure_free_memory(),
    )


def check_cores(jobs: int, threads: int, cores: int) -> None:
    """Make sure that trials do not take cores from one another.

    Raises:
        ConfigError: If they would.
    """
    if jobs * threads > cores:
        raise ConfigError(
            f"--jobs {jobs} of {threads} thread(s) need {jobs * threads} cores, and this process "
            f"may use {cores}: use fewer, or --oversubscribe"
        )


def measure_free_memory() -> int:
    """Give the bytes that can be had without swapping, as far as the system tells."""
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


def show_bytes(count: float) -> str:
    """Say a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"


def _size(folder: Path) -> int:
    """Add up a folder's files; one that vanishes meanwhile does not count."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total
