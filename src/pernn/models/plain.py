"""The plain path, the oracle of every faster one: concatenate, the plain layer, all logits.

The plain layer is PyTorch's own where there is one; S4D has none and goes step by step instead.
"""

from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pernn.cores import S4D, RecurrentCore
from pernn.errors import ConfigError
from pernn.interfaces import Recurrence

from .position_encoded import PositionEncodedRNN, last_steps


class PlainRNN(nn.Module):
    """The same network computed step by step, as a textbook script would.

    Args:
        model: The network whose weights are copied; its core must have a plain twin.

    Raises:
        ConfigError: If it has none.
    """

    def __init__(self, model: PositionEncodedRNN) -> None:
        super().__init__()
        self.embedding = deepcopy(model.embedding)
        self.encoding = deepcopy(model.encoding)
        self.core = _plain_twin(model.core)
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


def _plain_twin(core: Recurrence) -> nn.Module:
    """Give a layer that computes the same from whole input vectors, with weights of its own."""
    if isinstance(core, RecurrentCore):
        return core.to_torch()
    if isinstance(core, S4D):
        twin = deepcopy(core)
        twin.method = "recurrence"
        return twin
    raise ConfigError(f"no plain twin is known of the core {type(core).__name__}")
