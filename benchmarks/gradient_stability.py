"""Gradient stability of one pair: pernn's closed form against `vmap(jacrev(...))`.

Interleaved: every round times each variant once, in turn, so that a drift of the machine touches
all alike; medians over the rounds are printed. One CPU thread, float32. Peak memory is that of a
process of its own for each variant, beyond what it takes before the first pair.

    python benchmarks/gradient_stability.py [--core lstm] [--hidden 512] [--length 64]
        [--rounds 3]

The textbook variant: a cell written out in Python, its time steps unrolled, `torch.func.jacrev`
of the last hidden state in the state after the first step, `torch.func.vmap` over the pair. Both
give the default similarity. In brackets stands the time of the closed form's matrix products alone
by `torch.bmm`, at the rate that it reaches here: without compiled products nothing is faster.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import jacrev, vmap
from torch.nn import functional as F

from pernn.analysis import compare_jacobians, similarity
from pernn.cores import GRU, LSTM, Elman, RecurrentCore
from pernn.lab.runs import peak_memory

CORES: dict[str, type[RecurrentCore]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}
PRODUCTS = {"elman": 1, "gru": 1, "lstm": 2}
"""H × H × H products per step and sequence in the closed form."""


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
    return float(similarity(matrices[:half], matrices[half:])[0])


def closed(core: RecurrentCore, gates: Tensor, memory_budget: int = 2**29) -> float:
    """Compare pairs by the closed form."""
    ends = 1, gates.shape[1]
    found = compare_jacobians(core, *gates.chunk(2), *ends, memory_budget=memory_budget)
    return float(found.similarity()[0])


VARIANTS: dict[str, Callable[[RecurrentCore, Tensor], float]] = {
    "closed": closed,
    "textbook": textbook,
}


def prepare(kind: str, hidden: int, length: int, pairs: int = 1) -> tuple[RecurrentCore, Tensor]:
    """Make a core with its default weights and the projected inputs of some pairs."""
    generator = torch.Generator().manual_seed(1)
    core = CORES[kind](hidden, hidden, generator=generator).requires_grad_(requires_grad=False)
    vectors = torch.randn(2 * pairs, 2 * length, hidden, generator=generator)
    vectors[:, 0] = vectors[0, 0]
    return core, core.project(vectors)


def peak(name: str, kind: str, hidden: int, length: int) -> float:
    """Return the mebibytes that one pair adds to a fresh process."""
    command = [sys.executable, __file__, "--peak-of", name, "--core", kind]
    command += ["--hidden", str(hidden), "--length", str(length)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(name: str, core: RecurrentCore, gates: Tensor) -> None:
    """Print how much more memory this process needs for one pair than without."""
    VARIANTS[name](core, gates[:, :2])  # what every variant loads on its first call
    before = peak_memory()
    VARIANTS[name](core, gates)
    print((peak_memory() - before) / 2**20)


def matrix_rate(hidden: int, repeats: int = 9) -> float:
    """Return floating-point operations per second of (H × H) · (H × H) products."""
    left, right, out = (torch.randn(2, hidden, hidden) for _ in range(3))
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        torch.bmm(left, right, out=out)
        times.append(time.perf_counter() - begun)
    return 4 * hidden**3 / statistics.median(times)


def measure(kind: str, hidden: int, length: int, rounds: int) -> None:
    """Time both variants, in turn, and print a line."""
    core, gates = prepare(kind, hidden, length)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    rates, answers = [], {}
    for _ in range(rounds):
        for name, run in VARIANTS.items():
            begun = time.perf_counter()
            answers[name] = run(core, gates)
            times[name].append(time.perf_counter() - begun)
        rates.append(matrix_rate(hidden))
    median = {name: statistics.median(values) for name, values in times.items()}
    rate = statistics.median(rates)
    operations = 2 * PRODUCTS[kind] * 2 * hidden**3 * (2 * length - 1)
    ratios = [slow / fast for slow, fast in zip(times["textbook"], times["closed"], strict=True)]
    peaks = [peak(name, kind, hidden, length) for name in VARIANTS]
    print(
        f"{kind:6} {hidden:<4} {length:<4} {median['closed']:8.3f} ({operations / rate:.3f} at "
        f"{rate / 1e9:.0f})  {median['textbook']:10.3f}  {statistics.median(ratios):5.2f}  "
        f"{peaks[0]:.0f}/{peaks[1]:.0f}  {abs(answers['closed'] - answers['textbook']):.1e}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", choices=CORES)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak-of", choices=VARIANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak_of:
        core, gates = prepare(options.core, options.hidden, options.length)
        print_peak(options.peak_of, core, gates)
        return
    print(
        "core   H    L    closed s (bmm s at GF/s)    textbook s  ratio  MiB closed/textbook  |ΔS|"
    )
    for kind in [options.core] if options.core else CORES:
        measure(kind, options.hidden, options.length, options.rounds)


if __name__ == "__main__":
    main()
