"""What computes on this CPU, in words, and the settings outside of this program that decide it."""

import os

import torch

from .compilation import choose_target
from .loading import describe_kernels, find_kernels

VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "PERNN_KERNELS",
    "PERNN_KERNELS_TARGET",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
"""Environment variables that change the bits of results, of this package and of the libraries."""
NAMES = {"AMX": "AMX", "AVX512": "AVX-512", "AVX2": "AVX2", "DEFAULT": "no vector extensions"}
"""What kernels and PyTorch call instructions → what users call them."""


def describe_arithmetic() -> str:
    """Return one line: the class of processor that is used, then who uses which instructions."""
    kernels, capability = find_kernels(), torch.backends.cpu.get_cpu_capability()
    used = capability if kernels is None else kernels.instructions
    limits = [os.environ.get(f"{name}_MAX_CPU_ISA") for name in ("ONEDNN", "DNNL")]
    limit = next((f"at most {one}" for one in limits if one), "all")
    if kernels is None:
        target = describe_kernels()
    else:
        target = f"{kernels.path.stem} for {choose_target() or 'any processor'}"
    return (
        f"{NAMES.get(used, used)}, {'no compiled' if kernels is None else 'compiled'} kernels "
        f"(PyTorch: {capability}; oneDNN: {limit}; kernels: {target})"
    )


def set_variables() -> dict[str, str]:
    """Return those of `VARIABLES` that are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
