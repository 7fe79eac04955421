"""Reverse ordering of vectors from the unit hypersphere instead of ids."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float32, Float64, UInt64
from pydantic import Field

from pernn.lab.interfaces import Batch, Measurement, Predictions
from pernn.lab.metrics import cosine_similarities

from .config import SampledTaskConfig
from .sequences import Fixed, Reverse
from .synthetic import Distinct, SyntheticTask

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

    Source: Box and Muller (1958); Morita (2024), version 1, appendix B.3.
    """

    dimension: int

    @property
    def vocab_size(self) -> int:
        """Width of the vectors, d."""
        return self.dimension

    @property
    def num_draws(self) -> int:
        """Words that make one vector: one for every two components."""
        return (self.dimension + 1) // 2

    def draw(
        self, words: UInt64[np.ndarray, "batch words"]
    ) -> Float32[np.ndarray, "batch time dimension"]:
        """Map the words of every row, `num_draws` for each, to vectors."""
        drawn = words.reshape(-1, self.num_draws)
        vectors = np.empty((len(drawn), self.dimension), dtype=np.float32)
        size = max(1, WORDS_AT_ONCE // self.num_draws)
        for start in range(0, len(drawn), size):
            rows = slice(start, start + size)
            deviates = normals(drawn[rows])[:, : self.dimension]
            vectors[rows] = deviates / np.sqrt(_sums(deviates * deviates))
        return vectors.reshape(len(words), -1, self.dimension)

    def num_sequences(self, length: int) -> int:
        """Return a number of sequences that no test set comes near."""
        return 2**64


def normals(words: UInt64[np.ndarray, "rows words"]) -> Float64[np.ndarray, "rows deviates"]:
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
    """Return the natural logarithm of numbers in (0, 1), power of two and mantissa apart."""
    mantissas, exponents = np.frexp(chances)
    low = mantissas < math.sqrt(0.5)
    mantissas, exponents = np.where(low, 2 * mantissas, mantissas), exponents - low
    ratio = (mantissas - 1) / (mantissas + 1)
    found: Numbers = ratio * _polynomial(LOGARITHM, ratio * ratio) + exponents * LOG_2
    return found


def _circle(angles: Numbers) -> tuple[Numbers, Numbers]:
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


@dataclass(frozen=True, kw_only=True)
class SphericalTask(SyntheticTask):
    """Vectors instead of ids, and the zero vector as the query."""

    steps_at_once: ClassVar[int] = 1
    network: ClassVar[Literal["vector"]] = "vector"
    extra_rows: ClassVar[tuple[str, ...]] = ()
    source: Spherical

    @property
    def words_per_token(self) -> int:
        """Number of random words behind one vector."""
        return self.source.num_draws


PERCENTS = tuple(range(0, 101, 5))
"""Quantiles that are recorded."""


@dataclass(frozen=True)
class Cosines:
    """Mean cosine between answers and targets, and its distribution over tokens."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Measure whole vectors."""
        cosines = cosine_similarities(predictions.values, batch.targets)
        found = np.quantile(cosines, np.array(PERCENTS) / 100).tolist()
        quantiles = {f"q{percent}": value for percent, value in zip(PERCENTS, found, strict=True)}
        metrics = {
            "cosine_similarity": float(cosines.mean()),
            "cosine_q25": quantiles["q25"],
            "cosine_median": quantiles["q50"],
            "cosine_q75": quantiles["q75"],
        }
        row = {"dimension": batch.targets.shape[2], **quantiles}
        return Measurement(metrics, {"cosine": {name: [value] for name, value in row.items()}})


class InfiniteVocabularyConfig(SampledTaskConfig):
    """Return vectors from the unit hypersphere in reverse order.

    Picture (L = 4):
        input   v1 v2 v3 v4  0  0  0  0
        target   .  .  .  . v4 v3 v2 v1

    0 is the zero vector, the query. What counts is the cosine between answer and target.

    Attributes:
        dimension: Number of components of a vector, d.

    Source: Morita (2024), version 1, appendix B.3.
    """

    kind: Literal["infinite_vocabulary"] = "infinite_vocabulary"
    references: ClassVar[tuple[str, ...]] = ("box1958", "morita2024")
    dimension: Annotated[int, Field(ge=2, le=2**16)] = 64

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for labels and for `name`."""
        return f"d={self.dimension} {super().sizes}"

    def build(self) -> SphericalTask:
        """Build the task."""
        return SphericalTask(
            name=self.name,
            rule=Reverse(),
            source=Spherical(dimension=self.dimension),
            length=Fixed(length=self.length),
            metrics=(Cosines(),),
            held_out=Distinct(num_held_out=self.num_held_out),
        )
