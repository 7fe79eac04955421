"""Rows times Σ_g diag(slope_g) W_g, with slopes per sequence and step."""

import torch
from jaxtyping import Float
from torch import Tensor

from pernn.kernels import find_kernels, product

LEAST_SIZE = 128
"""Rows and columns from which matrix units are faster, one sequence at a time."""


def multiply_factored(
    out: Float[Tensor, "batch rows hidden"],
    source: Float[Tensor, "batch rows hidden"],
    weights: Float[Tensor, "gate hidden"],
    slopes: Float[Tensor, "batch block hidden"],
    group: tuple[int, ...],
    *,
    add: bool = False,
    diagonal: Float[Tensor, "batch hidden"] | None = None,
) -> None:
    """Multiply rows with a layer's weights, its gates' slopes put into them.

    Args:
        out: Where the result goes.
        source: The rows.
        weights: Of all gates, one after another.
        slopes: Of all gates.
        group: Gates that take part.
        add: Whether to add to what is there.
        diagonal: What is added to the diagonal of the matrix.
    """
    gates = weights.detach().unflatten(0, (-1, weights.shape[1]))
    first, *others = group
    matrix = gates[first] * slopes[:, first].unsqueeze(2)
    for gate in others:
        matrix.addcmul_(gates[gate], slopes[:, gate].unsqueeze(2))
    if diagonal is not None:
        matrix.diagonal(dim1=1, dim2=2).add_(diagonal)
    if _has_units(source):
        for one, rows, factor in zip(out, source, matrix, strict=True):
            product(rows, factor, one, add=add)
    elif add:
        out.baddbmm_(source, matrix)
    else:
        torch.bmm(source, matrix, out=out)


def _has_units(source: Tensor) -> bool:
    """Return whether matrix units multiply these rows."""
    if source.device.type != "cpu" or min(source.shape[1:]) < LEAST_SIZE:
        return False
    kernels = find_kernels()
    return kernels is not None and 1 in kernels.product_parts
