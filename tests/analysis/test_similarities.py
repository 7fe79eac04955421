"""Laws of the similarities, and that the printed equations do not obey them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracle import similarity
from pernn.analysis import KINDS, compare_jacobians, jacobian
from pernn.cores import GRU, LRU, LSTM, S4D, Elman, MinGRU, MinLSTM
from pernn.errors import ConfigError

LAWFUL = ("similarity", "frobenius")
entries = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)
matrices = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(*(arrays(np.float64, (1, *shape), elements=entries),) * 2)
)


def measure(first, second, kind):
    return float(similarity(torch.from_numpy(first), torch.from_numpy(second), kind)[0])


@pytest.mark.parametrize("kind", LAWFUL)
@given(pair=matrices)
def test_one_with_itself_or_zero_where_all_vanishes(kind, pair):
    first, _ = pair
    assert measure(first, first, kind) == pytest.approx(1.0 if first.any() else 0.0)


@pytest.mark.parametrize("kind", KINDS)
@given(pair=matrices)
def test_symmetric(kind, pair):
    first, second = pair
    assert measure(first, second, kind) == pytest.approx(measure(second, first, kind))


@pytest.mark.parametrize("kind", [*LAWFUL, "row_cosine"])
@given(pair=matrices, factor=st.floats(1e-6, 1e6))
def test_positive_scaling_of_one_side_changes_nothing(kind, pair, factor):
    first, second = pair
    scaled = measure(factor * first, second, kind)
    assert scaled == pytest.approx(measure(first, second, kind), abs=1e-12)


@pytest.mark.parametrize("kind", [*LAWFUL, "row_cosine"])
@given(pair=matrices)
def test_bounded_and_odd(kind, pair):
    first, second = pair
    value = measure(first, second, kind)
    assert abs(value) <= 1 + 1e-12
    assert measure(first, -second, kind) == pytest.approx(-value)


def test_the_default_is_the_one_behind_the_figures():
    assert next(iter(KINDS)) == "similarity"
    first = np.array([[[3.0, 4], [0, 1]]])
    second = np.array([[[8.0, 6], [0, -1]]])
    assert measure(first, second, "similarity") == pytest.approx((48 - 1) / (50 + 1))
    assert measure(first, second, "frobenius") == pytest.approx(47 / np.sqrt(26 * 101))
    assert measure(first, second, "row_cosine") == pytest.approx((0.96 - 1) / 2)
    sums = (5 / 6) * (10 / 11) * 48 - (1 / 6) * (1 / 11)
    assert measure(first, second, "printed_sum") == pytest.approx(sums)
    roots = (5 * 10 * 48 - 1) / np.sqrt(26 * 101)
    assert measure(first, second, "printed_root") == pytest.approx(roots)


@pytest.mark.parametrize("kind", ["printed_sum", "printed_root"])
def test_the_printed_equations_are_not_one_on_identical_gradients(kind):
    same = np.array([[[0.3, 0.4], [0.0, 0.1]]])
    assert abs(measure(same, same, kind) - 1) > 0.5
    # Nor are they blind to the scale of one side.
    assert measure(2 * same, same, kind) == pytest.approx(2 * measure(same, same, kind))


def test_a_kind_that_is_not_there_is_refused(generator):
    core = GRU(3, 4, generator=generator)
    found = compare_jacobians(core, *core.project(torch.ones(2, 5, 3)).detach().split(1), 1, 3)
    with pytest.raises(ConfigError, match="no similarity 'cosine'"):
        found.similarity("cosine")


@pytest.mark.parametrize("core", [Elman, GRU, LSTM, S4D, MinGRU, MinLSTM, LRU])
@pytest.mark.parametrize("memory_budget", [0, 10_000, 2**29])
def test_streamed_and_whole_agree(core, memory_budget, generator):
    module = core(3, 6, generator=generator).double()
    first, second = (
        module.project(torch.randn(4, 9, 3, generator=generator, dtype=torch.float64))
        for _ in range(2)
    )
    found = compare_jacobians(module, first, second, 2, 8, memory_budget=memory_budget)
    sides = [jacobian(module, gates, 2, 8) for gates in (first, second)]
    for kind in KINDS:
        np.testing.assert_allclose(found.similarity(kind), similarity(*sides, kind), rtol=1e-10)
    for side, rank in zip(sides, (found.first_rank, found.second_rank), strict=True):
        squares = torch.linalg.svdvals(side) ** 2
        expected = squares.sum(1) ** 2 / (squares**2).sum(1)
        np.testing.assert_allclose(rank, expected.numpy(), rtol=1e-9)
    apart = [module.recur(gates[:, :8])[0][:, -1].detach() for gates in (first, second)]
    np.testing.assert_allclose(found.distance, (apart[0] - apart[1]).norm(dim=1).numpy())


def test_sides_that_differ_in_shape_are_refused(generator):
    core = GRU(3, 4, generator=generator)
    gates = core.project(torch.zeros(2, 5, 3))
    with pytest.raises(ConfigError, match="equally many sequences"):
        compare_jacobians(core, gates, gates[:1], 1, 3)
