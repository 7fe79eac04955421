"""Where and how precisely to compute: named, checked, never mixed in silence."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pernn.errors import MachineError

from .config import Precision


def choose_device(name: str = "auto") -> torch.device:
    """Find the device of a name; `auto` is the first CUDA device, else the CPU.

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


@contextmanager
def computing(precision: Precision, device: torch.device) -> Iterator[None]:
    """Set up the device for a precision policy, and leave PyTorch's settings as they were.

    `fp32`: IEEE float32 everywhere. `tf32`: float32 with TensorFloat-32 products. `bf16`: products
    in bfloat16 with float32 accumulation; weights, states, loss and optimiser in float32.
    Forward passes inside must be wrapped in `rounding`.

    Raises:
        MachineError: If the policy means nothing on the device.
    """
    if precision == "tf32" and device.type != "cuda":
        raise MachineError(
            f"precision tf32 needs a CUDA device and this run is on {device}: use fp32 or bf16"
        )
    if precision == "bf16" and device.type == "cpu" and not rounds_on_cpu():
        raise MachineError(
            "precision bf16 needs a processor with AVX-512 or better (or a CUDA device): use fp32"
        )
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    products = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.allow_tf32, cudnn.allow_tf32, products.fp32_precision
    matmul.allow_tf32 = cudnn.allow_tf32 = precision == "tf32"
    # On the CPU, products round their factors themselves, and give and keep sums in float32.
    products.fp32_precision = "bf16" if precision == "bf16" else "ieee"
    flushed = torch.set_flush_denormal(True)
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, products.fp32_precision = before
        if flushed:
            torch.set_flush_denormal(False)


def rounds_on_cpu() -> bool:
    """Say whether float32 products can be done in bfloat16 on this processor."""
    return torch.backends.mkldnn.is_available() and bool(
        torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )


def rounding(precision: Precision, device: torch.device) -> torch.autocast:
    """Make the context of one forward pass: on CUDA under `bf16`, products round their factors.

    One forward pass only: a backward pass inside would round what it should not.
    """
    enabled = precision == "bf16" and device.type != "cpu"
    # Kept copies would also not be there for a recording that is repeated.
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled, cache_enabled=False)
