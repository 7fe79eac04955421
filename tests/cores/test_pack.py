"""Stacked recurrences, the way of a GPU: each member computes what it computes alone."""

import pytest
import torch

from pernn.cores import GRU, LSTM, Elman

NUM_MEMBERS, TIME, BATCH, WIDTH = 3, 5, 4, 6


@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
def test_a_stack_gives_outputs_and_gradients_of_its_members(kind, generator):
    def draw(*shape):
        made = torch.randn(*shape, dtype=torch.float64, generator=generator)
        return made.requires_grad_()

    rows = kind.num_gates * WIDTH
    gates, weight = draw(TIME, NUM_MEMBERS, BATCH, rows), draw(NUM_MEMBERS, rows, WIDTH)
    late = draw(NUM_MEMBERS, WIDTH) if kind is GRU else None
    state = tuple(draw(NUM_MEMBERS, BATCH, WIDTH) for _ in range(kind.num_states))
    leaves = [leaf for leaf in (gates, weight, late, *state) if leaf is not None]
    probe = torch.randn(TIME, NUM_MEMBERS, BATCH, WIDTH, dtype=torch.float64, generator=generator)

    def total(outputs, final, weights):
        return (outputs * weights).sum() + sum((part**2).sum() for part in final)

    outputs, final = kind.recur_layer(gates, weight, late, state)
    found = torch.autograd.grad(total(outputs, final, probe), leaves)
    alone = 0
    for member in range(NUM_MEMBERS):
        one, last = kind.recur_layer(
            gates[:, member],
            weight[member],
            None if late is None else late[member],
            tuple(part[member] for part in state),
        )
        torch.testing.assert_close(outputs[:, member], one)
        for whole, part in zip(final, last, strict=True):
            torch.testing.assert_close(whole[member], part)
        alone = alone + total(one, last, probe[:, member])
    for one, other in zip(found, torch.autograd.grad(alone, leaves), strict=True):
        torch.testing.assert_close(one, other)
