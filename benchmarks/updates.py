"""Time an update of training against a plain script, in turn, for some shapes and cores.

    python benchmarks/updates.py [--shape 512,64,64,256] [--core lstm,gru] [--threads 2]
        [--scripts good,usual] [--precision bf16] [--memory] [--classes]

The good script (b) concatenates embedding and encoding, runs PyTorch's layer in float32, computes
logits of the scored steps only and never waits for the device. The usual script (a) also draws
samples one by one, computes all logits and reads the loss after every update (`baselines.py`).
Prints Markdown: medians of the rounds, and the median over the rounds of a script's time over ours.
`--classes` does so on each class of processor that this one can imitate (`processors.py`).
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count

import torch
from baselines import good_update, usual_update
from processors import EMULATED
from torch import Tensor
from torch.utils.benchmark import Timer

from pernn.kernels import describe_arithmetic
from pernn.lab.runs import RunSpec, build, peak_memory
from pernn.lab.training import (
    Precision,
    TrainState,
    computing,
    keep_freed_memory,
    make_update,
    now,
)

Shape = tuple[int, int, int, int]
SHAPES: tuple[Shape, ...] = (
    # hidden, batch, length, vocabulary
    (512, 128, 16, 1024),
    (512, 64, 64, 256),
    (512, 128, 64, 16_384),
    (128, 64, 32, 32),
    (128, 64, 16, 256),
    (64, 128, 8, 256),
    (64, 64, 8, 192),
)
"""Shapes that docs/performance.md names; the fourth is a demo's, the last two of the evidence."""
CLASS_SHAPES = ((512, 64, 64, 256), (512, 128, 16, 1024), (128, 64, 32, 32), (64, 128, 8, 256))
TIMED = ("amx", "avx512-bf16", "avx512-amd", "avx2", "no-compiler")
SCRIPTS = {"good": "(b)", "usual": "(a)"}
NUM_HELD_OUT = 1024
BLOCK_SECONDS = 0.2
"""Least time of the updates that are timed together."""
NUM_MEMORY_UPDATES = 3


