"""What `benchmarks/gpu.py` measures, part by part; every item returns plain values."""

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_steps import FUSED, compare_steps

if TYPE_CHECKING:
    import torch
    from gpu import Item, Records

    from pernn.runs import RunSpec, Trial
    from pernn.training import Precision

ROOT = Path(__file__).parents[1]
CORES = ("lstm", "gru", "elman", "s4d")
STUDY = (512, 512, 64)
"""Hidden size, batch size, length of the study; SMALL stands in for it on a CPU."""
SMALL = (32, 16, 6)
VOCABULARIES = {"cuda": (16_384, 256, 1_024), "cpu": (32, 16)}
PRECISIONS: Mapping[str, "tuple[Precision, ...]"] = {
    "cuda": ("fp32", "tf32", "bf16"),
    "cpu": ("fp32", "bf16"),
}
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 3e-2}
"""Largest difference of a loss within `NUM_UPDATES` updates, in nats: a few roundings of the
precision, as losses are about 3 nats."""
NUM_UPDATES = 20
PAPER_UPDATES = 300_000
ITERATIONS = {"cuda": 30_000, "cpu": 300}
"""Updates of the shortened training."""


@dataclass(frozen=True)
class Call:
    """What all parts of one call share.

    Attributes:
        device: `cuda`, or `cpu`, on which everything is small.
        records: Results so far.
        until: When to stop, by `time.time`.
    """

    device: str
    records: "Records"
    until: float


Named = Iterator[tuple[str, Callable[[], dict[str, Any]]]]
"""Names of items, and what runs them."""


def items_of(part: str, call: Call) -> "list[Item]":
    """Return the items of a part, one of `PARTS`, in the order in which they run."""
    from gpu import Item

    return [Item(part, name, run) for name, run in PARTS[part](call)]


def _doctor(call: Call) -> Named:
    def run() -> dict[str, Any]:
        import torch

        words = [sys.executable, "-m", "pernn", "doctor"]
        said = subprocess.run(
            words, env=os.environ | {"COLUMNS": "100"}, capture_output=True, text=True, check=False
        )
        found = {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
        }
        if call.device == "cuda":
            one = torch.cuda.get_device_properties(0)
            found["device"] = f"{one.name}, {one.total_memory / 2**30:.0f} GiB"
            found["capability"] = f"{one.major}.{one.minor}"
        return {**found, "text": said.stdout + said.stderr}

    yield "machine", run


def _rates(call: Call) -> Named:
    def run() -> dict[str, Any]:
        import torch

        from pernn.performance import measure_ceilings

        return measure_ceilings(
            torch.device(call.device), trials=7 if call.device == "cuda" else 1
        ).dump()

    yield "products", run


def _tests(call: Call) -> Named:
    def run() -> dict[str, Any]:
        if call.device == "cpu":
            return {"left out": "no GPU was asked for"}
        needed = ("pytest", "hypothesis", "beartype", "pytest_timeout")
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
        if missing:
            return {"left out": f"{', '.join(missing)} missing: pip install -e '.[dev]'"}
        marked = "pytest.mark.gpu"
        files = [
            str(path)
            for path in sorted((ROOT / "tests").rglob("test_*.py"))
            if marked in path.read_text()
        ]
        words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", *files]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-6000:] + done.stderr[-1000:])
        return {"text": done.stdout.strip().splitlines()[-1]}

    yield "tests that need a GPU", run


def _parity(call: Call) -> Named:
    for precision in PRECISIONS[call.device]:
        for core in CORES:
            for encoding in ("sinusoidal", "none", "learned", "random", "repeated_embedding"):
                name = f"{core} {encoding} {precision}"
                yield name, partial(compare_with_cpu, call.device, core, encoding, precision)
        for core in FUSED if call.device == "cuda" else ():
            run = partial(compare_with_cpu, call.device, core, "sinusoidal", precision, fused=True)
            yield f"{core} sinusoidal {precision}, fused steps", run


