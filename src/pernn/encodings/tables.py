"""Encodings that are a table: learned, or random and fixed."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.errors import ConfigError

from .encoding import Encoding


class _Table(Encoding):
    weight: Tensor
    is_unit = False
    """Whether rows are drawn on the unit sphere."""

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return the first rows of the table."""
        if num_steps > len(self.weight):
            raise ConfigError(
                f"{type(self).__name__}: {num_steps} steps, but only {len(self.weight)} positions; "
                "raise num_positions"
            )
        return self.weight[:num_steps]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the table."""
        drawn = torch.randn(self.weight.shape, generator=generator)
        self.weight.copy_(F.normalize(drawn, dim=1) if self.is_unit else drawn)


class Learned(_Table):
    """A trainable encoding, initially N(0, 1), of norm about √D.

    Args:
        size: Width D.
        num_positions: Longest sequence, both phases.
        normalize: Scale every row to unit norm, which removes that confound.
        generator: Source of the initial values.
        combine: Concatenate the encoding to the input, or add it.
        masked: Phase in which the encoding is replaced by zeros.

    Source: Morita (2024), appendix C; Devlin et al. (2019).
    """

    def __init__(
        self,
        size: int,
        num_positions: int,
        *,
        normalize: bool = False,
        generator: torch.Generator | None = None,
        combine: Literal["concat", "add"] = "concat",
        masked: Literal["input", "output"] | None = None,
    ) -> None:
        super().__init__(size, combine=combine, masked=masked)
        self.normalize = normalize
        self.weight = nn.Parameter(torch.empty(num_positions, size))
        self.reset_parameters(generator)

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return the first rows of the table, normalised if asked."""
        rows = super().vectors(num_steps)
        return F.normalize(rows, dim=1) if self.normalize else rows


class Random(_Table):
    """Fixed random encodings, independent and uniform on the unit hypersphere.

    Args:
        size: Width D.
        num_positions: Longest sequence, both phases.
        generator: Source of the encodings.
        combine: Concatenate the encoding to the input, or add it.
        masked: Phase in which the encoding is replaced by zeros.

    Source: Morita (2024), appendix C.
    """

    is_unit = True

    def __init__(
        self,
        size: int,
        num_positions: int,
        *,
        generator: torch.Generator | None = None,
        combine: Literal["concat", "add"] = "concat",
        masked: Literal["input", "output"] | None = None,
    ) -> None:
        super().__init__(size, combine=combine, masked=masked)
        self.register_buffer("weight", torch.empty(num_positions, size))
        self.reset_parameters(generator)
