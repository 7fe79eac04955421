"""The plain path, the oracle of every faster one: concatenate, PyTorch's own layer, all logits."""

from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pernn.cores import RecurrentCore
from pernn.errors import ConfigError

from .position_encoded import PositionEncodedRNN, last_steps


class PlainRNN(nn.Module):
    """The same network computed step by step, as a textbook script would.

    Args:
        model: The network whose weights are copied; its core must know its PyTorch twin.

    Raises:
        ConfigError: If it does not.
    """

    def __init__(self, model: PositionEncodedRNN) -> None:
        super().__init__()
        self.embedding = deepcopy(model.embedding)
        self.encoding = deepcopy(model.encoding)
        if not isinstance(model.core, RecurrentCore):
            raise ConfigError(f"no plain twin is known of the core {type(model.core).__name__}")
        self.core = model.core.to_torch()
        self.readout = deepcopy(model.readout)
        self.vocab_size = model.vocab_size

    def forward(
        self,
        tokens: Int[Tensor, "batch input_time"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
    ) -> Float[Tensor, "batch scored vocab"]:
        """Compute every step's logits, then keep the last `num_scored`."""
        queries = tokens.new_full((len(tokens), num_queries), self.vocab_size)
        vectors = self.embedding(torch.cat([tokens, queries], dim=1))
        outputs, _ = self.core(self.encoding.join(vectors, num_queries))
        logits: Tensor = self.readout(outputs)
        return last_steps(logits, num_queries, num_scored)