def compare_with_cpu(
    device: str, core: str, encoding: str, precision: "Precision", *, fused: bool = False
) -> dict[str, Any]:
    """Train on a device and on the CPU without kernels; compare every loss, and the evaluation.

    Half-way the device's training goes through a checkpoint. It takes plain steps, or fused ones.

    Raises:
        AssertionError: If they differ by more than the precision explains.
    """
    import torch

    from pernn.cores import fused_steps
    from pernn.kernels import without_kernels
    from pernn.performance import make_spec

    spec = make_spec(core, (32, 16, 6, 24), precision, encoding).override(
        {
            "training.iterations": NUM_UPDATES,
            "training.log_interval": 1,
            "training.learning_rate": 0.01,
            "training.warmup_updates": 4,
            "task.num_held_out": 64,
        }
    )
    with fused_steps(enabled=fused):
        found = _losses(spec, torch.device(device))
    # TensorFloat-32 is none of the CPU's precisions: its measure is float32.
    exact = spec.override({"training.precision": "bf16" if precision == "bf16" else "fp32"})
    with without_kernels():
        expected = _losses(exact, torch.device("cpu"))
    difference = max(abs(one - other) for one, other in zip(found, expected, strict=True))
    assert len(found) == NUM_UPDATES + 1
    assert difference <= TOLERANCE[precision], (difference, found, expected)
    return {"largest difference": difference, "tolerance": TOLERANCE[precision]}


def _losses(spec: "RunSpec", device: "torch.device") -> list[float]:
    from pernn.runs import build
    from pernn.training import TrainState, computing, evaluate

    precision, half = spec.training.precision, NUM_UPDATES // 2
    with computing(precision, device):
        trial = build(spec, device)
        state = TrainState.fresh(trial.model, trial.preset)
        losses = _advance(spec, trial, state, device, half)
        again = build(spec, device)
        resumed = TrainState.fresh(again.model, again.preset)
        resumed.restore(state.dump(), half)
        losses += _advance(spec, again, resumed, device, NUM_UPDATES)
        held_out = evaluate(again.model, again.stream, device, precision)
    return [*losses, held_out.metrics["loss"]]


def _advance(
    spec: "RunSpec", trial: "Trial", state: Any, device: "torch.device", last: int
) -> list[float]:
    from pernn.training import Measured, Updated, advance

    losses = []
    for event in advance(state, trial.stream, spec.training, trial.preset, device):
        if isinstance(event, Measured) and event.kind == "train":
            losses.append(event.values["loss"])
        if isinstance(event, Updated) and event.update == last:
            break
    return losses


def _shape(device: str, vocab: int) -> tuple[int, int, int, int]:
    return (*(STUDY if device == "cuda" else SMALL), vocab)


def _steps(call: Call) -> Named:
    for vocab in VOCABULARIES[call.device]:
        for precision in reversed(PRECISIONS[call.device]):
            for core in FUSED:
                shape = _shape(call.device, vocab)
                run = partial(compare_steps, call.device, core, shape, precision)
                yield f"{core} K={vocab} {precision}", run


def _times(call: Call) -> Named:
    for vocab in VOCABULARIES[call.device]:
        for precision in reversed(PRECISIONS[call.device]):
            for core in CORES:
                run = partial(time_updates, call, core, vocab, precision)
                yield f"{core} K={vocab} {precision}", run


def time_updates(call: Call, core: str, vocab: int, precision: "Precision") -> dict[str, Any]:
    """Time our update against both scripts, the layer of cuDNN alone, and the limit."""
    import torch

    from pernn.performance import Ceilings, compare, make_spec, measure_ceilings

    device, place = call.device, torch.device(call.device)
    rates = call.records.latest().get(("rates", "products"), {}).get("result")
    ceilings = Ceilings(**rates) if rates else measure_ceilings(place, trials=3)
    spec = make_spec(core, _shape(device, vocab), precision)
    found = compare(spec, ceilings, place, rounds=7 if device == "cuda" else 2)
    low, high = found.quartiles["ours"]
    row: dict[str, Any] = {
        "ours ms": found.seconds["ours"] * 1e3,
        "quartiles": f"{low * 1e3:.2f} – {high * 1e3:.2f}",
        "(a) / ours": found.ratios["usual"],
        "(b) / ours": found.ratios["good"],
        "limit ms": found.share_of_limit * found.seconds["ours"] * 1e3,
        "share of limit": found.share_of_limit,
    }
    layer = time_layer(place, core, _shape(device, vocab), precision)
    if layer is not None:
        row["layer alone ms"] = layer * 1e3
    return row


def time_layer(
    device: "torch.device", core: str, shape: tuple[int, ...], precision: "Precision"
) -> float | None:
    """Return seconds of PyTorch's own layer, forward and back, nothing else; on CUDA cuDNN's."""
    import torch
    from torch import nn

    from pernn.training import computing, now, rounding

    made = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}.get(core)
    if made is None:
        return None
    hidden, batch, length, _ = shape
    layer = made(2 * hidden, hidden, batch_first=True).to(device)
    inputs = torch.randn(batch, 2 * length, 2 * hidden, device=device, requires_grad=True)
    times = []
    with computing(precision, device):
        for _ in range(6):
            begun = now(device)
            with rounding(precision, device):
                outputs = layer(inputs)[0]
            outputs.float().sum().backward()
            times.append(now(device) - begun)
    return statistics.median(times[1:])


