"""Distances, in the input, between wrong answers and the right tokens."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from pernn.errors import ConfigError


@dataclass(frozen=True)
class RecallErrors:
    """Wrong answers by the distance between right and given token.

    A token that stands in the input several times counts where it is nearest to the right one.

    Attributes:
        num_answers: How many were given, right ones included.
        counts: Wrong answers that are a token `1, 2, … length − 1` steps before or after the right
            one; first, those that are no token of the input.
        expected: The same if every wrong answer were drawn uniformly from the other ids.
    """

    num_answers: int
    counts: Int64[np.ndarray, " length"]
    expected: Float64[np.ndarray, " length"]

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return 1 - self.num_wrong / self.num_answers

    @property
    def num_wrong(self) -> int:
        """Number of wrong answers."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Float64[np.ndarray, " length"]:
        """The counts as shares of the wrong answers, or 0."""
        return self.counts / max(1, self.num_wrong)

    @property
    def chances(self) -> Float64[np.ndarray, " length"]:
        """The shares if wrong answers were uniform over the other ids."""
        return self.expected / max(1, self.num_wrong)


def recall_errors(
    inputs: Int64[np.ndarray, "batch time"],
    targets: Int64[np.ndarray, "batch answers"],
    answers: Int64[np.ndarray, "batch answers"],
    vocab_size: int,
) -> RecallErrors:
    """Sort the wrong answers by where their token stands in the input.

    Args:
        inputs: Tokens that were to be remembered.
        targets: Right answers; each is the token of the same step in every sequence. Those below 0
            are not asked for.
        answers: What was answered.
        vocab_size: Number of ids that may be answered.

    Raises:
        ConfigError: If the step whose token is asked for depends on the sequence, or too few
            sequences tell which one a wrong answer belongs to, or nothing is asked for.

    Examples:
        >>> tokens = np.array([[5, 6, 7], [1, 2, 3]])
        >>> found = recall_errors(tokens, tokens, np.array([[6, 6, 7], [0, 2, 1]]), vocab_size=8)
        >>> found.counts.tolist()
        [1, 1, 1]
    """
    length = inputs.shape[1]
    is_asked = targets >= 0
    if not is_asked.any():
        raise ConfigError("recall errors: nothing is asked for, all targets are below 0")
    # Steps that each answer may belong to.
    fits = ((inputs[:, :, None] == targets[:, None, :]) | ~is_asked[:, None, :]).all(axis=0)
    if not fits.any(axis=0).all():
        raise ConfigError(
            "recall errors need answers that are tokens of the input, each from the same step in "
            "every sequence, as in reversing and copying"
        )
    sequences, places = np.nonzero((answers != targets) & is_asked)
    rows, right = inputs[sequences], targets[sequences, places]
    fits = fits[:, places]
    if (fits.sum(axis=0) > 1).any():
        raise ConfigError(
            f"recall errors: {len(inputs)} sequences do not tell which step an answer belongs to, "
            "as their tokens repeat; expected more"
        )
    distance = np.abs(np.arange(length) - fits.argmax(axis=0)[:, None])
    said = rows == answers[sequences, places, None]
    nearest = np.where(said, distance, length).min(axis=1, initial=length)
    # An id counts once, where it is nearest; of two equally near, the earlier one.
    order = distance * length + np.arange(length)
    is_same = rows[:, :, None] == rows[:, None, :]
    is_first = ~(is_same & (order[:, None, :] < order[:, :, None])).any(axis=2)
    others = is_first & (rows != right[:, None])
    expected = np.bincount(distance[others], minlength=length) / (vocab_size - 1)
    expected[0] = len(rows) - expected.sum()
    counts = np.bincount(nearest % length, minlength=length)
    return RecallErrors(int(is_asked.sum()), counts, expected)
