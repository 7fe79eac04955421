"""Whole updates in one compiled call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .loading import find_kernels

MAX_HIDDEN = 384
"""Largest state of a network that whole updates train; at 512 the separate calls are a tenth faster
(docs/decisions/0027)."""
_are_whole = ContextVar("_are_whole", default=True)


@dataclass(frozen=True)
class UsualNetwork:
    """A network that a whole update can train.

    Attributes:
        kind: `elman`, `gru` or `lstm`.
        weights: Embedding, input weights, recurrent weights, output layer's weights and bias; then
            the layer's two biases if it has any.
        copies: How often a token's vector stands in the input.
        encodings: Of all steps, after the vectors in the input; none if absent.
        hooks: Of its modules, where they will be if any are registered.
    """

    kind: str
    weights: Sequence[nn.Parameter]
    copies: int
    encodings: Float[Tensor, "time size"] | None
    hooks: Sequence[Mapping[int, object]]

    def is_as_found(self) -> bool:
        """Return whether hooks and frozen weights are as when it was made."""
        return not any(self.hooks) and all(
            weight.requires_grad
            and not weight._backward_hooks
            and not weight._post_accumulate_grad_hooks
            for weight in self.weights
        )


@contextmanager
def whole_updates(*, enabled: bool) -> Iterator[None]:
    """Switch whole updates of usual networks in this thread.

    The results are the same up to rounding.

    Args:
        enabled: False goes through autograd; outside of this they are whole.
    """
    token = _are_whole.set(enabled)
    try:
        yield
    finally:
        _are_whole.reset(token)


def has_whole_updates(device: torch.device) -> bool:
    """Return whether whole updates are possible here and now."""
    if device.type != "cpu" or not _are_whole.get():
        return False
    kernels = find_kernels()
    return kernels is not None and 3 in kernels.product_parts
