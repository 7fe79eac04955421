"""Shapes of the kernels' results, for torch.compile and torch.export."""

from typing import Any

import torch
from torch import Tensor

NUM_GATES = {"elman": 1, "gru": 3, "lstm": 4}
NUM_SAVED = {"elman": 0, "gru": 4, "lstm": 4}
"""Numbers that the way back needs of each unit and step."""


def register_shapes() -> None:
    """Register the shapes of the kernels' results, once per process."""
    torch.library.register_fake("pernn::scan_forward", scan_forward)
    torch.library.register_fake("pernn::scan_backward", scan_backward)


def scan_forward(
    kind: str, _units: int, batch: int, steps: int, _inputs: int, _query_row: int, table: Tensor,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return empty outputs, cells and what the way back needs."""
    size = table.shape[1] // NUM_GATES[kind]
    outputs = table.new_empty(steps, batch, size)
    cells = torch.empty_like(outputs) if kind == "lstm" else table.new_empty(0)
    return outputs, cells, table.new_empty(steps, batch, NUM_SAVED[kind] * size)


def scan_backward(
    kind: str, _units: int, _inputs: int, _query_row: int, _grad_outputs: Tensor,
    _grad_cell: Tensor | None, table: Tensor, outputs: Tensor, *_: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return empty gradients of all differentiable inputs."""
    steps, batch, size = outputs.shape
    width = NUM_GATES[kind] * size
    return (
        outputs.new_empty(steps, batch, width),
        torch.empty_like(table),
        outputs.new_empty(steps, width),
        outputs.new_empty(size if kind == "gru" else 0),
        outputs.new_empty(batch, size),
        outputs.new_empty(batch, size),
    )
