"""Jacobians: closed forms and the fallback against autograd through the plain twin."""

import numpy as np
import pytest
import torch
from torch import nn

from agreement import each_way
from analysis.test_memory import Linear
from drawn import draw, parts_of
from oracle import autograd_jacobian, effective_rank, plain_core, similarity
from pernn.analysis import compare_jacobians, jacobian, linearise
from pernn.analysis.jacobians import AutogradJacobian, choose_form, divide_work, even_blocks
from pernn.cores import GRU, LRU, LSTM, S4D, Elman, GatedDelta, MinGRU, MinLSTM

CORES = (Elman, GRU, LSTM, S4D, MinGRU, MinLSTM, LRU, GatedDelta)
VECTORS = draw(3, 9, 3)


def close(found, expected):
    atol = 1e-10 * float(expected.abs().max())
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=atol)


def make(kind, generator, num_layers=1, hidden=5, **options):
    if kind is S4D:
        options["state_size"] = 6
    core = kind(3, hidden, num_layers, generator=generator, **options).double()
    if kind in (Elman, GRU, LSTM):
        torch._foreach_mul_([one.data for one in core.parameters()], 2)
    return core, core.project(VECTORS)


def oracle(core, source, target):
    """Return the Jacobians of the plain twin, one sequence after another."""
    twin, found = plain_core(core), []
    for sequence in VECTORS.split(1):
        _, state = twin(sequence[:, :source])

        def later(*parts, state=state, steps=sequence[:, source:target]):
            return twin(steps, parts if isinstance(state, tuple) else parts[0])[0][0, -1]

        rows = torch.autograd.functional.jacobian(later, parts_of(state))
        found.append(torch.cat([row.flatten(1) for row in rows], dim=1))
    return torch.stack(found)


@pytest.mark.parametrize("way", [jacobian, autograd_jacobian])
@pytest.mark.parametrize("kind", CORES)
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("source", "target"), [(1, 9), (4, 5), (2, 7)])
def test_against_the_plain_twin(kind, num_layers, source, target, way, generator):
    core, gates = make(kind, generator, num_layers)
    close(way(core, gates, source, target), oracle(core, source, target))


@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
def test_without_biases(kind, generator):
    core, gates = make(kind, generator, num_layers=2, bias=False)
    close(jacobian(core, gates, 2, 9), oracle(core, 2, 9))


@pytest.mark.parametrize("kind", CORES)
def test_no_budget_is_too_small_and_none_changes_the_result(kind, generator):
    core, gates = make(kind, generator)
    whole = jacobian(core, gates, 2, 8)
    for budget in (0, 3_000, 10_000):
        close(jacobian(core, gates, 2, 8, memory_budget=budget), whole)


def test_rows_far_below_the_smallest_number_keep_their_direction(generator):
    core, _ = make(Elman, generator)
    gates = core.project(torch.randn(1, 80, 3, generator=generator, dtype=torch.float64))
    with torch.no_grad():
        core.weight("hh", 0).mul_(0.05)
    expected = jacobian(core, gates, 1, 80)[0]
    expected /= expected.abs().amax(1, keepdim=True)
    rows, exponents = linearise(core.float(), gates.float(), 1, 80).rows(0, 5)
    assert exponents.max() < -160  # squares, and the numbers themselves, would be 0
    cosines = torch.cosine_similarity(rows[0].double(), expected)
    assert cosines.tolist() == pytest.approx([1] * 5, rel=1e-6, abs=0)


@pytest.mark.parametrize("factor", [40, 80])
@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
def test_saturated_networks_keep_their_directions(kind, factor):
    """A step divides by 10¹⁰ and more, and slopes vanish in float32 alone."""
    generator = torch.Generator().manual_seed(2)
    core, vectors = kind(4, 8, generator=generator), torch.randn(4, 19, 4, generator=generator)
    with torch.no_grad():
        core.weight("ih", 0).mul_(factor)
    sides = core.project(vectors).detach().split(2)
    found = compare_jacobians(core, *sides, 1, 19)
    exact = autograd_jacobian(core.double(), torch.cat(sides).double(), 1, 19)
    exact /= exact.abs().amax((1, 2), keepdim=True)
    np.testing.assert_allclose(found.similarity(), similarity(*exact.split(2)), atol=0.01)
    np.testing.assert_allclose(found.first_rank, effective_rank(exact[:2]), atol=0.01)


def test_a_row_of_zeros_leaves_the_rank_to_the_others(generator):
    core = Elman(4, 8, generator=generator)
    with torch.no_grad():
        core.weight("hh", 0).mul_(0.3)
        core.weight("ih", 0)[0] = 0
        core.bias_of("ih", 0)[0] = 30
    gates = core.project(torch.randn(4, 41, 4, generator=generator)).detach()
    found = compare_jacobians(core, *gates.split(2), 1, 41)
    assert not found.first_norms[:, 0].any()
    assert found.first_norms[:, 1:].max() < 1e-25
    exact = jacobian(core.double(), gates.double(), 1, 41)[:2]
    expected = effective_rank(exact / exact.abs().amax((1, 2), keepdim=True))
    np.testing.assert_allclose(found.first_rank, expected, rtol=1e-4)
    with torch.no_grad():
        core.weight("hh", 0).zero_()
    nothing = compare_jacobians(core, *gates.double().split(2), 1, 41)
    assert nothing.first_rank.tolist() == [0, 0]


