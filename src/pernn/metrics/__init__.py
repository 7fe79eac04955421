"""Metrics: pure functions of predictions and targets."""

from .sequences import (
    ascending_pair_share,
    ascending_sequence_share,
    damerau_levenshtein,
    edit_distances,
    sequence_accuracy,
    token_accuracy,
)
from .vectors import cosine_similarities

__all__ = [
    "ascending_pair_share",
    "ascending_sequence_share",
    "cosine_similarities",
    "damerau_levenshtein",
    "edit_distances",
    "sequence_accuracy",
    "token_accuracy",
]
