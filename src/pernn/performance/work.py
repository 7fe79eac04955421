"""The least work of one update, phase by phase: what `pernn bench` holds times against."""

from collections.abc import Mapping
from dataclasses import dataclass

from pernn.encodings import PositionalEncodingConfig
from pernn.runs import RunSpec

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


def estimate_work(spec: RunSpec) -> Work:
    """Count the work of an update on ids: data, projection, recurrence, output layer, optimiser.

    A product costs two operations per weight and row, and twice that again backwards. Traffic is
    what has to be written and read once: inputs, outputs and gradients of a phase, and what its way
    back needs; logits are not among them.
    """
    task, core, encoding = spec.build_task(), spec.core, spec.encoding
    batch, hidden, layers = spec.training.batch_size, core.hidden_size, core.num_layers
    width = spec.embedding_size * (2 if encoding.kind == "repeated_embedding" else 1)
    num_encoded = 0
    if isinstance(encoding, PositionalEncodingConfig):
        num_encoded = encoding.size
        width += encoding.size if encoding.combine == "concat" else 0
    own = width - num_encoded
    gates = core.num_gates * hidden
    steps, scored, vocab = task.num_steps, task.num_scored, task.vocab_size
    num_rows = vocab + len(task.extra_rows)
    rows = min(num_rows, batch * (steps - task.num_queries))
    projection = rows * own * gates + steps * num_encoded * gates
    recurrence = batch * core.count_products(steps, scored)
    output_layer = batch * scored * hidden * vocab
    weights = {
        "projection": width * gates,
        "recurrence": (2 * layers - 1) * hidden * gates,
        "output_layer": (hidden + 1) * vocab,
    }
    parameters = num_rows * spec.embedding_size + sum(weights.values())
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
