"""What the machine can do at best: matrix products and memory traffic, measured."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch

from pernn.kernels import find_kernels
from pernn.training import Precision, computing, now

SIZE = 2048
"""Side of the matrices; larger ones are no faster on processors and GPUs that were tried."""
GPU_SIZE = 8192
ROUNDED_SIZE = 512
"""Side of bfloat16 matrices on a CPU: where the processor has no such products, larger ones take
minutes."""
COPIED_BYTES = 2**28
REPEATS = 300_000
"""Rounds of a loop on registers; a few milliseconds."""
PART_PRODUCTS = 6
"""Products of bfloat16 parts that make one of float32 numbers on matrix units."""


@dataclass(frozen=True)
class Ceilings:
    """Rates that no arrangement of the same operations exceeds.

    Attributes:
        fp32: Operations per second of float32 products.
        bf16: Operations per second of bfloat16 products.
        tf32: Operations per second of TensorFloat-32 products; 0 where there are none.
        bandwidth: Bytes per second that are read or written in a large copy. Caches are faster, so
            this limits nothing; it is there to compare with.
        threads: CPU threads that were used.
        device: What was measured.
        bound: `registers` where the instructions of products were timed without any load or store;
            else `library`: the rates are those of the library's product, which others may beat.
    """

    fp32: float
    bf16: float
    tf32: float
    bandwidth: float
    threads: int
    device: str
    bound: str

    def rate(self, precision: Precision) -> float:
        """Return the rate of products of a precision."""
        return {"fp32": self.fp32, "tf32": self.tf32, "bf16": self.bf16}[precision]

    def seconds(self, operations: float, precision: Precision) -> float:
        """Return the least time for the products."""
        return operations / self.rate(precision)

    def raised(self) -> "Ceilings":
        """Return these ceilings, higher where the loops on registers run faster by now.

        A processor that was busy when the ceilings were measured would else be found to do more
        than it can.
        """
        if self.bound != "registers":
            return self
        fp32, bf16 = register_rates()
        return replace(self, fp32=max(self.fp32, fp32), bf16=max(self.bf16, bf16))

    def dump(self) -> dict[str, float | int | str]:
        """Return plain values."""
        return asdict(self)


def measure_ceilings(device: torch.device, *, trials: int = 7) -> Ceilings:
    """Measure the best of several trials, by the library's products and on registers.

    Args:
        device: Where.
        trials: How many.
    """
    on_gpu = device.type == "cuda"
    library = Ceilings(
        fp32=_matrix_rate(device, torch.float32, "fp32", trials),
        tf32=_matrix_rate(device, torch.float32, "tf32", trials) if on_gpu else 0.0,
        bf16=_matrix_rate(device, torch.bfloat16, "fp32", trials),
        bandwidth=_copy_rate(device, trials),
        threads=torch.get_num_threads(),
        device=torch.cuda.get_device_name(device) if on_gpu else "cpu",
        bound="library",
    )
    if on_gpu or not register_rates()[0]:
        return library
    found = replace(library, bound="registers", bf16=max(library.fp32, library.bf16))
    for _ in range(trials):
        found = found.raised()
    return found


def register_rates() -> tuple[float, float]:
    """Return operations per second of float32 and bfloat16 products on registers alone.

    All CPU threads do nothing but multiply and add, by each kind of instruction that the compiled
    kernels may use. Both are 0 where there are no such kernels.
    """
    kernels = find_kernels()
    if kernels is None:
        return 0.0, 0.0
    rates = {}
    for kind in ("vectors", "pairs", "tiles"):
        begun = time.perf_counter()
        operations: float = kernels.operators.register_operations(kind, REPEATS)
        rates[kind] = operations / (time.perf_counter() - begun)
    return max(rates["vectors"], rates["tiles"] / PART_PRODUCTS), max(rates.values())


def _copy_rate(device: torch.device, trials: int) -> float:
    source = torch.ones(COPIED_BYTES // 4, device=device)
    target = torch.empty_like(source)
    return 2 * COPIED_BYTES / best_time(lambda: target.copy_(source), device, trials)


def _matrix_rate(
    device: torch.device, dtype: torch.dtype, precision: Precision, trials: int
) -> float:
    on_cpu = ROUNDED_SIZE if dtype == torch.bfloat16 else SIZE
    size = GPU_SIZE if device.type == "cuda" else on_cpu
    # Numbers that differ: processors run faster on zeros than on data.
    left, right = (torch.randn(size, size).to(device, dtype) for _ in range(2))
    out = torch.empty_like(left)
    with computing(precision, device):
        seconds = best_time(lambda: torch.mm(left, right, out=out), device, trials)
    return 2 * size**3 / seconds


def best_time(run: Callable[[], object], device: torch.device, trials: int) -> float:
    """Return the least of several times of the same work, after one that is not counted."""
    times = []
    for _ in range(trials + 1):
        begun = now(device)
        run()
        times.append(now(device) - begun)
    return min(times[1:])
