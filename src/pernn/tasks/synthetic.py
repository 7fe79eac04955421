"""A task is a composition: rule × token source × length × feedback, over counter-based streams."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from pernn.errors import ConfigError
from pernn.interfaces import Batch
from pernn.randomness import RandomStream, Split

from .feedback import Feedback, Query
from .lengths import Fixed
from .rules import Rule
from .sources import Source

STEPS_AT_ONCE = 16
"""Training batches that are made together; no number depends on it."""


@dataclass(frozen=True, kw_only=True)
class SyntheticTask:
    """Fresh samples at every step, none of them held out, all a function of their address.

    Args:
        name: Canonical description; two tasks of one name show the same data.
        rule: Inputs → targets.
        source: Random words → inputs, all that is random in a sequence.
        length: Length of the inputs.
        feedback: What is given after them.
        num_held_out: Distinct test sequences, which training never shows.

    Raises:
        ConfigError: If there are not enough distinct sequences to hold that many out and train
            on others.
    """

    name: str
    rule: Rule
    source: Source
    length: Fixed
    feedback: Feedback = field(default_factory=Query)
    num_held_out: int = 1024

    def __post_init__(self) -> None:
        if self.num_held_out < 1:
            raise ConfigError(f"num_held_out must be at least 1, got {self.num_held_out}")
        possible = self.source.num_sequences(self.length.length)
        if self.num_held_out >= possible:
            raise ConfigError(
                f"num_held_out must lie in 1 … {possible - 1:,}: only {possible:,} sequences of "
                f"{self.length.length} tokens exist and one must be left to train on; "
                f"got {self.num_held_out:,}"
            )

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""
        return self.source.vocab_size

    @property
    def num_extra_rows(self) -> int:
        """Number of embedding rows beside those of the ids; the query's comes first."""
        return len(self.feedback.extra_rows)

    @property
    def num_scored(self) -> int:
        """Number of targets of the longest sequence."""
        count: int = self._example.targets.shape[1]
        return count

    @property
    def num_steps(self) -> int:
        """Number of time steps of the longest sequence, both phases."""
        count: int = self._example.tokens.shape[1] + self._example.num_queries
        return count

    @cached_property
    def _example(self) -> Batch:
        """One sequence, for its shape."""
        words = np.zeros((1, self.length.length), dtype=np.uint64)
        return self.batch(self.source.draw(words))

    def batch(self, inputs: Int64[np.ndarray, "batch input_time"]) -> Batch:
        """Put inputs, what is given after them, and targets together."""
        targets = self.rule.targets(inputs)
        tokens = self.feedback.tokens(inputs, self.vocab_size)
        return Batch(tokens, self.feedback.num_queries(targets.shape[1]), targets)

    def stream(self, seed: int) -> "SyntheticStream":
        """Give the data of one seed."""
        return SyntheticStream(self, seed)


class SyntheticStream:
    """The data of one task and seed: a `BatchStream`.

    Args:
        task: What to sample.
        seed: Which samples.
    """

    def __init__(self, task: SyntheticTask, seed: int) -> None:
        self.task, self.seed = task, seed
        self._train = RandomStream(seed, task.name, Split.TRAIN)
        self._test = RandomStream(seed, task.name, Split.TEST)
        # Odd multipliers of a hash modulo 2⁶⁴; the test stream's last lane is theirs alone.
        words = self._test.words(0, task.length.length, lane=2**63)
        self._block: tuple[int, int, Batch] | None = None
        self._multipliers = words | np.uint64(1)

    def train(self, step: int, batch_size: int) -> Batch:
        """Give the training batch of update `step`, counted from 0.

        A row that is held out is drawn again, from the next lane of the same step. Neighbouring
        steps are made together and kept: what is the same for all of them is then paid once.
        """
        first = step - step % STEPS_AT_ONCE
        if self._block is None or self._block[:2] != (first, batch_size):
            self._block = first, batch_size, self.task.batch(self._inputs(first, batch_size))
        block = self._block[2]
        rows = slice((step - first) * batch_size, (step - first + 1) * batch_size)
        # Copies: whoever changes a batch must not change what the next caller gets.
        return Batch(block.tokens[rows].copy(), block.num_queries, block.targets[rows].copy())

    def _inputs(self, first: int, batch_size: int) -> Int64[np.ndarray, "batch input_time"]:
        """Draw the inputs of `STEPS_AT_ONCE` steps, one after another."""
        count = batch_size * self.task.length.length
        words = [self._train.words(first + offset, count) for offset in range(STEPS_AT_ONCE)]
        inputs = self.task.source.draw(np.concatenate(words).reshape(-1, self.task.length.length))
        rejected = np.flatnonzero(self.is_held_out(inputs))
        lane = 1
        while rejected.size:
            for offset in np.unique(rejected // batch_size):
                rows = rejected[rejected // batch_size == offset]
                inputs[rows] = self._draw(self._train, first + int(offset), rows.size, lane)
            rejected = rejected[self.is_held_out(inputs[rejected])]
            lane += 1
        return inputs

    def test(self) -> Batch:
        """Give all held-out sequences."""
        return self.task.batch(self.held_out)

    @cached_property
    def held_out(self) -> Int64[np.ndarray, "held_out input_time"]:
        """The inputs of the first `num_held_out` distinct sequences of the test stream."""
        wanted = self.task.num_held_out
        rows = np.empty((0, self.task.length.length), dtype=np.int64)
        lane = 0
        while len(rows) < wanted:
            rows = np.concatenate([rows, self._draw(self._test, 0, wanted, lane)])
            _, first = np.unique(rows, axis=0, return_index=True)
            rows = rows[np.sort(first)]
            lane += 1
        return rows[:wanted]

    def is_held_out(
        self, inputs: Int64[np.ndarray, "batch input_time"]
    ) -> Bool[np.ndarray, " batch"]:
        """Say which rows have the hash of a held-out sequence.

        Every held-out row is found. Another row is taken for one with probability
        below num_held_out · vocab_size / 2⁶² and then merely drawn again.
        """
        hashes = self._hash(inputs)
        nearest = np.searchsorted(self._hashes, hashes)
        found: Bool[np.ndarray, " batch"] = (
            self._hashes[np.minimum(nearest, len(self._hashes) - 1)] == hashes
        )
        return found

    @cached_property
    def _hashes(self) -> UInt64[np.ndarray, " held_out"]:
        return np.sort(self._hash(self.held_out))

    def _hash(self, inputs: Int64[np.ndarray, "batch input_time"]) -> UInt64[np.ndarray, " batch"]:
        return inputs.astype(np.uint64) @ self._multipliers

    def _draw(
        self, stream: RandomStream, step: int, rows: int, lane: int
    ) -> Int64[np.ndarray, "rows input_time"]:
        length = self.task.length.length
        words = stream.words(step, rows * length, lane)
        return self.task.source.draw(words.reshape(rows, length))
