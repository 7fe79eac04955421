"""Parameters of the built-in tasks."""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from pernn.config import Kinds, Part

from .feedback import HoldAndEmit, Unprompted
from .lengths import Fixed
from .rules import DelayedAddition, Predecessor, Reverse, Same, Sort
from .sources import Cued, NonRepeating, Uniform
from .synthetic import SyntheticTask


class TaskConfig(Part):
    """What every task has; a third-party task derives its config from this.

    Attributes:
        vocab_size: Number of token ids, K.
        length: Length of the inputs, L.
        num_held_out: Distinct test sequences, never shown in training.
    """

    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 64
    length: Annotated[int, Field(ge=1, le=2**16)] = 64
    num_held_out: Annotated[int, Field(ge=1, le=2**24)] = 1024

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed.

        Spelt out rather than dumped, so that a new parameter does not change old data.
        """
        return f"{self.kind} K={self.vocab_size} L={self.length} held_out={self.num_held_out}"

    @abstractmethod
    def build(self) -> SyntheticTask:
        """Make the task."""

    @model_validator(mode="after")
    def _possible(self) -> "TaskConfig":
        self.build()
        return self


TASKS = Kinds(
    "pernn.tasks",
    {
        "reverse_ordering": "pernn.tasks.config:ReverseOrderingConfig",
        "sorting": "pernn.tasks.config:SortingConfig",
        "delayed_addition": "pernn.tasks.config:DelayedAdditionConfig",
        "predecessor_query": "pernn.tasks.config:PredecessorQueryConfig",
        "copying_memory": "pernn.tasks.config:CopyingMemoryConfig",
    },
    TaskConfig,
)


class ReverseOrderingConfig(TaskConfig):
    """Give the input sequence back in reverse order.

    Picture (L = 4):
        input    8 29  2 11  ?  ?  ?  ?
        target   .  .  .  . 11  2 29  8

    Source: Morita (2024), section 2.1.
    """

    kind: Literal["reverse_ordering"] = "reverse_ordering"

    def build(self) -> SyntheticTask:
        """Make the task."""
        return SyntheticTask(
            name=self.name,
            rule=Reverse(),
            source=Uniform(vocab_size=self.vocab_size),
            length=Fixed(length=self.length),
            num_held_out=self.num_held_out,
        )


class SortingConfig(TaskConfig):
    """Give the input sequence back in ascending order.

    Picture (L = 4):
        input    8 29  2  8  ?  ?  ?  ?
        target   .  .  .  .  2  8  8 29

    Ids are drawn with replacement; what occurs twice is to be given twice.
    """

    kind: Literal["sorting"] = "sorting"

    def build(self) -> SyntheticTask:
        """Make the task."""
        return SyntheticTask(
            name=self.name,
            rule=Sort(),
            source=Uniform(vocab_size=self.vocab_size),
            length=Fixed(length=self.length),
            num_held_out=self.num_held_out,
        )


class DelayedAdditionConfig(TaskConfig):
    """Give the input sequence back in reverse order, each token plus the addend shown with it.

    Picture (K = 32, L = 3):
        input    8 29  2  5  4 30
        target   .  .  .  7  1  6

    Sums are modulo K. There is no query: the L addends are inputs like the L tokens before them,
    and `length` is L.
    """

    kind: Literal["delayed_addition"] = "delayed_addition"
    length: Annotated[int, Field(ge=1, le=2**16)] = 16

    def build(self) -> SyntheticTask:
        """Make the task."""
        return SyntheticTask(
            name=self.name,
            rule=DelayedAddition(vocab_size=self.vocab_size),
            source=Uniform(vocab_size=self.vocab_size),
            length=Fixed(length=2 * self.length),
            feedback=Unprompted(),
            num_held_out=self.num_held_out,
        )


class PredecessorQueryConfig(TaskConfig):
    """Say which token stood before the one that is shown again.

    Picture (L = 4):
        input    8 29  2 11  2
        target   .  .  .  . 29

    The L tokens are distinct, so `vocab_size` must be at least `length`; the first one is never
    shown again. There is no query row.
    """

    kind: Literal["predecessor_query"] = "predecessor_query"
    length: Annotated[int, Field(ge=2, le=2**16)] = 16

    def build(self) -> SyntheticTask:
        """Make the task."""
        return SyntheticTask(
            name=self.name,
            rule=Predecessor(),
            source=Cued(source=NonRepeating(vocab_size=self.vocab_size)),
            length=Fixed(length=self.length + 1),
            feedback=Unprompted(),
            num_held_out=self.num_held_out,
        )


class CopyingMemoryConfig(TaskConfig):
    """Give the input sequence back in its own order after a time of waiting.

    Picture (L = 3, hold_time = 2):
        input    5    2    7 HOLD HOLD EMIT EMIT EMIT
        target   .    .    .    .    .    5    2    7

    HOLD and EMIT are two learnable vectors: EMIT is the query, HOLD the token K + 1.

    Attributes:
        hold_time: Steps between the inputs and the answers.
    """

    kind: Literal["copying_memory"] = "copying_memory"
    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 8
    length: Annotated[int, Field(ge=1, le=2**16)] = 10
    hold_time: Annotated[int, Field(ge=0, le=2**16)] = 60

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} hold_time={self.hold_time}"

    def build(self) -> SyntheticTask:
        """Make the task."""
        return SyntheticTask(
            name=self.name,
            rule=Same(),
            source=Uniform(vocab_size=self.vocab_size),
            length=Fixed(length=self.length),
            feedback=HoldAndEmit(hold_time=self.hold_time),
            num_held_out=self.num_held_out,
        )


AnyTask = Annotated[SerializeAsAny[TaskConfig], PlainValidator(TASKS.validate)]
"""A field that takes any task by its kind."""
