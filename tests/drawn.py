"""Numbers for layers and networks, and states as tuples."""

import torch


def draw(*shape, seed=2, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def parts_of(state):
    return state if isinstance(state, tuple) else (state,)
