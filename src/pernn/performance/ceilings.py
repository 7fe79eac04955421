"""What the machine can do at best: matrix products and memory traffic, measured."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from pernn.training import Precision, computing

SIZE = 2048
"""Side of the matrices; larger ones are no faster on processors and GPUs that were tried."""
GPU_SIZE = 8192
COPIED_BYTES = 2**28


@dataclass(frozen=True)
class Ceilings:
    """Rates that no arrangement of the same operations exceeds.

    Attributes:
        fp32: Operations per second of float32 products.
        bf16: Operations per second of bfloat16 products.
        tf32: Operations per second of TensorFloat-32 products; 0 where there are none.
        bandwidth: Bytes per second that are read or written in a large copy.
        threads: CPU threads that were used.
        device: What was measured.
    """

    fp32: float
    bf16: float
    tf32: float
    bandwidth: float
    threads: int
    device: str

    def rate(self, precision: Precision) -> float:
        """Give the rate of products of a precision."""
        return {"fp32": self.fp32, "tf32": self.tf32, "bf16": self.bf16}[precision]

    def seconds(self, operations: float, num_bytes: float, precision: Precision) -> float:
        """Give the least time for so much work: products and traffic at the same time."""
        return max(operations / self.rate(precision), num_bytes / self.bandwidth)

    def dump(self) -> dict[str, float | int | str]:
        """Give plain values."""
        return asdict(self)


def measure_ceilings(device: torch.device, *, trials: int = 7) -> Ceilings:
    """Measure the best of several trials; about a second.

    Args:
        device: Where.
        trials: How many.
    """
    on_gpu = device.type == "cuda"
    rates = {
        "fp32": _matrix_rate(device, torch.float32, "fp32", trials),
        "tf32": _matrix_rate(device, torch.float32, "tf32", trials) if on_gpu else 0.0,
        "bf16": _matrix_rate(device, torch.bfloat16, "fp32", trials),
    }
    source = torch.ones(COPIED_BYTES // 4, device=device)
    target = torch.empty_like(source)
    seconds = best_time(lambda: target.copy_(source), device, trials)
    name = torch.cuda.get_device_name(device) if on_gpu else "cpu"
    return Ceilings(
        **rates,
        bandwidth=2 * COPIED_BYTES / seconds,
        threads=torch.get_num_threads(),
        device=name,
    )


def _matrix_rate(
    device: torch.device, dtype: torch.dtype, precision: Precision, trials: int
) -> float:
    size = GPU_SIZE if device.type == "cuda" else SIZE
    # Numbers that differ: processors run faster on zeros than on data.
    left, right = (torch.randn(size, size).to(device, dtype) for _ in range(2))
    out = torch.empty_like(left)
    with computing(precision, device):
        seconds = best_time(lambda: torch.mm(left, right, out=out), device, trials)
    return 2 * size**3 / seconds


def best_time(run: Callable[[], object], device: torch.device, trials: int) -> float:
    """Give the least of several times of the same work, after one that is not counted."""
    times = []
    for _ in range(trials + 1):
        begun = now(device)
        run()
        times.append(now(device) - begun)
    return min(times[1:])


def now(device: torch.device) -> float:
    """Give the time when all work given to the device so far is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
