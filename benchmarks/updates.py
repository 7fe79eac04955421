"""Time an update of training against a good plain script, in turn, for some shapes and cores.

    python benchmarks/updates.py [--shape 64,64,8,192] [--core lstm,gru] [--ways ours,autograd]
        [--threads 1] [--rounds 25] [--precision bf16] [--memory] [--classes avx2,baseline]

Ours is one compiled call where that is possible; `autograd` goes through PyTorch. The script (b)
concatenates embedding and encoding, runs PyTorch's layer (S4D: by Fourier transforms) in float32,
computes logits of the scored steps only and never waits for the device. Printed are medians of the
rounds, also of the script's time / ours. One thread is timed by its own processor time, so that
other work disturbs little. `--classes` measures on imitated processors (`processors.py`).
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import count

import torch
from processors import EMULATED
from torch import Tensor, nn
from torch.nn import functional as F
from turns import call_apart, print_table, time_in_turns

from pernn.cores import S4D, Core, RecurrentCore
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
    rounding,
)
from pernn.models import PositionEncodedRNN

Shape = tuple[int, ...]
"""Hidden size, batch size, length, vocabulary size."""
SHAPES: tuple[Shape, ...] = (
    (512, 128, 16, 1024), (512, 64, 64, 256), (512, 128, 64, 16_384), (128, 64, 32, 32),
    (128, 64, 16, 256), (64, 128, 8, 256), (64, 64, 8, 192),
)  # fmt: skip
"""Shapes that docs/performance.md names; the fourth is a demo's, the last two of the evidence."""
LEARNING_RATE = 1e-4
BLOCK_SECONDS = 0.2
"""Least time of the updates that are timed together."""


def script_layer(core: Core) -> nn.Module:
    """Return PyTorch's layer of the same function, or a copy; S4D by Fourier transforms."""
    layer = core.to_torch() if isinstance(core, RecurrentCore) else deepcopy(core)
    if isinstance(layer, S4D):
        layer.method = "fft"
    return layer


