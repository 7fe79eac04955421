"""How states hold tokens, and are read: hand-made memories, and laws."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from pernn.analysis import (
    input_gradients,
    jacobian,
    latent_states,
    log_slope,
    perturb,
    position_changes,
    read_linearly,
    subspace_overlap,
)
from pernn.cores import GRU, LSTM, S4D, Elman

WIDTH, LENGTH = 3, 4


class Linear(nn.Module):
    """h_t = A h_{t−1} + B x_t."""

    def __init__(self, matrix, entry):
        super().__init__()
        self.register_buffer("matrix", matrix)
        self.register_buffer("entry", entry)
        self.hidden_size, self.input_size = entry.shape

    def project(self, inputs, *, offset=0, bias=True):
        return inputs @ self.entry[:, offset : offset + inputs.shape[-1]].T

    def recur(self, gates, state=None):
        state = gates.new_zeros(len(gates), self.hidden_size) if state is None else state
        outputs = []
        for gate in gates.unbind(1):
            state = state @ self.matrix.T + gate
            outputs.append(state)
        return torch.stack(outputs, dim=1), state


def register():
    """A shift register: each input goes into the first slot, all others move on by one."""
    size = WIDTH * LENGTH
    shift = torch.diag(torch.ones(size - WIDTH), -WIDTH)
    return Linear(shift, torch.eye(size)[:, :WIDTH])


def onion(factor):
    """All inputs go to the same place, the older the smaller."""
    return Linear(factor * torch.eye(WIDTH), torch.eye(WIDTH))


def vectors(batch=20, length=LENGTH, width=WIDTH):
    return torch.randn(batch, length, width, generator=torch.Generator().manual_seed(1))


def changes(core):
    gates = core.project(vectors())
    return position_changes(core, gates, gates.roll(1, 0))


def test_a_shift_register_has_no_overlap_and_a_sum_nothing_else():
    torch.testing.assert_close(subspace_overlap(changes(register())), torch.eye(LENGTH))
    # One place for all, and the same inputs at all steps.
    core, gates = onion(0.5), vectors()[:, :1].expand(-1, LENGTH, -1)
    found = subspace_overlap(position_changes(core, gates, gates.roll(1, 0)))
    torch.testing.assert_close(found, torch.ones(LENGTH, LENGTH))


def test_the_overlap_of_lines_is_their_squared_cosine_at_any_scale_in_any_basis():
    found = torch.randn(3, 10, 5, generator=torch.Generator().manual_seed(2))
    expected = subspace_overlap(found)
    rotation = torch.linalg.qr(vectors(1, 5, 5)[0]).Q
    for factor in (1e6, 1e30):
        scales = torch.tensor([1 / factor, 1.0, factor])[:, None, None]
        torch.testing.assert_close(subspace_overlap(scales * found @ rotation), expected)
    torch.testing.assert_close(expected, expected.T)
    torch.testing.assert_close(expected.diagonal(), torch.ones(3))
    # A position that changes nothing has none, with itself neither.
    found[1] = expected[1] = expected[:, 1] = 0
    torch.testing.assert_close(subspace_overlap(found), expected)
    angle = torch.tensor(0.3)
    lines = torch.tensor([[1.0, 0.0], [angle.cos(), angle.sin()]])
    found = subspace_overlap(lines.unsqueeze(1))
    assert found[0, 1].item() == pytest.approx(angle.cos().item() ** 2)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_an_onion_has_the_slope_of_its_factor(factor):
    core = onion(factor)
    norms = input_gradients(core, core.project(vectors()))
    assert norms[:, -1].tolist() == pytest.approx([WIDTH**0.5] * 20)
    assert log_slope(norms).tolist() == pytest.approx([-math.log(factor)] * 20, abs=1e-6)
    assert log_slope(input_gradients(register(), register().project(vectors()))).abs().max() < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("make", [Elman, GRU, LSTM])
def test_gradients_in_the_inputs_are_those_of_autograd(make, dtype):
    core = make(WIDTH, 5, generator=torch.Generator().manual_seed(3)).to(dtype)
    inputs = vectors(2).to(dtype).requires_grad_()
    full = torch.autograd.functional.jacobian(
        lambda x: core.recur(core.project(x))[0][:, -1].sum(0), inputs
    )
    expected = full.square().sum((0, 3)).sqrt()
    gates = core.project(inputs.detach())
    torch.testing.assert_close(input_gradients(core, gates), expected)
    part = full[..., :2].square().sum((0, 3)).sqrt()
    torch.testing.assert_close(input_gradients(core, gates, width=2), part)


@pytest.mark.parametrize("make", [Elman, GRU, LSTM, S4D])
def test_states_are_as_long_as_rows_of_the_jacobian_and_begin_with_outputs(make):
    core = make(WIDTH, 5, generator=torch.Generator().manual_seed(3))
    gates = core.project(vectors(2)).detach()
    states = latent_states(core, gates)
    assert states.shape == (2, LENGTH, jacobian(core, gates, 1, 2).shape[2])
    if make is not S4D:  # its outputs are no part of its state
        torch.testing.assert_close(states[..., :5], core.recur(gates)[0])
    # What came before decides, what comes after does not.
    torch.testing.assert_close(states[:, :2], latent_states(core, gates[:, :2]))


def test_noise_is_a_share_of_each_weight_and_leaves_the_network_alone():
    network = nn.ModuleList([nn.Linear(300, 300), nn.Linear(200, 200)])
    with torch.no_grad():
        network[1].weight *= 50
    before = {name: one.clone() for name, one in network.state_dict().items()}
    noisy = perturb(network, 0.1, torch.Generator().manual_seed(4)).state_dict()
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name])
        if "weight" in name:
            share = (noisy[name] - weight).std() / weight.square().mean().sqrt()
            assert share.item() == pytest.approx(0.1, rel=0.02)
    again = perturb(network, 0.1, torch.Generator().manual_seed(4)).state_dict()
    assert all(torch.equal(again[name], noisy[name]) for name in noisy)


def test_gradients_do_not_depend_on_what_a_projection_adds_and_vanish_in_no_precision():
    plain, biased = onion(0.9), onion(0.9)
    biased.project = lambda inputs, **_: plain.project(inputs) + 1  # whatever it is asked
    gates = biased.project(vectors())
    assert torch.equal(input_gradients(biased, gates), input_gradients(plain, gates))
    slopes = log_slope(input_gradients(onion(0.1), vectors(length=30)))
    torch.testing.assert_close(slopes, torch.full_like(slopes, math.log(10)))
    assert log_slope(torch.tensor([[0.0, 1.0]])).isnan()
    far = log_slope(input_gradients(onion(0.1), vectors(length=60)))  # the first is 1e-60
    torch.testing.assert_close(far, torch.full_like(far, math.log(10)))


DRAWN = np.random.default_rng(5)
TOKENS, OTHERS = DRAWN.integers(5, size=(2, 2_000))
SLOTS = np.concatenate([np.eye(5)[TOKENS], np.eye(5)[OTHERS]], axis=1)


def test_what_is_linear_is_read_in_any_basis_and_nothing_else():
    mixed = SLOTS @ DRAWN.normal(size=(10, 12))
    for states in (SLOTS, mixed, mixed + 3, np.eye(5)[TOKENS]):
        assert read_linearly(states, TOKENS).all()
    assert read_linearly(mixed, OTHERS).all()
    share = read_linearly(SLOTS, DRAWN.permutation(TOKENS)).mean()
    assert abs(share - 1 / 5) < 4 * (0.2 * 0.8 / 2_000) ** 0.5
    signs = DRAWN.choice([-1.0, 1.0], size=(2_000, 2))
    share = read_linearly(signs, (signs.prod(axis=1) > 0).astype(np.int64)).mean()
    assert share < 0.6
    labels = np.where(np.arange(2_000) == 3, 7, TOKENS)
    read = read_linearly(np.eye(8)[labels], labels)
    assert not read[3]
    assert read.sum() == 1_999
    assert not read_linearly(np.full((2_000, 3), 0.1), TOKENS).any()
