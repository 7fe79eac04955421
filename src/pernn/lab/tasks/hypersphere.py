"""Vectors uniform on the unit hypersphere, the same on every machine.

A vector of independent normal deviates has a uniform direction. The deviates come in pairs from
one word each (Box–Muller). Libraries' logarithms and sines differ between processors in the last
bit, so both are computed here from additions, products, quotients and square roots, which IEEE 754
rounds in one way only.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, UInt64

from pernn.errors import ConfigError

WORDS_AT_ONCE = 2**14
"""Few enough for a processor's cache; no number depends on it."""
LOGARITHM = tuple(2 / (2 * n + 1) for n in range(6))
"""Of the series in odd powers of (x − 1)/(x + 1); relative error below 10⁻¹⁰ for x in √½ … √2."""
LOG_2 = 0.6931471805599453
COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(7))
SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(6))
"""Taylor's; errors below 10⁻¹¹ within ±π/4, far below those of a float32, 6 · 10⁻⁸."""

Numbers = Float64[np.ndarray, "..."]


@dataclass(frozen=True, kw_only=True)
class Spherical:
    """Vectors drawn uniformly and independently from the unit hypersphere.

    Args:
        dimension: Number of components, d.

    Raises:
        ConfigError: If there are fewer than two.

    Source: Box and Muller (1958); Morita (2024), version 1, appendix B.3.
    """

    dimension: int

    def __post_init__(self) -> None:
        if self.dimension < 2:
            raise ConfigError(f"dimension must be at least 2, got {self.dimension}")

    @property
    def num_draws(self) -> int:
        """Words that make one vector: one for every two components."""
        return (self.dimension + 1) // 2

    def draw(
        self, words: UInt64[np.ndarray, "vectors words"]
    ) -> Float32[np.ndarray, "vectors dimension"]:
        """Map every row of words to a vector."""
        vectors = np.empty((len(words), self.dimension), dtype=np.float32)
        size = max(1, WORDS_AT_ONCE // self.num_draws)
        for start in range(0, len(words), size):
            rows = slice(start, start + size)
            deviates = normals(words[rows])[:, : self.dimension]
            vectors[rows] = deviates / np.sqrt(_sums(deviates * deviates))
        return vectors


def normals(
    words: UInt64[np.ndarray, "rows words"],
) -> Float64[np.ndarray, "rows deviates"]:
    """Return two independent standard normal deviates for every word.

    Returns:
        The first ones of all words of a row, then the second ones; none beyond ±6.8.
    """
    # The upper half of a word is the radius, the lower one the angle.
    # Halves, so that no radius is 0.
    chances = ((words >> np.uint64(32)) + 0.5) * 2.0**-32
    radii = np.sqrt(-2 * _logarithm(chances))
    # An eighth of a turn either way, mirrored or not, turned by a half or not: the whole circle.
    eighths = ((words & np.uint64(2**30 - 1)) + 0.5) * 2.0**-29 - 1
    cosines, sines = _circle(eighths * (math.pi / 4))
    mirrored = (words & np.uint64(2**30)) != 0
    radii = np.where((words & np.uint64(2**31)) != 0, -radii, radii)
    first, second = np.where(mirrored, sines, cosines), np.where(mirrored, cosines, sines)
    return np.concatenate([radii * first, radii * second], axis=1)


def _logarithm(chances: Numbers) -> Numbers:
    """The natural logarithm of numbers in (0, 1): of the power of two, and of what is beside it."""
    mantissas, exponents = np.frexp(chances)
    low = mantissas < math.sqrt(0.5)
    mantissas, exponents = np.where(low, 2 * mantissas, mantissas), exponents - low
    ratio = (mantissas - 1) / (mantissas + 1)
    found: Numbers = ratio * _polynomial(LOGARITHM, ratio * ratio) + exponents * LOG_2
    return found


def _circle(
    angles: Numbers,
) -> tuple[Numbers, Numbers]:
    """Cosine and sine of angles within ±π/4."""
    square = angles * angles
    return _polynomial(COSINE, square), angles * _polynomial(SINE, square)


def _polynomial(coefficients: tuple[float, ...], values: Numbers) -> Numbers:
    """Evaluate a polynomial, the constant coefficient first, by Horner's scheme."""
    *rest, last = coefficients
    total = values * last
    for coefficient in reversed(rest[1:]):
        total += coefficient
        total *= values
    total += rest[0]
    return total


def _sums(values: Float64[np.ndarray, "rows width"]) -> Float64[np.ndarray, "rows 1"]:
    """Sum every row, in an order that no library chooses."""
    while values.shape[1] > 1:
        half, odd = divmod(values.shape[1], 2)
        folded = values[:, :half] + values[:, half : 2 * half]
        values = np.concatenate([folded, values[:, -1:]], axis=1) if odd else folded
    return values
