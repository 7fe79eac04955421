"""Parameters of the built-in tasks."""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, model_validator

from pernn.config import Kinds, Part

from .lengths import Fixed
from .rules import Reverse
from .sources import Uniform
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
    "pernn.tasks", {"reverse_ordering": "pernn.tasks.config:ReverseOrderingConfig"}, TaskConfig
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


AnyTask = Annotated[SerializeAsAny[TaskConfig], PlainValidator(TASKS.validate)]
"""A field that takes any task by its kind."""