class ScriptedNetwork(nn.Module):
    """The network of a script, with the weights of ours, whose encoding is concatenated."""

    encodings: Tensor

    def __init__(self, model: PositionEncodedRNN, num_steps: int, num_queries: int) -> None:
        super().__init__()
        self.embedding, self.output_layer = deepcopy((model.embedding, model.output_layer))
        self.core = script_layer(model.core)
        self.query, self.num_queries = model.vocab_size, num_queries
        self.copies = model.encoding.embedding_copies
        self.register_buffer("encodings", model.encoding(num_steps, num_queries).detach())

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
    """Build the update of the script (b), which draws whole batches."""
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
    """Build the spec of reverse ordering that a shape stands for."""
    hidden, batch, length, vocab = shape
    task = {"kind": "reverse_ordering", "vocab_size": vocab, "length": length}
    # Of few sequences some must be left to train on.
    task["num_held_out"] = min(1024, vocab**length // 2)
    sized = {} if encoding in ("none", "repeated_embedding") else {"size": hidden}
    parts = {"core": {"kind": core, "hidden_size": hidden}, "encoding": {"kind": encoding, **sized}}
    training = {"batch_size": batch, "precision": precision}
    return RunSpec.load({"task": task, **parts, "embedding_size": hidden, "training": training})


def make_update_of(way: str, spec: RunSpec, device: torch.device) -> Callable[[], None]:
    """Return what makes an update: `ours`, ours by `autograd`, or the `script`'s.

    The script computes in float32 (TensorFloat-32 if that is our precision) whatever ours does. The
    `layer` is PyTorch's own alone, forward and back; on CUDA that is cuDNN's.
    """
    trial = build(spec, device)
    precision, size = spec.training.precision, spec.training.batch_size
    if way == "script":
        script = script_update(trial, size, device)

        def scripted() -> None:
            with computing("tf32" if precision == "tf32" else "fp32", device):
                script()

        return scripted
    if way == "layer":
        layer = script_layer(trial.model.core).to(device)
        inputs = torch.randn(size, 2 * spec.task.length, layer.input_size, device=device)
        inputs.requires_grad_()

        def passed() -> None:
            with computing(precision, device):
                with rounding(precision, device):
                    outputs = layer(inputs)[0]
                outputs.float().sum().backward()

        return passed
    state = TrainState.fresh(trial.model, trial.preset)
    update, steps = make_update(state, spec.training, trial.preset, device), count()

    def ours() -> None:
        with computing(precision, device), whole_updates(enabled=way == "ours"):
            update(trial.stream.train(next(steps), size))

    return ours


def added_memory(way: str, spec: RunSpec, device: torch.device, threads: int) -> float:
    """Return the mebibytes that updates need beyond what this process had before."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    peak = peak_memory
    make_update_of(way, spec.override({"training.batch_size": 1}), device)()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)  # to what is allocated now
        peak = partial(torch.cuda.max_memory_allocated, device)
    before, run = peak(), make_update_of(way, spec, device)
    for _ in range(3):
        run()
    return (peak() - before) / 2**20


def measure_one(
    spec: RunSpec, device: torch.device, ways: list[str], threads: int, rounds: int, *, memory: bool
) -> dict[str, str]:
    """Time updates of one network in turn; return the cells of its row."""
    runs = {way: make_update_of(way, spec, device) for way in (*ways, "script")}
    alone = threads == 1 and device.type == "cpu"
    clock = time.thread_time if alone else partial(now, device)
    times = time_in_turns(runs, rounds, clock, BLOCK_SECONDS)
    task, batch = spec.task, spec.training.batch_size
    shape = f"H {spec.core.hidden_size} B {batch} L {task.length} K {task.vocab_size:,}"
    row = {"shape": shape, "core": spec.core.kind}
    row |= {f"{way}, ms": f"{statistics.median(times[way]) * 1e3:.2f}" for way in ways}
    for way in ways:
        ratios = [b / t for b, t in zip(times["script"], times[way], strict=True)]
        spread = f"({min(ratios):.2f} – {max(ratios):.2f})"
        row[f"(b) / {way} (least – most)"] = f"{statistics.median(ratios):.2f} {spread}"
    if memory:
        # On a CPU, of a fresh process.
        measured = added_memory if device.type == "cuda" else partial(call_apart, added_memory)
        needed = [measured(way, spec, device, threads) for way in runs]
        row[f"MiB: {' / '.join([*ways, '(b)'])}"] = " / ".join(f"{one:,.0f}" for one in needed)
    return row


def measure(options: argparse.Namespace) -> None:
    """Print what computes here, and a row per shape and core."""
    device = torch.device(options.device)
    timing = device, options.ways.split(","), options.threads, options.rounds
    # As in every worker; the script gains by it too.
    keep_freed_memory()
    torch.set_num_threads(options.threads)
    print(f"{describe_arithmetic()}; threads: {options.threads}; torch {torch.__version__}; "
          f"{options.precision}; medians of {options.rounds} interleaved rounds, "
          f"{time.strftime('%Y-%m-%d')}")  # fmt: skip
    print_table(
        measure_one(make_spec(core, shape, options.precision), *timing, memory=options.memory)
        for shape in options.shape or SHAPES
        for core in options.core.split(",")
    )


def main() -> None:
    """Measure and print."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--shape", type=lambda text: tuple(map(int, text.split(","))), action="append")
    add("--core", default="lstm,gru,elman")
    add("--ways", default="ours", help="of ours, autograd, layer, by commas")
    add("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    add("--threads", type=int, default=cores)
    add("--rounds", type=int, default=5)
    add("--memory", action="store_true", help="also measure peak memory")
    add("--classes", default="", help="of processors.py, by commas")
    add("--device", default="cpu")
    options = parser.parse_args()
    measure(options)
    for name in filter(None, options.classes.split(",")):
        print(f"\n### {EMULATED[name].label}\n", flush=True)
        with EMULATED[name].imitated():
            call_apart(measure, options)


if __name__ == "__main__":
    main()
