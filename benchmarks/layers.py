"""Layers on dense vectors beside PyTorch's: time of `torch.nn`'s / time of ours, in turns.

    python benchmarks/layers.py --core lstm,gru,elman --seconds 0.2 [--usual]

One line per shape: without gradients, with the weights', with the inputs' too; the operator that
ours took. Times are this process's, on one thread, the least of all turns.
"""

import time
from collections.abc import Callable
from itertools import product

import torch
import typer
from torch import Tensor, nn
from torch.utils.benchmark import Timer
from turns import print_table

from pernn.cores import GRU, LSTM, Elman
from pernn.cores.operators import takes_kernels

Shape = tuple[int, int, int]
"""Hidden size, sequences, steps."""
PAIRS = {"lstm": (LSTM, nn.LSTM), "gru": (GRU, nn.GRU), "elman": (Elman, nn.RNN)}
USUAL = [(64, 64, 16), (128, 64, 32), (256, 32, 64), (512, 64, 64)]
GRID = [
    (hidden, batch, steps)
    for steps, batch, hidden in product(
        (1, 2, 8, 64, 512), (1, 4, 16, 64, 256), (32, 64, 128, 256, 512, 1024)
    )
]
WAYS = ("inference", "weights", "inputs too")
LEAST_TURNS = 5


def run_once(layer: nn.Module, inputs: Tensor, arriving: Tensor, way: str) -> Callable[[], None]:
    """Return what is timed: a forward pass, and one back unless it is inference."""
    inputs = inputs.clone().requires_grad_(way == "inputs too")
    wanted = [*layer.parameters(), *([inputs] if inputs.requires_grad else [])]

    def infer() -> None:
        with torch.inference_mode():
            layer(inputs)

    def train() -> None:
        torch.autograd.grad(layer(inputs)[0], wanted, arriving)

    return infer if way == "inference" else train


def ratio(theirs: Callable[[], None], ours: Callable[[], None], seconds: float) -> float:
    """Return how many times as long theirs takes, both measured in turns."""
    timers = [
        Timer("run()", globals={"run": run}, timer=time.process_time) for run in (theirs, ours)
    ]
    once = min(timers[1].timeit(1).mean for _ in range(3))
    number = max(1, int(0.002 / max(once, 1e-6)))
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while len(times[0]) < LEAST_TURNS or time.perf_counter() < end:
        for timer, found in zip(timers, times, strict=True):
            found.append(timer.timeit(number).mean)
    return min(times[0]) / min(times[1])


def measure(kind: str, shape: Shape, seconds: float) -> dict[str, str]:
    """Return the cells of one line."""
    hidden, batch, steps = shape
    ours_class, theirs_class = PAIRS[kind]
    ours, theirs = ours_class(hidden, hidden), theirs_class(hidden, hidden)
    theirs.load_state_dict(ours.state_dict())
    inputs, arriving = torch.randn(2, steps, batch, hidden)
    row = {"core": kind, "hidden": str(hidden), "batch": str(batch), "steps": str(steps)}
    for way in WAYS:
        with torch.set_grad_enabled(way != "inference"):
            is_ours = takes_kernels(kind, inputs, ours.weight_hh_l0, steps=steps, batch=batch)
        runs = (run_once(layer, inputs, arriving, way) for layer in (theirs, ours))
        row[way] = f"{ratio(*runs, seconds):.2f} {'kernels' if is_ours else 'operator'}"
    return row


def main(
    core: str = "lstm,gru,elman",
    seconds: float = 0.2,
    *,
    usual: bool = False,
    most: float = 2e10,
) -> None:
    """Time layers on four usual shapes or a grid, but for too many multiplications."""
    torch.set_num_threads(1)
    print_table(
        measure(kind, (hidden, batch, steps), seconds)
        for kind in core.split(",")
        for hidden, batch, steps in (USUAL if usual else GRID)
        if 24 * hidden**2 * batch * steps <= most
    )


if __name__ == "__main__":
    typer.run(main)
