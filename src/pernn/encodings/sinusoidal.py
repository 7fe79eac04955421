"""Sines and cosines of geometrically spaced frequencies, scaled to unit norm.

Feature pair i = 0 … D/2 − 1 at step p = 0, 1, …: sin and cos of p / 10000^(2i/D), over √(D/2).
Frequencies and phases may also be given one by one.
Source: Vaswani et al. (2017), section 3.5; the scale: Morita (2024), equations 1 and 2.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch._subclasses import FakeTensor

from pernn.errors import ConfigError

from .encoding import Computed
from .oscillators import oscillator_problem

LONGEST_TABLE = 2**14
"""Steps that are kept; of later ones those that are asked for are computed anew."""


class Sinusoidal(Computed):
    """Sinusoidal encoding of unit norm, for any number of steps.

    Args:
        size: Width D, even; twice the number of frequencies if those are given.
        layout: `halves`, all sines then all cosines (the published runs), or `interleaved`
            pairs (the published texts): a permutation of each other.
        frequencies: Of each pair, in radians per step, positive; geometrically spaced if absent.
        phases: Of each pair at step 0, in radians; 0 if absent.
        base: Of the geometric spacing, above 1; 10,000 if absent.
        combine: Concatenate the encoding to the input, or add it.
        masked: Phase in which the encoding is replaced by zeros.

    Raises:
        ConfigError: If the size is odd, the layout unknown, there are not as many frequencies and
            phases as pairs, or a number is out of range.

    Examples:
        >>> Sinusoidal(4)(3).norm(dim=1).round(decimals=4)
        tensor([1., 1., 1.])
        >>> tuple(Sinusoidal(4)(torch.zeros(2, 5, 8)).shape)  # joined to vectors
        (2, 5, 12)
    """

    def __init__(
        self,
        size: int | None = None,
        *,
        layout: Literal["interleaved", "halves"] = "halves",
        frequencies: Sequence[float] | None = None,
        phases: Sequence[float] | None = None,
        base: float | None = None,
        combine: Literal["concat", "add"] = "concat",
        masked: Literal["input", "output"] | None = None,
    ) -> None:
        frequencies, phases = (
            None if given is None else list(map(float, given)) for given in (frequencies, phases)
        )
        if size is None:
            size = 2 * len(frequencies or ())
        super().__init__(size, combine=combine, masked=masked)
        if size % 2 or not size:
            raise ConfigError(
                "Sinusoidal: size must be even and positive (a sine and a cosine per frequency), "
                f"got {size}"
            )
        if layout not in ("interleaved", "halves"):
            raise ConfigError(f"Sinusoidal: layout must be interleaved or halves, got {layout!r}")
        if problem := oscillator_problem(size, frequencies, phases, base):
            raise ConfigError(f"Sinusoidal: {problem}")
        self.layout, self.frequencies, self.phases, self.base = layout, frequencies, phases, base
        self._table = torch.empty(0, size)

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return the encodings, computed in float64 and rounded once."""
        return self._first(num_steps).clone()  # a caller may change it in place

    def _first(self, num_steps: int) -> Tensor:
        """Return the first rows of the table that is kept."""
        if torch.compiler.is_compiling():
            # What is traced must not outlive the trace, nor depend on what was asked before.
            return self._compute(0, num_steps)
        table, place = self._table, self.anchor
        if len(table) < num_steps or (table.device, table.dtype) != (place.device, place.dtype):
            # Asked for one more step at a time, as in generation, the table grows by doubling.
            grown = 2 * len(table) if 0 < len(table) < num_steps <= 2 * len(table) else num_steps
            table = self._compute(0, grown)
            if not isinstance(table, FakeTensor):
                self._table = table
        return table[:num_steps]

    def between(self, first: int, end: int) -> Float[Tensor, "time size"]:
        """Return the encodings of steps first … end − 1, of many no others."""
        if end > LONGEST_TABLE and first:
            return self._compute(first, end)
        own = type(self).vectors is Sinusoidal.vectors  # a subclass may give others
        return self._first(end)[first:] if own else super().between(first, end)

    def extra_repr(self) -> str:
        """Return the size and the layout, and what is not the default."""
        size, *rest = super().extra_repr().split(", ")
        own = [
            f"{name}={value!r}"
            for name in ("frequencies", "phases", "base")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join([size, f"layout={self.layout!r}", *rest, *own])

    # The table outlives the call: made in inference mode it could never serve training.
    @torch.inference_mode(mode=False)
    def _compute(self, first: int, end: int) -> Tensor:
        exponents = -torch.arange(0, self.size, 2, dtype=torch.float64) / self.size
        frequencies = torch.pow(10000.0 if self.base is None else float(self.base), exponents)
        if self.frequencies is not None:
            frequencies = torch.tensor(self.frequencies, dtype=torch.float64)
        angles = torch.arange(first, end, dtype=torch.float64).unsqueeze(1) * frequencies
        if self.phases is not None:
            angles = angles + torch.tensor(self.phases, dtype=torch.float64)
        axis = 2 if self.layout == "interleaved" else 1
        waves = torch.stack([angles.sin(), angles.cos()], dim=axis)
        unit = waves.reshape(end - first, self.size) / math.sqrt(self.size / 2)
        return unit.to(self.anchor)
