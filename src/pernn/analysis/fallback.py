"""The Jacobian of any recurrence, by one backward pass per row."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from pernn.cores import Recurrence
from pernn.errors import ConfigError


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
    """

    def __init__(
        self,
        core: Recurrence,
        gates: Float[Tensor, "batch time gate"],
        source: int,
        target: int,
    ) -> None:
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
        self.width = sum(_real_size(leaf) // len(self.outputs) for leaf in self._leaves)

    def rows(
        self, first: int, last: int
    ) -> tuple[Float[Tensor, "batch rows width"], Int[Tensor, "batch rows"]]:
        """Return the rows of outputs `first … last − 1`, with exponents of 0."""
        batch = len(self.outputs)
        rows = self.outputs.new_zeros(batch, last - first, self.width)
        for row in range(first, last):
            if not self._last.requires_grad:
                break
            with torch.enable_grad():
                # Sequences do not see each other: the sum's gradient holds every sequence's own.
                grads = torch.autograd.grad(
                    self._last[:, row].sum(), self._leaves, retain_graph=True, allow_unused=True
                )
            start = 0
            for leaf, axis, grad in zip(self._leaves, self._axes, grads, strict=True):
                size = _real_size(leaf) // batch
                if grad is not None:
                    parts = torch.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad
                    rows[:, row - first, start : start + size] = parts.movedim(axis, 0).flatten(1)
                start += size
        return rows, torch.zeros(rows.shape[:2], dtype=torch.int32, device=rows.device)

    def expand(self, rows: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch rows state"]:
        """Return the rows as they are."""
        return rows

    @staticmethod
    def footprint(
        core: Recurrence, gates: Float[Tensor, "batch time gate"], num_factors: int
    ) -> tuple[int, int]:
        """Estimate bytes per sequence and per row."""
        with torch.no_grad():
            leaves = tree_leaves(core.recur(gates[:1, :1])[1])
        axes = batch_axes(core, gates)
        width = sum(
            _real_size(leaf) for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
        )
        graph = gates.shape[1] * gates.shape[2] + 12 * num_factors * (gates.shape[2] + width)
        return gates.itemsize * graph, gates.itemsize * width


def batch_axes(core: Recurrence, gates: Float[Tensor, "batch time gate"]) -> list[int | None]:
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


def _real_size(tensor: Tensor) -> int:
    return tensor.numel() * (2 if tensor.is_complex() else 1)
