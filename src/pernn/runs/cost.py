"""What a trial costs, estimated before it runs and without torch."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pernn.encodings import PositionalEncodingConfig

from .spec import RunSpec, StabilityAnalysis

UPDATE_SECONDS = 1.5e-3
"""Time of an update beside its work: calls from Python. Measured with the GRU at H = 64, B = 128,
L = 8 on a Xeon (November 2026)."""
EFFICIENCY = 0.7
"""Share of the limit that whole updates reach there: H = 512, float32, compiled kernels."""
FLOAT_SIZE = 4


@dataclass(frozen=True)
class Work:
    """What one update needs at least, phase by phase.

    Attributes:
        operations: Floating-point operations of products, forward and back.
        num_bytes: Traffic with the memory: what a phase is given and what it leaves behind.
    """

    operations: Mapping[str, float]
    num_bytes: Mapping[str, float]


@dataclass(frozen=True)
class Cost:
    """Work of one trial, or of several.

    Attributes:
        operations: Floating-point operations of all updates, forward and backward.
        num_bytes: Traffic with the memory.
        num_updates: How many updates.
    """

    operations: float
    num_bytes: float
    num_updates: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.operations + other.operations,
            self.num_bytes + other.num_bytes,
            self.num_updates + other.num_updates,
        )

    def seconds(self, rate: float, bandwidth: float, jobs: int = 1) -> float:
        """Estimate the time with `jobs` trials at a time.

        Args:
            rate: Matrix operations per second of all the trials together.
            bandwidth: Bytes per second of all the trials together.
            jobs: Trials at a time.
        """
        work = self.operations / rate + self.num_bytes / bandwidth
        return work / EFFICIENCY + self.num_updates * UPDATE_SECONDS / jobs


def estimate_work(spec: RunSpec) -> Work:
    """Count the work of one update: data, projection, recurrence, output layer, optimiser.

    A product costs two operations per weight and row, and twice that again backwards. Traffic is
    what has to be written and read once: inputs, outputs and gradients of a phase, and what its way
    back needs; logits are not among them.
    """
    task, core = spec.build_task(), spec.core
    batch, hidden = spec.training.batch_size, core.hidden_size
    code = spec.encoding
    copies = 2 if code.kind == "repeated_embedding" else 1
    width = spec.embedding_size * copies
    num_codes = code.size if isinstance(code, PositionalEncodingConfig) else 0
    if isinstance(code, PositionalEncodingConfig) and code.combine == "concat":
        width += code.size
    network = getattr(task, "network", "queried")
    if network == "autoregressive":
        width += spec.embedding_size
    gates = core.num_gates * hidden
    steps, scored, vocab = task.num_steps, task.num_scored, task.vocab_size
    tokens = batch * (steps - task.num_queries)
    own = width - num_codes
    if network == "vector":
        rows, projection = tokens, tokens * (vocab * spec.embedding_size + own * gates)
        num_embedded = vocab * spec.embedding_size
    else:
        rows = min(vocab + len(task.extra_rows), tokens)
        projection = rows * own * gates
        num_embedded = (vocab + len(task.extra_rows)) * spec.embedding_size
    projection += steps * num_codes * gates
    layers = core.num_layers
    recurrence = batch * steps * hidden * gates * (2 * layers - 1)
    if core.kind == "s4d":
        # One product per layer; the top one only where it is read out.
        recurrence = batch * hidden * gates * (steps * (layers - 1) + scored)
    output_layer = batch * scored * hidden * vocab
    weights = {
        "projection": width * gates,
        "recurrence": (2 * layers - 1) * hidden * gates,
        "output_layer": (hidden + 1) * vocab,
    }
    parameters = num_embedded + sum(weights.values())
    numbers = {
        "data": 2 * 2 * batch * (steps + scored),
        # Rows, their projections and both gradients; the weights three times.
        "projection": 4 * rows * (own + gates) + 3 * weights["projection"],
        # Gates and hidden state of every step, written, read again, and their gradients.
        "recurrence": layers * batch * steps * (3 * gates + 5 * hidden) + 3 * weights["recurrence"],
        "output_layer": 4 * batch * scored * hidden + 4 * weights["output_layer"],
        # Gradients are read for their norm, scaled, and read again with the moments.
        "optimizer": 10 * parameters,
    }
    operations = {
        "data": 0.0,
        "projection": 6.0 * projection,
        "recurrence": 6.0 * recurrence,
        "output_layer": 6.0 * output_layer,
        "optimizer": 0.0,
    }
    return Work(operations, {name: FLOAT_SIZE * float(count) for name, count in numbers.items()})


def estimate_cost(spec: RunSpec) -> Cost:
    """Add up the work of all updates, earlier stages included."""
    first = spec.first_stage()
    before = Cost(0, 0, 0) if first is None else estimate_cost(first)
    if spec.analysis is not None:
        return before + _analysis_cost(spec, spec.analysis)
    work, count = estimate_work(spec), spec.training.iterations
    return before + Cost(
        count * sum(work.operations.values()), count * sum(work.num_bytes.values()), count
    )


def _analysis_cost(spec: RunSpec, analysis: StabilityAnalysis) -> Cost:
    """Count one product per step, sequence and checkpoint; both sequences of every pair."""
    task, hidden = spec.build_task(), spec.core.hidden_size
    conditions = 4 if spec.task.kind == "dual_frequency" else 1
    # In the map the target stands, on average, in the middle of the way.
    pairs = analysis.num_per_condition + analysis.map_per_condition * task.num_steps / 4
    steps = len(spec.analysed_updates) * 2 * conditions * pairs * task.num_steps
    return Cost(steps * 2 * hidden**3 * (2 if spec.core.kind == "lstm" else 1), 0, 0)


def measure_rate(size: int = 512, num_trials: int = 5) -> float:
    """Measure float32 matrix products on all cores, in operations per second; about 0.1 s."""
    left = np.random.default_rng(1).standard_normal((size, size), dtype=np.float32)
    return 2 * size**3 / _best(lambda: left @ left, num_trials)


def measure_bandwidth(num_bytes: int = 2**27, num_trials: int = 3) -> float:
    """Measure a large copy on one core, in bytes read and written per second; about 0.2 s."""
    source = np.ones(num_bytes // 4, dtype=np.float32)
    target = np.ones_like(source)
    return 2 * num_bytes / _best(lambda: np.copyto(target, source), num_trials)


def _best(run: Callable[[], object], num_trials: int) -> float:
    times = []
    for _ in range(num_trials):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)
