"""Metrics: pure functions of predictions and targets."""

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int64
from rapidfuzz.distance import DamerauLevenshtein

from pernn.lab.interfaces import UNSCORED

Vectors = Float32[np.ndarray, "batch time width"]
Cosines = Float64[np.ndarray, "batch time"]
Ids = Int[np.ndarray, "batch scored"]
BoolArray = Bool[np.ndarray, "..."]


def cosine_similarities(predictions: Vectors, targets: Vectors) -> Cosines:
    """Compare vectors by their angle.

    A prediction of length 0 is similar to none; targets are not 0.
    """
    products = (predictions * targets).sum(axis=2, dtype=np.float64)
    lengths = [
        np.sqrt((part * part).sum(axis=2, dtype=np.float64)) for part in (predictions, targets)
    ]
    found = products / np.maximum(lengths[0] * lengths[1], np.finfo(np.float64).tiny)
    cosines: Cosines = np.clip(found, -1, 1)
    return cosines


def token_accuracy(predictions: Ids, targets: Ids) -> float:
    """Share of scored tokens that are right, in [0, 1]."""
    scored = targets != UNSCORED
    return float((predictions == targets)[scored].mean())


def sequence_accuracy(predictions: Ids, targets: Ids) -> float:
    """Return the share of sequences without an error, in [0, 1]."""
    scored = targets != UNSCORED
    return float(((predictions == targets) | ~scored).all(axis=1).mean())


def ascending_pair_share(predictions: Ids, targets: Ids) -> float:
    """Return the share of ascending neighbouring predictions, in [0, 1].

    Right or wrong; equal neighbours are in order, as tokens that are sorted may occur more than
    once. 1 if there is no pair.

    Source: the published program's script behind version 1, appendix C.2.
    """
    rows = _rows(predictions, targets != UNSCORED)
    steps = np.concatenate([np.diff(row) for row in rows])
    return float((steps >= 0).mean()) if steps.size else 1.0


def ascending_sequence_share(predictions: Ids, targets: Ids) -> float:
    """Return the share of predicted sequences that ascend throughout, in [0, 1].

    Right or wrong; equal neighbours are in order. One swapped pair spoils a whole sequence, so this
    is below `ascending_pair_share` wherever that is below 1.
    """
    rows = _rows(predictions, targets != UNSCORED)
    return float(np.mean([row == sorted(row) for row in rows]))


def edit_distances(predictions: Ids, targets: Ids) -> Int64[np.ndarray, " batch"]:
    """Count each sequence's insertions, deletions, substitutions and transpositions.

    The unrestricted variant: a substring may be edited more than once. At most the number of
    scored tokens.

    Source: Damerau (1964); computed by RapidFuzz, which needs plain lists.
    """
    scored = targets != UNSCORED
    pairs = zip(_rows(predictions, scored), _rows(targets, scored), strict=True)
    return np.array([DamerauLevenshtein.distance(left, right) for left, right in pairs])


def _rows(ids: Ids, scored: BoolArray) -> list[list[int]]:
    if scored.all():
        return ids.tolist()  # type: ignore[no-any-return]
    return [row[mask].tolist() for row, mask in zip(ids, scored, strict=True)]
