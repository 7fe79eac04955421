"""Processors that are not at hand: every library is told to use fewer instructions than there are.

python benchmarks/processors.py                       # the numerical tests on every class
python benchmarks/processors.py avx2 -- -k precision  # on one, with arguments for pytest
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch.backends.cpu import get_cpu_capability
from turns import call_apart

from pernn.kernels import describe_arithmetic, set_variables
from pernn.lab.runs import RunSpec, build
from pernn.lab.training import TrainState, advance, computing, evaluate

ROOT = Path(__file__).parents[1]
NUMERICAL = ("kernels", "cores", "encodings", "models", "training", "analysis", "runs", "metrics")
"""Folders of tests whose results depend on the processor."""


class ProcessorClass(NamedTuple):
    """A class: name in a table, line of `pernn doctor`, what it needs, what imitates it."""

    label: str
    arithmetic: str
    needs: str
    variables: dict[str, str]

    def imitated(self) -> AbstractContextManager[Any]:
        """Return a context whose new processes compute as on that processor."""
        decided = set_variables()
        kept = {name: value for name, value in os.environ.items() if name not in decided}
        return patch.dict(os.environ, kept | self.variables, clear=True)


NONE = "no vector extensions"
OFF = {"PERNN_KERNELS": "off"}
LIMITS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS",
          "PERNN_KERNELS_TARGET")  # fmt: skip
"""Variables by which each library is told what it may use."""
BASE = dict(zip(LIMITS, ("default", "SSE41", "SSE4_2", "x86-64-v2"), strict=True))
AVX2 = dict(zip(LIMITS, ("avx2", "AVX2", "AVX2", "x86-64-v3"), strict=True))
AVX512 = dict(zip(LIMITS, ("avx512", "AVX512_CORE", "AVX512", "x86-64-v4"), strict=True))
BF16 = AVX512 | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "PERNN_KERNELS_TARGET": "cooperlake"}
UNLIMITED = ProcessorClass("this processor", "*", "DEFAULT", {})
EMULATED = {
    "avx512-bf16": ProcessorClass("AVX-512", "AVX-512, compiled *", "AVX512", BF16),
    "avx2": ProcessorClass("AVX2", "AVX2, compiled *", "AVX2", AVX2),
    "no-compiler": ProcessorClass("no compiler", "*, no compiled *", "DEFAULT", OFF),
    "avx512": ProcessorClass("AVX-512 without bfloat16", "AVX-512, compiled *", "AVX512", AVX512),
    "baseline": ProcessorClass(NONE, f"{NONE}, compiled *", "DEFAULT", BASE),
    "baseline-no-compiler": ProcessorClass(f"{NONE}, no compiler", f"{NONE}, no compiled *",
                                           "DEFAULT", BASE | OFF),
}  # fmt: skip
"""Name → class; `no-compiler` has all instructions of this processor."""
TOLERANCE = {"fp32": 1e-6, "bf16": 5e-4}
"""Largest difference of a loss within 20 updates between two classes of processors, in nats."""
SHARE = 0.05
"""Largest distance between the logits of two classes, as a share of that between the precisions."""
CAPABILITIES = ("DEFAULT", "AVX2", "AVX512")
"""PyTorch's names for what processors can do, the least first."""
CPU = torch.device("cpu")
CONFIGURATION: dict[str, Any] = {
    "task": {"kind": "reverse_ordering", "vocab_size": 80, "length": 6, "num_held_out": 32},
    "core": {"kind": "lstm", "hidden_size": 64},
    "encoding": {"kind": "sinusoidal", "size": 32},
    "embedding_size": 32,
    "training": {"iterations": 20, "batch_size": 32, "warmup_updates": 5, "log_interval": 10},
}


