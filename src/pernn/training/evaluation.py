"""How well a model answers the held-out sequences."""

import numpy as np
import torch
from jaxtyping import Int64
from torch.nn import functional as F

from pernn.interfaces import Batch, SequenceModel
from pernn.metrics import damerau_levenshtein, sequence_accuracy, token_accuracy

from .config import Precision
from .precision import rounding

CHUNK_SIZE = 256
"""Sequences at a time: bounds the memory, and is fixed because it can change the last bits."""


@torch.no_grad()
def predict(
    model: SequenceModel, batch: Batch, device: torch.device, precision: Precision = "fp32"
) -> tuple[Int64[np.ndarray, "batch scored"], float]:
    """Give the most likely ids of all scored steps and the mean cross-entropy in nats."""
    predictions, total = [], 0.0
    for start in range(0, len(batch.tokens), CHUNK_SIZE):
        part = slice(start, start + CHUNK_SIZE)
        tokens = torch.from_numpy(batch.tokens[part]).to(device)
        targets = torch.from_numpy(batch.targets[part]).to(device)
        with rounding(precision, device):
            logits = model(tokens, batch.num_queries, num_scored=targets.shape[1])
        logits = logits.float()
        total += float(F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"))
        predictions.append(logits.argmax(dim=2).cpu().numpy())
    return np.concatenate(predictions), total / batch.targets.size


def evaluate(
    model: SequenceModel, batch: Batch, device: torch.device, precision: Precision = "fp32"
) -> dict[str, float]:
    """Measure loss, accuracies and the Damerau–Levenshtein distance, raw and over the length."""
    predictions, loss = predict(model, batch, device, precision)
    distance = damerau_levenshtein(predictions, batch.targets)
    return {
        "loss": loss,
        "token_accuracy": token_accuracy(predictions, batch.targets),
        "sequence_accuracy": sequence_accuracy(predictions, batch.targets),
        "damerau_levenshtein": distance,
        "damerau_levenshtein_share": distance / batch.targets.shape[1],
    }
