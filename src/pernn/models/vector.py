"""The network for an infinite vocabulary: vectors in, vectors out."""

import torch
from jaxtyping import Float
from torch import Tensor

from pernn.cores import Linear, Projected
from pernn.errors import ConfigError

from .network import EncodedNetwork


class VectorRNN(EncodedNetwork):
    """A network from vectors to vectors, by linear maps.

    The query is the zero vector, so the core sees the bias of the first map.

    Args:
        vocab_size: Width d of the vectors, in and out.
        core: Module that recurs, its class or kind;
            or `torch.nn.GRU` and the like, for which ours of the same function stands in.
        encoding: Module that gives the encodings, or the kind of one.
        embedding_size: Width of what the vectors are projected to; the state's if absent.
        hidden_size: Width of the state of a core that is made here; 512 if absent.
        num_layers: Layers of a core that is made here; 1 if absent.
        num_positions: Longest sequence, both phases, for an encoding given by kind; 1,024 if
            absent.
        device: Where the network goes once its weights are drawn.
        dtype: Its type there.
        generator: Source of the initial weights of what is made here.

    Raises:
        ConfigError: If the width is not positive, the core is not a pernn core, or its input
            size is not the width of what it gets.

    Examples:
        >>> model = VectorRNN(3, "gru", embedding_size=8, hidden_size=8)
        >>> tuple(model(torch.zeros(1, 4, 3), num_queries=4).shape)
        (1, 4, 3)

    Source: Morita (2024), version 1, appendix B.3.
    """

    embedding: Linear

    def make_embedding(self, width: int) -> Linear:
        """Make the first map.

        Raises:
            ConfigError: If vectors would have no component, or rows are wanted, as of ids.
        """
        if self.vocab_size < 1 or self.num_extra_rows != 1:
            raise ConfigError(
                "vectors need at least one component and have no extra rows, got "
                f"vocab_size={self.vocab_size} and num_extra_rows={self.num_extra_rows}"
            )
        return Linear(self.vocab_size, width, draw=False)

    def reset_embedding(self, generator: torch.Generator | None = None) -> None:
        """Draw the first map's weights and biases as `torch.nn.Linear` does."""
        self.embedding.reset_parameters(generator)

    def prepare(
        self,
        tokens: Float[Tensor, "batch input_time vocab"],
        num_queries: int = 0,
        num_scored: int | None = None,
        position_offset: int = 0,
    ) -> Projected:
        """Project every vector, and the query: the map of the zero vector."""
        batch, input_time = tokens.shape[:2]
        vectors = self.embedding(tokens.transpose(0, 1).flatten(0, 1))
        rows = torch.cat([vectors, self.embedding.bias.unsqueeze(0)])
        rows = torch.cat([rows] * self.encoding.embedding_copies, dim=1)
        encodings = self.project_encoding(input_time + num_queries, num_queries, position_offset)
        return Projected(
            self.core.project(rows),
            batch,
            input_time,
            num_queries,
            query_row=len(rows) - 1,
            encodings=encodings,
        )

    def check_inputs(self, tokens: Tensor) -> None:
        """Refuse what is not vectors of this network.

        Raises:
            ConfigError: If they have another width or other axes.
        """
        if tokens.dim() not in (2, 3) or tokens.shape[-1] != self.vocab_size:
            raise ConfigError(
                f"tokens is invalid: expected vectors (batch, time, {self.vocab_size}) or "
                f"(time, {self.vocab_size}), got {tuple(tokens.shape)}"
            )
