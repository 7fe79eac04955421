"""How well predicted id sequences agree with their targets."""

import numpy as np
from jaxtyping import Int
from rapidfuzz.distance import DamerauLevenshtein

from pernn.errors import ConfigError


def token_accuracy(
    predictions: Int[np.ndarray, "batch scored"], targets: Int[np.ndarray, "batch scored"]
) -> float:
    """Share of tokens that are right, in [0, 1]."""
    _check(predictions, targets)
    return float((predictions == targets).mean())


def sequence_accuracy(
    predictions: Int[np.ndarray, "batch scored"], targets: Int[np.ndarray, "batch scored"]
) -> float:
    """Share of sequences in which every token is right, in [0, 1]."""
    _check(predictions, targets)
    return float((predictions == targets).all(axis=1).mean())


def damerau_levenshtein(
    predictions: Int[np.ndarray, "batch scored"], targets: Int[np.ndarray, "batch scored"]
) -> float:
    """Mean number of insertions, deletions, substitutions and transpositions per sequence.

    The unrestricted variant: a substring may be edited more than once. At most `scored`.

    Source: Damerau (1964); computed by RapidFuzz, which needs plain lists.
    """
    _check(predictions, targets)
    pairs = zip(predictions.tolist(), targets.tolist(), strict=True)
    return float(np.mean([DamerauLevenshtein.distance(left, right) for left, right in pairs]))


def _check(predictions: Int[np.ndarray, "..."], targets: Int[np.ndarray, "..."]) -> None:
    if predictions.shape != targets.shape or predictions.ndim != 2 or not predictions.size:
        raise ConfigError(
            "metrics need predictions and targets of one shape (batch, scored), not empty; got "
            f"{predictions.shape} and {targets.shape}"
        )