def make_spec(
    core: str, shape: Shape, precision: Precision = "fp32", encoding: str = "sinusoidal"
) -> RunSpec:
    """Build the spec of reverse ordering that a shape stands for.

    Args:
        core: Kind of the core.
        shape: Hidden size, batch size, length, vocabulary size.
        precision: Precision of training.
        encoding: Kind of the encoding, as wide as the hidden state if it has a width.
    """
    hidden, batch, length, vocab = shape
    sized = {} if encoding in ("none", "repeated_embedding") else {"size": hidden}
    # Of few sequences some must be left to train on.
    num_held_out = min(NUM_HELD_OUT, vocab**length // 2)
    task = {"kind": "reverse_ordering", "vocab_size": vocab, "length": length}
    return RunSpec.load(
        {
            "task": {**task, "num_held_out": num_held_out},
            "core": {"kind": core, "hidden_size": hidden},
            "encoding": {"kind": encoding, **sized},
            "embedding_size": hidden,
            "training": {"batch_size": batch, "precision": precision},
        }
    )


def make_update_of(name: str, spec: RunSpec, device: torch.device) -> Callable[[], None]:
    """Return what makes an update: `ours`, or a script's.

    The scripts compute in float32 (TensorFloat-32 if that is our precision) whatever ours does.
    """
    trial = build(spec, device)
    precision, size = spec.training.precision, spec.training.batch_size
    if name == "ours":
        state = TrainState.fresh(trial.model, trial.preset)
        update, steps = make_update(state, spec.training, trial.preset, device), count()

        def ours() -> None:
            with computing(precision, device):
                update(trial.stream.train(next(steps), size))

        return ours
    make = {"good": good_update, "usual": usual_update}[name]
    script: Callable[[], Tensor] = make(trial, size, device)

    def scripted() -> None:
        with computing("tf32" if precision == "tf32" else "fp32", device):
            script()

    return scripted


def compare(
    spec: RunSpec, device: torch.device, *, threads: int, rounds: int, scripts: list[str]
) -> dict[str, list[float]]:
    """Time our update and the scripts' in turn: name → seconds of each round."""
    timers, numbers = {}, {}
    for name in ("ours", *scripts):
        run = make_update_of(name, spec, device)
        run()  # what is set up on the first call does not count
        begun = now(device)
        run()
        numbers[name] = max(1, round(BLOCK_SECONDS / (now(device) - begun)))
        timers[name] = Timer("run()", globals={"run": run}, num_threads=threads)
    times: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            times[name].append(timer.timeit(numbers[name]).mean)
    return times


def peak(name: str, core: str, shape: Shape, options: argparse.Namespace) -> float:
    """Return the mebibytes that updates need beyond what their process had before."""
    words = ["--core", core, "--shape", ",".join(map(str, shape)), "--memory-of", name]
    words += ["--threads", str(options.threads), "--device", options.device]
    words += ["--precision", options.precision]
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def print_peak(name: str, spec: RunSpec, device: torch.device) -> None:
    """Print the mebibytes that updates need in this process."""
    make_update_of(name, spec.override({"training.batch_size": 1}), device)()
    before = peak_memory()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    run = make_update_of(name, spec, device)
    for _ in range(NUM_MEMORY_UPDATES):
        run()
    on_gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    print((peak_memory() - before if on_gpu is None else on_gpu) / 2**20)


def measure(options: argparse.Namespace, device: torch.device) -> None:
    """Print a row per shape and core."""
    scripts = [name for name in options.scripts.split(",") if name]
    head = ["shape", "core", "ours, ms"]
    head += [f"{SCRIPTS[name]} / ours (least – most)" for name in scripts]
    head += ["MiB: " + " / ".join(["ours", *map(SCRIPTS.get, scripts)])] if options.memory else []
    print(f"{describe_arithmetic()}; threads: {options.threads}; torch {torch.__version__}; "
          f"{options.precision}; medians of {options.rounds} interleaved rounds, "
          f"{time.strftime('%Y-%m-%d')}\n")  # fmt: skip
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for shape in options.shape or SHAPES:
        for core in options.core.split(","):
            spec = make_spec(core, shape, options.precision)
            times = compare(
                spec, device, threads=options.threads, rounds=options.rounds, scripts=scripts
            )
            row = ["H {} B {} L {} K {:,}".format(*shape), core]
            row.append(f"{statistics.median(times['ours']) * 1e3:.2f}")
            for name in scripts:
                ratios = [a / b for a, b in zip(times[name], times["ours"], strict=True)]
                middle = statistics.median(ratios)
                row.append(f"{middle:.2f} ({min(ratios):.2f} – {max(ratios):.2f})")
            if options.memory:
                peaks = [peak(name, core, shape, options) for name in ("ours", *scripts)]
                row.append(" / ".join(f"{value:,.0f}" for value in peaks))
            print("| " + " | ".join(row) + " |", flush=True)


def measure_classes(words: list[str]) -> None:
    """Measure on each class of processor that can be imitated, in a process of its own."""
    shapes = [word for shape in CLASS_SHAPES for word in ("--shape", ",".join(map(str, shape)))]
    for name in TIMED:
        wanted = EMULATED[name]
        print(f"\n### {wanted.label}\n", flush=True)
        script = "from pernn.kernels import describe_arithmetic as what; print(what())"
        asked = [sys.executable, "-c", script]
        done = subprocess.run(
            asked, env=wanted.environment(), capture_output=True, text=True, check=False
        )
        if not wanted.describes(done.stdout.strip()):
            print("cannot be imitated here", flush=True)
            continue
        own = [] if "--shape" in words else shapes
        command = [sys.executable, __file__, *words, *own]
        subprocess.run(command, env=wanted.environment(), check=False)


def read_shape(text: str) -> Shape:
    """Read a shape of the command line."""
    hidden, batch, length, vocab = map(int, text.split(","))
    return hidden, batch, length, vocab


def main() -> None:
    """Measure and print."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", type=read_shape, action="append", metavar="H,B,L,K")
    parser.add_argument("--core", default="lstm,gru,elman")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--threads", type=int, default=cores)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scripts", default="good", help="good, usual, or both by a comma")
    parser.add_argument("--memory", action="store_true", help="also measure peak memory")
    parser.add_argument("--classes", action="store_true", help="on imitated processors")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory-of", choices=["ours", *SCRIPTS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.classes:
        measure_classes([word for word in sys.argv[1:] if word != "--classes"])
        return
    # As in every worker; the scripts that we compare with gain by it too.
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if options.memory_of:
        spec = make_spec(options.core, options.shape[0], options.precision)
        print_peak(options.memory_of, spec, device)
        return
    measure(options, device)


if __name__ == "__main__":
    main()
