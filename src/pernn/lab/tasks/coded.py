"""Reverse ordering with vectors beside tokens, or on longer inputs."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from pernn.lab.interfaces import Batch
from pernn.lab.metrics import ByLength, Sequences
from pernn.randomness import RandomStream, Split, integers

from .config import ReverseOrderingConfig, TokenTaskConfig
from .infinite_vocabulary import Spherical
from .sequences import Reverse, UniformRange
from .synthetic import SyntheticTask

Kind = Literal["noise", "shared_noise", "keys", "unmirrored_keys", "onset"]
NUM_ONSETS = 1_024
"""Positions at which sinusoids may begin."""


class CodedReversalConfig(TokenTaskConfig):
    """Return the input in reverse order, a unit vector beside each token.

    Picture (L = 4, keys):
        input    8 29  2 11  ?  ?  ?  ?
        code     a  b  c  d  d  c  b  a
        target   .  .  .  . 11  2 29  8

    Tokens are those of `reverse_ordering`. The codes are a part of the input, not an encoding, as
    each sequence has its own.

    Attributes:
        codes: `noise`, another vector at every step; `shared_noise`, the same for all sequences of
            a batch; `keys`, a vector for each token, shown again when the token is asked for;
            `unmirrored_keys`, shown again in the order of the inputs; `onset`, the sinusoidal
            encoding of 2L positions, the first of which is one of 1,024.
        code_size: Width of a code.

    Source: ours.
    """

    kind: Literal["coded_reversal"] = "coded_reversal"
    references: ClassVar[tuple[str, ...]] = ()
    # Ids are exact as float32, which stand beside the codes.
    vocab_size: Annotated[int, Field(ge=2, le=2**24)] = 64
    codes: Kind = "noise"
    code_size: Annotated[int, Field(ge=2, le=2**16, multiple_of=2)] = 64

    @property
    def name(self) -> str:
        """Canonical description: what the data depend on beside the seed."""
        return f"{super().name} codes={self.codes} size={self.code_size}"

    def build(self) -> "CodedReversal":
        """Build the task."""
        plain = ReverseOrderingConfig(
            vocab_size=self.vocab_size, length=self.length, num_held_out=self.num_held_out
        ).build()
        return CodedReversal(**vars(plain), codes=self.codes, code_size=self.code_size)


class LongerInputsConfig(TokenTaskConfig):
    """Return input sequences in reverse order, tested on longer ones, too.

    Picture (min_length = 2, L = 4):
        input    8 29  2  ?  ?  ?
        target   .  .  .  2 29  8

    Training is like that of `variable_length`; test sequences have its lengths, and those beyond.
    No training sequence of L ids is the start of a longer test sequence.

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
    tested_lengths: Annotated[
        tuple[Annotated[int, Field(le=2**16)], ...], Field(min_length=1, max_length=2**10)
    ] = (12, 16)
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
            return CodedReversal(**vars(plain), codes=self.codes, code_size=self.code_size)
        length = UniformRange(
            min_length=self.min_length, longest=self.length, beyond=self.tested_lengths
        )
        return self.compose(Reverse(), length=length, metrics=(Sequences(), ByLength()))


@dataclass(frozen=True, kw_only=True)
class CodedReversal(SyntheticTask):
    """A task whose tokens are vectors: an id, then its code.

    Args:
        codes: Which, as `CodedReversalConfig` has them.
        code_size: Width of a code, even.
    """

    network: ClassVar[Literal["coded"]] = "coded"
    num_queries: ClassVar[int] = 0
    """None: queries have codes, so they stand among the tokens."""
    codes: Kind
    code_size: int

    def draw_codes(
        self, stream: RandomStream, step: int, count: int, steps: int
    ) -> Float32[np.ndarray, "batch time code"]:
        """Return the codes of a batch, of sequences of that many steps."""
        if self.codes == "onset":
            positions = integers(stream.words(step, count), NUM_ONSETS)[:, None]
            rates = 10_000.0 ** (-np.arange(0, self.code_size, 2) / self.code_size)
            angles = (positions + np.arange(steps))[:, :, None] * rates
            found = np.concatenate([np.sin(angles), np.cos(angles)], axis=2)
            found /= np.sqrt(self.code_size / 2)
            return found.astype(np.float32)
        source = Spherical(dimension=self.code_size)
        rows = 1 if self.codes == "shared_noise" else count
        steps = steps // 2 if self.codes.endswith("keys") else steps
        words = stream.words(step, rows * steps * source.num_draws)
        found = source.draw(words.reshape(rows, -1))
        if self.codes.endswith("keys"):
            again = found[:, ::-1] if self.codes == "keys" else found
            found = np.concatenate([found, again], axis=1)
        return np.broadcast_to(found, (count, *found.shape[1:]))

    def shown(self, plain: Batch, seed: int, split: Split, step: int) -> Batch:
        """Put the codes beside tokens and queries."""
        name = f"{self.name} codes={self.codes} size={self.code_size}"
        queries = np.full((len(plain.tokens), plain.num_queries), self.vocab_size)
        ids = np.concatenate([plain.tokens, queries], axis=1)[:, :, None].astype(np.float32)
        codes = self.draw_codes(RandomStream(seed, name, split), step, *ids.shape[:2])
        return Batch(np.concatenate([ids, codes], axis=2), 0, plain.targets)
