"""Loading of kernels, once per process, and their description."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from pernn.errors import MachineError

from .compilation import choose_recipe, choose_target, find_library
from .shapes import register_shapes

LOGGER = logging.getLogger("pernn")
VARIABLE = "PERNN_KERNELS"
"""Whether to use kernels: `auto` or `off`."""
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


@dataclass(frozen=True)
class Kernels:
    """The compiled kernels.

    Attributes:
        path: The shared library.
        instructions: What it was compiled for: `AMX`, `AVX512`, `AVX2` or `DEFAULT`.
        rounds: Whether the recurrences can take bfloat16 factors; else PyTorch runs them.
        product_parts: What `matmul` can do: 3 (float32), 1 (factors rounded to bfloat16), by matrix
            units, or 3 alone by vectors; nothing where PyTorch's products serve.
    """

    path: Path
    instructions: str
    rounds: bool
    product_parts: tuple[int, ...]

    @property
    def operators(self) -> Any:
        """The operators, as PyTorch's `torch.ops` gives them."""
        return torch.ops.pernn


_lock = threading.RLock()
_hiding: list[None] = []
"""One for each `without_kernels` that is open."""


def find_kernels() -> Kernels | None:
    """Return the kernels, compiling them if needed (about 20 seconds).

    Returns:
        `None` where there is no compiler, or they are switched off.

    Raises:
        MachineError: If `PERNN_KERNELS` has another value than `auto` or `off`.
    """
    with _lock:
        kernels, _ = _decide()
    return None if _hiding else kernels


# What torch.compiler.assume_constant_result does, without loading the compiler: it asks, and takes
# the answer for granted.
find_kernels._dynamo_marked_constant = True  # type: ignore[attr-defined]


def describe_kernels() -> str:
    """Return `compiled …` or `torch (reason)`: what computes on the CPU."""
    kernels = find_kernels()
    if kernels is None:
        return f"torch ({_decide()[1] or 'switched off'})"
    return f"compiled ({kernels.path.stem}, {kernels.instructions})"


@contextmanager
def without_kernels() -> Iterator[None]:
    """Compute without kernels in all threads of this process."""
    _hiding.append(None)
    try:
        yield
    finally:
        _hiding.pop()


@cache
def _decide() -> tuple[Kernels | None, str]:
    """Return the kernels, or why there are none."""
    wish = os.environ.get(VARIABLE, "auto")
    if wish not in ("auto", "off"):
        raise MachineError(f"{VARIABLE} must be auto or off, got {wish!r}")
    if wish == "off":
        return None, f"{VARIABLE}=off"
    try:
        return _load(), ""
    except (RuntimeError, OSError, ImportError) as error:
        LOGGER.warning("no compiled kernels, training is slower: %s", error)
        return None, str(error)


def _load() -> Kernels:
    path = find_library(choose_recipe())
    torch.ops.load_library(path)
    register_shapes()
    found = torch.ops.pernn
    return Kernels(
        path,
        found.instructions(),
        found.multiplies_bfloat16(),
        tuple(found.product_parts()),
    )


def describe_arithmetic() -> str:
    """Describe processor class and instructions in one line."""
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
