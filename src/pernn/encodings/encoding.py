"""What every encoding is: time index → vector, and how the vector joins the input."""

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pernn.errors import ConfigError


class Encoding(nn.Module, ABC):
    """A code for every time step, the same for every sequence.

    Implied: the codes of n steps are a prefix of those of n + 1. Not implied: unit norm,
    periodicity, an unlimited number of steps.

    Args:
        size: Width D of the code; 0 for none.
        attach: Concatenate the code to the input, or add it.
        masked: Phase in which the code is replaced by zeros; none if absent.

    Raises:
        ConfigError: If a value is not one of those.
    """

    embedding_copies: int = 1
    """How often the token's vector itself stands in the input."""

    def __init__(
        self,
        size: int,
        *,
        attach: Literal["concat", "add"] = "concat",
        masked: Literal["input", "output"] | None = None,
    ) -> None:
        super().__init__()
        if size < 0 or attach not in ("concat", "add") or masked not in ("input", "output", None):
            raise ConfigError(
                f"{type(self).__name__}: needs size >= 0, attach 'concat' or 'add', masked 'input',"
                f" 'output' or None; got size={size}, attach={attach!r}, masked={masked!r}"
            )
        self.size, self.attach, self.masked = size, attach, masked

    @abstractmethod
    def codes(self, num_steps: int) -> Float[Tensor, "time code"]:
        """Give the codes of steps 0 … num_steps − 1."""

    def forward(self, num_steps: int, num_queries: int = 0) -> Float[Tensor, "time code"]:
        """Give the codes, zero in the masked phase.

        Args:
            num_steps: Steps of both phases together.
            num_queries: How many of them, at the end, are the output phase.
        """
        codes = self.codes(num_steps)
        if self.masked is None:
            return codes
        in_output = torch.arange(num_steps, device=codes.device) >= num_steps - num_queries
        silent = in_output if self.masked == "output" else ~in_output
        return codes.masked_fill(silent.unsqueeze(1), 0.0)

    def joined_size(self, width: int) -> int:
        """Give the width of the input once the code has joined vectors of `width`.

        Raises:
            ConfigError: If the code is to be added but has another width.
        """
        if self.size and self.attach == "add" and self.size != width:
            raise ConfigError(
                f"a code of size {self.size} cannot be added to vectors of {width}: "
                "make the sizes equal or use attach='concat'"
            )
        return width * self.embedding_copies + (self.size if self.attach == "concat" else 0)

    def join(
        self, vectors: Float[Tensor, "batch time width"], num_queries: int = 0
    ) -> Float[Tensor, "batch time joined"]:
        """Attach the codes to vectors: the plain way, step by step."""
        joined = torch.cat([vectors] * self.embedding_copies, dim=-1)
        if not self.size:
            return joined
        codes: Tensor = self(vectors.shape[1], num_queries).to(vectors.dtype)
        if self.attach == "add":
            return joined + codes
        return torch.cat([joined, codes.expand(len(vectors), -1, -1)], dim=-1)
