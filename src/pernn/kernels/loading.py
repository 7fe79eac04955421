"""Loading of kernels, once per process, and their description."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pernn.errors import MachineError

from .cache import VARIABLE
from .compilation import CompilationError, choose_recipe, choose_target, find_library
from .shapes import register_shapes

LOGGER = logging.getLogger("pernn")
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


class _Decision:
    """What was found, and why not if nothing was."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made = False
        self.kernels: Kernels | None = None
        self.reason = ""
        self.hidden = 0


_decision = _Decision()


def find_kernels() -> Kernels | None:
    """Return the kernels, compiling them if needed (about 20 seconds).

    Returns:
        `None` where there is no compiler, or they are switched off.

    Raises:
        MachineError: If `PERNN_KERNELS=require` and they cannot be had, or it has another value
            than `auto`, `off` or `require`.
    """
    if not _decision.made:
        with _decision.lock:
            if not _decision.made:
                _decide()
    return None if _decision.hidden else _decision.kernels


# What torch.compiler.assume_constant_result does, without loading the compiler: it asks, and takes
# the answer for granted.
find_kernels._dynamo_marked_constant = True  # type: ignore[attr-defined]


def describe_kernels() -> str:
    """Return `compiled …` or `torch (reason)`: what computes on the CPU."""
    kernels = find_kernels()
    if kernels is None:
        return f"torch ({_decision.reason or 'switched off'})"
    return f"compiled ({kernels.path.stem}, {kernels.instructions})"


@contextmanager
def without_kernels() -> Iterator[None]:
    """Compute without kernels in all threads of this process."""
    with _decision.lock:
        _decision.hidden += 1
    try:
        yield
    finally:
        with _decision.lock:
            _decision.hidden -= 1


def _decide() -> None:
    wish = os.environ.get(VARIABLE, "auto")
    if wish not in ("auto", "off", "require"):
        raise MachineError(f"{VARIABLE} must be auto, off or require, got {wish!r}")
    if wish == "off":
        _decision.reason = f"{VARIABLE}=off"
    else:
        try:
            _decision.kernels = _load()
        except CompilationError as error:
            if wish == "require":
                raise MachineError(f"{VARIABLE}=require, but {error}") from error
            _decision.reason = str(error)
            LOGGER.warning("no compiled kernels, training is slower: %s", error)
    _decision.made = True


def _load() -> Kernels:
    path = find_library(choose_recipe())
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise CompilationError(f"{path} cannot be loaded: {error}") from error
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
