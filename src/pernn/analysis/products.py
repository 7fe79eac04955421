"""The Jacobian of Elman, GRU and LSTM as a product of per-step factors, last step first."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pernn.cores import RecurrentCore

from .factors import trace

STEPS_PER_SCALING = 16
"""Steps between two exact rescalings, which keep vanishing rows far from underflow."""


class ProductJacobian:
    """The Jacobians of a batch of sequences through one of our recurrent cores.

    A step costs, per sequence and layer, one (rows × H) · (H × H) product, two in the LSTM: the
    gates' slopes are put into the weights, not into the adjoints. The state is PyTorch's: the
    hidden states of all layers, for the LSTM followed by their cells.

    Args:
        core: Elman, GRU or LSTM.
        gates: Projected inputs, from the first step on.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.
    """

    def __init__(
        self,
        core: RecurrentCore,
        gates: Float[Tensor, "batch time gate"],
        source: int,
        target: int,
    ) -> None:
        self.outputs, self._layers = trace(core, gates[:, :target], source)
        self._num_factors = target - source
        size = core.hidden_size
        self._size, self._has_cell = size, core.num_states > 1
        self._recurrent = [
            core.weight("hh", layer).detach().unflatten(0, (-1, size))
            for layer in range(core.num_layers)
        ]
        self._entering = [
            core.weight("ih", layer).detach().unflatten(0, (-1, size)) if layer else None
            for layer in range(core.num_layers)
        ]
        self.width = core.num_layers * core.num_states * size

    def rows(
        self, first: int, last: int
    ) -> tuple[Float[Tensor, "batch rows width"], Int[Tensor, "batch rows"]]:
        """Give the rows of outputs `first … last − 1`, scaled so that none underflows."""
        batch, num_layers = len(self.outputs), len(self._layers)
        shape = batch, last - first, self._size
        hidden = [self.outputs.new_zeros(shape) for _ in range(num_layers)]
        cells = [torch.zeros_like(part) for part in hidden] if self._has_cell else []
        hidden[-1][:, range(last - first), range(first, last)] = 1
        spare = torch.empty_like(hidden[0])
        matrix = self.outputs.new_empty(batch, self._size, self._size)
        exponents = torch.zeros(shape[:2], dtype=torch.int32, device=matrix.device)
        for step in range(self._num_factors - 1, -1, -1):
            for layer in range(num_layers - 1, -1, -1):
                factors = self._layers[layer]
                sources = [hidden[layer]]
                if factors.leak is not None:
                    sources.append(
                        cells[layer].addcmul_(hidden[layer], factors.leak[step].unsqueeze(1))
                    )
                entering = self._entering[layer]
                for index, (group, adjoint) in enumerate(zip(factors.groups, sources, strict=True)):
                    if entering is not None:
                        _combine(entering, factors.entering[step], group, matrix)
                        hidden[layer - 1].baddbmm_(adjoint, matrix)
                    _combine(self._recurrent[layer], factors.recurrent[step], group, matrix)
                    if factors.keep is not None:
                        matrix.diagonal(dim1=1, dim2=2).add_(factors.keep[step])
                    if index:
                        spare.baddbmm_(adjoint, matrix)
                    else:
                        torch.bmm(adjoint, matrix, out=spare)
                if factors.forget is not None:
                    cells[layer].mul_(factors.forget[step].unsqueeze(1))
                hidden[layer], spare = spare, hidden[layer]
            if step % STEPS_PER_SCALING == 0:
                exponents += _rescale(hidden + cells)
        parts = hidden + cells
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2), exponents

    def expand(self, rows: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch rows state"]:
        """Give the rows as they are."""
        return rows


def product_footprint(
    core: RecurrentCore, gates: Float[Tensor, "batch time gate"], num_factors: int
) -> tuple[int, int]:
    """Give bytes per sequence and per row."""
    size, steps = core.hidden_size, gates.shape[1]
    forward = steps * (4 * core.gate_size + 6 * size) + core.num_layers * num_factors * (
        2 * core.gate_size + 4 * size
    )
    parts = core.num_layers * core.num_states
    return gates.itemsize * (forward + size * size), gates.itemsize * (2 * parts + 1) * size


def _combine(
    weights: Float[Tensor, "block hidden below"],
    slopes: Float[Tensor, "batch block hidden"],
    group: tuple[int, ...],
    out: Float[Tensor, "batch hidden below"],
) -> None:
    """Σ_k diag(slope_k) W_k over the gates of a group."""
    first, *others = group
    torch.mul(weights[first], slopes[:, first].unsqueeze(2), out=out)
    for gate in others:
        out.addcmul_(weights[gate], slopes[:, gate].unsqueeze(2))


def _rescale(parts: list[Tensor]) -> Int[Tensor, "batch rows"]:
    """Divide every row by the power of 2 next to its largest entry, exactly; give the exponents."""
    norms = [torch.linalg.vector_norm(part, float("inf"), dim=2) for part in parts]
    exponents: Tensor = torch.frexp(torch.stack(norms).amax(0)).exponent
    factors = torch.ldexp(torch.ones_like(norms[0]), -exponents).unsqueeze(2)
    for part in parts:
        part.mul_(factors)
    return exponents
