"""Linear reading of states, judged on unseen sequences."""

import numpy as np
from jaxtyping import Bool, Float, Int64

from pernn.errors import MachineError, install_command
from pernn.randomness import RandomStream, Split, uniform

JITTER = 1e-6
"""Noise on a state, as a share of its spread: discriminants divide by what does not tell labels."""
LEAST = JITTER / 100
"""Directions with less spread than this share of the largest are left out."""


def read_linearly(
    states: Float[np.ndarray, "samples state"], labels: Int64[np.ndarray, " samples"]
) -> Bool[np.ndarray, " samples"]:
    """Tell which samples' labels linear discriminants read from their states.

    Each half of the samples, in their order, is judged by the discriminants of the other half.

    Args:
        states: One per sample.
        labels: What is to be read; a class that is in one half only counts as not read.

    Raises:
        ValueError: If a half has no more samples than labels, or a state is not finite.
        MachineError: If scikit-learn is not installed.
    """
    try:
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
        from sklearn.model_selection import KFold, cross_val_predict
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MachineError(
            f"linear probes need scikit-learn: {install_command('probes')}"
        ) from None
    words = RandomStream(0, "read_linearly", Split.ANALYSIS).words(0, states.size)
    noise = (uniform(words) - 0.5).reshape(states.shape)
    noisy = states + JITTER * states.std(axis=0, dtype=np.float64) * noise
    # With one thread the sums have one order.
    with threadpool_limits(1, "blas"):
        probe = LinearDiscriminantAnalysis(tol=LEAST)
        read = cross_val_predict(probe, noisy, labels, cv=KFold(2))
    right: np.ndarray = read == labels
    return right
