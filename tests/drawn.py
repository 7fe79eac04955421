"""Numbers for layers and networks, and states as tuples."""

import torch


def draw(*shape, seed=2, dtype=torch.float64):
    """Draw normal numbers that the seed decides."""
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def parts_of(state):
    """Return the tensors of a state of one or several."""
    return state if isinstance(state, tuple) else (state,)
