"""What a run ran on."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from pernn.kernels import describe_kernels

PACKAGES = ("pernn", "torch", "numpy", "pydantic", "safetensors", "rapidfuzz")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Give versions, commit, device and threads as plain values."""
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "system": platform.platform(),
        "processor": _processor(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "kernels": describe_kernels(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Name the processor; Linux says it in a file, other systems through Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()} ({os.cpu_count()} logical)"


def _commit() -> str | None:
    """Name the commit of a source checkout, with a mark if it was changed."""
    # Installed below somebody else's checkout, this file is not one of theirs.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("describe", "--always", "--dirty", "--abbrev=40", "--match=")


def _git(*words: str) -> str | None:
    """Ask Git about the folder of this file; `None` if it has no answer."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
