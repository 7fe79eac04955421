"""Jacobians of cores with `factors`: their product, last step first."""

import copy
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from pernn.cores import LayerFactors, RecurrentCore
from pernn.kernels import find_kernels, product

from .linearisation import Exponents, Gates, Rows, exact_products, exponents_of

LEAST_SIZE = 128
"""Rows and columns from which matrix units are faster, one sequence at a time."""


class ProductJacobian:
    """Jacobians of a batch through a core that has `factors`.

    A step costs, per sequence and layer, one (rows × H) · (H × H) product, two in the LSTM: the
    gates' slopes are put into the weights, not into the adjoints. The state is PyTorch's: the
    hidden states of all layers, for the LSTM followed by their cells.

    Args:
        core: Such a core.
        gates: Projected inputs, from the first step on.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.
    """

    def __init__(self, core: RecurrentCore, gates: Gates, source: int, target: int) -> None:
        self._given = core, gates, source, target
        self.outputs, self._layers = trace(core, gates[:, :target], source)
        self._num_factors = target - source
        self._size = core.hidden_size
        layers = range(core.num_layers)
        self._recurrent = [core.weight("hh", layer) for layer in layers]
        self._entering = [core.weight("ih", layer) if layer else None for layer in layers]
        self._num_parts = core.num_layers * core.num_states
        self.width = self._num_parts * self._size

    def rows(self, first: int, last: int) -> tuple[Rows, Exponents]:
        """Return rows of outputs `first … last − 1`, scaled against underflow.

        Those that vanish in float32 are computed again in float64.
        """
        batch, count, num_layers = len(self.outputs), last - first, len(self._layers)
        parts = [self.outputs.new_zeros(batch, count, self._size) for _ in range(self._num_parts)]
        parts[num_layers - 1][:, range(count), range(first, last)] = 1
        spare = torch.empty_like(parts[0])
        exponents = torch.zeros(batch, count, dtype=torch.int32, device=spare.device)
        for step in range(self._num_factors - 1, -1, -1):
            for layer in range(num_layers - 1, -1, -1):
                parts[layer], spare = self._go_back(layer, step, parts, spare), parts[layer]
            # A step of a saturated network divides by 10¹⁰ and more.
            exponents += _rescale(parts)
        rows = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
        if rows.dtype == torch.float32 and (lost := (rows == 0).all(2)).any():
            # In float32, tanh is 1 from about 9 on, and its slope 0.
            precise, powers = self._in_double.rows(first, last)
            rows = torch.where(lost.unsqueeze(2), precise.to(rows), rows)
            exponents = torch.where(lost, powers, exponents)
        return rows, exponents

    @cached_property
    def _in_double(self) -> "ProductJacobian":
        core, gates, source, target = self._given
        with exact_products():
            return ProductJacobian(copy.deepcopy(core).double(), gates.double(), source, target)

    def _go_back(self, layer: int, step: int, parts: list[Tensor], fresh: Tensor) -> Tensor:
        """Take one layer back by a step: its hidden state's adjoints are put into `fresh`."""
        factors, hidden = self._layers[layer], parts[layer]
        entering = self._entering[layer]
        for index, group in enumerate(factors.groups):
            source = hidden
            if index:
                # What of the cell shows in h comes first.
                source = parts[len(self._layers) + layer]
                source.addcmul_(hidden, _at(factors.leak, step).unsqueeze(1))
            if entering is not None:
                slopes = factors.entering[step]
                multiply_factored(parts[layer - 1], source, entering, slopes, group, add=True)
            multiply_factored(
                fresh,
                source,
                self._recurrent[layer],
                factors.recurrent[step],
                group,
                add=index > 0,
                diagonal=None if factors.keep is None else _at(factors.keep, step),
            )
            if index:
                # What of the cell goes on by itself.
                source.mul_(_at(factors.forget, step).unsqueeze(1))
        return fresh

    def expand(self, rows: Rows) -> Float[Tensor, "batch rows state"]:
        """Return the rows as they are."""
        return rows

    @staticmethod
    def footprint(core: RecurrentCore, gates: Gates, num_factors: int) -> tuple[int, int]:
        """Return bytes per sequence and per row."""
        size, steps = core.hidden_size, gates.shape[1]
        forward = steps * (4 * core.gate_size + 6 * size) + core.num_layers * num_factors * (
            2 * core.gate_size + 4 * size
        )
        parts = core.num_layers * core.num_states
        return gates.itemsize * (forward + size * size), gates.itemsize * (2 * parts + 1) * size


def trace(
    core: RecurrentCore, gates: Gates, source: int
) -> tuple[Float[Tensor, "batch hidden"], list[LayerFactors]]:
    """Return the last output, and all layers' factors after step `source`.

    The first layer's factors come first.
    """
    values = gates.transpose(0, 1).contiguous()
    zeros = values.new_zeros(values.shape[1], core.hidden_size)
    layers = []
    for layer in range(core.num_layers):
        if layer:
            values = F.linear(values, core.weight("ih", layer), core.input_bias(layer))
        outputs, _ = core.scan(layer, values, (zeros,) * core.num_states)
        before = torch.cat([zeros.unsqueeze(0), outputs[:-1]])
        layers.append(core.factors(layer, values, before, source))
        values = outputs
    return values[-1], layers


def _at(values: Tensor | None, step: int) -> Tensor:
    """Return a factor's values at a step."""
    assert values is not None  # noqa: S101 a cell has both
    return values[step]


def _rescale(parts: list[Tensor]) -> Exponents:
    """Divide every row by the power of 2 next to its largest entry, exactly; give the exponents."""
    ends = [end for part in parts for end in (part.amax(2), part.amin(2))]
    exponents = exponents_of(torch.stack(ends).abs().amax(0))
    factors = torch.ldexp(torch.ones_like(ends[0]), -exponents).unsqueeze(2)
    for part in parts:
        part.mul_(factors)
    return exponents


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
