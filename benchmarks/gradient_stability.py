"""Gradient stability of one pair: pernn's closed form against `vmap(jacrev(...))`.

    python benchmarks/gradient_stability.py [--core lstm] [--hidden 512] [--length 64] [--rounds 3]

Prints Markdown: medians of rounds in turn, one CPU thread, float32. The textbook: a cell in Python,
its time steps unrolled, `torch.func.jacrev` of the last hidden state in the state after the first
step, `torch.func.vmap` over the pair. Errors are those from its similarity in float64.
"""

import statistics
from collections.abc import Callable
from functools import partial

import torch
import typer
from torch import Tensor
from torch.func import jacrev, vmap
from torch.nn import functional as F
from turns import print_table, time_in_turns

from pernn.analysis import compare_jacobians
from pernn.cores import GRU, LSTM, Elman, RecurrentCore
from pernn.lab.training import now

CORES: dict[str, type[RecurrentCore]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}


def cell(core: RecurrentCore, gate: Tensor, state: Tensor) -> Tensor:
    """Return the state after one step, as the textbook writes it; `gate` is the projected input."""
    weight, size = core.weight("hh", 0), core.hidden_size
    hidden = state[:size]
    if core.num_gates == 1:
        return torch.tanh(gate + F.linear(hidden, weight))
    if core.num_gates == 3:
        late = core.bias_of("hh", 0)[2 * size :]
        (early, keeps, fresh), parts = gate.chunk(3), F.linear(hidden, weight).chunk(3)
        reset, keep = torch.sigmoid(early + parts[0]), torch.sigmoid(keeps + parts[1])
        new = torch.tanh(fresh + reset * (parts[2] + late))
        return (1 - keep) * new + keep * hidden
    entry, forget, update, exit_ = (gate + F.linear(hidden, weight)).chunk(4)
    memory = torch.sigmoid(forget) * state[size:] + torch.sigmoid(entry) * torch.tanh(update)
    return torch.cat([torch.sigmoid(exit_) * torch.tanh(memory), memory])


def textbook(core: RecurrentCore, gates: Tensor) -> float:
    """Compare pairs the straightforward way; `gates` are the first sequences, then the second."""
    size, half = core.hidden_size, len(gates) // 2

    def run(state: Tensor, steps: Tensor) -> Tensor:
        for gate in steps.unbind(0):
            state = cell(core, gate, state)
        return state[:size]

    first = gates.new_zeros(len(gates), core.num_states * size)
    states = vmap(lambda gate, state: cell(core, gate, state))(gates[:, 0], first)
    matrices = vmap(jacrev(run))(states, gates[:, 1:])
    left, right = matrices[0].double(), matrices[half].double()
    return float((left * right).sum() / (left.norm(dim=1) * right.norm(dim=1)).sum())


def closed(core: RecurrentCore, gates: Tensor, budget: int = 2**29) -> float:
    """Compare pairs by the closed form."""
    found = compare_jacobians(core, *gates.chunk(2), 1, gates.shape[1], memory_budget=budget)
    return float(found.similarity()[0])


VARIANTS: dict[str, Callable[[RecurrentCore, Tensor], float]] = {
    "closed": closed, "closed, 2 GiB": partial(closed, budget=2**31), "textbook": textbook,
}  # fmt: skip


def measure(
    device: torch.device, kind: str, hidden: int, length: int, pairs: int = 1, rounds: int = 3
) -> dict[str, float]:
    """Return medians of all variants, and how far each is from the textbook in float64."""
    generator = torch.Generator().manual_seed(1)
    core = CORES[kind](hidden, hidden, generator=generator).requires_grad_(requires_grad=False)
    vectors = torch.randn(2 * pairs, 2 * length, hidden, generator=generator)
    vectors[:, 0] = vectors[0, 0]
    gates = core.project(vectors).to(device)
    core = core.to(device)
    runs = {name: partial(run, core, gates) for name, run in VARIANTS.items()}
    times = time_in_turns(runs, rounds, partial(now, device))
    answers = {name: run() for name, run in runs.items()}
    row = {f"{name}, ms": 1e3 * statistics.median(times[name]) for name in runs}
    slower = zip(times["textbook"], times["closed"], strict=True)
    row["textbook / closed"] = statistics.median(slow / fast for slow, fast in slower)
    exact = textbook(core.double(), gates.double())
    off = {name: abs(answer - exact) for name, answer in answers.items()}
    # Over 127 steps the textbook's Elman network loses its smallest numbers in float32.
    assert max(off["closed"], off["closed, 2 GiB"]) < 1e-5, off
    return row | {f"{name} off by": error for name, error in off.items()}


def main(core: str = "", hidden: int = 512, length: int = 64, rounds: int = 3) -> None:
    """Compare the closed form of one pair's gradient stability with `vmap(jacrev(...))`."""
    torch.set_num_threads(1)
    cpu, sizes = torch.device("cpu"), {"H": str(hidden), "L": str(length)}
    print_table(
        {"core": kind, **sizes, **measure(cpu, kind, hidden, length, rounds=rounds)}
        for kind in ([core] if core else CORES)
    )


if __name__ == "__main__":
    typer.run(main)
