"""The kernels' squashing functions against float64, over all magnitudes."""

import pytest
import torch

from pernn.kernels import describe_kernels, find_kernels

UNIT = 2.0**-24
"""Half a unit in the last place of a number next to 1, relative."""


@pytest.fixture
def numbers():
    """Both signs, from 1e-30 to 100, and the ends."""
    grid = torch.logspace(-30, 2, 2**16 - 8)
    whole = torch.cat([grid, torch.tensor([0.0, 88.0, 1e4, 1e30, torch.inf, 9.0, 17.3, 0.34])])
    return torch.cat([whole, -whole])


def squash(kind, numbers):
    """Run one step of a cell without recurrent weights; its activities are the functions."""
    kernels = find_kernels()
    if kernels is None:
        pytest.skip(describe_kernels())
    gates = {"elman": 1, "lstm": 4}[kind]
    table = numbers.view(-1, 16).repeat(1, gates)
    batch = len(table)
    packed = torch.zeros(1, 16, 16 * gates)
    outputs, _, saved = torch.ops.pernn.scan_forward(
        kind, 16, batch, 1, 1, 0, table, None, None, packed, None, None, None
    )
    return outputs if kind == "elman" else saved[0].unflatten(1, (4, 16))[:, 0]


def test_squashing_functions_are_exact_to_four_units(numbers):
    found = squash("elman", numbers).flatten().double()
    expected = torch.tanh(numbers.double())
    assert ((found - expected).abs() <= 4 * 2 * UNIT * expected.abs()).all()
    assert found.abs().max() <= 1
    # Below e^-87 its last digits would be denormal: it stays at that value.
    kept = numbers[numbers > -87]
    kept = kept[: len(kept) // 16 * 16]
    found = squash("lstm", kept).flatten().double()
    expected = torch.sigmoid(kept.double())
    assert ((found - expected).abs() <= 4 * 2 * UNIT * expected).all()
    assert (squash("lstm", torch.full((16,), -200.0)) < 1e-37).all()


@pytest.mark.parametrize("kind", ["elman", "lstm"])
def test_what_is_no_number_stays_none(kind):
    assert squash(kind, torch.full((16,), torch.nan)).isnan().all()