def _memory(call: Call) -> Named:
    device = call.device

    def run(core: str, precision: "Precision") -> dict[str, Any]:
        import torch

        from pernn.performance import make_spec
        from pernn.performance.comparison import peak

        spec = make_spec(core, _shape(device, VOCABULARIES[device][0]), precision)
        names = {"ours": "ours MiB", "good": "(b) MiB", "usual": "(a) MiB"}
        return {said: peak(name, spec, torch.device(device)) for name, said in names.items()}

    for core in CORES if device == "cuda" else CORES[:1]:
        for precision in PRECISIONS[device] if core == "lstm" else ("fp32",):
            yield f"{core} {precision}", partial(run, core, precision)


def _analysis(call: Call) -> Named:
    sizes = (512, 64) if call.device == "cuda" else (32, 8)
    for core in CORES[:3]:
        for pairs in (1, 16):
            yield (
                f"{core} {pairs} {'pair' if pairs == 1 else 'pairs'}",
                partial(time_analysis, call.device, core, *sizes, pairs),
            )


def time_analysis(device: str, kind: str, hidden: int, length: int, pairs: int) -> dict[str, Any]:
    """Time the closed form of pairs' similarity against `vmap(jacrev)`.

    Raises:
        AssertionError: If the two find different similarities.
    """
    import torch
    from gradient_stability import VARIANTS, prepare

    from pernn.training import now

    place = torch.device(device)
    core, gates = prepare(kind, hidden, length, pairs)
    core, gates = core.to(place), gates.to(place)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    answers = {}
    for _ in range(3):
        for name, run in VARIANTS.items():
            begun = now(place)
            answers[name] = run(core, gates)
            times[name].append(now(place) - begun)
    closed, textbook = (statistics.median(times[name][1:]) for name in ("closed", "textbook"))
    difference = abs(answers["closed"] - answers["textbook"])
    # Elman's baseline loses its smallest numbers (docs/performance.md).
    assert difference < (1e-2 if kind == "elman" else 1e-3), answers
    return {
        "closed ms": closed * 1e3,
        "vmap(jacrev) ms": textbook * 1e3,
        "ratio": textbook / closed,
        "difference": difference,
    }


def _training(call: Call) -> Named:
    def run() -> dict[str, Any]:
        return train(call.device, call.records.folder / "results", call.until)

    yield "LSTM, sinusoidal, bf16", run


def train(device: str, folder: Path, until: float) -> dict[str, Any]:
    """Train at the paper's scale, shortened, until it is done or the time is up."""
    from pernn.performance import make_spec
    from pernn.runs import execute
    from pernn.store import RunDirectory

    count = ITERATIONS[device]
    spec = make_spec("lstm", _shape(device, VOCABULARIES[device][0]), "bf16").override(
        {
            "training.iterations": count,
            "training.warmup_updates": count // 30,
            "training.evaluation_interval": count // 6,
            "training.checkpoint_interval": count // 30,
        }
    )
    moments: list[tuple[int, float]] = []

    def hear(update: int) -> bool:
        if update:
            moments.append((update, time.perf_counter()))
        return time.time() < until

    outcome = execute(spec, folder, device=device, on_update=hear)
    found: dict[str, Any] = {"of updates": count, "finished": outcome.result is not None}
    if len(moments) > 2:
        # The first two of a call set everything up.
        (first, begun), (last, ended) = moments[1], moments[-1]
        seconds = (ended - begun) / (last - first)
        found |= {
            "update": last,
            "ms an update": seconds * 1e3,
            f"minutes for {PAPER_UPDATES:,}": seconds * PAPER_UPDATES / 60,
        }
    if outcome.result is not None:
        found["update"] = count
        found["token accuracy"] = outcome.result["metrics"]["token_accuracy"]
    lines = RunDirectory(folder, spec.fingerprint()).read_metrics()
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    return found | ({"training loss": losses[-1]} if losses else {})


PARTS: Mapping[str, Callable[[Call], Named]] = {
    "doctor": _doctor,
    "rates": _rates,
    "tests": _tests,
    "parity": _parity,
    "steps": _steps,
    "times": _times,
    "analysis": _analysis,
    "memory": _memory,
    "training": _training,
}
