"""Fused steps equal plain ones and PyTorch's layers, forward and back."""

import pytest
import torch

from pernn.cores import GRU, LSTM, Core, fused_steps, has_fused_steps
from pernn.errors import ConfigError
from stand_in.fused_cells import CELLS, cells_on_cpu

CPU = torch.device("cpu")
KINDS = {"gru": GRU, "lstm": LSTM}
SHAPES = {
    # batch, steps, hidden size, layers, bias
    "two layers": (2, 5, 4, 2, True),
    "one step, no bias": (3, 1, 5, 1, False),
    "one sequence": (1, 7, 3, 1, True),
}
TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-5}


def run(layer, inputs, state, arriving):
    """Return a layer's outputs, final state and all gradients; a core's by its own recurrence."""
    leaves = [inputs, *state, *layer.parameters()]
    given = state if len(state) > 1 else state[0]
    outputs, final = (
        layer.recur(layer.project(inputs), given)
        if isinstance(layer, Core)
        else layer(inputs, given)
    )
    made = [outputs, *(final if isinstance(final, tuple) else (final,))]
    return [*made, *torch.autograd.grad(made, leaves, arriving)]


def draw_all(kind, shape, dtype):
    """Return a core, and what `run` takes besides."""
    batch, steps, hidden, layers, bias = shape
    generator = torch.Generator().manual_seed(7)
    core = KINDS[kind](3, hidden, layers, bias=bias, generator=generator, dtype=dtype)

    def draw(*size):
        return torch.randn(*size, generator=generator, dtype=dtype)

    state = [draw(layers, batch, hidden) for _ in range(core.num_states)]
    arriving = [draw(batch, steps, hidden), *(draw(*part.shape) for part in state)]
    leaves = [one.requires_grad_() for one in (draw(batch, steps, 3), *state)]
    return core, leaves[0], tuple(leaves[1:]), arriving


def close(found, expected, tolerance):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_fused_steps_equal_plain_ones_and_pytorchs_layer(kind, shape, dtype):
    core, *given = draw_all(kind, shape, dtype)
    plain, oracle = run(core, *given), run(core.to_plain(), *given)
    with cells_on_cpu() as calls, fused_steps(enabled=True):
        fused = run(core, *given)
    _, steps, _, layers, _ = shape
    assert {*calls.values()} == {steps * layers}
    assert all(kind in name for name in calls)
    close(fused, plain, TOLERANCES[dtype])
    close(fused, oracle, TOLERANCES[dtype])


@pytest.mark.parametrize("kind", KINDS)
def test_the_cpu_has_no_fused_steps_and_other_cores_have_none_anywhere(kind):
    assert not has_fused_steps(kind, CPU)
    with cells_on_cpu():
        assert has_fused_steps(kind, CPU)
        assert not has_fused_steps("elman", CPU)
        assert not has_fused_steps(kind, torch.device("meta"))
    assert not has_fused_steps(kind, CPU)


def test_second_derivatives_are_refused():
    core, inputs, state, _ = draw_all("gru", SHAPES["one sequence"], torch.float64)
    with cells_on_cpu(), fused_steps(enabled=True):
        outputs, _ = core.recur(core.project(inputs), state[0])
        with pytest.raises(ConfigError, match="no second derivative"):
            torch.autograd.grad(outputs.sum(), inputs, create_graph=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES.values(), (33, 6, 48, 1, True)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_fused_steps_on_a_gpu(kind, shape, dtype):
    core, inputs, state, arriving = draw_all(kind, shape, dtype)
    given = (
        inputs.detach().cuda().requires_grad_(),
        tuple(part.detach().cuda().requires_grad_() for part in state),
        [part.cuda() for part in arriving],
    )
    assert has_fused_steps(kind, torch.device("cuda"))
    core = core.cuda()
    plain = run(core, *given)
    with fused_steps(enabled=True):
        close(run(core, *given), plain, TOLERANCES[dtype])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_cells_on_a_gpu_are_those_of_these_tests():
    draw = torch.Generator().manual_seed(3)
    five = torch.randn(4, 5 * 6, generator=draw, dtype=torch.float64)
    gates, more, state, memory = five[:, :24], five[:, 6:], five[:, :6], five[:, 6:12]
    calls = {
        "_thnn_fused_lstm_cell": (gates, more, state),
        "_thnn_fused_lstm_cell_backward_impl": (state, memory, memory, state, gates, False),
        "_thnn_fused_gru_cell": (gates[:, :18], more[:, :18], state, gates[0, :18], more[0, :18]),
        "_thnn_fused_gru_cell_backward": (state, five, False),
    }
    for name, args in calls.items():
        placed = [one.cuda() if isinstance(one, torch.Tensor) else one for one in args]
        found = getattr(torch.ops.aten, name).default(*placed)
        for one, other in zip(found, CELLS[name](*args), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one.cpu(), other)
