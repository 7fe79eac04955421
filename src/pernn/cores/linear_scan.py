"""The recurrence s_{t+1} = f_t ⊙ s_t + x_t.

Its factors do not see the state. Its adjoint is one as well, in the other direction, so that the
gradient of a gradient needs no more code. A compiler sees one operation, of any number of steps.
"""

from typing import Any

import torch
from torch import Tensor

from pernn.kernels import is_transformed

# `torch.library.custom_op` would load PyTorch's compiler, which takes seconds.
LIBRARY = torch.library.Library("pernn", "FRAGMENT")
LIBRARY.define("linear_scan(Tensor factors, Tensor inputs, Tensor initial, bool reverse) -> Tensor")


def linear_scan(
    factors: Tensor, inputs: Tensor, initial: Tensor, *, reverse: bool = False
) -> Tensor:
    """Run the recurrence over the first axis, of real or complex numbers.

    Args:
        factors: f, of the inputs' shape; expanded where all steps have the same.
        inputs: x, `(time, ...)`.
        initial: The state before the first step, or after the last in reverse, `(...)`.
        reverse: Whether to go from the last step to the first, s_t = f_t ⊙ s_{t+1} + x_t.

    Returns:
        All states, the initial one among them, `(time + 1, ...)`.
    """
    if is_transformed(factors, inputs, initial):
        return _step_by_step(factors, inputs, initial, reverse=reverse)
    states: Tensor = torch.ops.pernn.linear_scan(factors, inputs, initial, reverse)
    return states


def _step_by_step(factors: Tensor, inputs: Tensor, initial: Tensor, *, reverse: bool) -> Tensor:
    """Run the recurrence by operations that `torch.func` can transform."""
    states, order = [initial], range(len(inputs))
    for step in reversed(order) if reverse else order:
        states.append(torch.addcmul(inputs[step], factors[step], states[-1]))
    return torch.stack(states[::-1] if reverse else states)


def _run(factors: Tensor, inputs: Tensor, initial: Tensor, reverse: bool) -> Tensor:  # noqa: FBT001
    states = inputs.new_empty(len(inputs) + 1, *inputs.shape[1:])
    after = states[:-1] if reverse else states[1:]
    previous = states[-1 if reverse else 0].copy_(initial)
    steps = [part.unbind(0) for part in (factors, inputs, after)]
    if reverse:
        steps = [part[::-1] for part in steps]
    for factor, entry, state in zip(*steps, strict=True):
        previous = torch.addcmul(entry, factor, previous, out=state)
    return states


def _shape(_: Tensor, inputs: Tensor, *__: Tensor | bool) -> Tensor:
    return inputs.new_empty(inputs.shape[0] + 1, *inputs.shape[1:])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    factors, _, _, ctx.reverse = inputs
    ctx.save_for_backward(factors, output)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Go back: g_t = conj(f_t) ⊙ g_{t+1} + what arrives at t."""
    factors, states = ctx.saved_tensors
    first, rest = (0, slice(1, None)) if ctx.reverse else (-1, slice(None, -1))
    back = linear_scan(factors.conj(), grad[rest], grad[first], reverse=not ctx.reverse)
    entries, before = (back[:-1], states[1:]) if ctx.reverse else (back[1:], states[:-1])
    return entries * before.conj(), entries, back[-1 - first], None


LIBRARY.impl("linear_scan", _run, "CompositeExplicitAutograd")
torch.library.register_fake("pernn::linear_scan", _shape, lib=LIBRARY)
torch.library.register_autograd(
    "pernn::linear_scan", _differentiate, setup_context=_keep, lib=LIBRARY
)
