"""S4D: three ways to compute it, compared with each other and with the defining sum."""

import math

import pytest
import torch
from torch.nn import functional as F

from drawn import draw
from pairs import pairwise
from pernn.cores import S4D, Projected

METHODS = ["toeplitz", "fft", "recurrence"]
INPUT, HIDDEN, BATCH = 3, 4, 2
each_method = pytest.mark.parametrize("method", METHODS)


def build(method="auto", layers=1, seed=1, **options):
    generator = torch.Generator().manual_seed(seed)
    options = {"state_size": 8, **options}
    core = S4D(INPUT, HIDDEN, layers, method=method, generator=generator, **options).double()
    # Away from the initial values, which are the same for all channels.
    with torch.no_grad():
        for layer in core.layers:
            layer.log_decay += 0.3 * draw(*layer.log_decay.shape, seed=seed + 7)
            layer.frequency += 0.3 * draw(*layer.frequency.shape, seed=seed + 8)
            layer.log_step += 2
    return core


def initial(layers):
    return draw(layers, BATCH, HIDDEN, 4, 2, seed=3)


def close(found, expected, tolerance=1e-10):
    error = (found - expected).abs().max() / expected.abs().max().clamp_min(1e-3)
    assert error < tolerance, error


def defining_sum(layer, inputs):
    delta = layer.log_step.exp().unsqueeze(1)
    a = -layer.log_decay.exp() + 1j * layer.frequency
    c = layer.readout[..., 0] + 1j * layer.readout[..., 1]
    kernel = [
        2 * (c * (torch.exp(delta * a) - 1) / a * torch.exp(delta * a * lag)).real.sum(1)
        for lag in range(inputs.shape[1])
    ]
    sums = layer.skip * inputs
    for step in range(inputs.shape[1]):
        for lag in range(step + 1):
            sums[:, step] += kernel[lag] * inputs[:, step - lag]
    first, second = layer.mix(F.gelu(sums)).chunk(2, dim=2)
    return first * torch.sigmoid(second)


@torch.no_grad()
@each_method
@pytest.mark.parametrize("layers", [1, 2])
def test_the_outputs_are_those_of_the_defining_sum(method, layers):
    core, inputs = build(method, layers), draw(BATCH, 13, INPUT)
    expected = core.input(inputs)
    for layer in core.layers:
        expected = defining_sum(layer, expected)
    close(core(inputs)[0], expected)


@pairwise(
    method=["auto", "toeplitz", "fft"],
    # Squares, their neighbours and primes: powers are computed in blocks of √T.
    num_steps=[1, 2, 3, 4, 5, 16, 17, 31, 150],
    layers=[1, 3],
    given=[False, True],
)
def test_all_methods_give_the_same_outputs_state_and_gradients(method, num_steps, layers, given):
    results = []
    for core in (build(method, layers), build("recurrence", layers)):
        inputs = draw(BATCH, num_steps, INPUT).requires_grad_()
        state = initial(layers).requires_grad_() if given else None
        outputs, final = core(inputs, state)
        loss = (outputs * draw(*outputs.shape, seed=4)).sum()
        loss = loss + (final * draw(*final.shape, seed=5)).sum()
        wanted = [inputs, *([state] if given else []), *core.parameters()]
        results.append([outputs, final, *torch.autograd.grad(loss, wanted)])
    for found, expected in zip(*results, strict=True):
        close(found, expected)


@each_method
def test_long_memory_in_float32_is_close_to_float64(method):
    """At the initial weights, the smallest steps included."""
    generator = torch.Generator().manual_seed(1)
    core = S4D(INPUT, 32, method=method, generator=generator)
    inputs = draw(BATCH, 300, INPUT)
    outputs, final = core(inputs.float())
    exact, exact_final = core.double()(inputs)
    close(outputs.double(), exact, 1e-5)
    close(final.double(), exact_final, 1e-5)


@each_method
@pytest.mark.parametrize("layers", [1, 2])
def test_the_last_outputs_alone_are_the_same(method, layers):
    core, inputs = build(method, layers), draw(BATCH, 9, INPUT)
    gates = core.project(inputs).detach().transpose(0, 1).requires_grad_()
    whole = core.recur(gates.transpose(0, 1))[0].transpose(0, 1)[5:]
    weights = draw(*whole.shape)
    (expected,) = torch.autograd.grad((whole * weights).sum(), gates)
    last = core(Projected.of(gates), num_outputs=4)[0].transpose(0, 1)
    (found,) = torch.autograd.grad((last * weights).sum(), gates)
    close(last, whole)
    close(found, expected)


def test_initial_weights_are_distributed_as_described(generator):
    hidden = 400
    core = S4D(100, hidden, generator=generator)
    (layer,) = core.layers
    log_step = layer.log_step.detach() / math.log(10)
    assert -3 <= log_step.min() < -2.97
    assert -1.03 < log_step.max() <= -1
    assert abs(log_step.mean() + 2) < 0.1
    assert torch.equal(layer.log_decay, torch.full((hidden, 32), 0.5).log())
    assert torch.equal(layer.frequency, (math.pi * torch.arange(32)).expand(hidden, -1))
    assert layer.readout.shape == (hidden, 32, 2)
    for part in layer.readout.detach().unbind(2):
        assert abs(part.mean()) < 0.03
        assert abs(part.var() - 0.5) < 0.03
    assert abs(layer.skip.mean()) < 0.2
    assert abs(layer.skip.var() - 1) < 0.3
    for linear, bound in ((core.input, 0.1), (layer.mix, 0.05)):
        for parameter in linear.parameters():
            assert 0.95 * bound < parameter.abs().max() <= bound
            assert abs(parameter.mean()) < 0.1 * bound


@each_method
def test_autocast_rounds_the_linear_layers_only(method):
    core, inputs = build(method, 2).float(), draw(BATCH, 20, INPUT).float()
    gates = core.project(inputs).detach()
    gates = gates.transpose(0, 1)
    exact = core.layers[0](gates, None, method, 20, wants_state=True)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, final = core.layers[0](gates, None, method, 20, wants_state=True)
        whole, _ = core(inputs)
    assert torch.equal(final, exact[1])
    assert not torch.equal(outputs, exact[0])
    torch.testing.assert_close(outputs, exact[0], rtol=0, atol=0.03)
    assert (outputs.dtype, whole.dtype) == (torch.float32, torch.float32)
