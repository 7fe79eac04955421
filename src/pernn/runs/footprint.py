"""What a trial leaves on disk and holds in memory, estimated before it runs and without torch."""

import math
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pernn.encodings import PositionalEncodingConfig
from pernn.store import NUM_LATEST

from .cost import FLOAT_SIZE
from .spec import RunSpec

PROCESS_BYTES = 265 * 2**20
"""A worker that has loaded torch, before its first trial."""
CUDA_BUILD_BYTES = 280 * 2**20
"""What a torch built for CUDA takes more, whether there is a GPU or not."""
RUN_BYTES = 2_600
"""Spec, environment, journal, lease and result of a run without its learning curve."""
CHECKPOINT_BYTES = 3_000
"""Names, shapes and checksums of a checkpoint."""
TRAIN_LINE_BYTES, TEST_LINE_BYTES = 150, 210
TABLE_ROW_BYTES = 150
"""A row of the learning curve in a result."""
ANALYSIS_LINE_BYTES = 4_000
"""What is measured of one checkpoint, in the metrics and in the result."""
MOST_LOGITS = 2**25
"""Logits that are held at a time: larger read-outs go in pieces."""
ADAM_COPIES = 3
"""Weights and two moments: what a checkpoint holds."""


@dataclass(frozen=True)
class Footprint:
    """Room that a trial needs.

    Attributes:
        disk: Bytes of its run directories when it is done, earlier stages included.
        draft: Bytes of a checkpoint that is being written beside those that are kept.
        memory: Bytes of its process at their largest.
    """

    disk: int
    draft: int
    memory: int


def estimate_footprint(spec: RunSpec) -> Footprint:
    """Estimate the room for a trial: disk to a tenth, memory to a third, where a CPU computes."""
    first = spec.first_stage()
    before = Footprint(0, 0, 0) if first is None else estimate_footprint(first)
    if spec.analysis is not None:
        lines = len(spec.analysed_updates)
        return replace(before, disk=before.disk + RUN_BYTES + ANALYSIS_LINE_BYTES * lines)
    parameters = count_parameters(spec)
    training = spec.training
    num_tests = math.ceil(training.iterations / training.evaluation_interval)
    num_trains = math.ceil(training.iterations / training.log_interval)
    checkpoint = CHECKPOINT_BYTES + FLOAT_SIZE * ADAM_COPIES * parameters
    disk = (
        RUN_BYTES
        + count_checkpoints(spec) * checkpoint
        + num_trains * TRAIN_LINE_BYTES
        + num_tests * (TEST_LINE_BYTES + TABLE_ROW_BYTES)
    )
    # Beside what a checkpoint holds: gradients, and the checkpoint itself, twice while written.
    held = FLOAT_SIZE * parameters * (3 * ADAM_COPIES + 1)
    memory = _process_bytes() + held + FLOAT_SIZE * _activations(spec)
    draft = max(before.draft, checkpoint)
    return Footprint(before.disk + disk, draft, max(before.memory, memory))


def count_checkpoints(spec: RunSpec) -> int:
    """Count the checkpoints that a finished training keeps."""
    training = spec.training
    last, interval = training.iterations, training.checkpoint_interval
    saved = {*range(interval, last, interval)[-NUM_LATEST:], last}
    kept = set(sorted(saved)[-NUM_LATEST:])
    if training.keep_interval is not None:
        kept |= set(range(0, last + 1, math.lcm(interval, training.keep_interval))) - {0}
    return len(kept)


def count_parameters(spec: RunSpec) -> int:
    """Count what the optimiser trains: exact for the usual networks, nearly for others."""
    task, core = spec.build_task(), spec.core
    hidden, layers = core.hidden_size, core.num_layers
    gates = core.num_gates * hidden
    code = spec.encoding
    copies = 2 if code.kind == "repeated_embedding" else 1
    width = spec.embedding_size * copies
    if isinstance(code, PositionalEncodingConfig) and code.combine == "concat":
        width += code.size
    rows = task.vocab_size + len(task.extra_rows)
    biases = 2 * gates * layers
    first, others = (width + hidden) * gates, 2 * (layers - 1) * hidden * gates
    output_layer = (hidden + 1) * task.vocab_size
    return rows * spec.embedding_size + first + others + biases + output_layer


@cache
def _process_bytes() -> int:
    found = find_spec("torch")
    library = (
        Path(found.origin).parent / "lib" / "libtorch_cuda.so" if found and found.origin else None
    )
    built_for_cuda = library is not None and library.exists()
    return PROCESS_BYTES + CUDA_BUILD_BYTES * built_for_cuda


def _activations(spec: RunSpec) -> int:
    """Count the numbers of a batch that are held at a time, backwards included."""
    task, core = spec.build_task(), spec.core
    batch = spec.training.batch_size
    gates = core.num_gates * core.hidden_size
    per_step = core.num_layers * (3 * gates + 5 * core.hidden_size)
    outputs = 2 * batch * task.num_scored * task.vocab_size
    if getattr(task, "network", "queried") != "vector":
        outputs = min(outputs, MOST_LOGITS)
    return batch * task.num_steps * per_step + outputs
