"""The compiled recurrences against the plain ones in float64: outputs, states, gradients."""

from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import drawn
from agreement import threads
from pairs import pairwise
from pernn.cores import GRU, LSTM, Elman, Projected
from pernn.cores.scanning import LEAST_STEPS, scan
from pernn.kernels import describe_kernels, find_kernels, without_kernels
from pernn.lab.training import computing

CORES = {"elman": Elman, "gru": GRU, "lstm": LSTM}
CPU = torch.device("cpu")
pytestmark = pytest.mark.skipif(find_kernels() is None, reason=describe_kernels())


def make(kind, width, layers=1, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return CORES[kind](5, width, layers, generator=generator)


random = partial(drawn.draw, dtype=torch.float32)


def draw(core, batch, inputs, queries, *, by_token, encodings, seed=2):
    """Make inputs by parts; the parts are the leaves of the gradient."""
    count = 7 if by_token else inputs * batch
    generator = torch.Generator().manual_seed(seed)
    return Projected(
        random(count + 1, core.gate_size, seed=seed),
        batch,
        inputs,
        queries,
        torch.randint(count, (inputs, batch), generator=generator) if by_token else None,
        count,
        random(inputs + queries, core.gate_size, seed=seed + 1) if encodings else None,
    )


def measure(core, inputs, state, num_outputs, dtype=torch.float32):
    """Return outputs, final state and the gradients of all that has one."""
    core = deepcopy(core).to(dtype)
    leaves = {
        name: None if value is None else value.clone().to(dtype).detach().requires_grad_()
        for name, value in {"table": inputs.table, "encodings": inputs.encodings, **state}.items()
    }
    given_state = tuple(leaves[name] for name in state)
    parts = Projected(
        leaves["table"], inputs.batch, inputs.input_time, inputs.num_queries, inputs.tokens,
        inputs.query_row, leaves["encodings"],
    )  # fmt: skip
    outputs, final = core(
        parts,
        (given_state if core.num_states > 1 else given_state[0]) if state else None,
        num_outputs=num_outputs,
    )
    finals = final if isinstance(final, tuple) else (final,)
    # Weighted, so that no two positions can be mistaken for each other.
    total = sum(
        (value * random(*value.shape, seed=5 + i).to(dtype)).sum()
        for i, value in enumerate((outputs, *finals))
    )
    total.backward()
    found = {"outputs": outputs, **{f"final {i}": part for i, part in enumerate(finals)}}
    grads = {name: leaf.grad for name, leaf in leaves.items() if leaf is not None}
    weights = {n: p.grad for n, p in core.named_parameters() if p.grad is not None}
    return {name: v.detach().double() for name, v in {**found, **grads, **weights}.items()}


def check(core, inputs, state, num_outputs, *, tolerance=2e-6):
    """Compare with float64: within a tolerance, or no further off than the library's own float32.

    Without vector extensions the library adds up 192 terms one after another, and is off by 3e-6.
    """
    with patch("pernn.cores.recurrent.scan", wraps=scan) as compiled:
        found = measure(core, inputs, state, num_outputs)
    assert compiled.called == (inputs.num_steps >= LEAST_STEPS)
    with without_kernels():
        expected = measure(core, inputs, state, num_outputs, torch.float64)
        plain = measure(core, inputs, state, num_outputs)
    assert found.keys() == expected.keys() == plain.keys()
    for name, value in expected.items():
        size = value.abs().max().clamp_min(1e-3)
        error, usual = ((one[name] - value).abs().max() / size for one in (found, plain))
        assert error < max(tolerance, usual), (name, float(error), float(usual))


@pairwise(
    kind=[*CORES],
    width=[16, 32, 48, 64, 96],
    layers=[1, 2],
    with_state=[False, True],
    by_token=[False, True],
)
def test_they_compute_what_the_plain_recurrence_does(kind, width, layers, with_state, by_token):
    core = make(kind, width, layers)
    inputs = draw(core, 3, 4, 3, by_token=by_token, encodings=by_token)
    names = ("hidden", "cell")[: core.num_states]
    state = {name: random(layers, 3, width, seed=8) for name in names} if with_state else {}
    check(core, inputs, state, 3)


@given(
    kind=st.sampled_from(sorted(CORES)),
    batch=st.integers(1, 40),
    inputs=st.integers(1, 6),
    queries=st.integers(0, 4),
    by_token=st.booleans(),
    encodings=st.booleans(),
    count=st.sampled_from([1, 2, 3]),
    data=st.data(),
)
def test_any_batch_length_and_number_of_threads(
    kind, batch, inputs, queries, by_token, encodings, count, data
):
    core = make(kind, 32)
    steps = inputs + queries
    num_outputs = data.draw(st.integers(1, steps))
    parts = draw(core, batch, inputs, queries, by_token=by_token, encodings=encodings)
    with threads(count):
        check(core, parts, {}, num_outputs, tolerance=4e-6)


@pytest.mark.parametrize("kind", CORES)
def test_bfloat16_is_as_near_as_its_digits(kind):
    core = make(kind, 64)
    inputs = draw(core, 6, 5, 5, by_token=True, encodings=True)
    exact = measure(core, inputs, {}, 5)
    with computing("bf16", CPU):
        rounded = measure(core, inputs, {}, 5)
    for name, value in exact.items():
        error = (rounded[name] - value).norm() / value.norm()
        assert 1e-6 < error < 0.02 or not value.norm(), (name, float(error))


@pytest.mark.parametrize("kind", CORES)
def test_what_does_not_fit_goes_the_plain_way(kind, monkeypatch):
    def refuse(*args):
        raise AssertionError("compiled")

    monkeypatch.setattr("pernn.cores.recurrent.scan", refuse)

    def run(core, steps=3):
        dtype = core.weight("hh", 0).dtype
        core.recur(core.project(random(2, steps, 5, seed=1).to(dtype)))

    with pytest.raises(AssertionError, match="compiled"):
        run(make(kind, 16))
    run(make(kind, 20))  # no whole panels
    run(make(kind, 16), 1)  # a single step
    run(make(kind, 16).double())

    class Mine(CORES[kind]):
        """May compute something else."""

    run(Mine(5, 16))


def run_lstm(output_gate=0.0):
    """Of 16 units; inputs by parts, so that kernels run where they are."""
    core = make("lstm", 16)
    parts = draw(core, 3, 4, 2, by_token=True, encodings=True)
    parts.table[:, 48:] += output_gate
    table = parts.table.requires_grad_()
    outputs, (hidden, cell) = core(parts)
    return table, (outputs, hidden, cell)


def test_a_closed_output_gate_keeps_gradients_finite():
    found = []
    for way in (nullcontext, without_kernels):
        with way():
            table, parts = run_lstm(output_gate=-300.0)
            found += torch.autograd.grad(sum(one.sum() for one in parts), table)
    torch.testing.assert_close(*found)


def test_gradients_that_are_given_are_not_changed():
    table, parts = run_lstm()
    given = [torch.ones_like(one) for one in parts]
    torch.autograd.grad(parts, table, given)
    assert all((one == 1).all() for one in given)
