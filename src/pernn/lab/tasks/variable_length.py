"""Inputs of various lengths in one batch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .config import TokenTaskConfig
from .lengths import UniformRange
from .metrics import ByLength, Sequences
from .rules import Reverse
from .synthetic import SyntheticTask


class VariableLengthConfig(TokenTaskConfig):
    """Return input sequences of various lengths in reverse order.

    Picture (min_length = 2, L = 4):
        input    8 29  2  ?  ?  ?
        target   .  .  .  2 29  8

    Every sequence draws its length from min_length … L, all equally likely; this one has three
    tokens. Time counts from its start; what fills it up in a batch comes after its last answer and
    is never scored.

    Attributes:
        length: Length of the longest inputs, L.
        min_length: Length of the shortest inputs.
        num_held_out: Distinct test sequences of each length, never shown in training.

    Source: Morita (2024), versions 2 and 3, figure 9.
    Differs: where nearly all sequences of a length are held out, that length is rarer in training.
    """

    kind: Literal["variable_length"] = "variable_length"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    vocab_size: Annotated[int, Field(ge=2, le=2**31)] = 16_384
    min_length: Annotated[int, Field(ge=1, le=2**16)] = 32

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} shortest={self.min_length}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        length = UniformRange(min_length=self.min_length, longest=self.length)
        return self.compose(Reverse(), length=length, metrics=(Sequences(), ByLength()))
