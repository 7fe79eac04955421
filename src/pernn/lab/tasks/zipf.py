"""Ids of a Zipf law, and accuracy by rarity."""

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from itertools import accumulate
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from pernn.lab.interfaces import Batch, Measurement, Predictions, Table
from pernn.lab.metrics import Sequences, group
from pernn.randomness import uniform

from .config import TokenTaskConfig
from .sequences import Inputs, Reverse, Words
from .synthetic import SyntheticTask

EXACT = Context(prec=30)
"""Powers in decimals are the same on every processor, those of its vector units are not."""
COMPANY = ("Mostly frequent", "Mostly rare")


@dataclass(frozen=True, kw_only=True)
class Zipf:
    """Independent ids, the id k with a probability ∝ (k + 1)^−exponent.

    No id's probability is off by more than 2⁻⁵².

    Args:
        vocab_size: Number of token ids, K.
        exponent: 0 for ids that are equally likely.
    """

    vocab_size: int
    exponent: float

    @cached_property
    def bounds(self) -> Float64[np.ndarray, " ids"]:
        """Upper ends of the ids' parts of [0, 1), in their order."""
        power = Decimal(str(-self.exponent))
        weights = (EXACT.power(Decimal(rank), power) for rank in range(1, self.vocab_size + 1))
        sums = [*accumulate(weights, EXACT.add)]
        scale = EXACT.divide(2**53, sums[-1])
        return np.array([int(EXACT.multiply(one, scale)) / 2**53 for one in sums[:-1]] + [1.0])

    @property
    def middles(self) -> Float64[np.ndarray, " ids"]:
        """Share of more frequent tokens, half of the id's own included."""
        ends = np.concatenate([[0.0], self.bounds])
        middles: Float64[np.ndarray, " ids"] = (ends[1:] + ends[:-1]) / 2
        return middles

    def draw(self, words: Words) -> Inputs:
        """Map one random word to each id."""
        ids: Inputs
        ids = np.searchsorted(self.bounds, uniform(words), side="right")
        return ids

    def num_sequences(self, length: int) -> int:
        """Count the sequences of a length that can be found.

        It is e to their entropy, down to a power of two; others may take forever to be drawn.
        """
        weights = np.arange(1.0, self.vocab_size + 1) ** -self.exponent
        bits = (np.log2(weights.sum()) - weights @ np.log2(weights) / weights.sum()) * length
        return 1 << int(bits + 1e-6)


@dataclass(frozen=True, kw_only=True)
class ByRank:
    """Token accuracy by the rarity of the target and its company.

    Ids in the order of their frequency are cut into four quarters of the probability, an id being
    in the one in which its middle lies. A target's company is mostly rare if more of the other
    tokens are from the two rare quarters than from the two frequent ones; where as many are, it is
    left out.

    Args:
        source: Of the inputs.
    """

    source: Zipf

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Return a table: quarter of the target × company."""
        quarter = (self.source.middles * 4).astype(np.int64)[batch.targets]
        rare = quarter >= 2
        balance = 2 * (rare.sum(axis=1, keepdims=True) - rare) - (rare.shape[1] - 1)
        right = predictions.values == batch.targets
        sign = np.sign(balance)
        kept = sign != 0
        cells = group(right[kept], quarter[kept], sign[kept])
        table: Table = {
            "target": [place + 1 for place, _ in cells],
            "disturbants": [COMPANY[int(side > 0)] for _, side in cells],
            "token_accuracy": [float(found.mean()) for found in cells.values()],
            "num_tokens": [found.size for found in cells.values()],
        }
        return Measurement({}, {"by_rank": table})


class ZipfConfig(TokenTaskConfig):
    """Return the input in reverse order. Ids follow a Zipf law.

    Picture (L = 4):
        input    0  2  0 11  ?  ?  ?  ?
        target   .  .  .  . 11  0  2  0

    The id k has a probability ∝ (k + 1)^−exponent, in training and test.

    Attributes:
        vocab_size: Number of token ids, K.
        exponent: 0 for ids that are equally likely, as in `reverse_ordering`; 1 as in natural text.

    Source: ours.
    """

    kind: Literal["zipf"] = "zipf"
    references: ClassVar[tuple[str, ...]] = ()
    vocab_size: Annotated[int, Field(ge=2, le=2**16)] = 64
    exponent: Annotated[float, Field(ge=0, le=4)] = 1.0

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} exponent={self.exponent!r}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        source = Zipf(vocab_size=self.vocab_size, exponent=self.exponent)
        return self.compose(Reverse(), source=source, metrics=(Sequences(), ByRank(source=source)))
