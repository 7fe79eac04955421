"""Products and the linear map: compiled or not, in float32 or rounded, against float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from agreement import each_way, threads
from pernn.kernels import find_kernels, linear, product, without_kernels
from pernn.kernels.products import LEAST
from pernn.lab.training import computing

CPU = torch.device("cpu")
PARTS = () if find_kernels() is None else find_kernels().product_parts
has_units = 1 in PARTS
needs_products = pytest.mark.skipif(not PARTS, reason="no compiled products here")
needs_units = pytest.mark.skipif(not has_units, reason="no matrix units here")


def draw(rows, columns, turned, seed):
    generator = torch.Generator().manual_seed(seed)
    shape = (columns, rows) if turned else (rows, columns)
    found = torch.randn(*shape, generator=generator)
    return found.t() if turned else found


def relative(found, exact):
    return float((found.double() - exact).norm() / exact.norm().clamp_min(1e-30))


@needs_products
@given(
    rows=st.integers(1, 100),
    inner=st.integers(1, 140),
    columns=st.integers(1, 100),
    turned=st.tuples(st.booleans(), st.booleans()),
    parts=st.sampled_from(PARTS or (3,)),
    add=st.booleans(),
    num_threads=st.integers(1, 3),
)
def test_compiled_products_of_any_shape(rows, inner, columns, turned, parts, add, num_threads):
    left, right = draw(rows, inner, turned[0], 1), draw(inner, columns, turned[1], 2)
    before = draw(rows, columns + 3, False, 3)
    out = before.clone()[:, :columns]  # rows of a wider matrix
    with threads(num_threads):
        torch.ops.pernn.matmul(out, left, right, parts, add)
    start = before[:, :columns].double() * add
    exact = left.double() @ right.double() + start
    if has_units:
        assert relative(out, exact) < (1e-6 if parts == 3 else 0.02)
        return
    # The bound of float32 sums in any order: a sum may nearly vanish where its terms do not.
    largest = left.double().abs() @ right.double().abs() + start.abs()
    assert ((out.double() - exact).abs() <= (inner + 1) * 2**-24 * largest).all()


@needs_units
@pytest.mark.parametrize("inner", [64, 512, 1000, 5000])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)], ids=str)
def test_float32_is_at_least_as_exact_as_pytorchs(inner, turned):
    left, right = draw(200, inner, turned[0], 1), draw(inner, 300, turned[1], 2)
    exact = left.double() @ right.double()
    found = product(left, right)
    with without_kernels():
        theirs = product(left, right)
    assert not torch.equal(found, theirs)
    assert relative(found, exact) < relative(theirs, exact)


@needs_products
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)], ids=str)
def test_many_blocks_give_the_same_bits_on_any_number_of_threads(turned):
    left, right = draw(900, 1100, turned[0], 1), draw(1100, 700, turned[1], 2)
    found = []
    for num_threads in (1, 3):
        with threads(num_threads):
            found.append(product(left, right))
    assert torch.equal(*found)
    assert relative(found[0], left.double() @ right.double()) < 1e-6


@needs_products
def test_shapes_that_do_not_fit_are_refused():
    multiply = torch.ops.pernn.matmul
    for left, right, out in (((2, 3), (4, 5), (2, 5)), ((2, 3), (3, 5), (2, 4))):
        with pytest.raises(RuntimeError, match="shapes do not fit"):
            multiply(torch.zeros(*out), torch.zeros(*left), torch.zeros(*right), 3, False)
    with pytest.raises(RuntimeError, match="lie in one piece"):
        multiply(torch.zeros(2, 2), torch.zeros(4, 6)[::2, ::3], torch.zeros(2, 2), 3, False)


@each_way
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (200,), (20, 16)], ids=str)
@pytest.mark.parametrize("with_bias", [False, True])
def test_the_linear_map_and_its_gradients(way, precision, shape, with_bias):
    inputs = torch.randn(*shape, 96, generator=torch.Generator().manual_seed(1))
    weight, bias = draw(160, 96, False, 2), draw(1, 160, False, 3)[0]
    leaves = [inputs, weight, bias] if with_bias else [inputs, weight]
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    with computing(precision, CPU), way():
        found = linear(*leaves)
        (found * found).sum().backward()
    exact = F.linear(*wide)
    (exact * exact).sum().backward()
    bound = 2e-6 if precision == "fp32" else 0.02
    assert found.shape == exact.shape
    assert relative(found.detach(), exact.detach()) < bound
    for one, other in zip(leaves, wide, strict=True):
        assert relative(one.grad, other.grad) < 2 * bound


def test_a_linear_map_goes_back_for_many_gradients_at_once():
    rows, weight = torch.randn(200, 200, requires_grad=True), torch.randn(200, 200)
    found, arriving = linear(rows, weight), torch.randn(3, 200, 200)
    (many,) = torch.autograd.grad(found, rows, arriving, is_grads_batched=True)
    torch.testing.assert_close(many, arriving @ weight, rtol=1e-4, atol=1e-4)


def test_a_linear_map_can_be_differentiated_twice():
    size = LEAST[3]
    inputs, weight = (draw(size, size, False, seed).requires_grad_() for seed in (1, 2))
    first, second = [], []
    for way in (linear, F.linear):
        (grad,) = torch.autograd.grad(way(inputs, weight).square().sum(), weight, create_graph=True)
        first.append(grad)
        second.append(torch.autograd.grad(grad.square().sum(), inputs)[0])
    for one, other in (first, second):
        assert relative(one.detach(), other.detach().double()) < 1e-5
