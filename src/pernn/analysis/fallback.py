"""The Jacobian of any recurrence, by one backward pass per row."""

import copy
from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from pernn.cores import Recurrence
from pernn.errors import ConfigError

from .linearisation import Exponents, Gates, Rows

SMALLEST = 1e-30
"""A gradient in float32 below which digits may have been lost on the way back to the state."""


class AutogradJacobian:
    """The Jacobians of any module with the interface `Recurrence`.

    The state is a tensor or nested tuples, lists and dictionaries of such, real or complex, with
    the batch on any axis; what is not floating or does not grow with the batch is a constant. A
    complex number counts as two real ones, first the real part.

    Args:
        core: Module that recurs; first derivatives suffice.
        gates: Projected inputs, from the first step on.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.

    Raises:
        ConfigError: In `torch.inference_mode`, which has no gradients at all.
    """

    def __init__(self, core: Recurrence, gates: Gates, source: int, target: int) -> None:
        refuse_inference("Jacobians by autograd")
        self._core, self._gates, self._steps = core, gates, (source, target)
        self._raised: AutogradJacobian | None = None
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
        """Return the rows of outputs `first … last − 1`, each over 2^exponent.

        Where gradients may have vanished in float32, as they do over many steps, all are computed
        again in float64.

        Raises:
            ConfigError: If they do, and the core does not run in float64.
        """
        rows = self._gradients(first, last)
        if rows.dtype == torch.float32 and (rows.abs().amax(2) < SMALLEST).any():
            rows = self._in_double()._gradients(first, last)
        largest = torch.frexp(rows.abs().amax(2)).exponent
        scaled = torch.ldexp(rows, -largest.unsqueeze(2)).to(self.outputs.dtype)
        return scaled, largest

    def _in_double(self) -> "AutogradJacobian":
        if self._raised is None:
            try:
                core = copy.deepcopy(cast(Any, self._core)).double()
                self._raised = AutogradJacobian(core, self._gates.double(), *self._steps)
            except (RuntimeError, AttributeError) as error:
                raise ConfigError(
                    f"gradients vanish in float32, and {type(self._core).__name__} does not run "
                    f"in float64 ({error}): give its constants the type of its inputs"
                ) from error
        return self._raised

    def _gradients(self, first: int, last: int) -> Rows:
        rows = self.outputs.new_zeros(len(self.outputs), last - first, self.width)
        for row in range(first, last):
            if not self._last.requires_grad:
                break
            with torch.enable_grad():
                # Sequences do not see each other: the sum's gradient holds every sequence's own.
                grads = torch.autograd.grad(
                    self._last[:, row].sum(),
                    self._leaves,
                    retain_graph=True,
                    allow_unused=True,
                    materialize_grads=True,
                )
            rows[:, row - first] = flatten_state(grads, self._axes)
        return rows

    def expand(self, rows: Rows) -> Float[Tensor, "batch rows state"]:
        """Return the rows as they are."""
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
    """Refuse `torch.inference_mode`, in which autograd finds nothing.

    Raises:
        ConfigError: If it is on.
    """
    if torch.is_inference_mode_enabled():
        raise ConfigError(
            f"{what} need autograd, which torch.inference_mode turns off: use torch.no_grad"
        )


def batch_axes(core: Recurrence, gates: Gates) -> list[int | None]:
    """Find the batch's axis in every leaf of the state, if any.

    Raises:
        ConfigError: If more than one axis does.
    """
    step = gates[:1, :1]
    with torch.no_grad():
        one, two = (tree_leaves(core.recur(step.expand(count, -1, -1))[1]) for count in (1, 2))
    axes: list[int | None] = []
    for small, large in zip(one, two, strict=True):
        if not isinstance(small, Tensor):
            axes.append(None)
            continue
        grown = [axis for axis, size in enumerate(small.shape) if size != large.shape[axis]]
        if len(grown) > 1:
            raise ConfigError(f"a state must hold the batch on one axis, got {tuple(large.shape)}")
        is_smooth = small.is_floating_point() or small.is_complex()
        axes.append(grown[0] if grown and is_smooth else None)
    return axes


def flatten_state(
    leaves: Sequence[Any], axes: Sequence[int | None]
) -> Float[Tensor, "batch state"]:
    """Put all that grows with the batch into one row per sequence.

    A complex number is two real ones.
    """
    parts = []
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is not None:
            real = torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
            parts.append(real.movedim(axis, 0).flatten(1))
    return torch.cat(parts, dim=1)
