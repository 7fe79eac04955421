"""What a trial costs, estimated before it runs and without torch."""

import time
from dataclasses import dataclass

import numpy as np

from pernn.encodings import CodeConfig

from .spec import RunSpec, StabilityAnalysis

STEP_SECONDS = 150e-6
"""Time of one recurrent step, forward and backward, beside its products: dispatch and pointwise
work. Measured with the GRU at H = 128, B = 32, T = 64 on one thread of a Xeon (November 2026):
17 ms an update, of which the products need about 7."""


@dataclass(frozen=True)
class Cost:
    """Work of one trial, or of several.

    Attributes:
        operations: Floating-point operations of all updates, forward and backward.
        steps: Recurrent steps of all updates.
    """

    operations: float
    steps: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.operations + other.operations, self.steps + other.steps)

    def seconds(self, rate: float, jobs: int = 1) -> float:
        """Estimate the time with `jobs` trials at a time.

        Args:
            rate: Matrix operations per second of all the trials together.
            jobs: Trials at a time.
        """
        return self.operations / rate + self.steps * STEP_SECONDS / jobs


def estimate_cost(spec: RunSpec) -> Cost:
    """Count the operations of the products: projection of rows or tokens, recurrence, read-out.

    Earlier stages are included.
    """
    first = spec.first_stage()
    before = Cost(0, 0) if first is None else estimate_cost(first)
    if spec.analysis is not None:
        return before + _analysis_cost(spec, spec.analysis)
    task, core = spec.build_task(), spec.core
    batch, hidden = spec.training.batch_size, core.hidden_size
    code = spec.encoding
    copies = 2 if code.kind == "double" else 1
    width = spec.embedding_size * copies
    if isinstance(code, CodeConfig) and code.attach == "concat":
        width += code.size
    network = getattr(task, "network", "queried")
    if network == "autoregressive":
        width += spec.embedding_size
    gates = core.num_gates * hidden
    tokens = batch * (task.num_steps - task.num_queries)
    if network == "vector":
        projection = tokens * (task.vocab_size * spec.embedding_size + width * gates)
    else:
        projection = min(task.vocab_size + len(task.extra_rows), tokens) * width * gates
    recurrence = batch * task.num_steps * hidden * gates * (2 * core.num_layers - 1)
    readout = batch * task.num_scored * hidden * task.vocab_size
    # A product costs two operations per weight and row, and twice that again backwards.
    update = 6 * (projection + recurrence + readout)
    num_updates = spec.training.iterations
    return before + Cost(update * num_updates, task.num_steps * num_updates)


def _analysis_cost(spec: RunSpec, analysis: StabilityAnalysis) -> Cost:
    """Count one product per step, sequence and checkpoint; both sequences of every pair."""
    task, hidden = spec.build_task(), spec.core.hidden_size
    conditions = 4 if spec.task.kind == "dual_frequency" else 1
    # In the map the target stands, on average, in the middle of the way.
    pairs = analysis.num_per_condition + analysis.map_per_condition * task.num_steps / 4
    steps = len(spec.analysed_updates) * 2 * conditions * pairs * task.num_steps
    return Cost(steps * 2 * hidden * spec.core.num_gates * hidden**2, 0)


def measure_rate(size: int = 512, num_trials: int = 5) -> float:
    """Measure float32 matrix products on all cores, in operations per second; about 0.1 s."""
    left = np.ones((size, size), dtype=np.float32)
    best = float("inf")
    for _ in range(num_trials):
        begun = time.perf_counter()
        left @ left
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best
