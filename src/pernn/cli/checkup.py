"""What `pernn doctor` looks at."""

import os
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pernn.errors import MachineError

from .options import num_cores

REQUIRED = (
    "torch",
    "numpy",
    "pydantic",
    "typer",
    "rich",
    "safetensors",
    "rapidfuzz",
    "scipy",
    "matplotlib",
    "jinja2",
    "jaxtyping",
)
OPTIONAL = {
    "duckdb": "pip install 'pernn[duckdb]' (pernn query)",
    "fsspec": "pip install 'pernn[remote]' (export to s3:// and other addresses)",
    "vl_convert_python": "pip install 'pernn[report]' (interactive charts of pernn report --all)",
    "pyarrow": "pip install 'pernn[parquet]' (read and write Parquet)",
    "sentencepiece": "pip install 'pernn[language]' (language modelling)",
    "ray": "pip install 'pernn[ray]' (sweeps on a Ray cluster)",
    "submitit": "pip install 'pernn[slurm]' (sweeps on SLURM)",
    "tensorboard": "pip install 'pernn[tensorboard]' (--log-to tensorboard)",
    "wandb": "pip install 'pernn[wandb]' (--log-to wandb)",
    "mlflow": "pip install 'pernn[mlflow]' (--log-to mlflow)",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        what: What it is.
        present: Whether it is there and works.
        found: What was seen.
        required: Whether pernn needs it.
        remedy: How to get it.
    """

    what: str
    present: bool
    found: str
    required: bool = True
    remedy: str = ""


def examine(results: Path) -> list[Finding]:
    """Look at packages, processor, accelerators, memory and the results directory."""
    packages = [_package(name, f"pip install {name}", required=True) for name in REQUIRED]
    extras = [_package(name, remedy, required=False) for name, remedy in OPTIONAL.items()]
    python = Finding("Python", True, platform.python_version())
    cores = Finding("CPU cores", True, str(num_cores()))
    machine = [cores, _memory(), _arithmetic(), _accelerator()]
    return [python, *packages, *extras, *machine, _directory(results)]


def _package(name: str, remedy: str, *, required: bool) -> Finding:
    try:
        return Finding(f"package {name}", True, version(name), required, remedy)
    except PackageNotFoundError:
        return Finding(f"package {name}", False, "", required, remedy)


def _memory() -> Finding:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Finding("memory", True, f"{size / 2**30:.0f} GiB")


def _arithmetic() -> Finding:
    """Return what computes here; kernels are compiled now if that was never done."""
    remedy = "a C++ compiler with OpenMP, such as g++; without one, training is slower"
    try:
        from pernn.kernels import describe_arithmetic, find_kernels

        present, found = find_kernels() is not None, describe_arithmetic()
    except (ImportError, MachineError) as error:
        present, found = False, str(error)
    return Finding("CPU arithmetic", present, found, False, remedy)


def _accelerator() -> Finding:
    remedy = "a CUDA build of torch and an NVIDIA driver; everything also runs on the CPU"
    try:
        import torch
    except ImportError as error:
        return Finding("CUDA device", False, str(error), False, remedy)
    if not torch.cuda.is_available():
        return Finding("CUDA device", False, "none", False, remedy)
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Finding("CUDA device", True, ", ".join(names), False)


def _directory(results: Path) -> Finding:
    """Look whether results can be written, and how much room there is."""
    place = results.absolute()
    while not place.exists():
        place = place.parent
    writable = place.is_dir() and os.access(place, os.W_OK)
    free = shutil.disk_usage(place).free / 2**30
    found = f"{results}: {free:.0f} GiB free" if writable else f"{results}: not writable"
    return Finding("results directory", writable, found, True, "choose another with --results")
