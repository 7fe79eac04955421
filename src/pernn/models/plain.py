"""The textbook network, oracle of every faster path.

What the plain layer is, each core knows: PyTorch's own where there is one.
"""

from copy import deepcopy

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pernn.cores import Core
from pernn.errors import ConfigError

from .autoregressive import AutoregressiveRNN
from .network import count_outputs
from .position_encoded import PositionEncodedRNN
from .vector import VectorRNN


class PlainRNN(nn.Module):
    """The same network computed step by step, as a textbook script would.

    Args:
        model: The network whose weights are copied; its core must have a plain twin.

    Raises:
        ConfigError: If it has none.
    """

    def __init__(self, model: PositionEncodedRNN | VectorRNN) -> None:
        super().__init__()
        self.embedding = deepcopy(model.embedding)
        self.encoding = deepcopy(model.encoding)
        if not isinstance(model.core, Core):
            raise ConfigError(f"no plain twin is known of the core {type(model.core).__name__}")
        self.core = model.core.to_plain()
        self.output_layer = deepcopy(model.output_layer)
        self.vocab_size = model.vocab_size
        self.phase = deepcopy(model.phase) if isinstance(model, AutoregressiveRNN) else None

    def forward(
        self,
        tokens: Int[Tensor, "batch input_time"] | Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
        *,
        num_scored: int | None = None,
        scored: Bool[Tensor, "batch scored"] | None = None,
    ) -> Float[Tensor, "*rows vocab"]:
        """Compute every step's outputs, then keep the last `num_scored`."""
        # The query is an id, or the zero vector.
        value = 0 if tokens.is_floating_point() else self.vocab_size
        queries = tokens.new_full((len(tokens), num_queries, *tokens.shape[2:]), value)
        vectors = self.embedding(torch.cat([tokens, queries], dim=1))
        inputs = self.encoding.join(vectors, num_queries)
        if self.phase is not None:
            num_steps = inputs.shape[1]
            is_output = torch.arange(num_steps, device=tokens.device) >= num_steps - (
                num_scored or num_steps
            )
            phases = self.phase[is_output.long()].expand(len(tokens), -1, -1)
            inputs = torch.cat([inputs, phases], dim=2)
        outputs, _ = self.core(inputs)
        logits: Tensor = self.output_layer(outputs)
        logits = logits[:, -count_outputs(logits.shape[1], num_queries, num_scored) :]
        return logits if scored is None else logits[scored]
