"""Jacobians in float32 against float64, by compiled products where there are any and without."""

import pytest
import torch

from agreement import each_way
from pernn.analysis import jacobian
from pernn.cores import GRU, LSTM, Elman


@each_way
@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
@pytest.mark.parametrize(("size", "layers"), [(64, 1), (64, 2), (128, 1), (128, 2)])
def test_jacobians_in_float32_are_those_of_float64(way, kind, size, layers, generator):
    core = kind(6, size, layers, generator=generator)
    vectors = torch.randn(3, 40, 6, generator=generator)
    with way():
        found = jacobian(core, core.project(vectors), 2, 40)
    core = core.double()
    exact = jacobian(core, core.project(vectors.double()), 2, 40)
    # Rows are compared by themselves: gradients vanish at different rates.
    errors = (found - exact).norm(dim=2) / exact.norm(dim=2)
    assert errors.max() < 2e-5
