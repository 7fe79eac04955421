"""A run's environment: machine, versions, commit, sources of foreign parts.

Torch is loaded only where it is asked about.
"""

import hashlib
import os
import platform
import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import StoreError, counted
from pernn.lab.config import Part
from pernn.lab.store import RunDirectory, physical_memory

from .spec import RunSpec

if TYPE_CHECKING:
    import torch

PACKAGES = ("pernn", "torch", "numpy", "pydantic", "safetensors", "rapidfuzz")
CGROUP = Path("/sys/fs/cgroup")
UNKNOWN = "unknown"
"""Digest of a source that is in no file, such as a notebook's."""
MAX_NAMED = 20
"""Runs that one warning names."""


def describe_environment(device: "torch.device") -> dict[str, Any]:
    """Return versions, commit, device and threads as plain values."""
    import torch

    from pernn.kernels import describe_arithmetic, describe_kernels, set_variables

    return {
        "python": platform.python_version(),
        "packages": describe_versions(PACKAGES),
        "commit": describe_commit(),
        "system": platform.platform(),
        "processor": _processor(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "kernels": describe_kernels(),
        "arithmetic": describe_arithmetic(),
        "variables": set_variables(),
    }


def describe_start(spec: RunSpec, device: "torch.device") -> dict[str, Any]:
    """Return what `environment.json` says of a run that begins here."""
    # In one time zone and form, so that two dates compare as texts.
    date = datetime.now(UTC).isoformat(timespec="seconds")
    parts = describe_parts(spec)
    return describe_environment(device) | {"date": date} | ({"parts": parts} if parts else {})


def _processor() -> str:
    """Name the processor; Linux says it in a file, other systems through Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()} ({os.cpu_count()} logical)"


def describe_versions(packages: tuple[str, ...]) -> dict[str, str | None]:
    """Return the versions of packages, `None` for those that are absent."""
    found: dict[str, str | None] = dict.fromkeys(packages)
    for name in packages:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def describe_commit() -> str | None:
    """Return a checkout's commit, marked if it was changed."""
    # Installed below somebody else's checkout, this file is not one of theirs.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--match=")


def _git(*words: str) -> str | None:
    """Ask Git about the folder of this file; `None` if it has no answer."""
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def describe_parts(spec: RunSpec) -> dict[str, str]:
    """Return the SHA-256 of foreign parts' sources, by path."""
    first = {} if spec.pretraining is None else {"pretraining.task": spec.pretraining.task}
    parts = {"task": spec.task, "core": spec.core, "encoding": spec.encoding, **first}
    return {
        name: source_digest(type(part))
        for name, part in parts.items()
        if part.__class__.__module__.partition(".")[0] != "pernn"
    }


@cache  # The source as it was when the class was first used, not as somebody edits it meanwhile.
def source_digest(config: type[Part]) -> str:
    """Return the SHA-256 of a config's module, or its package's folder."""
    module = sys.modules.get(config.__module__)
    file = Path(getattr(module, "__file__", None) or "")
    files = sorted(file.parent.glob("*.py")) if getattr(module, "__package__", "") else [file]
    digest = hashlib.sha256()
    try:
        for path in files:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    except OSError:
        return UNKNOWN
    return digest.hexdigest()


def changed_parts(runs: Mapping[str, RunSpec], root: Path) -> list[str]:
    """Return a line per part whose source has changed since."""
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run, spec in runs.items():
        now = describe_parts(spec)
        if not now:
            continue
        then: Any = None
        with suppress(StoreError):  # Whoever needs the file complains.
            then = (RunDirectory(root, run).read_environment() or {}).get("parts")
        for name, digest in now.items():
            if isinstance(then, dict) and then.get(name) not in (None, digest):
                changed[name, attrgetter(f"{name}.kind")(spec)].append(run)
    return [
        f"{name} {kind!r} was changed since {counted(len(found), 'run')} began: what is there is "
        f"the old code's; to run it anew, delete in {root / 'runs'}: "
        f"{', '.join(found[:MAX_NAMED])}{' …' * (len(found) > MAX_NAMED)}; or give the part "
        "another kind or parameter"
        for (name, kind), found in changed.items()
    ]


def measure_free_memory() -> int:
    """Return the bytes available without swapping, as the system says."""
    free = [physical_memory()]
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


def peak_memory() -> int:
    """Return the most bytes of memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not `getrusage`: on Linux a process inherits that number from its parent.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
