"""Layers on dense vectors beside PyTorch's: time of `torch.nn`'s / time of ours, in turns.

    python benchmarks/layers.py --core lstm,gru,elman --rounds 20 [--usual]

One line per shape: without gradients, with the weights', with the inputs' too; the operator that
ours took. Times are this process's, on one thread, the least of all turns.
"""

import math
import time
from collections.abc import Callable
from itertools import product

import torch
import typer
from torch import Tensor, nn
from turns import print_table, time_in_turns

from pernn.cores import GRU, LSTM, Elman
from pernn.cores.scanning import takes_kernels

PAIRS = {"lstm": (LSTM, nn.LSTM), "gru": (GRU, nn.GRU), "elman": (Elman, nn.RNN)}
USUAL = [(16, 64, 64), (32, 64, 128), (64, 32, 256), (64, 64, 512)]
"""Steps, sequences, hidden size."""
GRID = product((1, 2, 8, 64, 512), (1, 4, 16, 64, 256), (32, 64, 128, 256, 512, 1024))
WAYS = ("inference", "weights", "inputs too")


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


def measure(kind: str, steps: int, batch: int, hidden: int, rounds: int) -> dict[str, str]:
    """Return the cells of one line."""
    ours_class, theirs_class = PAIRS[kind]
    ours, theirs = ours_class(hidden, hidden), theirs_class(hidden, hidden)
    theirs.load_state_dict(ours.state_dict())
    inputs, arriving = torch.randn(2, steps, batch, hidden)
    row = {"core": kind, "hidden": str(hidden), "batch": str(batch), "steps": str(steps)}
    for way in WAYS:
        with torch.set_grad_enabled(way != "inference"):
            is_ours = takes_kernels(kind, inputs, ours.weight_hh_l0, steps=steps, batch=batch)
        layers = {"theirs": theirs, "ours": ours}
        runs = {name: run_once(layer, inputs, arriving, way) for name, layer in layers.items()}
        times = time_in_turns(runs, rounds, time.process_time, block_seconds=0.002)
        ratio = min(times["theirs"]) / min(times["ours"])
        row[way] = f"{ratio:.2f} {'kernels' if is_ours else 'operator'}"
    return row


def main(
    core: str = "lstm,gru,elman", rounds: int = 20, *, usual: bool = False, most: float = 2e10
) -> None:
    """Time layers on four usual shapes or a grid, but for too many multiplications."""
    torch.set_num_threads(1)
    print_table(
        measure(kind, *shape, rounds)
        for kind, shape in product(core.split(","), USUAL if usual else GRID)
        if usual or 24 * shape[2] * math.prod(shape) <= most
    )


if __name__ == "__main__":
    typer.run(main)
