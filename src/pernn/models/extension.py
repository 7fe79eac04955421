"""Growing a trained network's vocabulary, all else frozen."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from pernn.cores import Linear
from pernn.errors import ConfigError

from .position_encoded import PositionEncodedRNN

Rows = Float[Tensor, "..."]
"""A weight or some of its rows."""


class FrozenRows(nn.Module):
    """A weight whose rows before and after the new ones are frozen.

    They are buffers, so no optimiser sees them and every checkpoint holds them.
    """

    before: Tensor
    after: Tensor

    def __init__(self, before: Rows, after: Rows) -> None:
        super().__init__()
        self.register_buffer("before", before.detach().clone())
        self.register_buffer("after", after.detach().clone())

    def forward(self, new: Rows) -> Rows:
        """Put the whole weight together."""
        return torch.cat([self.before, new, self.after])

    def right_inverse(self, whole: Rows) -> Rows:
        """Take the new rows out of the whole weight."""
        return whole[len(self.before) : len(whole) - len(self.after)].clone()


def extend_vocabulary(
    model: PositionEncodedRNN, vocab_size: int, generator: torch.Generator | None = None
) -> None:
    """Add ids to a network in place, and freeze the rest.

    The ids that it knows keep their numbers; the rows of the query and of other signs move behind
    the new ids. Left to train are the new rows of the embedding, N(0, 1) at first, and the new
    rows and biases of the output layer, U(−1/√hidden_size, 1/√hidden_size).

    Args:
        model: The trained network.
        vocab_size: Number of ids afterwards.
        generator: Source of the new weights.

    Raises:
        ConfigError: If there would not be more ids than before.

    Examples:
        >>> model = PositionEncodedRNN(vocab_size=10, core="gru", embedding_size=8, hidden_size=8)
        >>> extend_vocabulary(model, 20)
        >>> tuple(model(torch.tensor([[8, 19, 1]]), num_queries=3).shape), model.num_parameters
        ((1, 3, 20), 170)

    Source: Morita (2024), version 1, section 4.2.
    """
    known = model.vocab_size
    if vocab_size <= known:
        raise ConfigError(
            f"vocab_size must be more than the {known} ids that the network has, got {vocab_size}"
        )
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    count = vocab_size - known
    # Drawn on the CPU, so that they do not depend on the device.
    embedding = torch.randn(count, model.embedding.embedding_dim, generator=generator)
    outputs = Linear(model.output_layer.in_features, count, draw=False)
    outputs.reset_parameters(generator)
    _grow(model.embedding, "weight", embedding, known)
    _grow(model.output_layer, "weight", outputs.weight, known)
    _grow(model.output_layer, "bias", outputs.bias, known)
    model.embedding.num_embeddings += count
    model.output_layer.out_features = model.vocab_size = vocab_size


def _grow(module: nn.Module, name: str, new: Rows, known: int) -> None:
    if parametrize.is_parametrized(module, name):  # of an earlier extension
        parametrize.remove_parametrizations(module, name)
    old = getattr(module, name).detach()
    frozen = FrozenRows(old[:known], old[known:])
    setattr(module, name, nn.Parameter(frozen(new.detach().to(old))))
    parametrize.register_parametrization(module, name, frozen)
