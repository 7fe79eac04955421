"""A core's Jacobians between two steps, in closed form or by autograd."""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from pernn.cores import Core, Recurrence, RecurrentCore
from pernn.errors import ConfigError
from pernn.kernels import has_products, library_products, product, rounding_products

LEAST_SIZE = 128
"""Rows and columns from which matrix units are faster, one sequence at a time."""
SMALLEST = 1e-30
"""A gradient in float32 below which digits may have been lost on the way back to the state."""
Gates = Float[Tensor, "batch time gate"]
"""Projected inputs of all steps."""
Rows = Float[Tensor, "batch rows width"]
"""Some rows of each sequence's Jacobian."""
Exponents = Int[Tensor, "batch rows"]
"""Powers of two by which rows are divided."""


@runtime_checkable
class Linearisation(Protocol):
    """Jacobians of a batch, from one step's state to a later output.

    Rows may be given in other coordinates, the same for all sequences, in which inner products are
    what they are in the state's own; `expand` gives the latter. Made of a core, projected inputs
    from the first step on, the step after which the state is taken, and the output's.

    Attributes:
        outputs: The later outputs.
        width: Length of a row as `rows` gives it.
    """

    outputs: Float[Tensor, "batch rows"]
    width: int

    def rows(self, first: int, last: int) -> tuple[Rows, Exponents]:
        """Return rows of outputs `first … last − 1`, each over 2^exponent."""
        ...

    def expand(self, rows: Rows) -> Float[Tensor, "batch rows state"]:
        """Return rows in the coordinates of the flattened state."""
        return rows


def choose_form(core: Recurrence) -> Any:
    """Return the class of a core's closed form, else autograd's.

    What a class inherits does not count: a subclass may compute something else.
    """
    own = vars(type(core))
    if "factors" in own:
        return ProductJacobian
    found = core.linearisation() if isinstance(core, Core) and "linearisation" in own else None
    return AutogradJacobian if found is None else found


def linearise(core: Recurrence, gates: Gates, source: int, target: int) -> Linearisation:
    """Linearise outputs of step `target` in the state after step `source`.

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps; those after `target` do not matter.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.

    Raises:
        ConfigError: If there are no such steps.
    """
    check_steps(source, target, gates.shape[1])
    with exact_products():
        return cast(Linearisation, choose_form(core)(core, gates, source, target))


def jacobian(
    core: Recurrence, gates: Gates, source: int, target: int, *, memory_budget: int = 2**29
) -> Float[Tensor, "batch rows state"]:
    """Return Jacobians of one step's outputs in an earlier latent state.

    The state is what the core calls its state, its tensors one after another, flattened: h for
    Elman and GRU, [h; c] for the LSTM, each with all layers; for S4D layers × channels × modes ×
    (real part, imaginary part).

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps, `(batch, time, gate)` whatever a core's `batch_first`
            says: `core.project(vectors)`, `model.project(tokens)`.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs, those of the top layer.
        memory_budget: Bytes that may be worked with, beside the result.

    Raises:
        ConfigError: If there are no such steps, or no sequence.

    Examples:
        >>> from pernn.cores import LSTM
        >>> core = LSTM(4, 8, batch_first=True)
        >>> tuple(jacobian(core, core.project(torch.zeros(2, 5, 4)), 1, 5).shape)
        (2, 8, 16)
    """
    check_steps(source, target, gates.shape[1])
    if not len(gates):
        raise ConfigError("gates are invalid: expected at least one sequence, got none")
    per_sequence, per_row = choose_form(core).footprint(core, gates, target - source)
    num_sequences, num_rows = divide_work(
        per_sequence, per_row, core.hidden_size, max(2, len(gates)), memory_budget
    )
    blocks = []
    for start, end in even_blocks(len(gates), num_sequences):
        linear = linearise(core, gates[start:end], source, target)
        with exact_products():
            found = (linear.rows(*ends) for ends in even_blocks(core.hidden_size, num_rows))
            parts = [linear.expand(torch.ldexp(rows, power.unsqueeze(2))) for rows, power in found]
        blocks.append(torch.cat(parts, dim=1))
    return torch.cat(blocks)


def check_steps(source: int, target: int, num_steps: int) -> None:
    """Refuse steps that are not there, or in the wrong order."""
    if not 1 <= source < target <= num_steps:
        raise ConfigError(
            f"source and target must be steps 1 … {num_steps}, the source before the target; "
            f"got {source} and {target}"
        )


