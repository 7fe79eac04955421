"""The measure on whole networks, and laws of the similarities that the printed ones lack."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracle import autograd_jacobian, effective_rank, similarity
from pernn.analysis import KINDS, compare_jacobians, gradient_stability, jacobian
from pernn.cores import GRU, LRU, LSTM, S4D, Elman, MinGRU, MinLSTM
from pernn.lab.cores import CORES
from pernn.lab.pairing import dual_frequency_pairs, stability_map
from pernn.lab.tasks import DualFrequencyConfig, ReverseOrderingConfig
from pernn.lab.training import computing
from pernn.models import PositionEncodedRNN

TASK = DualFrequencyConfig(vocab_size=16, length=5).build()


def make(core, generator, hidden=8):
    sizes = {"hidden_size": hidden} if isinstance(core, str) else {}
    return PositionEncodedRNN(16, core, embedding_size=6, generator=generator, **sizes)


def test_it_is_the_definition(generator):
    model = make("lstm", generator).double()
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=2)
    tokens = torch.from_numpy(np.concatenate([pairs.first, pairs.second]))
    gates = model.project(tokens, pairs.num_queries).detach()
    first, second = autograd_jacobian(model.core, gates, 1, 10).chunk(2)
    weights = first.norm(dim=2) * second.norm(dim=2)
    expected = (first * second).sum((1, 2)) / weights.sum(1)
    found = gradient_stability(model, pairs)
    np.testing.assert_allclose(found.values["similarity"], expected.numpy())
    norms = (first.flatten(1).norm(dim=1) + second.flatten(1).norm(dim=1)) / 2
    np.testing.assert_allclose(found.values["norm"], norms.numpy())
    assert set(KINDS) | {"norm", "distance"} <= found.values.keys()


@pytest.mark.parametrize("core", CORES.names())
def test_the_same_call_gives_the_same_bits_and_leaves_the_model_alone(core, generator):
    model = make(core, generator, hidden=32)  # wide enough for products that might round
    before = copy.deepcopy(model.state_dict())
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=4)
    one = gradient_stability(model, pairs)
    with computing("bf16", torch.device("cpu")):
        two = gradient_stability(model, pairs)
    for name, values in one.values.items():
        assert np.array_equal(values, two.values[name])
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("core", CORES.names())
def test_float32_is_close_to_float64(core, generator):
    model = make(core, generator)
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=3)
    single, double = (
        gradient_stability(each, pairs) for each in (model, copy.deepcopy(model).double())
    )
    for name, values in double.values.items():
        np.testing.assert_allclose(single.values[name], values, rtol=1e-3, atol=1e-6)


def test_lower_precisions_are_raised_and_autocast_is_ignored(generator):
    model = make("gru", generator).bfloat16()
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=3)
    raised = gradient_stability(copy.deepcopy(model).float(), pairs)
    with torch.autocast("cpu", torch.bfloat16):
        found = gradient_stability(model, pairs)
    assert model.core.weight("hh", 0).dtype == torch.bfloat16
    for name, values in raised.values.items():
        assert np.array_equal(found.values[name], values)


def test_tables_and_maps_hold_the_means_per_condition(generator):
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=3)
    found = gradient_stability(make("gru", generator), pairs)
    table = found.table()
    assert table["condition"][2] == "Rare among Frequent"
    assert (table["target"][2], table["disturbants"][2]) == ("Rare", "Frequent")
    assert table["num_pairs"] == [3] * 4
    assert table["similarity"][2] == pytest.approx(found.values["similarity"][6:9].mean())
    assert {len(column) for column in table.values()} == {4}
    uniform = ReverseOrderingConfig(vocab_size=16, length=5).build()
    pairs = dual_frequency_pairs(uniform, 1, num_per_condition=3)
    assert gradient_stability(make("gru", generator), pairs).table()["condition"] == ["all"]
    model = make("gru", generator)
    found = stability_map(model, TASK, 1, 3)
    assert found["position"] == [place for place in range(1, 6) for _ in range(4)]
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=3, source=2)
    assert found["similarity"][4:8] == gradient_stability(model, pairs).table()["similarity"]


def test_equal_disturbants_differ_in_nothing_and_wide_states_have_no_rank(generator):
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=3, source=5)  # the last input
    found = gradient_stability(make("lstm", generator), pairs)
    np.testing.assert_allclose(found.values["similarity"], 1, rtol=1e-12)
    assert not found.values["distance"].any()
    model = make(S4D(12, 8, 2, generator=generator), generator)
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=1)
    assert "effective_rank" not in gradient_stability(model, pairs).values


entries = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)
matrices = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(*(arrays(np.float64, (1, *shape), elements=entries),) * 2)
)


def measure(first, second, kind):
    return float(similarity(torch.from_numpy(first), torch.from_numpy(second), kind)[0])


@pytest.mark.parametrize("kind", KINDS)
@given(pair=matrices, factor=st.floats(1e-6, 1e6))
def test_laws(kind, pair, factor):
    first, second = pair
    value = measure(first, second, kind)
    assert measure(second, first, kind) == pytest.approx(value)
    assert measure(first, -second, kind) == pytest.approx(-value)
    if not kind.startswith("printed"):
        assert abs(value) <= 1 + 1e-12
        assert measure(factor * first, second, kind) == pytest.approx(value, abs=1e-12)
    if kind in ("similarity", "frobenius"):
        assert measure(first, first, kind) == pytest.approx(1.0 if first.any() else 0.0)


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


@pytest.mark.parametrize("core", [Elman, GRU, LSTM, S4D, MinGRU, MinLSTM, LRU])
@pytest.mark.parametrize("memory_budget", [0, 10_000, 2**29])
def test_streamed_and_whole_agree(core, memory_budget, generator):
    module = core(3, 6, generator=generator).double()
    vectors = torch.randn(8, 9, 3, generator=generator, dtype=torch.float64)
    both = module.project(vectors).split(4)
    found = compare_jacobians(module, *both, 2, 8, memory_budget=memory_budget)
    sides = [jacobian(module, gates, 2, 8) for gates in both]
    for kind in KINDS:
        np.testing.assert_allclose(found.similarity(kind), similarity(*sides, kind), rtol=1e-10)
    for side, rank in zip(sides, (found.first_rank, found.second_rank), strict=True):
        np.testing.assert_allclose(rank, effective_rank(side), rtol=1e-9)
    apart = [module.recur(gates[:, :8])[0][:, -1].detach() for gates in both]
    np.testing.assert_allclose(found.distance, (apart[0] - apart[1]).norm(dim=1).numpy())


def test_unknown_numbers_of_some_pairs_do_not_depend_on_the_memory(generator):
    model = make("lstm", generator)
    with torch.no_grad():
        model.embedding.weight[0] = torch.nan
    pairs = dual_frequency_pairs(TASK, 1, num_per_condition=2)
    for budget in (2**29, 0):
        ranks = gradient_stability(model, pairs, memory_budget=budget).values["effective_rank"]
        assert 0 < np.isnan(ranks).sum() < len(ranks)
