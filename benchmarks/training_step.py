"""One update: pernn's folded path against the plain path, and the share of data generation.

Interleaved: every round times each variant once, in turn, so that a drift of the machine touches
all alike; the median over the rounds is printed, with the ratio's quartiles. One CPU thread.

    python benchmarks/training_step.py [--rounds 16] [--json]

Plain: embedding and code concatenated, torch.nn.RNN/GRU/LSTM, logits at all steps, F.cross_entropy,
the same clipping and optimiser.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

from pernn.models import PlainRNN
from pernn.runs import RunSpec, build, describe_environment
from pernn.training import TrainState, computing

CPU = torch.device("cpu")
SHAPES = (
    # hidden, batch, length, vocabulary
    (64, 128, 8, 256),
    (128, 32, 32, 8),
    (128, 64, 32, 32),
    (512, 64, 64, 256),
)


def make_step(
    model: torch.nn.Module, state: TrainState, next_batch: Callable[[], tuple[torch.Tensor, ...]]
) -> Callable[[], None]:
    """Give a function that makes one update."""
    parameters = [p for group in state.optimizer.param_groups for p in group["params"]]

    def step() -> None:
        tokens, targets = next_batch()
        logits = model(tokens, targets.shape[1])
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        state.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        state.optimizer.step()

    return step


def measure(core: str, shape: tuple[int, int, int, int], rounds: int) -> dict[str, object]:
    """Time one configuration."""
    hidden, batch_size, length, vocab_size = shape
    spec = RunSpec.load(
        {
            "task": {"kind": "reverse_ordering", "vocab_size": vocab_size, "length": length},
            "core": {"kind": core, "hidden_size": hidden},
            "encoding": {"kind": "sinusoidal", "size": hidden},
            "embedding_size": hidden,
        }
    )
    trial = build(spec, CPU)
    plain = PlainRNN(trial.model)
    batch = trial.stream.train(0, batch_size)
    fixed = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    steps = itertools.count()
    variants = {
        "folded": make_step(
            trial.model, TrainState.fresh(trial.model, trial.protocol), lambda: fixed
        ),
        "plain": make_step(plain, TrainState.fresh(plain, trial.protocol), lambda: fixed),
        # Step after step, as in training: batches are made several at a time.
        "data": lambda: trial.stream.train(next(steps), batch_size),
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 2):
        for name, run in variants.items():
            begun = time.perf_counter()
            run()
            if turn >= 2:
                times[name].append(time.perf_counter() - begun)
    ratios = [plain / folded for plain, folded in zip(times["plain"], times["folded"], strict=True)]
    median = {name: statistics.median(values) for name, values in times.items()}
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        "core": core,
        "hidden": hidden,
        "batch": batch_size,
        "length": length,
        "vocab": vocab_size,
        "folded_ms": median["folded"] * 1e3,
        "plain_ms": median["plain"] * 1e3,
        "ratio": middle,
        "ratio_quartiles": [low, high],
        # A mean: most calls take a batch that is there, every sixteenth makes sixteen.
        "data_share": statistics.fmean(times["data"]) / median["folded"],
    }


def main() -> None:
    """Measure all shapes and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with computing("fp32", CPU):
        rows = [
            measure(core, shape, options.rounds)
            for shape in SHAPES
            for core in ("elman", "gru", "lstm")
        ]
    if options.json:
        print(json.dumps({"environment": describe_environment(CPU), "rows": rows}, indent=2))
        return
    print("core   H    B    L   K     folded ms  plain ms  plain/folded [quartiles]  data share")
    for row in rows:
        low, high = row["ratio_quartiles"]
        print(
            f"{row['core']:6} {row['hidden']:<4} {row['batch']:<4} {row['length']:<3} "
            f"{row['vocab']:<5} {row['folded_ms']:9.1f} {row['plain_ms']:9.1f}  "
            f"{row['ratio']:6.2f} [{low:.2f}, {high:.2f}]        {row['data_share']:8.2%}"
        )


if __name__ == "__main__":
    main()
