"""Time an update of training against a good plain script, in turn, for some shapes and cores.

    python benchmarks/updates.py [--shape 64,64,8,192] [--core lstm,gru] [--ways ours,autograd]
        [--threads 1] [--rounds 25] [--precision bf16] [--memory] [--classes avx2,baseline]

Ours is one compiled call where that is possible; `autograd` goes through PyTorch. The script (b)
concatenates embedding and encoding, runs PyTorch's layer (S4D: by Fourier transforms) in float32,
computes logits of the scored steps only and never waits for the device.
Prints Markdown: medians of the rounds, and the median over the rounds of the script's time over
ours. One thread is timed by its own processor time, so that other work on the machine disturbs
little; more are timed by the clock. `--classes` measures on imitated processors (`processors.py`).
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from itertools import count

import torch
from processors import EMULATED
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.benchmark import Timer

from pernn.cores import S4D
from pernn.errors import ConfigError
from pernn.kernels import describe_arithmetic, whole_updates, without_kernels
from pernn.lab.runs import RunSpec, Trial, build, peak_memory
from pernn.lab.training import (
    Precision,
    TrainState,
    computing,
    keep_freed_memory,
    make_update,
    now,
)
from pernn.models import PositionEncodedRNN

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
LEARNING_RATE = 1e-4
NUM_HELD_OUT = 1024
BLOCK_SECONDS = 0.2
"""Least time of the updates that are timed together."""
NUM_MEMORY_UPDATES = 3


class ScriptedNetwork(nn.Module):
    """The network of a script, with the weights of one of ours.

    Args:
        model: Our network, its encoding concatenated.
        num_steps: Steps of both phases.
        num_queries: Steps of the output phase.
    """

    encodings: Tensor

    def __init__(self, model: PositionEncodedRNN, num_steps: int, num_queries: int) -> None:
        super().__init__()
        self.embedding, self.output_layer = deepcopy((model.embedding, model.output_layer))
        self.core = model.core.to_plain()
        if isinstance(self.core, S4D):
            self.core.method = "fft"
        self.query, self.num_queries = model.vocab_size, num_queries
        self.copies = model.encoding.embedding_copies
        with torch.no_grad():
            encodings = model.encoding(num_steps, num_queries)
        self.register_buffer("encodings", encodings)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the output phase."""
        queries = tokens.new_full((len(tokens), self.num_queries), self.query)
        vectors = self.embedding(torch.cat([tokens, queries], dim=1))
        encodings = self.encodings.expand(len(tokens), -1, -1)
        vectors = torch.cat([*[vectors] * self.copies, encodings], dim=2)
        if isinstance(self.core, S4D):
            with without_kernels():
                # Told so, it computes no final state.
                outputs = self.core(vectors, num_outputs=vectors.shape[1])[0]
        else:
            outputs = self.core(vectors)[0]
        logits: Tensor = self.output_layer(outputs[:, -self.num_queries :])
        return logits


def script_update(trial: Trial, batch_size: int, device: torch.device) -> Callable[[], Tensor]:
    """Build the update of the script (b), which draws whole batches.

    Raises:
        ConfigError: If the trial is not to reverse ids.
    """
    test, preset = trial.stream.test(), trial.preset
    length = test.tokens.shape[1]
    if not isinstance(trial.model, PositionEncodedRNN) or test.targets.shape[1] != length:
        raise ConfigError("the script to compare with reverses sequences of ids of one length")
    network = ScriptedNetwork(trial.model, length + test.num_queries, test.num_queries).to(device)
    parameters = list(network.parameters())
    adam = torch.optim.Adam(parameters, lr=LEARNING_RATE, betas=preset.betas, eps=preset.epsilon)
    generator = torch.Generator().manual_seed(1)

    def update() -> Tensor:
        tokens = torch.randint(network.query, (batch_size, length), generator=generator)
        tokens = tokens.to(device, non_blocking=True)
        loss = F.cross_entropy(network(tokens).flatten(0, 1), tokens.flip(1).flatten())
        adam.zero_grad()
        loss.backward()
        if preset.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, preset.clip_norm)
        adam.step()
        return loss.detach()

    return update


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


