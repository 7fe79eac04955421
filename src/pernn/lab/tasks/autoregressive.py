"""Reverse ordering or sorting by networks fed their own outputs."""

from typing import ClassVar, Literal

from .config import TokenTaskConfig
from .feedback import OwnOutput
from .metrics import Ascending, Sequences
from .rules import Reverse, Sort
from .synthetic import SyntheticTask


class AutoregressiveConfig(TokenTaskConfig):
    """Reorder the input sequence, each output being the next input.

    Picture (L = 4):
        input       8    29     2    11 DUMMY    11     2    29
        target      .     .     .     .    11     2    29     8

    DUMMY is a learnable vector, shown before there is an output. Training shows the true outputs
    (teacher forcing); the test feeds back the network's own, and says in the table `by_feedback`
    how it does with the true ones.

    Attributes:
        rule: The input sequence in reverse order, or in ascending order.

    Source: Morita (2024), version 1, appendix B.2 and C.2.
    """

    kind: Literal["autoregressive"] = "autoregressive"
    references: ClassVar[tuple[str, ...]] = ("morita2024",)
    rule: Literal["reverse", "sort"] = "reverse"

    @property
    def sizes(self) -> str:
        """Rule and sizes in a few words, for labels and `name`."""
        return f"{self.rule} {super().sizes}"

    def build(self) -> SyntheticTask:
        """Build the task."""
        if self.rule == "reverse":
            return self.compose(Reverse(), feedback=OwnOutput())
        return self.compose(Sort(), feedback=OwnOutput(), metrics=(Sequences(), Ascending()))
