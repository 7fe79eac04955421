"""Noise of gradients, and what precedes falls of the loss."""

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from pernn.errors import ConfigError


def gradient_noise(
    gradients: Float[Tensor, "batches weights"], batch_size: int
) -> tuple[float, float]:
    """Estimate |G|² and tr Σ from gradients of equal batches.

    G is the gradient of the expected loss and Σ the covariance of a single sequence's. Both are
    without bias, so |G|² may come out negative. tr Σ / |G|², the noise scale, is about the batch
    size at which both are equally large.

    Args:
        gradients: Of the mean loss of independent batches, two or more.
        batch_size: Sequences of each.

    Returns:
        |G|² and tr Σ, in float64.

    Raises:
        ConfigError: If there is one batch only.

    Source: McCandlish et al. (2018), "An empirical model of large-batch training", appendix A.1,
    with batches of one size and of all of them.
    """
    count = len(gradients)
    if count < 2:
        raise ConfigError(f"gradients must be those of at least 2 batches, got {count}")
    exact = gradients.double()
    mean = exact.mean(dim=0)
    spread = ((exact - mean).square().sum() / (count - 1)).item()
    return (mean @ mean).item() - spread / count, spread * batch_size


def lead(values: Float64[np.ndarray, " times"], losses: Float64[np.ndarray, " times"]) -> float:
    """Correlate values with the next fall of the loss, given it.

    The fall is that of the log loss to the next time. From it and from the values a least-squares
    line in the log loss is taken away; what is left is correlated.

    Args:
        values: At equally distant times.
        losses: At the same times, positive.

    Returns:
        The partial correlation, in [−1, 1]; NaN if nothing is left to correlate, or a loss is 0.

    Raises:
        ConfigError: If there are fewer than four times.

    Source: ours.
    """
    if len(losses) < 4:
        raise ConfigError(f"losses must be those of at least 4 times, got {len(losses)}")
    if not (losses > 0).all():
        return float("nan")
    now = np.log(losses)
    line = np.stack([np.ones(len(now) - 1), now[:-1]], axis=1)
    left = [
        series - line @ np.linalg.lstsq(line, series, rcond=None)[0]
        for series in (values[:-1], now[:-1] - now[1:])
    ]
    first, second = (
        series if np.abs(series).max() > 1e-9 * (1 + np.abs(whole).max()) else np.zeros_like(series)
        for series, whole in zip(left, (values, now), strict=True)
    )
    size = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / size if size else float("nan")
