"""What a run ran on."""

import os
import platform
from pathlib import Path
from typing import Any

import torch

from pernn.kernels import describe_arithmetic, describe_kernels, set_variables

from .versions import describe_commit, describe_versions

PACKAGES = ("pernn", "torch", "numpy", "pydantic", "safetensors", "rapidfuzz")


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Return versions, commit, device and threads as plain values."""
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


def _processor() -> str:
    """Name the processor; Linux says it in a file, other systems through Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()} ({os.cpu_count()} logical)"
