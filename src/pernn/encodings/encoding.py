"""The base class of encodings, time index → vector, and controls."""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.errors import ConfigError
from pernn.kernels import refuse_trace


class Encoding(nn.Module, ABC):
    """A vector for every time step, the same for every sequence.

    Implied: the encodings of n steps are a prefix of those of n + 1. Not implied: unit norm,
    periodicity, an unlimited number of steps.

    Args:
        size: Width D of the encoding; 0 for none.
        combine: Concatenate the encoding to the input, or add it.
        masked: Phase in which the encoding is replaced by zeros; none if absent.

    Raises:
        ConfigError: If a value is not one of those.
    """

    embedding_copies: int = 1
    """How often the token's vector itself stands in the input."""

    def __init__(
        self,
        size: int,
        *,
        combine: Literal["concat", "add"] = "concat",
        masked: Literal["input", "output"] | None = None,
    ) -> None:
        super().__init__()
        if size < 0 or combine not in ("concat", "add") or masked not in ("input", "output", None):
            raise ConfigError(
                f"{type(self).__name__}: needs size >= 0, combine 'concat' or 'add', masked "
                f"'input', 'output' or None; got size={size}, combine={combine!r}, "
                f"masked={masked!r}"
            )
        self.size, self.combine, self.masked = size, combine, masked
        self.strength = 1.0
        """What the vectors are multiplied by, where a training changes it as it goes."""

    @abstractmethod
    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return the encodings of steps 0 … num_steps − 1."""

    def forward(
        self,
        inputs: "Shaped[Tensor, '*shape width'] | int",
        num_queries: int = 0,
        *,
        position_offset: int = 0,
    ) -> Float[Tensor, "*shape joined"]:
        """Join the encoding to vectors, or return that of n steps.

        Args:
            inputs: Vectors, batch first, as for `join`; or a number of steps.
            num_queries: How many of the steps, at the end, are the output phase.
            position_offset: Position of the first step.

        Returns:
            The joined vectors; for a number of steps one row each, zero in the masked phase.

        Raises:
            ConfigError: If `position_offset` is negative.
        """
        if isinstance(inputs, Tensor):
            return self.join(inputs, num_queries, position_offset=position_offset)
        position_offset = check_offset(position_offset)
        encodings = self._scaled(position_offset, position_offset + inputs)
        if self.masked is None:
            return encodings.clone()  # a caller may change it in place
        in_output = torch.arange(inputs, device=encodings.device) >= inputs - num_queries
        silent = in_output if self.masked == "output" else ~in_output
        return encodings.masked_fill(silent.unsqueeze(1), 0.0)

    def follow(self, device: torch.device) -> None:
        """Leave `meta` for where the vectors are."""

    def joined_size(self, width: int) -> int:
        """Return the width after joining vectors of `width`.

        Raises:
            ConfigError: If the encoding is to be added but has another width.
        """
        if self.size and self.combine == "add" and self.size != width:
            raise ConfigError(
                f"an encoding of size {self.size} cannot be added to vectors of {width}: "
                "make the sizes equal or use combine='concat'"
            )
        return width * self.embedding_copies + (self.size if self.combine == "concat" else 0)

    def join(
        self,
        vectors: Shaped[Tensor, "*shape width"],
        num_queries: int = 0,
        *,
        position_offset: "int | Int[Tensor, ' batch']" = 0,
        batch_first: bool = True,
        lengths: "Int[Tensor, ' batch'] | None" = None,
    ) -> Float[Tensor, "*shape joined"]:
        """Join the encoding to vectors: the plain way, step by step.

        Args:
            vectors: `(batch, time, width)`, or `(time, width)` of a single sequence.
            num_queries: How many of the steps, at the end, are the output phase.
            position_offset: Position of the first step, or of each sequence's first step; below 0
                in one that is padded on the left, whose padding has the encoding of position 0.
            batch_first: Whether vectors of three axes are not `(time, batch, width)` instead.
            lengths: Steps of each sequence, where each has an offset; what comes after is padding
                and has the encoding of its last step.

        Returns:
            Vectors of `joined_size(width)`.

        Raises:
            ConfigError: If the vectors are integers or too wide or narrow to be added to, or there
                is not one integer offset for each sequence.
        """
        refuse_trace()
        if self.size and not (vectors.is_floating_point() or vectors.is_complex()):
            raise ConfigError(
                f"{type(self).__name__}: the vectors' type is invalid: expected floating point, to "
                f"which encodings are rounded, got {vectors.dtype}; convert them with .float()"
            )
        self.joined_size(vectors.shape[-1])
        self.follow(vectors.device)
        joined = torch.cat([vectors] * self.embedding_copies, dim=-1)
        if not self.size:
            if not isinstance(position_offset, Tensor):
                check_offset(position_offset)
            return joined
        time_first = vectors.dim() == 3 and not batch_first
        num_steps = vectors.shape[0 if time_first else -2]
        if isinstance(position_offset, Tensor):
            batch = vectors.shape[1 if time_first else 0] if vectors.dim() == 3 else None
            encodings = self._at_each(position_offset, num_steps, batch, lengths)
            encodings = encodings.transpose(0, 1) if time_first else encodings
        else:
            encodings = self(num_steps, num_queries, position_offset=position_offset)
            encodings = encodings.unsqueeze(1) if time_first else encodings
        encodings = encodings.to(vectors.dtype)
        if self.combine == "add":
            return joined + encodings
        return torch.cat([joined, encodings.expand(*vectors.shape[:-1], -1)], dim=-1)

    def _at_each(
        self, offsets: Tensor, num_steps: int, batch: int | None, lengths: Tensor | None
    ) -> Float[Tensor, "batch time size"]:
        """Return the encodings of sequences that begin at positions of their own."""
        is_number = offsets.dtype != torch.bool and not offsets.is_floating_point()
        if not is_number or offsets.dim() != 1 or len(offsets) != batch:
            raise ConfigError(
                "position_offset is invalid: expected an int, or integers of shape "
                f"({'batch' if batch is None else batch},) beside a batch, got {offsets.dtype} of "
                f"shape {tuple(offsets.shape)}"
            )
        if self.masked is not None:
            raise ConfigError(
                f"{type(self).__name__}: masked={self.masked!r} needs one position_offset for all "
                f"sequences, got {len(offsets)}"
            )
        steps = torch.arange(num_steps, device=offsets.device)
        offsets = offsets.long()  # smaller integers would wrap
        positions = (offsets.unsqueeze(1) + steps).clamp_min(0)
        if lengths is not None:
            ends = offsets.clamp_min(0) + lengths.to(offsets.device).long() - 1
            positions = positions.minimum(ends.unsqueeze(1))
        if not positions.numel():
            return self._scaled(0, 0).new_empty(*positions.shape, self.size)
        return self._at(positions)

    def _at(self, positions: Tensor) -> Float[Tensor, "batch time size"]:
        first, last = map(int, positions.aminmax())
        if last - first > positions.numel():  # sequences far apart: a table for each
            return torch.cat([self._at(one) for one in positions.unsqueeze(1)])
        # By the module, whose hooks may prune a table.
        table = self(last + 1 - first, position_offset=first)
        return F.embedding((positions - first).to(table.device), table)

    def _scaled(self, first: int, end: int) -> Float[Tensor, "time size"]:
        vectors = self.between(first, end)
        if vectors.shape != (end - first, self.size):
            raise ConfigError(
                f"{type(self).__name__}: expected vectors of shape {(end - first, self.size)} for "
                f"steps {first} to {end}, got {tuple(vectors.shape)}"
            )
        return vectors if self.strength == 1 else self.strength * vectors

    def between(self, first: int, end: int) -> Float[Tensor, "time size"]:
        """Return the encodings of steps first … end − 1."""
        return self.vectors(end)[first:]

    def extra_repr(self) -> str:
        """Return the size, and what is not the default."""
        combine = f", combine={self.combine!r}" if self.combine != "concat" else ""
        masked = f", masked={self.masked!r}" if self.masked is not None else ""
        return f"{self.size}{combine}{masked}" if self.size else ""


class Computed(Encoding):
    """An encoding without weights, which has to be told where it lives."""

    anchor: Tensor

    def __init__(self, size: int, **placement: Any) -> None:
        super().__init__(size, **placement)
        # Tells where the module lives and in which precision.
        self.register_buffer("anchor", torch.empty(0), persistent=False)

    def follow(self, device: torch.device) -> None:
        """Leave `meta`, where `load_state_dict(assign=True)` brings weights alone."""
        if self.anchor.is_meta and device.type != "meta":
            self.anchor = torch.empty(0, dtype=self.anchor.dtype, device=device)

    def _apply(self, *args: Any, **options: Any) -> nn.Module:
        self.follow(torch.device("cpu"))  # there is nothing on `meta` that could be moved
        return super()._apply(*args, **options)  # type: ignore[no-untyped-call,no-any-return]


def check_offset(position_offset: Any) -> int:
    """Return a position as Python's integer, not below 0: NumPy's would wrap."""
    if isinstance(position_offset, float | bool) or position_offset < 0:
        raise ConfigError(
            f"position_offset is invalid: expected an integer of at least 0, got {position_offset}"
        )
    return int(position_offset)


class Constant(Computed):
    """The same vector of unit norm at every step: no clock.

    The arguments are those of `Encoding`.
    """

    def vectors(self, num_steps: int) -> Float[Tensor, "time size"]:
        """Return 1/√D everywhere."""
        return self.anchor.new_full((num_steps, self.size), self.size**-0.5)


class NoEncoding(Encoding):
    """No positional encoding: the vanilla network."""

    def __init__(self) -> None:
        super().__init__(0)

    def vectors(self, num_steps: int) -> Float[Tensor, "time 0"]:
        """Return encodings of width 0."""
        return torch.empty(num_steps, 0)


class RepeatedEmbedding(NoEncoding):
    """No positional encoding: the embedding concatenated with itself.

    As many input weights as an encoded network of the same encoding size, and no clock.

    Source: Morita (2024), version 5, appendix C.
    """

    embedding_copies = 2
