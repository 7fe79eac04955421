"""Products with factors: the compiled ones and PyTorch's against float64."""

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pernn.analysis import jacobian
from pernn.analysis.factored import FactoredProduct, choose_panel
from pernn.cores import GRU, LSTM, Elman
from pernn.kernels import find_kernels, without_kernels

PANEL = 0 if find_kernels() is None else find_kernels().factor_panel
WAYS = {"compiled": nullcontext, "torch": without_kernels}
needs_units = pytest.mark.skipif(not PANEL, reason="no compiled products on this processor")


def draw(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def multiply(weights, panel, values, group, *, add):
    """Return the result and the source afterwards; `values` are changed in copies only."""
    copies = {k: None if v is None else v.clone() for k, v in values.items()}
    ahead = None if copies["other"] is None else (copies["other"], copies["leak"])
    FactoredProduct(weights, panel).multiply(
        copies["out"], copies["source"], copies["slopes"], group, add=add,
        diagonal=copies["diagonal"], ahead=ahead, behind=copies["forget"],
    )  # fmt: skip
    return copies["out"], copies["source"]


@needs_units
@given(
    batch=st.integers(1, 3),
    rows=st.integers(1, 70),
    blocks=st.integers(1, 10),
    group=st.sampled_from([(0,), (2,), (0, 1), (1, 2), (0, 1, 2)]),
    add=st.booleans(),
    with_diagonal=st.booleans(),
    with_other=st.booleans(),
    with_forget=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_the_compiled_product_is_at_least_as_exact_as_pytorchs(
    batch, rows, blocks, group, add, with_diagonal, with_other, with_forget, threads
):
    size = blocks * PANEL
    weights = draw(3 * size, size, seed=1)
    vector = (batch, size)
    values = {
        "out": draw(batch, rows, size, seed=2),
        "source": draw(batch, rows, size, seed=3),
        "slopes": draw(batch, 3, size, seed=4),
        "diagonal": draw(*vector, seed=5) if with_diagonal else None,
        "other": draw(batch, rows, size, seed=6) if with_other else None,
        "leak": draw(*vector, seed=7) if with_other else None,
        "forget": draw(*vector, seed=8) if with_forget else None,
    }
    wide = {k: None if v is None else v.double() for k, v in values.items()}
    exact, left = multiply(weights.double(), 0, wide, group, add=add)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        errors = {}
        for panel in (PANEL, 0):
            found, source = multiply(weights, panel, values, group, add=add)
            errors[panel] = (found - exact).norm() / exact.norm()
            torch.testing.assert_close(source.double(), left, rtol=1e-5, atol=1e-5)
    finally:
        torch.set_num_threads(before)
    # A handful of numbers may by chance be nearer in one of the two.
    assert errors[PANEL] < 1.5 * errors[0] + 1e-7


@needs_units
def test_numbers_of_all_magnitudes_keep_their_digits():
    size = PANEL
    scales = torch.logspace(-30, 30, size)
    source = draw(1, 4, size, seed=1) * scales
    weights = draw(size, size, seed=2)
    out = torch.empty_like(source)
    # The slopes undo the scales, so that every entry counts alike.
    slopes = (1 / scales).view(1, 1, size)
    FactoredProduct(weights, PANEL).multiply(out, source, slopes, (0,))
    exact = (source.double() * slopes[0].double()) @ weights.double()
    assert (out - exact).abs().max() / exact.abs().max() < 1e-6


@needs_units
def test_wide_rows_stay_at_least_as_exact_as_pytorchs():
    size = 1024
    weights, source = draw(size, size, seed=1), draw(1, 40, size, seed=2)
    # Saturated gates: slopes of all sizes, which some entries make up for.
    slopes = (10 ** (4 * draw(1, 1, size, seed=3))).clamp(max=0.25)
    exact = (source.double() * slopes[0].double()) @ weights.double()
    errors = {}
    for panel in (PANEL, 0):
        out = torch.empty_like(source)
        FactoredProduct(weights, panel).multiply(out, source.clone(), slopes, (0,))
        errors[panel] = (out - exact).norm() / exact.norm()
    assert errors[PANEL] < errors[0]


@needs_units
@pytest.mark.parametrize("what", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["source", "slopes", "weights"])
def test_what_is_no_number_stays_none(what, where):
    size = 2 * PANEL
    values = {
        "source": draw(1, 3, size, seed=1),
        "slopes": draw(1, 1, size, seed=2),
        "weights": draw(size, size, seed=3),
    }
    values[where].view(-1)[5] = what
    out = torch.empty(1, 3, size)
    FactoredProduct(values["weights"], PANEL).multiply(
        out, values["source"], values["slopes"], (0,)
    )
    wrong = ~out.isfinite()
    if where == "source":
        assert wrong[0, 0].all()
        assert not wrong[0, 1:].any()
    else:
        assert wrong.all()


@needs_units
def test_what_vanishes_is_zero():
    size = 2 * PANEL
    weights, slopes = draw(size, size, seed=3), draw(1, 1, size, seed=2)
    out = torch.full((1, 2, size), 7.0)
    source = draw(1, 2, size, seed=1)
    source[0, 0] = 0
    FactoredProduct(weights, PANEL).multiply(out, source, slopes, (0,))
    assert (out[0, 0] == 0).all()
    FactoredProduct(weights, PANEL).multiply(out, source, 0 * slopes, (0,))
    assert (out == 0).all()
    FactoredProduct(weights, PANEL).multiply(out, source, 1e-38 * slopes, (0,))
    exact = (source.double() * (1e-38 * slopes[0]).double()) @ weights.double()
    assert (out - exact).abs().max() < 1e-3 * exact.abs().max()


@needs_units
def test_where_compiled_products_serve():
    assert choose_panel(torch.zeros(2, 2 * PANEL)) == PANEL
    assert choose_panel(torch.zeros(2, 2 * PANEL + 8)) == 0
    assert choose_panel(torch.zeros(2, 2 * PANEL, dtype=torch.float64)) == 0
    with without_kernels():
        assert choose_panel(torch.zeros(2, 2 * PANEL)) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
@pytest.mark.parametrize("layers", [1, 2])
def test_jacobians_in_float32_are_those_of_float64(way, kind, layers, generator):
    core = kind(6, 64, layers, generator=generator)
    vectors = torch.randn(3, 40, 6, generator=generator)
    with WAYS[way]():
        found = jacobian(core, core.project(vectors), 2, 40)
    core = core.double()
    exact = jacobian(core, core.project(vectors.double()), 2, 40)
    # Rows are compared by themselves: gradients vanish at different rates.
    errors = (found - exact).norm(dim=2) / exact.norm(dim=2)
    assert errors.max() < 2e-5
