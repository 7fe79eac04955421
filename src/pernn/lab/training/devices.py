"""Devices, their memory, and precisions: named, checked, never silently mixed."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pernn.errors import MachineError
from pernn.kernels import (
    flush_denormals,
    library_products,
    rounded,
    rounding_products,
    rounds_products,
)

from .config import Precision


def choose_device(name: str = "auto") -> torch.device:
    """Find a named device, or the first CUDA device or CPU.

    Raises:
        MachineError: If there is no such device here.
    """
    if name == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise MachineError(
            f"no device {name!r} here ({reason}); `pernn doctor` lists what there is"
        ) from None
    if device.type not in ("cpu", "cuda"):
        raise MachineError(f"device {name!r}: only cpu and cuda devices are supported")
    return device


def share_devices(name: str, worker: int, num_workers: int) -> tuple[str, float]:
    """Return a worker's device, and its share of the memory.

    Workers take a machine's GPUs in turn, worker i the GPU i mod n; a GPU that is named by its
    number is for all of them.

    Args:
        name: As for `choose_device`.
        worker: Its number, from 0.
        num_workers: Number of workers on this machine.
    """
    num_gpus = torch.cuda.device_count() if name in ("auto", "cuda") else 0
    if not num_gpus:
        return name, 1 / num_workers
    place = worker % num_gpus
    return f"cuda:{place}", 1 / max(1, len(range(place, num_workers, num_gpus)))


def limit_gpu_memory(device: str, share: float) -> None:
    """Bound this process's share, 0 to 1, of a GPU's memory.

    So trials that share a GPU fail by their own size, not by each other's.

    Raises:
        MachineError: If there is no such device here.
    """
    chosen = choose_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(share, chosen.index)


# Blocks of any size come from the heap, which is neither cut back nor grown in small steps: by
# glibc's header M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD.
HEAP_SETTINGS = {-3: 2**30, -1: 2**31 - 1, -2: 2**26}


def keep_freed_memory() -> None:
    """Make the C library keep freed blocks in this process.

    By default glibc hands large blocks back to the system as soon as they are freed; an update then
    spends more time on having them zeroed again than on some of its phases. The price is that the
    process keeps the most memory that it ever needed. Only glibc can be told.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        for option, value in HEAP_SETTINGS.items():
            mallopt(option, value)


@contextmanager
def computing(precision: Precision, device: torch.device) -> Iterator[None]:
    """Set up a precision policy, then restore PyTorch's settings.

    `fp32`: IEEE float32 everywhere. `tf32`: float32 with TensorFloat-32 products.

    `bf16` on the CPU: of every product of an input projection, of a recurrence, of S4D's pointwise
    map and of the output layer both factors are rounded to bfloat16 (the nearest, ties to even) and
    all sums are float32, forward and in both products of its backward pass, where the arriving
    gradient is the rounded factor. Nothing else is rounded: states, gates, S4D's convolution,
    metrics, the loss, weights and the optimiser stay float32, and analysis is float32 or better.
    It is so on every processor, with compiled kernels and without; only the order of sums differs.

    `bf16` on CUDA is autocast, which also stores the results of products in bfloat16. Forward
    passes inside must be wrapped in `rounding`.

    Raises:
        MachineError: If the policy means nothing on the device.
    """
    if precision == "tf32" and device.type != "cuda":
        raise MachineError(
            f"precision tf32 needs a CUDA device and this run is on {device}: use fp32 or bf16"
        )
    rounds = precision == "bf16" and device.type == "cpu"
    flushed = flush_denormals(flush=True)
    try:
        with (
            # Streams and recordings are those of the current GPU.
            torch.cuda.device(device) if device.type == "cuda" else nullcontext(),
            library_products(tf32=precision == "tf32"),
            rounding_products(rounds=rounds),
        ):
            yield
    finally:
        flush_denormals(flush=flushed)


def rounding(precision: Precision, device: torch.device) -> AbstractContextManager[Any]:
    """Make the context of a forward pass, autocast for CUDA's `bf16`.

    One forward pass only: a backward pass inside would round what it should not.
    """
    enabled = precision == "bf16" and device.type != "cpu"
    # Kept copies would also not be there for a recording that is repeated.
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)


SUMMANDS = {"addmm": 1, "baddbmm": 1, "addbmm": 1, "addmv": 1}
"""Products that are added to something → how many tensors come before the factors."""
PRODUCTS = {
    *SUMMANDS, "mm", "bmm", "mv", "dot", "vdot", "convolution", "_trilinear", "mkldnn_rnn_layer",
    "_scaled_dot_product_flash_attention_for_cpu",
}  # fmt: skip
"""PyTorch's operators that multiply matrices, and those that do so inside."""


class RoundedOnly(TorchDispatchMode):
    """A check that refuses unrounded products in `bf16` on the CPU.

    It watches the first forward pass of a training: a core of one's own that multiplies without
    `pernn.kernels.linear` would otherwise mix precisions.
    """

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Look at the factors, then compute.

        Raises:
            MachineError: If one is not rounded.
        """
        name = func.overloadpacket.__name__
        if name in PRODUCTS and rounds_products(torch.device("cpu")):
            tensors = [one for one in args if isinstance(one, torch.Tensor)]
            for factor in tensors[SUMMANDS.get(name, 0) :]:
                if factor.dtype == torch.float32 and not torch.equal(factor, rounded(factor)):
                    raise MachineError(
                        f"precision bf16 is not defined on the CPU for torch's `{name}`, which a "
                        "part of this model calls: use fp32, or multiply by pernn.kernels.linear"
                    )
        return func(*args, **(kwargs or {}))