def make_update_of(way: str, spec: RunSpec, device: torch.device) -> Callable[[], None]:
    """Return what makes an update: `ours`, ours by `autograd`, or the `script`'s.

    The script computes in float32 (TensorFloat-32 if that is our precision) whatever ours does.
    """
    trial = build(spec, device)
    precision, size = spec.training.precision, spec.training.batch_size
    if way == "script":
        script = script_update(trial, size, device)

        def scripted() -> None:
            with computing("tf32" if precision == "tf32" else "fp32", device):
                script()

        return scripted
    state = TrainState.fresh(trial.model, trial.preset)
    update, steps = make_update(state, spec.training, trial.preset, device), count()

    def ours() -> None:
        with computing(precision, device), whole_updates(enabled=way == "ours"):
            update(trial.stream.train(next(steps), size))

    return ours


def compare(
    spec: RunSpec, device: torch.device, *, threads: int, rounds: int, ways: list[str]
) -> dict[str, list[float]]:
    """Time updates in turn: way → seconds of each round."""
    clock = time.thread_time if threads == 1 and device.type == "cpu" else time.perf_counter
    timers, numbers = {}, {}
    for way in ways:
        run = make_update_of(way, spec, device)
        run()  # what is set up on the first call does not count
        begun = now(device)
        run()
        numbers[way] = max(1, round(BLOCK_SECONDS / (now(device) - begun)))
        timers[way] = Timer("run()", globals={"run": run}, num_threads=threads, timer=clock)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, timer in timers.items():
            times[way].append(timer.timeit(numbers[way]).mean)
    return times


def peak(way: str, core: str, shape: Shape, options: argparse.Namespace) -> float:
    """Return the mebibytes that updates need beyond what their process had before."""
    words = ["--core", core, "--shape", ",".join(map(str, shape)), "--memory-of", way]
    words += ["--threads", str(options.threads), "--device", options.device]
    words += ["--precision", options.precision]
    done = subprocess.run(
        [sys.executable, __file__, *words], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def print_peak(way: str, spec: RunSpec, device: torch.device) -> None:
    """Print the mebibytes that updates need in this process."""
    make_update_of(way, spec.override({"training.batch_size": 1}), device)()
    before = peak_memory()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    run = make_update_of(way, spec, device)
    for _ in range(NUM_MEMORY_UPDATES):
        run()
    on_gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    print((peak_memory() - before if on_gpu is None else on_gpu) / 2**20)


def measure(options: argparse.Namespace, device: torch.device) -> None:
    """Print a row per shape and core."""
    ours = options.ways.split(",")
    ways = [*ours, "script"]
    head = ["shape", "core", *(f"{way}, ms" for way in ours)]
    head += [f"(b) / {way} (least – most)" for way in ours]
    head += ["MiB: " + " / ".join([*ours, "(b)"])] if options.memory else []
    print(f"{describe_arithmetic()}; threads: {options.threads}; torch {torch.__version__}; "
          f"{options.precision}; medians of {options.rounds} interleaved rounds, "
          f"{time.strftime('%Y-%m-%d')}\n")  # fmt: skip
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for shape in options.shape or SHAPES:
        for core in options.core.split(","):
            spec = make_spec(core, shape, options.precision)
            times = compare(spec, device, threads=options.threads, rounds=options.rounds, ways=ways)
            row = ["H {} B {} L {} K {:,}".format(*shape), core]
            row += [f"{statistics.median(times[way]) * 1e3:.2f}" for way in ours]
            for way in ours:
                ratios = [b / t for b, t in zip(times["script"], times[way], strict=True)]
                middle = statistics.median(ratios)
                row.append(f"{middle:.2f} ({min(ratios):.2f} – {max(ratios):.2f})")
            if options.memory:
                peaks = [peak(way, core, shape, options) for way in ways]
                row.append(" / ".join(f"{value:,.0f}" for value in peaks))
            print("| " + " | ".join(row) + " |", flush=True)


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
    parser.add_argument("--ways", default="ours", help="ours, autograd, or both by a comma")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--threads", type=int, default=cores)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="also measure peak memory")
    parser.add_argument("--classes", default="", help="of processors.py, by commas")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # As in every worker; the script that we compare with gains by it too.
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if options.memory_of:
        spec = make_spec(options.core, options.shape[0], options.precision)
        print_peak(options.memory_of, spec, device)
        return
    measure(options, device)
    for name in filter(None, options.classes.split(",")):
        print(f"\n### {EMULATED[name].label}\n", flush=True)
        words = [word for word in sys.argv[1:] if word not in ("--classes", options.classes)]
        command = [sys.executable, __file__, *words]
        subprocess.run(command, env=EMULATED[name].environment(), check=True)


if __name__ == "__main__":
    main()
