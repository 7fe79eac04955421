"""Frequent and Rare ids, and tests of one token among others."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from pernn.errors import ConfigError
from pernn.lab.interfaces import UNSCORED, Batch, Measurement, Predictions, Table
from pernn.lab.metrics import group
from pernn.randomness import RandomStream, integers

from .config import TaskConfig
from .sequences import DualFrequency, Fixed, Inputs, Reverse, Targets
from .synthetic import SyntheticTask, first_distinct, lanes

CLASSES = ("Frequent", "Rare")
RARE_SHARE = 1 / 8
"""What a task has that no preset told otherwise: that of `as-run`."""


@dataclass(frozen=True, kw_only=True)
class OneTarget:
    """Test sequences of one class around one target, which alone counts.

    {Frequent, Rare} target × {Frequent, Rare} disturbants × every position × `num_per_cell`, in
    this order. The four conditions show the same sequences of ranks: the id of rank n is n among
    the Frequent ones and K/2 + n among the Rare ones. So conditions that differ in the disturbants
    share their target token, as in the published program; those that differ in the target share
    all disturbants; and all comparisons are paired. Ranks are uniform. Inputs must have one
    length of three or more, and be given back in reverse order.

    Args:
        num_per_cell: Sequences of each condition and position.

    Source: Morita (2024), section 2.2 and figure 3.
    """

    num_per_cell: int = 16

    def check(self, task: SyntheticTask) -> None:
        """Refuse spaces without enough sequences of one class.

        Raises:
            ConfigError: If the test set would not be distinct.
        """
        possible, wanted = (task.vocab_size // 2) ** task.longest, task.longest * self.num_per_cell
        if wanted > possible:
            raise ConfigError(
                f"num_per_cell {self.num_per_cell} at each of {task.longest} positions needs "
                f"{wanted:,} distinct sequences of one class, but of vocab_size {task.vocab_size} "
                f"only {possible:,} exist"
            )

    def inputs(self, task: SyntheticTask, stream: RandomStream) -> Inputs:
        """Draw distinct sequences of ranks, each for every condition."""
        half, length = task.vocab_size // 2, task.longest
        wanted = length * self.num_per_cell
        words = lanes(stream, 0, wanted, length)
        ranks = first_distinct((integers(some, half) for some in words), wanted)
        is_target = np.repeat(np.eye(length, dtype=bool), self.num_per_cell, axis=0)
        conditions = [
            ranks + half * np.where(is_target, target, disturbants)
            for target in range(2)
            for disturbants in range(2)
        ]
        return np.concatenate(conditions)

    def mark(self, targets: Targets) -> Targets:
        """Ask for the target token only."""
        length = targets.shape[1]
        places = np.indices((2, 2, length, self.num_per_cell))[2].reshape(-1, 1)
        asked = np.arange(length) == length - 1 - places
        return np.where(asked, targets, UNSCORED)


@dataclass(frozen=True, kw_only=True)
class ByCondition:
    """Token accuracy by classes of target and disturbants, and by place.

    Args:
        vocab_size: Number of token ids, K.
    """

    vocab_size: int

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Return accuracy and tables by condition, quarter and position."""
        length = batch.tokens.shape[1]
        rows = np.arange(len(batch.tokens))
        steps = (batch.targets != UNSCORED).argmax(axis=1)
        asked = batch.targets[rows, steps]
        right = predictions.values[rows, steps] == asked
        places = length - 1 - steps
        others = batch.tokens[rows, (places + 1) % length]
        classes = [(ids >= self.vocab_size // 2).astype(np.int64) for ids in (asked, others)]
        return Measurement(
            {"token_accuracy": float(right.mean())},
            {
                "by_condition": _table(right, *classes),
                "by_quarter": _table(right, *classes, quarter=places * 4 // length),
                "by_position": _table(right, *classes, position=places),
            },
        )


def _table(right: np.ndarray, *classes: np.ndarray, **places: np.ndarray) -> Table:
    """Average over classes of target and disturbants, and over places from 0."""
    cells = group(right, *classes, *places.values())
    names = [(CLASSES[target], CLASSES[other]) for target, other, *_ in cells]
    return {
        "condition": [f"{target} among {other}" for target, other in names],
        "target": [target for target, _ in names],
        "disturbants": [other for _, other in names],
        **{name: [place + 1 for *_, place in cells] for name in places},
        "token_accuracy": [float(found.mean()) for found in cells.values()],
        "num_sequences": [found.size for found in cells.values()],
    }


class DualFrequencyConfig(TaskConfig):
    """Return the input in reverse order. Half of the ids are Rare.

    Picture (K = 32, L = 4):
        input    8 29  2 11  ?  ?  ?  ?
        target   .  .  .  . 11  2 29  8

    Frequent are the ids 0 … K/2 − 1. Each token is Rare with probability `rare_share`, whatever
    stands beside it, and then uniform in its half. Tests ask for one token, the target, among
    disturbants that are all Frequent or all Rare.

    Attributes:
        vocab_size: Number of token ids, K, an even number.
        rare_share: Probability of a Rare token; the preset's if absent.
        num_per_cell: Test sequences per class of target, class of disturbants and position.

    Source: Morita (2024), section 2.2.
    """

    kind: Literal["dual_frequency"] = "dual_frequency"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    vocab_size: Annotated[int, Field(ge=2, le=2**31, multiple_of=2)] = 64
    length: Annotated[int, Field(ge=3, le=2**16)] = 64
    rare_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    num_per_cell: Annotated[int, Field(ge=1, le=2**16)] = 16

    @property
    def effective_share(self) -> float:
        """The share, by default that of `as-run`."""
        return RARE_SHARE if self.rare_share is None else self.rare_share

    @property
    def sizes(self) -> str:
        """Its sizes in a few words, for labels and for `name`."""
        return f"K={self.vocab_size} {super().sizes}"

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} rare_share={self.effective_share!r} per_cell={self.num_per_cell}"

    def under(
        self, rare_share: float, text_rules: Literal["as-run", "as-written"]
    ) -> "DualFrequencyConfig":
        """Take the preset's share where none is given."""
        if self.rare_share is not None:
            return self
        return self.model_copy(update={"rare_share": rare_share})

    def build(self) -> SyntheticTask:
        """Build the task."""
        return SyntheticTask(
            name=self.name,
            rule=Reverse(),
            source=DualFrequency(vocab_size=self.vocab_size, rare_share=self.effective_share),
            length=Fixed(length=self.length),
            metrics=(ByCondition(vocab_size=self.vocab_size),),
            held_out=OneTarget(num_per_cell=self.num_per_cell),
        )
