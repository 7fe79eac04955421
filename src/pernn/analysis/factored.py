"""Rows times Σ_g diag(slope_g) W_g, whose slopes belong to one sequence and one step."""

import torch
from jaxtyping import Float
from torch import Tensor

from pernn.kernels import find_kernels


def choose_panel(outputs: Float[Tensor, "batch hidden"]) -> int:
    """Return the number of columns in a panel of compiled products; 0 where PyTorch's are used.

    Compiled ones are for float32 on a processor with matrix units. They are at least as exact as
    PyTorch's (tests/analysis/test_factored.py).
    """
    if outputs.device.type != "cpu" or outputs.dtype != torch.float32:
        return 0
    kernels = find_kernels()
    panel = 0 if kernels is None else kernels.factor_panel
    return panel if panel and outputs.shape[1] % panel == 0 else 0


class FactoredProduct:
    """Products with the weights of a layer, its gates' slopes put into them.

    Args:
        weights: Of all gates, one after another.
        panel: What `choose_panel` says.
    """

    def __init__(self, weights: Float[Tensor, "gate hidden"], panel: int) -> None:
        self._size = weights.shape[1]
        self._weights = weights.detach().unflatten(0, (-1, self._size))
        self._kernels = find_kernels() if panel else None
        if self._kernels is not None:
            # A panel of all rows lies in one piece.
            panels = self._weights.unflatten(2, (-1, panel)).transpose(1, 2)
            self._largest = self._weights.abs().amax(2)
            self._weights = panels.contiguous()

    def multiply(
        self,
        out: Float[Tensor, "batch rows hidden"],
        source: Float[Tensor, "batch rows hidden"],
        slopes: Float[Tensor, "batch block hidden"],
        group: tuple[int, ...],
        *,
        add: bool = False,
        diagonal: Float[Tensor, "batch hidden"] | None = None,
        ahead: tuple[Tensor, Tensor] | None = None,
        behind: Float[Tensor, "batch hidden"] | None = None,
    ) -> None:
        """Multiply rows, and put the result in its place or add it there.

        Args:
            out: Where the result goes.
            source: The rows; changed by `ahead` and `behind`.
            slopes: Of all gates.
            group: Gates that take part.
            add: Whether to add to what is there.
            diagonal: What is added to the diagonal of the matrix.
            ahead: Other rows and a factor for each of their columns: their product is added to
                `source` before.
            behind: What the columns of `source` are multiplied with afterwards.
        """
        other, leak = ahead or (None, None)
        if self._kernels is not None:
            self._kernels.operators.multiply_factored(
                out,
                source,
                slopes,
                self._weights,
                self._largest,
                group,
                add,
                diagonal,
                other,
                leak,
                behind,
            )
            return
        if other is not None and leak is not None:
            source.addcmul_(other, leak.unsqueeze(1))
        first, *others = group
        matrix = self._weights[first] * slopes[:, first].unsqueeze(2)
        for gate in others:
            matrix.addcmul_(self._weights[gate], slopes[:, gate].unsqueeze(2))
        if diagonal is not None:
            matrix.diagonal(dim1=1, dim2=2).add_(diagonal)
        if add:
            out.baddbmm_(source, matrix)
        else:
            torch.bmm(source, matrix, out=out)
        if behind is not None:
            source.mul_(behind.unsqueeze(1))
