"""The layers of a causal Transformer, with earlier steps as their state."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.cores import Linear
from pernn.errors import ConfigError

State = tuple[Float[Tensor, "batch _ twice_hidden"], ...]
"""Keys and values of all steps so far, of each layer."""


class Block(nn.Module):
    """Attention to the steps so far, then a map of each."""

    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.before = nn.LayerNorm(hidden_size)
        self.enter = Linear(hidden_size, 3 * hidden_size, draw=False)
        self.leave = Linear(hidden_size, hidden_size, draw=False)
        self.between = nn.LayerNorm(hidden_size)
        self.widen = Linear(hidden_size, 4 * hidden_size, draw=False)
        self.narrow = Linear(4 * hidden_size, hidden_size, draw=False)

    def forward(
        self, inputs: Float[Tensor, "batch time hidden"], past: Tensor
    ) -> tuple[Float[Tensor, "batch time hidden"], Tensor]:
        """Return the outputs, and keys and values of all steps so far."""
        width = inputs.shape[2]
        asked, new = self.enter(self.before(inputs)).split([width, 2 * width], dim=2)
        known = torch.cat([past, new], dim=1)
        shape = (self.num_heads, width // self.num_heads)
        query, key, value = (
            one.unflatten(2, shape).transpose(1, 2) for one in (asked, *known.chunk(2, 2))
        )
        seen = torch.ones(inputs.shape[1], known.shape[1], dtype=torch.bool, device=inputs.device)
        seen = seen.tril(past.shape[1])
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        inputs = inputs + self.leave(found.transpose(1, 2).flatten(2))
        return inputs + self.narrow(F.gelu(self.widen(self.between(inputs)))), known


class Transformer(nn.Module):
    """Causal Transformer as a layer that goes on from a state.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of the vectors within, and of the outputs.
        num_layers: Number of blocks.
        num_heads: Heads of each; a divisor of `hidden_size`.
        generator: Stream of the initial weights.

    Raises:
        ConfigError: If the heads do not share the width evenly.

    Examples:
        >>> outputs, state = Transformer(4, 8, num_layers=1, num_heads=2)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state[0].shape)
        ((2, 5, 8), (2, 5, 16))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        num_heads: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ConfigError(
                f"num_heads is invalid: expected a divisor of hidden_size = {hidden_size}, "
                f"got {num_heads}"
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        self.enter = Linear(input_size, hidden_size, draw=False)
        self.blocks = nn.ModuleList(Block(hidden_size, num_heads) for _ in range(num_layers))
        self.after = nn.LayerNorm(hidden_size)
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters(generator)

    def forward(
        self, inputs: Float[Tensor, "batch time input"], state: State | None = None
    ) -> tuple[Float[Tensor, "batch time hidden"], State]:
        """Return the outputs, and the state to go on from."""
        vectors = self.enter(inputs)
        nothing = vectors.new_zeros(len(vectors), 0, 2 * self.hidden_size)
        seen = []
        for block, past in zip(self.blocks, state or [nothing] * len(self.blocks), strict=True):
            vectors, known = block(vectors, past)
            seen.append(known)
        return self.after(vectors), tuple(seen)
