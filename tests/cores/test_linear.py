"""Affine maps: PyTorch's distribution, from a generator that is not the global one."""

import torch

from pernn.cores import Linear


def test_building_draws_nothing() -> None:
    before = torch.get_rng_state()
    Linear(3, 4)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_is_drawn_as_pytorch_draws() -> None:
    linear, again = Linear(400, 50), Linear(400, 50)
    linear.reset_parameters(torch.Generator().manual_seed(1))
    again.reset_parameters(torch.Generator().manual_seed(1))
    for name, value in linear.named_parameters():
        assert torch.equal(value, again.get_parameter(name))
        assert 0.9 / 20 < value.abs().max() <= 1 / 20
    # As whoever resets a whole network by PyTorch's convention expects.
    again.reset_parameters()
    assert not torch.equal(linear.weight, again.weight)
