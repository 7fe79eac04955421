"""A position-encoded layer for somebody else's network: vectors in, states out."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from pernn.cores import pack_as
from pernn.encodings import Encoding, check_offset
from pernn.errors import ConfigError


class PositionEncoded(nn.Module):
    """Positional encodings in front of any recurrent layer.

    Args:
        layer: `pernn.LSTM`, `torch.nn.LSTM` or the like, whose `input_size` is
            `encoding.joined_size(width of the vectors)`; may be bidirectional or have dropout.
        encoding: The positional encoding.
        batch_first: Whether vectors are `(batch, time, width)`; as the layer says if absent.

    Raises:
        ConfigError: If the encoding is a name (a layer does not tell its width), or nobody says
            which axis is time.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from pernn import PositionEncoded, Sinusoidal
        >>> layer = PositionEncoded(nn.GRU(4 + 6, 8, batch_first=True), Sinusoidal(6))
        >>> outputs, state = layer(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape)
        (2, 5, 8)

        A sequence in chunks, as in truncated backpropagation: state and position go on.

        >>> outputs, state, position = layer(torch.zeros(2, 5, 4), position_offset=0)
        >>> outputs, state, position = layer(torch.zeros(2, 3, 4), state, position_offset=position)
        >>> position
        8

        Sequences of 5 and of 3 steps, padded after their end, or before their beginning.

        >>> outputs, state = layer(torch.zeros(2, 5, 4), lengths=[5, 3])
        >>> outputs, state, _ = layer(torch.zeros(2, 5, 4), position_offset=torch.tensor([0, -2]))
    """

    def __init__(
        self, layer: nn.Module, encoding: Encoding | str, *, batch_first: bool | None = None
    ) -> None:
        super().__init__()
        if not isinstance(encoding, Encoding):
            raise ConfigError(
                "PositionEncoded: encoding is invalid: expected a module such as Sinusoidal(6), "
                f"got {encoding!r:.60}; its size is the layer's input_size less the vectors' width"
            )
        if encoding.masked is not None:
            raise ConfigError(
                f"PositionEncoded: masked={encoding.masked!r} is invalid: a layer has no output "
                "phase, which networks such as PositionEncodedRNN have"
            )
        found = getattr(layer, "batch_first", None)
        if batch_first is None:
            batch_first = found
        if batch_first is None or found not in (None, batch_first):
            raise ConfigError(
                f"PositionEncoded: batch_first is invalid: got {batch_first}, and "
                f"{type(layer).__name__} has {found}; pass batch_first as the layer has it"
            )
        self.layer, self.encoding, self.batch_first = layer, encoding, batch_first

    def forward(
        self,
        vectors: Float[Tensor, "*shape width"] | PackedSequence,
        hx: Any = None,
        *,
        position_offset: "int | Sequence[int] | Int[Tensor, ' batch'] | None" = None,
        lengths: "Sequence[int] | Int[Tensor, ' batch'] | None" = None,
    ) -> tuple[Any, ...]:
        """Run the layer.

        Args:
            vectors: As the layer takes them, `(time, width)` for a single sequence included; or
                sequences of several lengths, packed by `torch.nn.utils.rnn`.
            hx: The layer's initial state, as in PyTorch.
            position_offset: Position of the first step, of all sequences or of each; needed with
                `hx`, since a state is either the beginning of a sequence (0) or its continuation.
                A sequence with −n is padded by n steps on the left: they are skipped.
            lengths: Steps of each sequence; what comes after is padding and is skipped. The layer
                must take a PackedSequence, as PyTorch's and ours do; likewise for padding on the
                left.

        Returns:
            The layer's outputs (zeros where there is padding, packed if the vectors are) and the
            state after each sequence's last step; with `position_offset` also the position of the
            step that comes next, of each sequence if they differ.

        Raises:
            ConfigError: If a state comes without its position, or lengths and offsets do not fit
                the vectors.
        """
        check_position(hx, position_offset, self.encoding)
        offset: Any = 0 if position_offset is None else position_offset
        if hasattr(offset, "__len__"):  # small integers would wrap
            offset = to_integers("position_offset", offset, vectors.data.device)
        else:
            offset = check_offset(offset)
        is_left = isinstance(offset, Tensor) and bool((offset < 0).any())
        if isinstance(vectors, PackedSequence):
            if lengths is not None or is_left:
                raise ConfigError(
                    "lengths and position_offset below 0 are invalid beside a PackedSequence"
                )
            padded, counts = pad_packed_sequence(vectors, batch_first=True)
            joined = self.encoding.join(padded, position_offset=offset, lengths=counts)
            outputs, final = self.layer(pack_as(vectors, joined), hx)
            after = offset + counts.to(padded.device)
            return (outputs, final) if position_offset is None else (outputs, final, after)
        time = 0 if vectors.dim() == 3 and not self.batch_first else -2
        steps = vectors.shape[time]
        ends: int | Tensor = steps
        join = partial(self.encoding.join, vectors, batch_first=self.batch_first)
        if (lengths is None and not is_left) or 0 in vectors.shape[:-1]:
            outputs, final = self.layer(join(position_offset=offset), hx)
        else:
            if lengths is None:
                counts = steps + offset.clamp_max(0)
            elif is_left:
                raise ConfigError("lengths beside position_offset below 0: pad on one side only")
            else:
                ends = counts = to_integers("lengths", lengths, vectors.device)
            self._check_counts(counts, vectors, steps)
            # With an offset of each, padding needs no encoding: a table may not have one.
            offsets = offset if isinstance(offset, Tensor) else torch.full_like(counts, offset)
            joined = join(position_offset=offsets, lengths=counts)
            outputs, final = self._run_ragged(joined, hx, -offsets.clamp_max(0), counts, steps)
        return (outputs, final) if position_offset is None else (outputs, final, offset + ends)

    def _check_counts(self, counts: Tensor, vectors: Tensor, steps: int) -> None:
        """Refuse numbers of steps that are not each sequence's."""
        batch = vectors.shape[0 if self.batch_first else 1] if vectors.dim() == 3 else None
        if counts.shape != (batch,):
            raise ConfigError(
                f"lengths is invalid: expected an integer for each of {batch} sequences of a "
                f"batch, got shape {tuple(counts.shape)}"
            )
        least, most = map(int, counts.aminmax())
        if not 1 <= least <= most <= steps:
            raise ConfigError(f"each sequence must have 1 … {steps} steps, got {least} … {most}")

    def _run_ragged(
        self, joined: Tensor, hx: Any, left: Tensor, counts: Tensor, num_steps: int
    ) -> tuple[Tensor, Any]:
        """Run padded sequences as if each were alone."""
        batched = joined if self.batch_first else joined.transpose(0, 1)
        rows = torch.arange(len(batched), device=batched.device).unsqueeze(1)
        steps = torch.arange(num_steps, device=batched.device)
        left = left.unsqueeze(1)
        begun = batched[rows, (steps + left).clamp_max(num_steps - 1)]
        packed = pack_padded_sequence(begun, counts.cpu(), batch_first=True, enforce_sorted=False)
        found, final = self.layer(packed, hx)
        padded, _ = pad_packed_sequence(found, batch_first=True, total_length=num_steps)
        # Zeros come before a sequence that is padded on the left, as after any other.
        outputs = padded[rows, (steps - left).clamp_min(0)]
        outputs = outputs.masked_fill((steps < left).unsqueeze(2), 0.0)
        return outputs if self.batch_first else outputs.transpose(0, 1), final


def to_integers(name: str, given: Any, device: torch.device) -> Tensor:
    """Return whole numbers in 64 bits."""
    numbers = torch.as_tensor(given, device=device)
    if numbers.numel() and (numbers.dtype == torch.bool or numbers.is_floating_point()):
        raise ConfigError(f"{name} is invalid: expected integers, got {numbers.dtype}")
    return numbers.long()


def check_position(hx: Any, position_offset: object, encoding: Encoding) -> None:
    """Refuse a state without a position, which would count from 0."""
    if hx is not None and position_offset is None and encoding.size:
        raise ConfigError(
            "position_offset is missing: with an initial state pass position_offset=0 if the "
            "sequence begins here, or the position that the call before returned if it goes on"
        )
