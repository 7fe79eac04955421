"""Composition of tasks: rule × token source × length × feedback × test set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, UInt64

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions
from pernn.lab.metrics import Metric, Sequences, measure_all
from pernn.randomness import RandomStream, Split, integers

from .sequences import Feedback, Inputs, Length, OwnOutput, Query, Rule, Source, Targets, Words


def lanes(stream: RandomStream, step: int, num_rows: int, width: int) -> Iterator[Words]:
    """Yield the words of a step's lanes, one after another without end."""
    for lane in count():
        yield stream.words(step, num_rows * width, lane).reshape(num_rows, width)


def first_distinct(drawn: Iterable[np.ndarray], wanted: int) -> np.ndarray:
    """Return the first distinct rows of as many arrays as it takes."""
    found: list[np.ndarray] = []
    for rows in drawn:
        every = np.concatenate([*found, rows])
        _, first = np.unique(every, axis=0, return_index=True)
        found = [every[np.sort(first)]]
        if len(found[0]) >= wanted:
            break
    return found[0][:wanted]


@runtime_checkable
class HeldOut(Protocol):
    """A way to make test sequences, which training never shows."""

    def check(self, task: "SyntheticTask") -> None:
        """Refuse a task with too few sequences to test and train."""

    def inputs(self, task: "SyntheticTask", stream: RandomStream) -> Inputs:
        """Draw distinct sequences from the test stream."""

    def mark(self, targets: Targets) -> Targets:
        """Make `UNSCORED` what is not asked of the same sequences."""
        return targets


@dataclass(frozen=True, kw_only=True)
class Distinct(HeldOut):
    """Distinct samples like those of training, fully scored.

    Args:
        num_held_out: How many there are of each length.
    """

    num_held_out: int = 1024

    def check(self, task: "SyntheticTask") -> None:
        """Refuse to hold out all sequences of a length.

        Raises:
            ConfigError: If there are not that many distinct ones and one to train on.
        """
        for length in task.length.tested:
            possible = task.source.num_sequences(length)
            if self.num_held_out >= possible:
                raise ConfigError(
                    f"num_held_out must lie in 1 … {possible - 1:,}: only {possible:,} sequences "
                    f"of {length} tokens exist and one must be left to train on; "
                    f"got {self.num_held_out:,}"
                )

    def inputs(self, task: "SyntheticTask", stream: RandomStream) -> Inputs:
        """Take the first distinct sequences of each length, the shortest first."""
        *_, longest = lengths = task.length.tested
        blocks = []
        for place, length in enumerate(lengths):
            words = lanes(stream, place, self.num_held_out, length * task.words_per_token)
            rows = first_distinct(map(task.source.draw, words), self.num_held_out)
            beyond = np.full_like(rows[:, :1], task.vocab_size).repeat(longest - length, axis=1)
            blocks.append(np.concatenate([rows, beyond], axis=1))
        return np.concatenate(blocks)


@dataclass(frozen=True, kw_only=True)
class NewAndMixed(Distinct):
    """Distinct sequences of new ids only, then as many of any ids.

    Args:
        num_known: Ids that are not new; the others are.
        num_held_out: Sequences of each of the two sorts.
    """

    num_known: int

    def check(self, task: "SyntheticTask") -> None:
        """Refuse a task without that many sequences of new ids.

        Raises:
            ConfigError: If there are not enough.
        """
        possible = max(0, task.vocab_size - self.num_known) ** task.longest
        if self.num_held_out > possible:
            raise ConfigError(
                f"num_held_out must lie in 1 … {possible:,}: only {possible:,} sequences of "
                f"{task.longest} new tokens exist; got {self.num_held_out:,}"
            )
        Distinct(num_held_out=2 * self.num_held_out).check(task)

    def inputs(self, task: "SyntheticTask", stream: RandomStream) -> Inputs:
        """Take the first distinct sequences of either sort."""
        wanted, num_new = self.num_held_out, task.vocab_size - self.num_known
        new, mixed = (lanes(stream, place, wanted, task.longest) for place in range(2))
        rows = first_distinct((self.num_known + integers(some, num_new) for some in new), wanted)
        return first_distinct(chain([rows], map(task.source.draw, mixed)), 2 * wanted)