def compute_everything() -> dict[str, Any]:
    """Return `arithmetic`; `logits` before and `losses` of trainings by core and precision."""
    found: dict[str, Any] = {"arithmetic": describe_arithmetic(), "logits": {}, "losses": {}}
    for core, precision in product(("elman", "gru", "lstm", "s4d"), TOLERANCE):
        changes = {"core.kind": core, "training.precision": precision}
        spec = RunSpec.load(CONFIGURATION).override(changes)
        trial = build(spec, CPU)
        with computing(spec.training.precision, CPU), torch.no_grad():
            shown = torch.from_numpy(trial.stream.test().tokens[:4])
            outputs = trial.model(shown, trial.stream.test().num_queries)
        found["logits"][f"{core} {precision}"] = outputs.flatten().tolist()
        found["losses"][f"{core} {precision}"] = losses(spec, CPU)
    return found


def losses(spec: RunSpec, device: torch.device) -> list[float]:
    """Train, through a checkpoint half-way; return the losses on the way and held out."""
    settings, found = spec.training, list[float]()
    with computing(settings.precision, device):
        half, saved = settings.iterations // 2, None
        for last in (half, settings.iterations):
            trial = build(spec, device)
            state = TrainState.fresh(trial.model, trial.preset)
            if saved is not None:
                state.restore(saved, half)
            for event in advance(state, trial.stream, settings, trial.preset, device):
                if event.kind == "train":
                    found.append(event.values["loss"])
                if (event.kind, event.update) == ("update", last):
                    break
            saved = state.dump()
        held_out = evaluate(trial.model, trial.stream, device, settings.precision)
    return [*found, held_out.metrics["loss"]]


def compute_on(emulated: ProcessorClass) -> dict[str, Any]:
    """Return what `compute_everything` returns in a process on an emulated processor."""
    with emulated.imitated():
        found: dict[str, Any] = call_apart(compute_everything)
    return found


def is_possible(emulated: ProcessorClass) -> bool:
    """Return whether the processor that is here can do as much."""
    # Without variables, which hide what there is.
    with UNLIMITED.imitated():
        found = call_apart(get_cpu_capability)
    rank = CAPABILITIES.index(found) if found in CAPABILITIES else 0
    return CAPABILITIES.index(emulated.needs) <= rank


def complaints(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return in what the results of two processors differ by more than they may."""
    found = []
    for name, values in one["losses"].items():
        core, precision = name.split()
        pairs = zip(values, other["losses"][name], strict=True)
        difference = max(abs(left - right) for left, right in pairs)
        if difference > TOLERANCE[precision]:
            found.append(f"{name}: losses differ by {difference:.1e}")
        exact, mine = (torch.tensor(one["logits"][f"{core} {kind}"]) for kind in TOLERANCE)
        theirs = torch.tensor(other["logits"][name])
        between = (theirs - (exact if precision == "fp32" else mine)).norm()
        # What rounding changes is the measure: another arithmetic would be as far away.
        if between > SHARE * (exact - mine).norm():
            found.append(f"{name}: logits differ by {between / (exact - mine).norm():.1%} of it")
    return found


def main() -> int:
    """Run the numerical tests on every class; return 1 if they fail on one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("classes", nargs="*", choices=[[], *EMULATED], metavar="CLASS")
    own, theirs = sys.argv[1:], ["-q", *(f"tests/{folder}" for folder in NUMERICAL)]
    if "--" in own:
        own, theirs = own[: own.index("--")], [*theirs, *own[own.index("--") + 1 :]]
    chosen = parser.parse_args(own).classes or list(EMULATED)
    native, failed = compute_everything(), False
    print(f"here: {native['arithmetic']}", flush=True)
    for name in chosen:
        emulated = EMULATED[name]
        if not is_possible(emulated):
            print(f"{name}: left out, this processor cannot do as much", flush=True)
            continue
        begun = time.monotonic()
        found = compute_on(emulated)
        wrong = complaints(native, found)
        if not fnmatchcase(found["arithmetic"], emulated.arithmetic):
            wrong.append(f"expected {emulated.arithmetic}")
        with emulated.imitated():
            command = [sys.executable, "-m", "pytest", *theirs]
            done = subprocess.run(command, cwd=ROOT, check=False)
        outcome = "FAILED" if done.returncode or wrong else "passed"
        failed |= outcome == "FAILED"
        took = f"{outcome} in {time.monotonic() - begun:.0f} s; {found['arithmetic']}"
        print(f"{name}: {took}", *wrong, sep="\n    ", flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
