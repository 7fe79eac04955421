"""Inputs that are longer in the test than in training."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .coded import CodedReversal
from .config import TokenTaskConfig
from .metrics import ByLength, Sequences
from .sequences import Reverse, UniformRange
from .synthetic import SyntheticTask


class LongerInputsConfig(TokenTaskConfig):
    """Return input sequences in reverse order, tested on longer ones, too.

    Picture (min_length = 2, L = 4):
        input    8 29  2  ?  ?  ?
        target   .  .  .  2 29  8

    Training is like that of `variable_length`; test sequences have its lengths, and those beyond.
    None that is shown in training is the start of a longer test sequence.

    Attributes:
        length: Length of the longest inputs of training, L.
        min_length: Length of the shortest inputs.
        num_held_out: Distinct test sequences of each length, never shown in training.
        tested_lengths: Lengths beyond L that are tested, too, ascending.
        codes: `onset`, a sinusoidal encoding as in `coded_reversal`, from a position that each
            sequence draws; none if absent.
        code_size: Width of a code.

    Source: ours.
    """

    kind: Literal["longer_inputs"] = "longer_inputs"
    references: ClassVar[tuple[str, ...]] = ()
    # Ids are exact as float32, which stand beside the codes.
    vocab_size: Annotated[int, Field(ge=2, le=2**24)] = 64
    length: Annotated[int, Field(ge=1, le=2**16)] = 8
    min_length: Annotated[int, Field(ge=1, le=2**16)] = 4
    tested_lengths: Annotated[tuple[int, ...], Field(min_length=1, max_length=2**10)] = (12, 16)
    codes: Literal["onset"] | None = None
    code_size: Annotated[int, Field(ge=2, le=2**16, multiple_of=2)] = 64

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        lengths = f"shortest={self.min_length} tested={','.join(map(str, self.tested_lengths))}"
        codes = f" codes={self.codes} size={self.code_size}" if self.codes else ""
        return f"{super().name} {lengths}{codes}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        if self.codes:
            plain = self.override({"codes": None}).build()
            return CodedReversal.of(plain, self.codes, self.code_size)
        length = UniformRange(
            min_length=self.min_length, longest=self.length, beyond=self.tested_lengths
        )
        return self.compose(Reverse(), length=length, metrics=(Sequences(), ByLength()))
