"""Measure a GPU in one command: is pernn right on it, how fast is it, what memory does it take?

    python benchmarks/gpu.py [--device cpu] [--parts parity,times] [--minutes 9]

Prints Markdown as it goes, a row per measurement; what fails is printed with its traceback at the
end, and the rest goes on. `--device cpu` tries small shapes. Tests of a GPU: `pytest -m gpu`.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from gradient_stability import measure
from processors import losses
from turns import print_table
from updates import make_spec, measure_one

from pernn.kernels import without_kernels
from pernn.lab.training import Precision

CORES = ("lstm", "gru", "elman", "s4d")
ENCODINGS = ("sinusoidal", "none", "learned", "random", "repeated_embedding")
SHAPES = {"cuda": (512, 512, 64), "cpu": (32, 16, 6)}
"""Hidden size, batch size, length: the study's, and small ones for a CPU."""
VOCABULARIES = {"cuda": (16_384, 256), "cpu": (32,)}
PRECISIONS: dict[str, list[Precision]] = {"cuda": ["fp32", "tf32", "bf16"], "cpu": ["fp32", "bf16"]}
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 3e-2}
"""Largest difference of a loss within 20 updates, in nats: a few roundings of the precision."""
NUM_UPDATES = 20
Row = dict[str, Any]
Named = Iterator[tuple[str, Callable[[], Row]]]


def parity(device: torch.device) -> Named:
    """Compare the losses of trainings with those on the CPU, through a checkpoint half-way."""
    for precision, core, encoding in product(PRECISIONS[device.type], CORES, ENCODINGS):
        run = partial(compare_with_cpu, device, core, encoding, precision)
        yield f"{core} {encoding} {precision}", run


def compare_with_cpu(device: torch.device, core: str, encoding: str, precision: Precision) -> Row:
    """Train on a device and on the CPU without kernels; compare every loss, and the evaluation."""
    short = {"iterations": NUM_UPDATES, "log_interval": 1, "learning_rate": 0.01}
    training = {f"training.{name}": value for name, value in {**short, "warmup_updates": 4}.items()}
    spec = make_spec(core, (32, 16, 6, 24), precision, encoding)
    spec = spec.override({**training, "task.num_held_out": 64})
    found = losses(spec, device)
    # TensorFloat-32 is none of the CPU's precisions: its measure is float32.
    exact = spec.override({"training.precision": "bf16" if precision == "bf16" else "fp32"})
    with without_kernels():
        expected = losses(exact, torch.device("cpu"))
    difference = max(abs(one - other) for one, other in zip(found, expected, strict=True))
    assert len(found) == NUM_UPDATES + 1
    assert difference <= TOLERANCE[precision], (difference, found, expected)
    return {"largest difference": difference, "tolerance": TOLERANCE[precision]}


def times(device: torch.device) -> Named:
    """Time updates, the good script's, and PyTorch's layer alone, in turn."""
    precisions = reversed(PRECISIONS[device.type])
    for vocab, precision, core in product(VOCABULARIES[device.type], precisions, CORES):
        yield f"{core} K={vocab} {precision}", partial(time_updates, device, core, vocab, precision)


def time_updates(device: torch.device, core: str, vocab: int, precision: Precision) -> Row:
    """Return what `updates.py` finds, on a GPU with the memory of network and updates."""
    spec = make_spec(core, (*SHAPES[device.type], vocab), precision)
    ways = ["ours"] if core == "s4d" else ["ours", "layer"]
    on_gpu = device.type == "cuda"
    return measure_one(spec, device, ways, torch.get_num_threads(), rounds=7, memory=on_gpu)


def analysis(device: torch.device) -> Named:
    """Time the closed form of pairs' similarity against the textbook's `vmap(jacrev)`."""
    sizes = (512, 64) if device.type == "cuda" else (32, 8)
    for core, pairs in product(CORES[:3], (1, 16)):
        yield f"{core}, pairs: {pairs}", partial(measure, device, core, *sizes, pairs)


PARTS = {"parity": parity, "times": times, "analysis": analysis}


def main() -> int:
    """Measure and print; the exit status says whether anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=list(SHAPES))
    parser.add_argument("--parts", default=",".join(PARTS), help="which, separated by commas")
    parser.add_argument("--minutes", type=float, default=9.0, help="begin nothing after this time")
    options = parser.parse_args()
    device, until = torch.device(options.device), time.monotonic() + 60 * options.minutes
    if device.type == "cpu":
        torch.set_num_threads(1)  # all is small there
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    print(f"{name}, torch {torch.__version__}, Python {sys.version.split()[0]}")
    failures: list[str] = []

    def rows(part: str) -> Iterator[Row]:
        for item, run in PARTS[part](device):
            if time.monotonic() > until:
                return
            try:
                yield {part: item, **run()}
            except Exception:  # noqa: BLE001 whatever it is belongs into what is printed
                failures.append(f"{part}, {item}:\n{traceback.format_exc()}")

    for part in options.parts.split(","):
        print_table(rows(part))
    print(f"\n{len(failures)} failed", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