class Odd(nn.Module):
    """A cell whose state is a dictionary: complex, batch second, a counter, an unused part."""

    input_size, hidden_size = 2, 3

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.linspace(-1, 1, 9, dtype=torch.float64).reshape(3, 3))

    def project(self, inputs, *, offset=0, bias=True):
        return torch.cat([inputs, inputs[..., :1]], dim=-1)

    def recur(self, gates, state=None):
        if state is None:
            zeros = torch.zeros(3, len(gates), dtype=torch.complex128)
            state = {"wave": zeros, "steps": torch.tensor(0), "other": (zeros.real + 1, None)}
        wave, outputs = state["wave"], []
        for gate in gates.unbind(1):
            wave = (0.5 + 0.5j) * (self.mix.to(wave.dtype) @ wave) + torch.tanh(gate).t()
            outputs.append(torch.tanh(wave.real * wave.imag + wave.real).t())
        final = {"wave": wave, "steps": state["steps"] + 1, "other": state["other"]}
        return torch.stack(outputs, dim=1), final


def test_any_state_will_do(generator):
    core = Odd()
    gates = core.project(torch.randn(2, 6, 2, generator=generator, dtype=torch.float64))
    found = jacobian(core, gates, 2, 6)
    assert isinstance(linearise(core, gates, 2, 6), AutogradJacobian)
    for row in range(2):
        start = core.recur(gates[row : row + 1, :2])[1]

        def later(flat, row=row, start=start):
            wave = torch.view_as_complex(flat.reshape(3, 1, 2))
            return core.recur(gates[row : row + 1, 2:], {**start, "wave": wave})[0][0, -1]

        flat = torch.view_as_real(start["wave"].detach().resolve_conj()).flatten()
        close(found[row, :, :6], torch.func.jacrev(later)(flat).detach())
        assert not found[row, :, 6:].any()  # the part that nothing depends on


def test_a_subclass_is_not_trusted_to_compute_the_same(generator):
    class Doubled(GRU):
        def scan(self, layer, gates, state):
            outputs, final = super().scan(layer, gates, state)
            return 2 * outputs, final

    core = Doubled(3, 5, generator=generator).double()
    assert choose_form(core) is AutogradJacobian
    gates = core.project(torch.randn(2, 6, 3, dtype=torch.float64, generator=generator))
    plain = GRU(3, 5).double()
    plain.load_state_dict(core.state_dict())
    close(jacobian(core, gates, 2, 6), 2 * jacobian(plain, gates, 2, 6))


def test_work_is_divided_below_the_budget():
    for budget in (10, 100, 5_000, 60_000):
        sequences, rows = divide_work(100, 10, 50, 64, budget)
        assert sequences in range(2, 65, 2)
        assert 1 <= rows <= 50
        assert sequences * (100 + rows * 10) <= max(budget, 2 * 110)
    assert list(even_blocks(5, 2)) == [(0, 1), (1, 3), (3, 5)]


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


@pytest.mark.parametrize("kind", [MinGRU, MinLSTM])
def test_autograd_finds_in_float32_what_float64_has(kind, generator):
    core = kind(3, 4, generator=generator)
    sides = core.project(torch.randn(4, 150, 3, generator=generator)).split(2)
    found = compare_jacobians(core, *sides, 1, 150)
    exact = compare_jacobians(core.double(), *(side.double() for side in sides), 1, 150)
    assert exact.first_norms.max() < 1e-20
    np.testing.assert_allclose(found.similarity(), exact.similarity(), rtol=1e-5)
    np.testing.assert_allclose(found.first_rank, exact.first_rank, rtol=1e-4)


class Decay(Linear):
    """h_t = h_{t−1} / 10 + x_t, whose matrices are float32 whatever the module is."""

    def __init__(self):
        super().__init__(torch.eye(2) / 10, torch.eye(2))

    def double(self):
        return self


def test_small_gradients_of_any_module_are_found_and_no_number_has_no_rank(generator):
    core, _ = make(Elman, generator)
    gates = core.project(torch.randn(2, 6, 3, generator=generator, dtype=torch.float64))
    gates[0, 3] = torch.nan
    found = compare_jacobians(core, gates, gates.flip(0), 1, 6)
    assert np.isnan(found.first_rank).tolist() == [True, False]
    gates = torch.randn(1, 40, 2, generator=generator)
    assert jacobian(Decay(), gates, 1, 20)[0, 0, 0].item() == pytest.approx(1e-19, rel=1e-4)
