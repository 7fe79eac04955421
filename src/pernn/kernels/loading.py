"""The compiled kernels: found once per process, switched, described."""

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pernn.errors import MachineError

from .compilation import choose_recipe, choose_target, find_library

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
MAX_HIDDEN = 384
"""Largest state of a network that whole updates train; at 512 the separate calls are a tenth faster
(docs/decisions/0027)."""
NUM_SAVED = {"elman": 0, "gru": 4, "lstm": 4}
"""Numbers that the way back needs of each unit and step."""


@dataclass(frozen=True)
class Kernels:
    """The compiled kernels, which `torch.ops.pernn` holds.

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


_lock = threading.RLock()
_hiding: list[None] = []
"""One for each `without_kernels` that is open."""
_are_whole = ContextVar("_are_whole", default=True)


def find_kernels() -> Kernels | None:
    """Return the kernels, compiling them if needed (about 20 seconds), or `None`.

    Raises:
        MachineError: If `PERNN_KERNELS` has another value than `auto` or `off`.
    """
    with _lock:
        kernels, _ = _decide()
    return None if _hiding else kernels


# What torch.compiler.assume_constant_result does, without loading the compiler: it asks, and takes
# the answer for granted.
find_kernels._dynamo_marked_constant = True  # type: ignore[attr-defined]


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
    torch.library.register_fake("pernn::scan_forward", _shape_forward)
    torch.library.register_fake("pernn::scan_backward", _shape_backward)
    found = torch.ops.pernn
    parts = tuple(found.product_parts())
    return Kernels(path, found.instructions(), found.multiplies_bfloat16(), parts)


def _shape_forward(
    kind: str, units: int, batch: int, steps: int, _inputs: int, _query_row: int, table: Tensor,
    _encodings: Tensor | None, _tokens: Tensor | None, panels: Tensor, *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return empty outputs, cells and what the way back needs, for torch.compile and export."""
    size = units * panels.shape[0]
    outputs = table.new_empty(steps, batch, size)
    cells = torch.empty_like(outputs) if kind == "lstm" else table.new_empty(0)
    return outputs, cells, table.new_empty(steps, batch, NUM_SAVED[kind] * size)


def _shape_backward(
    kind: str, _units: int, _inputs: int, _query_row: int, _grad_outputs: Tensor,
    _grad_cell: Tensor | None, table: Tensor, outputs: Tensor, *_: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return empty gradients of all differentiable inputs."""
    steps, batch, size = outputs.shape
    return (
        outputs.new_empty(steps, batch, table.shape[1]),
        torch.empty_like(table),
        outputs.new_empty(steps, table.shape[1]),
        outputs.new_empty(size if kind == "gru" else 0),
        outputs.new_empty(batch, size),
        outputs.new_empty(batch, size),
    )


@contextmanager
def without_kernels() -> Iterator[None]:
    """Compute without kernels in all threads of this process."""
    _hiding.append(None)
    try:
        yield
    finally:
        _hiding.pop()


def flush_denormals(*, flush: bool) -> bool:
    """Switch whether numbers below 2⁻¹²⁶ count as zero.

    Returns whether they did. Every thread of PyTorch's loops has a setting of its own, which only
    kernels reach. Without them it holds for this thread, and for those that it makes from now on.
    """
    before = not torch.tensor(1e-40).item()
    with _lock:
        kernels, _ = _decide()
    if kernels is None:
        torch.set_flush_denormal(flush)
    else:
        torch.ops.pernn.flush_denormals(flush)
    return before


def has_products(parts: int) -> bool:
    """Return whether kernels multiply numbers in 3 parts, or in 1."""
    kernels = find_kernels()
    return kernels is not None and parts in kernels.product_parts


@contextmanager
def whole_updates(*, enabled: bool) -> Iterator[None]:
    """Switch whole updates of usual networks in this thread, else through autograd.

    The results are the same up to rounding.
    """
    token = _are_whole.set(enabled)
    try:
        yield
    finally:
        _are_whole.reset(token)


def has_whole_updates(device: torch.device) -> bool:
    """Return whether whole updates, in one compiled call, are possible here."""
    return device.type == "cpu" and _are_whole.get() and has_products(3)


@dataclass(frozen=True)
class UsualNetwork:
    """A network that a whole update can train.

    Attributes:
        kind: `elman`, `gru` or `lstm`.
        weights: Embedding, input weights, recurrent weights, output layer's weights and bias; then
            the layer's two biases if it has any.
        copies: How often a token's vector stands in the input.
        encodings: Of all steps, after the vectors in the input; none if absent.
        hooks: Of its modules, where they will be if any are registered.
    """

    kind: str
    weights: Sequence[nn.Parameter]
    copies: int
    encodings: Float[Tensor, "time size"] | None
    hooks: Sequence[Mapping[int, object]]

    def is_as_found(self) -> bool:
        """Return whether hooks and frozen weights are as when it was made."""
        return not any(self.hooks) and all(
            weight.requires_grad
            and not weight._backward_hooks
            and not weight._post_accumulate_grad_hooks
            for weight in self.weights
        )


def describe_kernels() -> str:
    """Return `compiled …` or `torch (reason)`: what computes on the CPU."""
    kernels = find_kernels()
    if kernels is None:
        return f"torch ({_decide()[1] or 'switched off'})"
    return f"compiled ({kernels.path.stem}, {kernels.instructions})"


def describe_arithmetic() -> str:
    """Describe processor class and instructions in one line."""
    kernels, capability = find_kernels(), torch.backends.cpu.get_cpu_capability()
    used, compiled, target = capability, "no compiled", describe_kernels()
    if kernels is not None:
        used, compiled = kernels.instructions, "compiled"
        target = f"{kernels.path.stem} for {choose_target() or 'any processor'}"
    limits = [os.environ.get(f"{name}_MAX_CPU_ISA") for name in ("ONEDNN", "DNNL")]
    limit = next((f"at most {one}" for one in limits if one), "all")
    return (
        f"{NAMES.get(used, used)}, {compiled} kernels "
        f"(PyTorch: {capability}; oneDNN: {limit}; kernels: {target})"
    )


def set_variables() -> dict[str, str]:
    """Return those of `VARIABLES` that are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
