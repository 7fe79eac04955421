"""Ids known from before and new ones, which are tested."""

from dataclasses import dataclass
from itertools import chain
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pernn.errors import ConfigError
from pernn.lab.interfaces import Batch, Measurement, Predictions
from pernn.randomness import RandomStream, integers

from .config import TokenTaskConfig
from .metrics import Sequences
from .sequences import Inputs, Reverse
from .synthetic import Distinct, SyntheticTask, first_distinct, lanes

NEW, MIXED = "new", "mixed"


@dataclass(frozen=True, kw_only=True)
class NewAndMixed(Distinct):
    """Distinct sequences of new ids only, then as many of any ids.

    Args:
        num_known: Ids that are not new; the others are.
        num_held_out: Sequences of each of the two sorts.
    """

    num_known: int

    def check(self, task: SyntheticTask) -> None:
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

    def inputs(self, task: SyntheticTask, stream: RandomStream) -> Inputs:
        """Take the first distinct sequences of either sort."""
        wanted, num_new = self.num_held_out, task.vocab_size - self.num_known
        new, mixed = (lanes(stream, place, wanted, task.longest) for place in range(2))
        rows = first_distinct((self.num_known + integers(some, num_new) for some in new), wanted)
        return first_distinct(chain([rows], map(task.source.draw, mixed)), 2 * wanted)


@dataclass(frozen=True)
class ByIds:
    """The metrics of `Sequences`, for new ids and mixed sequences."""

    def measure(self, predictions: Predictions, batch: Batch) -> Measurement:
        """Measure the two halves."""
        half, found = len(batch.targets) // 2, []
        for rows in (slice(half), slice(half, None)):
            answers = Predictions(predictions.values[rows], predictions.losses[rows])
            asked = Batch(batch.tokens[rows], batch.num_queries, batch.targets[rows])
            found.append(Sequences().measure(answers, asked).metrics)
        new, mixed = found
        columns = {name: [value, mixed[name]] for name, value in new.items()}
        return Measurement(new, {"by_ids": {"ids": [NEW, MIXED], **columns}})


class VocabularyExtensionConfig(TokenTaskConfig):
    """Return the input in reverse order, tested on ids that came later.

    Picture (K = 32, num_known = 16, L = 4):
        input    8 29  2 11  ?  ?  ?  ?
        target   .  .  .  . 11  2 29  8

    Training shows all ids. Of the test sequences, one half has new ids only (`num_known` and
    above), and its metrics are the trial's; the other half has any, see the table `by_ids`.
    `num_held_out` counts either half.

    Attributes:
        num_known: Ids that a pretrained network knows already; must be what it learnt.

    Source: Morita (2024), version 1, section 4.2.
    """

    kind: Literal["vocabulary_extension"] = "vocabulary_extension"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    num_known: Annotated[int, Field(ge=1, le=2**31)] = 32

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} known={self.num_known}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        held_out = NewAndMixed(num_known=self.num_known, num_held_out=self.num_held_out)
        return self.compose(Reverse(), metrics=(ByIds(),), held_out=held_out)
