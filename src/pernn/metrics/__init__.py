"""Metrics: pure functions of predictions and targets."""

from .sequences import damerau_levenshtein, sequence_accuracy, token_accuracy

__all__ = ["damerau_levenshtein", "sequence_accuracy", "token_accuracy"]
