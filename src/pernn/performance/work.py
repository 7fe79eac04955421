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
    """Count the work of one update: data, projection, recurrence, output layer, optimiser.

    A product costs two operations per weight and row, and twice that again backwards. Traffic is
    what has to be written and read once: inputs, outputs and gradients of a phase, and what its way
    back needs; logits are not among them.
    """
    task, core = spec.build_task(), spec.core
    batch, hidden = spec.training.batch_size, core.hidden_size
    encoding = spec.encoding
    copies = 2 if encoding.kind == "repeated_embedding" else 1
    width = spec.embedding_size * copies
    num_encoded = encoding.size if isinstance(encoding, PositionalEncodingConfig) else 0
    if isinstance(encoding, PositionalEncodingConfig) and encoding.combine == "concat":
        width += encoding.size
    network = task.network
    if network == "autoregressive":
        width += spec.embedding_size
    gates = core.num_gates * hidden
    steps, scored, vocab = task.num_steps, task.num_scored, task.vocab_size
    tokens = batch * (steps - task.num_queries)
    own = width - num_encoded
    if network == "vector":
        rows, projection = tokens, tokens * (vocab * spec.embedding_size + own * gates)
        num_embedded = vocab * spec.embedding_size
    else:
        rows = min(vocab + len(task.extra_rows), tokens)
        projection = rows * own * gates
        num_embedded = (vocab + len(task.extra_rows)) * spec.embedding_size
    projection += steps * num_encoded * gates
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
