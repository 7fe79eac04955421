"""PyTorch's fused cells as CUDA computes them, for devices that have none.

Formulas, order of gates, workspaces and checks are those of aten/src/ATen/native/cuda/RNN.cu.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


def check(factor: int, given: Tensor, recurrent: Tensor, state: Tensor, *biases: Tensor) -> None:
    """Refuse what CUDA refuses: odd shapes, and tensors of unlike types or places."""
    assert given.dim() == 2
    assert given.shape == recurrent.shape
    assert state.shape == (len(given), given.shape[1] // factor)
    assert all(bias.shape == given.shape[1:] for bias in biases)
    assert len({(one.dtype, one.device) for one in (given, recurrent, state, *biases)}) == 1


def lstm_cell(
    given: Tensor,
    recurrent: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    biases = () if input_bias is None else (input_bias, hidden_bias)
    check(4, given, recurrent, cell, *biases)
    i, f, g, o = sum((given, recurrent, *biases)).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    memory = f * cell + i * g
    return o * memory.tanh(), memory, torch.cat([i, f, g, o], 1)


def lstm_cell_backward(
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    before: Tensor,
    after: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    defined = [one for one in (grad_hidden, grad_cell) if one is not None]
    assert all(one.shape == before.shape == after.shape for one in defined)
    assert workspace.shape == (len(before), 4 * before.shape[1])
    i, f, g, o = workspace.chunk(4, 1)
    arriving = torch.zeros_like(before) if grad_hidden is None else grad_hidden
    flat = after.tanh()
    total = arriving * o * (1 - flat * flat) + (0 if grad_cell is None else grad_cell)
    gates = [
        total * g * (1 - i) * i,
        total * before * (1 - f) * f,
        total * i * (1 - g * g),
        arriving * flat * (1 - o) * o,
    ]
    made = torch.cat(gates, 1)
    return made, total * f, made.sum(0) if has_bias else None


def gru_cell(
    given: Tensor,
    recurrent: Tensor,
    state: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    # Without the one bias, the other is not looked at.
    biases = () if input_bias is None else (input_bias, hidden_bias)
    check(3, given, recurrent, state, *biases)
    early, late = (0, 0) if input_bias is None else biases
    (ir, iz, new), (hr, hz, raw) = (given + early).chunk(3, 1), (recurrent + late).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * raw).tanh()
    return n + z * (state - n), torch.cat([r, z, n, state, raw], 1)


def gru_cell_backward(
    grad: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    assert workspace.shape == (len(grad), 5 * grad.shape[1])
    r, z, n, state, raw = workspace.chunk(5, 1)
    fresh = grad * (1 - z) * (1 - n * n)
    both = [fresh * raw * (1 - r) * r, grad * (state - n) * (1 - z) * z]
    given, recurrent = torch.cat([*both, fresh], 1), torch.cat([*both, fresh * r], 1)
    biases = (given.sum(0), recurrent.sum(0)) if has_bias else (None, None)
    return given, recurrent, grad * z, *biases


CELLS: Mapping[str, Callable[..., Any]] = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
}


@contextmanager
def cells_on_cpu(**others: Callable[..., Any]) -> Iterator[Counter[str]]:
    """Give the CPU these cells, or others in their places; yields how often each was called."""
    calls: Counter[str] = Counter()
    library = torch.library.Library("aten", "IMPL")

    def counted(name: str, cell: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            calls[name] += 1
            return cell(*args)

        return run

    for name, cell in {**CELLS, **others}.items():
        library.impl(name, counted(name, cell), "CPU")
    try:
        yield calls
    finally:
        library._destroy()
