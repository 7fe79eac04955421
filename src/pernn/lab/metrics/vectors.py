"""Metrics of vectors."""

import numpy as np
from jaxtyping import Float32, Float64

Vectors = Float32[np.ndarray, "batch time width"]


def cosine_similarities(
    predictions: Vectors, targets: Vectors
) -> Float64[np.ndarray, "batch time"]:
    """Compare vectors by their angle.

    Args:
        predictions: Vectors of any length; one of length 0 is similar to none.
        targets: Vectors that are not 0.

    Returns:
        Cosines, in [−1, 1].
    """
    products = (predictions * targets).sum(axis=2, dtype=np.float64)
    lengths = [
        np.sqrt((part * part).sum(axis=2, dtype=np.float64)) for part in (predictions, targets)
    ]
    found = products / np.maximum(lengths[0] * lengths[1], np.finfo(np.float64).tiny)
    cosines: Float64[np.ndarray, "batch time"] = np.clip(found, -1, 1)
    return cosines
