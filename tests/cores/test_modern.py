"""minGRU, minLSTM, LRU, gated delta rule: against their definitions, step by step."""

import math

import pytest
import torch
from torch.nn import functional as F

from drawn import draw
from oracle import plain_core
from pernn.cores import LRU, GatedDelta, MinGRU, MinLSTM
from pernn.cores.gated_delta import CHUNK

KINDS = {
    "min_gru": MinGRU,
    "min_lstm": MinLSTM,
    "lru": lambda *sizes, **options: LRU(*sizes, state_size=6, **options),
    "gated_delta": lambda *sizes, **options: GatedDelta(*sizes, num_heads=2, **options),
}
INPUT, HIDDEN, BATCH = 3, 8, 2
PRECISIONS = {torch.float32: 1e-5, torch.float64: 1e-10}
each_kind = pytest.mark.parametrize("kind", KINDS)
# Around a chunk of the gated delta rule, and two of them.
each_length = pytest.mark.parametrize("num_steps", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 150])


def build(kind, layers=1, dtype=torch.float64, **options):
    generator = torch.Generator().manual_seed(1)
    return KINDS[kind](INPUT, HIDDEN, layers, dtype=dtype, generator=generator, **options)


def near(found, expected, tolerance):
    assert (found - expected).abs().max() < tolerance


def min_gru(core, layer, row, state):
    update, candidate = row.chunk(2)
    update = 1 / (1 + torch.exp(-update))
    state = (1 - update) * state + update * candidate
    return state, state


def min_lstm(core, layer, row, state):
    forget, enter, candidate = row.chunk(3)
    forget, enter = 1 / (1 + torch.exp(-forget)), 1 / (1 + torch.exp(-enter))
    state = forget / (forget + enter) * state + enter / (forget + enter) * candidate
    return state, state


def lru(core, layer, row, state):
    modes = core.state_size
    factors = torch.exp(-layer.log_decay.exp() + 1j * layer.log_phase.exp())
    entry = row[: 2 * modes : 2] + 1j * row[1 : 2 * modes : 2]
    state = factors * state + layer.log_scale.exp() * entry
    readout = layer.readout[:, ::2] - 1j * layer.readout[:, 1::2]
    value, gate = layer.mix(F.gelu((readout @ state).real + row[2 * modes :])).chunk(2)
    return value * torch.sigmoid(gate), state


def gated_delta(core, layer, row, state):
    width, heads = core.hidden_size, core.num_heads
    query, key, value, gate = (F.silu(part).chunk(heads) for part in row[: 4 * width].chunk(4))
    decay, strength = row[4 * width :].chunk(2)
    outputs, states = [], []
    for head in range(heads):
        step = torch.log1p(torch.exp(decay[head]))
        kept = torch.exp(-torch.exp(layer.log_decay[head]) * step)
        beta = torch.sigmoid(strength[head])
        q, k = (part / (part @ part + 1e-6).sqrt() for part in (query[head], key[head]))
        erased = torch.eye(len(k), dtype=k.dtype) - beta * torch.outer(k, k)
        states.append(kept * state[head] @ erased + beta * torch.outer(value[head], k))
        seen = states[-1] @ q
        outputs.append(seen / (seen @ seen / len(seen) + 1e-6).sqrt() * gate[head])
    return layer.leave(torch.cat(outputs)), torch.stack(states)


def define(kind, core, sequence, state):
    """Return one sequence's outputs and final states by the equations, step by step."""
    step, finals = globals()[kind], []
    for layer, held in zip(core.layers, state, strict=True):
        held = torch.view_as_complex(held) if kind == "lru" else held
        outputs = []
        for vector in sequence:
            output, held = step(core, layer, layer.enter(vector), held)
            outputs.append(output)
        sequence = torch.stack(outputs)
        finals.append(torch.view_as_real(held) if kind == "lru" else held)
    return sequence, torch.stack(finals)


@torch.no_grad()
@each_kind
@each_length
@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_sequences_of_any_length_are_the_definition(kind, num_steps, dtype):
    core, inputs = build(kind, 2, dtype), draw(BATCH, num_steps, INPUT, dtype=dtype)
    state = torch.randn_like(core(inputs)[1], dtype=dtype) / 2
    outputs, final = core(inputs, state)
    for row in range(BATCH):
        expected, end = define(kind, core, inputs[row], state[:, row])
        near(outputs[row], expected, PRECISIONS[dtype])
        near(final[:, row], end, PRECISIONS[dtype])


@each_kind
@each_length
def test_gradients_are_those_of_the_step_form(kind, num_steps):
    core = build(kind, 2)
    found = []
    for module in (core, plain_core(core)):
        inputs = draw(BATCH, num_steps, INPUT).requires_grad_()
        outputs, final = module(inputs)
        loss = (outputs * draw(*outputs.shape, seed=4)).sum()
        loss = loss + (final * draw(*final.shape, seed=5)).sum()
        found.append(torch.autograd.grad(loss, [inputs, *module.parameters()]))
    for one, other in zip(*found, strict=True):
        near(one, other, 1e-10 * float(other.abs().max().clamp_min(1)))


@each_kind
def test_a_second_derivative_is_right_and_a_state_is_taken_in_the_type_of_the_weights(kind):
    core, inputs = build(kind), draw(1, 4, INPUT).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda vectors: core(vectors)[0], inputs)
    core, inputs = build(kind, 2, torch.float32), draw(BATCH, 4, INPUT, dtype=torch.float32)
    state = core(inputs)[1]
    for found, expected in zip(core(inputs, state.double()), core(inputs, state), strict=True):
        assert torch.equal(found, expected)


@torch.no_grad()
@each_kind
@pytest.mark.parametrize("size", [30.0, 1e4])
def test_large_inputs_neither_overflow_nor_lose_their_gradient(kind, size):
    core = build(kind, 2, torch.float32)
    inputs = size * draw(BATCH, 150, INPUT, dtype=torch.float32)
    with torch.enable_grad():
        outputs, final = core(inputs)
        outputs.sum().backward()
    assert outputs.isfinite().all()
    assert final.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in core.parameters())


def test_weights_begin_as_the_papers_draw_them():
    layer = LRU(4, 512, generator=torch.Generator().manual_seed(1)).layers[0]
    radius, phase = torch.exp(-layer.log_decay.exp()), layer.log_phase.exp()
    assert radius.max() < 1
    # Uniform on the disc: squares are uniform.
    assert abs(radius.square().mean() - 0.5) < 0.04
    assert 0 < phase.min() < 0.1
    assert 2 * math.pi - 0.1 < phase.max() < 2 * math.pi + 1e-6
    torch.testing.assert_close(layer.log_scale.exp(), (1 - radius.square()).sqrt())
    layer = GatedDelta(4, 512, num_heads=256).layers[0]
    rates, steps = layer.log_decay.exp(), F.softplus(layer.enter.bias[-512:-256])
    assert 1 <= rates.min() < 1.5
    assert 15.5 < rates.max() <= 16
    assert 0.00099 < steps.min() < 0.0012
    assert 0.08 < steps.max() < 0.1001
