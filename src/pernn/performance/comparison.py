"""Our updates against two scripts, in turn, and against the machine's limits."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from pernn.runs import RunSpec, build
from pernn.training import Precision, TrainState, computing, now

from .baselines import good_update, usual_update
from .ceilings import Ceilings
from .phases import Phase, Stopwatch, limits

SHAPES = (
    # hidden, batch, length, vocabulary
    (512, 128, 16, 1024),
    (512, 64, 64, 256),
    (512, 128, 64, 16_384),
    (128, 64, 32, 32),
    (64, 128, 8, 256),
)
"""Shapes that docs/performance.md reports; the fourth is a demo's."""
NUM_HELD_OUT = 1024
WARM_UP = 2


@dataclass(frozen=True)
class Comparison:
    """What was measured of one spec.

    Attributes:
        seconds: Median time of an update: `ours`, `good`, `usual`.
        quartiles: First and third quartile of these times.
        ratios: Median, over the rounds, of a script's time over ours: `good`, `usual`.
        phases: Our update, cut into its phases; medians.
        mebibytes: Most memory that each needed beyond what its process had before; empty if it
            was not measured.
        ceilings: The machine's limits, as high as they were found in any round.
    """

    seconds: dict[str, float]
    quartiles: dict[str, tuple[float, float]]
    ratios: dict[str, float]
    phases: tuple[Phase, ...]
    mebibytes: dict[str, float]
    ceilings: Ceilings

    @property
    def share_of_limit(self) -> float:
        """Least time of the products over the median time of an update."""
        return sum(phase.limit_seconds for phase in self.phases) / self.seconds["ours"]

    def dump(self) -> dict[str, Any]:
        """Return plain values."""
        content = asdict(self) | {"share_of_limit": self.share_of_limit}
        for phase, plain in zip(self.phases, content["phases"], strict=True):
            plain["share_of_limit"] = phase.share_of_limit
        return content


def make_spec(
    core: str,
    shape: tuple[int, int, int, int],
    precision: Precision = "fp32",
    encoding: str = "sinusoidal",
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
    return RunSpec.load(
        {
            "task": {
                "kind": "reverse_ordering",
                "vocab_size": vocab,
                "length": length,
                # Of few sequences some must be left to train on.
                "num_held_out": min(NUM_HELD_OUT, vocab**length // 2),
            },
            "core": {"kind": core, "hidden_size": hidden},
            "encoding": {"kind": encoding, **sized},
            "embedding_size": hidden,
            "training": {"batch_size": batch, "precision": precision},
        }
    )


def compare(
    spec: RunSpec,
    ceilings: Ceilings,
    device: torch.device,
    *,
    rounds: int = 5,
    scripts: Sequence[str] = ("good", "usual"),
    memory: bool = False,
) -> Comparison:
    """Time our update and the scripts', in turn in every round.

    The scripts compute in float32 (TensorFloat-32 if that is our precision) whatever ours does.

    Args:
        spec: Reverse ordering of ids.
        ceilings: What the machine can do.
        device: Where.
        rounds: How often.
        scripts: Which of the scripts.
        memory: Whether to measure the peak memory of each, in processes of their own.

    Raises:
        ConfigError: If the spec is not of that task.
    """
    made = {name: make_update_of(name, spec, device) for name in ("ours", *scripts)}
    updates = {name: update for name, (update, _) in made.items()}
    stopwatch = made["ours"][1]
    times: dict[str, list[float]] = {name: [] for name in updates}
    laps: list[dict[str, float]] = []
    for turn in range(WARM_UP + rounds):
        taken = {name: run() for name, run in updates.items()}
        lap = stopwatch.lap() if stopwatch is not None else {}
        ceilings = ceilings.raised()
        if turn >= WARM_UP:
            laps.append(lap)
            for name, value in taken.items():
                times[name].append(value)
    phases = []
    for name, (operations, num_bytes, least) in limits(spec, ceilings).items():
        median = statistics.median(lap[name] for lap in laps)
        phases.append(Phase(name, median, operations, num_bytes, least))
    return Comparison(
        seconds={name: statistics.median(values) for name, values in times.items()},
        quartiles={name: _quartiles(values) for name, values in times.items()},
        ratios={
            name: statistics.median(
                slow / fast for slow, fast in zip(times[name], times["ours"], strict=True)
            )
            for name in scripts
        },
        phases=tuple(phases),
        mebibytes={name: peak(name, spec, device) for name in updates} if memory else {},
        ceilings=ceilings,
    )


def make_update_of(
    name: str, spec: RunSpec, device: torch.device
) -> tuple[Callable[[], float], Stopwatch | None]:
    """Return what makes an update and says how long it took; ours also in phases."""
    trial = build(spec, device)
    if name == "ours":
        stopwatch = Stopwatch(spec, trial, TrainState.fresh(trial.model, trial.preset), device)
        return stopwatch.whole, stopwatch
    make = {"good": good_update, "usual": usual_update}[name]
    update = make(trial, spec.training.batch_size, device)
    precision: Precision = "tf32" if spec.training.precision == "tf32" else "fp32"

    def timed(run: Callable[[], Tensor] = update) -> float:
        with computing(precision, device):
            begun = now(device)
            run()
            return now(device) - begun

    return timed, None


def peak(name: str, spec: RunSpec, device: torch.device) -> float:
    """Return the mebibytes that updates need, in a process of their own."""
    threads = torch.get_num_threads()
    content = {"name": name, "spec": spec.dump(), "device": str(device), "threads": threads}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pernn.performance.memory"],
        input=json.dumps(content),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4)
    return first, third
