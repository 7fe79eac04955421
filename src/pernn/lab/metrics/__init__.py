"""Metrics: pure functions of predictions and targets."""

from pernn.lazy import exports

from .sequences import (
    ascending_pair_share as ascending_pair_share,
    ascending_sequence_share as ascending_sequence_share,
    damerau_levenshtein as damerau_levenshtein,
    edit_distances as edit_distances,
    sequence_accuracy as sequence_accuracy,
    token_accuracy as token_accuracy,
)
from .vectors import cosine_similarities as cosine_similarities

__getattr__ = exports(__name__)