@dataclass(frozen=True, kw_only=True)
class SyntheticTask:
    """Fresh samples at every step, a function of their address.

    In rows of inputs, ids beyond a sequence's own length are `vocab_size`.

    Args:
        name: Canonical description; two tasks of one name show the same data.
        rule: Inputs → targets.
        source: Random words → inputs, all that is random in a sequence but its length.
        length: Length of the inputs.
        feedback: What is given after them.
        metrics: What is measured of the predictions.
        held_out: How test sequences are made, which training never shows.

    Raises:
        ConfigError: If there are not enough distinct sequences to hold some out and train on
            others.
    """

    steps_at_once: ClassVar[int] = 16
    """Training batches that are made together; no number depends on it."""
    name: str
    rule: Rule
    source: Source
    length: Length
    feedback: Feedback = field(default_factory=Query)
    metrics: tuple[Metric, ...] = (Sequences(),)
    held_out: HeldOut = field(default_factory=Distinct)

    def __post_init__(self) -> None:
        self.held_out.check(self)

    @property
    def vocab_size(self) -> int:
        """Number of token ids, K."""
        return self.source.vocab_size

    @property
    def extra_rows(self) -> tuple[str, ...]:
        """Names of the embedding rows after the ids', the query's first."""
        return self.feedback.extra_rows

    @property
    def network(self) -> Literal["queried", "autoregressive", "coded", "vector"]:
        """The sort of network."""
        return "autoregressive" if isinstance(self.feedback, OwnOutput) else "queried"

    @property
    def num_scored(self) -> int:
        """Number of targets of the longest sequence."""
        return int(self._example.targets.shape[1])

    @property
    def num_queries(self) -> int:
        """Number of steps at the end that show the query row."""
        return self._example.num_queries

    @property
    def num_steps(self) -> int:
        """Number of time steps of the longest sequence, both phases."""
        return int(self._example.tokens.shape[1] + self._example.num_queries)

    @cached_property
    def _example(self) -> Batch:
        """One sequence of the longest, for its shape."""
        width = self.length.tested[-1] * self.words_per_token
        words = np.zeros((1, width), dtype=np.uint64)
        return self.batch(self.source.draw(words))

    @property
    def words_per_token(self) -> int:
        """Number of random words behind one token."""
        return 1

    @property
    def num_draws(self) -> int:
        """Number of random words behind one sequence."""
        return self.longest * self.words_per_token + self.length.num_draws

    @property
    def longest(self) -> int:
        """Length of the longest inputs of training."""
        return self.length.possible[-1]

    def draw(self, words: UInt64[np.ndarray, "batch words"]) -> Inputs:
        """Return the inputs of each row of words, ids' words first."""
        ids, lengths = np.split(words, [self.longest * self.words_per_token], axis=1)
        return self.length.cut(self.source.draw(ids), lengths, self.vocab_size)

    def batch(self, inputs: Inputs) -> Batch:
        """Put inputs, what is given after them, and targets together."""
        return self.length.join(inputs, self.vocab_size, self._batch_of_one_length)

    def _batch_of_one_length(self, inputs: Inputs) -> Batch:
        targets = self.rule.targets(inputs)
        if self.network != "vector":
            self._check(targets, len(inputs))
        tokens = self.feedback.tokens(inputs, targets, self.vocab_size)
        return Batch(tokens, self.feedback.num_queries(targets.shape[1]), targets)

    def _check(self, targets: Any, num_rows: int) -> None:
        """Refuse targets that are no ids, which would be found out late or never."""
        found = type(targets).__name__
        if isinstance(targets, np.ndarray):
            found = f"{targets.dtype} of shape {targets.shape}"
            is_table = targets.dtype == np.int64 and targets.ndim == 2 and targets.shape[1] > 0
            if is_table and len(targets) == num_rows:
                low = targets.min(initial=0, where=targets != UNSCORED)
                high = targets.max(initial=0)
                if low >= 0 and high < self.vocab_size:
                    return
                found = f"ids in {low} … {high}"
        raise ConfigError(
            f"rule {type(self.rule).__name__} is invalid: expected targets in {num_rows} rows of "
            f"int64 ids in 0 … {self.vocab_size - 1}, got {found}"
        )

    def shown(self, plain: Batch, seed: int, split: Split, step: int) -> Batch:
        """Return a batch with what is shown beside its tokens, here nothing."""
        return plain

    def stream(self, seed: int) -> "SyntheticStream":
        """Return the data of one seed."""
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
        self._block: tuple[int, int, Batch] | None = None

    def train(self, step: int, batch_size: int) -> Batch:
        """Return the training batch of update `step`, counted from 0.

        A row that is held out is drawn again, from the next lane of the same step. Neighbouring
        steps are made together and kept: what is the same for all of them is then paid once.
        """
        first = step - step % self.task.steps_at_once
        if self._block is None or self._block[:2] != (first, batch_size):
            self._block = first, batch_size, self.task.batch(self._inputs(first, batch_size))
        block = self._block[2]
        rows = slice((step - first) * batch_size, (step - first + 1) * batch_size)
        # Copies: whoever changes a batch must not change what the next caller gets.
        tokens, targets = block.tokens[rows].copy(), block.targets[rows].copy()
        plain = Batch(tokens, block.num_queries, targets)
        return self.task.shown(plain, self.seed, Split.TRAIN, step)

    def _inputs(self, first: int, batch_size: int) -> Inputs:
        """Draw the inputs of `steps_at_once` steps, one after another."""
        size = batch_size * self.task.num_draws
        steps = range(first, first + self.task.steps_at_once)
        words = [self._train.words(step, size) for step in steps]
        inputs = self.task.draw(np.concatenate(words).reshape(-1, self.task.num_draws))
        rejected = np.flatnonzero(self.is_held_out(inputs))
        lane = 1
        while rejected.size:
            for offset in np.unique(rejected // batch_size):
                rows = rejected[rejected // batch_size == offset]
                again = self._train.words(
                    first + int(offset), rows.size * self.task.num_draws, lane
                )
                inputs[rows] = self.task.draw(again.reshape(rows.size, -1))
            rejected = rejected[self.is_held_out(inputs[rejected])]
            lane += 1
        return inputs

    def test(self) -> Batch:
        """Return all held-out sequences."""
        batch = self.task.batch(self.held_out.copy())
        plain = replace(batch, targets=self.task.held_out.mark(batch.targets))
        return self.task.shown(plain, self.seed, Split.TEST, 0)

    def measure(self, predictions: Predictions) -> Measurement:
        """Measure the answers to `test`."""
        return measure_all(self.task.metrics, predictions, self.test())

    @cached_property
    def held_out(self) -> Inputs:
        """The inputs of all test sequences."""
        return self.task.held_out.inputs(self.task, self._test)

    def is_held_out(self, inputs: Inputs) -> Bool[np.ndarray, " batch"]:
        """Return which rows have a held-out sequence's hash, or its start's.

        Every held-out row is found. Another row is taken for one with probability
        below (held-out rows) · vocab_size / 2⁶² and then merely drawn again.
        """
        hashes = self._hash(inputs)
        nearest = np.searchsorted(self._hashes[:-1], hashes)
        found: Bool[np.ndarray, " batch"] = self._hashes[nearest] == hashes
        return found

    @cached_property
    def _hashes(self) -> UInt64[np.ndarray, " held_out"]:
        return np.sort(self._hash(self.held_out))

    def _hash(self, inputs: Inputs) -> UInt64[np.ndarray, " batch"]:
        numbers = inputs[:, : self.task.longest].reshape(len(inputs), -1)
        # Of vectors, their bits.
        whole = numbers.view(np.uint32) if numbers.dtype == np.float32 else numbers
        hashes: UInt64[np.ndarray, " batch"] = whole.astype(np.uint64) @ self._multipliers
        return hashes

    @cached_property
    def _multipliers(self) -> UInt64[np.ndarray, " numbers"]:
        # Odd, for a hash modulo 2⁶⁴; the test stream's last lane is theirs alone.
        width = self.held_out[0, : self.task.longest].size
        return self._test.words(0, width, lane=2**63) | np.uint64(1)