def divide_work(
    per_sequence: int, per_row: int, num_rows: int, num_sequences: int, memory_budget: int
) -> tuple[int, int]:
    """Return how many sequences, and rows of each, to take at once.

    All rows of a few sequences, or, if not even two fit with all their rows, some rows of two; at
    least one row, whatever the budget.
    """
    whole = per_sequence + num_rows * per_row
    if memory_budget >= 2 * whole:
        return min(num_sequences, memory_budget // whole // 2 * 2), num_rows
    left = memory_budget - 2 * per_sequence
    return 2, min(num_rows, max(1, left // (2 * per_row)))


def even_blocks(total: int, largest: int) -> Iterator[tuple[int, int]]:
    """Cut 0 … total into the fewest blocks of about equal length."""
    count = math.ceil(total / largest)
    for block in range(count):
        yield block * total // count, (block + 1) * total // count


def exponents_of(largest: Tensor) -> Tensor:
    """Return the exponents of numbers, as far as one factor undoes them."""
    bound = -math.frexp(torch.finfo(largest.dtype).tiny)[1]
    return torch.frexp(largest).exponent.clamp(-bound, bound)


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute without gradients and lower precisions, then restore the settings."""
    with (
        torch.no_grad(),
        library_products(tf32=False),
        rounding_products(rounds=False),
        torch.autocast("cuda", enabled=False),
    ):
        yield


class ProductJacobian(Linearisation):
    """Jacobians through a core that has `factors`: their product, last step first.

    A step costs, per sequence and layer, one (rows × H) · (H × H) product, two in the LSTM: the
    gates' slopes are put into the weights, not into the adjoints. The state is PyTorch's: the
    hidden states of all layers, for the LSTM followed by their cells.
    """

    def __init__(self, core: RecurrentCore, gates: Gates, source: int, target: int) -> None:
        self._given = core, gates, source, target
        self._num_factors, self._size = target - source, core.hidden_size
        self._num_parts = core.num_layers * core.num_states
        self.width = self._num_parts * self._size
        layers = range(core.num_layers)
        self._recurrent = [core.weight("hh", layer) for layer in layers]
        self._entering = [core.weight("ih", layer) if layer else None for layer in layers]
        values = gates[:, :target].transpose(0, 1).contiguous()
        zeros = values.new_zeros(values.shape[1], self._size)
        self._factors = []
        for layer, entering in enumerate(self._entering):
            if entering is not None:
                values = F.linear(values, entering, core.input_bias(layer))
            outputs, _ = core.scan(layer, values, (zeros,) * core.num_states)
            before = torch.cat([zeros.unsqueeze(0), outputs[:-1]])
            self._factors.append(core.factors(layer, values, before, source))
            values = outputs
        self.outputs = values[-1]

    def rows(self, first: int, last: int) -> tuple[Rows, Exponents]:
        """Return scaled rows, by float64 those that vanish in float32."""
        batch, count, num_layers = len(self.outputs), last - first, len(self._factors)
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
        factors, hidden, entering = self._factors[layer], parts[layer], self._entering[layer]
        keep, leak, forget = (
            None if factor is None else factor[step]
            for factor in (factors.keep, factors.leak, factors.forget)
        )
        for index, group in enumerate(factors.groups):
            source = hidden
            if index and leak is not None:
                # What of the cell shows in h comes first.
                source = parts[len(self._factors) + layer]
                source.addcmul_(hidden, leak.unsqueeze(1))
            if entering is not None:
                matrix = _factored(entering, factors.entering[step], group)
                _multiply(parts[layer - 1], source, matrix, add=True)
            matrix = _factored(self._recurrent[layer], factors.recurrent[step], group)
            if keep is not None:
                matrix.diagonal(dim1=1, dim2=2).add_(keep)
            _multiply(fresh, source, matrix, add=index > 0)
            if index and forget is not None:
                # What of the cell goes on by itself.
                source.mul_(forget.unsqueeze(1))
        return fresh

    @staticmethod
    def footprint(core: RecurrentCore, gates: Gates, num_factors: int) -> tuple[int, int]:
        """Return bytes per sequence and per row."""
        size, steps = core.hidden_size, gates.shape[1]
        forward = steps * (4 * core.gate_size + 6 * size)
        forward += core.num_layers * num_factors * (2 * core.gate_size + 4 * size)
        parts = core.num_layers * core.num_states
        return gates.itemsize * (forward + size * size), gates.itemsize * (2 * parts + 1) * size


def _rescale(parts: list[Tensor]) -> Exponents:
    """Divide rows by the power of 2 next to their largest entry."""
    ends = [end for part in parts for end in (part.amax(2), part.amin(2))]
    exponents = exponents_of(torch.stack(ends).abs().amax(0))
    factors = torch.ldexp(torch.ones_like(ends[0]), -exponents).unsqueeze(2)
    for part in parts:
        part.mul_(factors)
    return exponents


def _factored(
    weights: Float[Tensor, "gate hidden"],
    slopes: Float[Tensor, "batch block hidden"],
    group: tuple[int, ...],
) -> Float[Tensor, "batch hidden hidden"]:
    """Return the sum of some gates' weights, each times its slopes."""
    gates = weights.detach().unflatten(0, (-1, weights.shape[1]))
    first, *others = group
    matrix: Tensor = gates[first] * slopes[:, first].unsqueeze(2)
    for gate in others:
        matrix.addcmul_(gates[gate], slopes[:, gate].unsqueeze(2))
    return matrix


def _multiply(out: Tensor, source: Tensor, matrix: Tensor, *, add: bool) -> None:
    """Put a batch's products into `out`, by matrix units where they are faster."""
    is_large = source.device.type == "cpu" and min(source.shape[1:]) >= LEAST_SIZE
    if is_large and has_products(1):
        for one, rows, factor in zip(out, source, matrix, strict=True):
            product(rows, factor, one, add=add)
    elif add:
        out.baddbmm_(source, matrix)
    else:
        torch.bmm(source, matrix, out=out)


class AutogradJacobian(Linearisation):
    """The Jacobians of any `Recurrence`, one backward pass per row.

    The state is a tensor or nested tuples, lists and dictionaries of such, real or complex, with
    the batch on any axis; what is not floating or does not grow with the batch is a constant. A
    complex number counts as two real ones, first the real part. First derivatives suffice.

    Raises:
        ConfigError: In `torch.inference_mode`; if float64 is needed, and the core does not run in
            it.
    """

    def __init__(self, core: Recurrence, gates: Gates, source: int, target: int) -> None:
        refuse_inference("Jacobians by autograd")
        self._given = core, gates, source, target
        with torch.no_grad():
            _, state = core.recur(gates[:, :source])
            axes = batch_axes(core, gates)
        leaves, shape = tree_flatten(state)
        self._leaves, self._axes = [], []
        with torch.enable_grad():
            for index, axis in enumerate(axes):
                if axis is not None:
                    leaves[index] = leaves[index].detach().clone().requires_grad_()
                    self._leaves.append(leaves[index])
                    self._axes.append(axis)
            outputs, _ = core.recur(gates[:, source:target].detach(), tree_unflatten(leaves, shape))
            self._last = outputs[:, -1]
        self.outputs = self._last.detach()
        self.width = flatten_state(self._leaves, self._axes).shape[1]

    def rows(self, first: int, last: int) -> tuple[Rows, Exponents]:
        """Return rows, all by float64 where any may have vanished."""
        rows = self._gradients(first, last)
        if rows.dtype == torch.float32 and (rows.abs().amax(2) < SMALLEST).any():
            rows = self._in_double._gradients(first, last)
        largest = torch.frexp(rows.abs().amax(2)).exponent
        scaled = torch.ldexp(rows, -largest.unsqueeze(2)).to(self.outputs.dtype)
        return scaled, largest

    @cached_property
    def _in_double(self) -> "AutogradJacobian":
        core, gates, source, target = self._given
        try:
            raised = copy.deepcopy(cast(Any, core)).double()
            return AutogradJacobian(raised, gates.double(), source, target)
        except (RuntimeError, AttributeError) as error:
            raise ConfigError(
                f"gradients vanish in float32, and {type(core).__name__} does not run in float64 "
                f"({error}): give its constants the type of its inputs"
            ) from error

    def _gradients(self, first: int, last: int) -> Rows:
        rows = self.outputs.new_zeros(len(self.outputs), last - first, self.width)
        for row in range(first, last) if self._last.requires_grad else ():
            with torch.enable_grad():
                # Sequences do not see each other: the sum's gradient holds every sequence's own.
                output = self._last[:, row].sum()
                grads = torch.autograd.grad(
                    output, self._leaves, retain_graph=True, materialize_grads=True
                )
            rows[:, row - first] = flatten_state(grads, self._axes)
        return rows

    @staticmethod
    def footprint(core: Recurrence, gates: Gates, num_factors: int) -> tuple[int, int]:
        """Estimate bytes per sequence and per row."""
        with torch.no_grad():
            leaves = tree_leaves(core.recur(gates[:1, :1])[1])
        width = flatten_state(leaves, batch_axes(core, gates)).shape[1]
        graph = gates.shape[1] * gates.shape[2] + 12 * num_factors * (gates.shape[2] + width)
        return gates.itemsize * graph, gates.itemsize * width


def refuse_inference(what: str) -> None:
    """Refuse `torch.inference_mode`, in which autograd finds nothing."""
    if torch.is_inference_mode_enabled():
        raise ConfigError(
            f"{what} need autograd, which torch.inference_mode turns off: use torch.no_grad"
        )


def batch_axes(core: Recurrence, gates: Gates) -> list[int | None]:
    """Find the batch's axis in every leaf of the state, if any."""
    step = gates[:1, :1]
    with torch.no_grad():
        one, two = (tree_leaves(core.recur(step.expand(count, -1, -1))[1]) for count in (1, 2))
    axes: list[int | None] = []
    for small, large in zip(one, two, strict=True):
        is_smooth = isinstance(small, Tensor) and (small.is_floating_point() or small.is_complex())
        sizes = zip(small.shape, large.shape, strict=True) if isinstance(small, Tensor) else ()
        grown = [axis for axis, (size, more) in enumerate(sizes) if size != more]
        if len(grown) > 1:
            raise ConfigError(f"a state must hold the batch on one axis, got {tuple(large.shape)}")
        axes.append(grown[0] if grown and is_smooth else None)
    return axes


def flatten_state(
    leaves: Sequence[Any], axes: Sequence[int | None]
) -> Float[Tensor, "batch state"]:
    """Put what grows with the batch into rows, complex numbers as pairs."""
    parts = []
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is not None:
            real = torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
            parts.append(real.movedim(axis, 0).flatten(1))
    return torch.cat(parts, dim=1)
