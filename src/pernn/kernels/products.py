"""Matrix products, by compiled kernels where they pay, else by PyTorch.

On matrix units a float32 product goes in three bfloat16 parts of each factor, 24 bits, and six
products of parts: at 512 terms nearer to the float64 result than PyTorch's own (largest relative
error 1.8e-7 against 2.9e-7), and 1.7 times as fast.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from pernn.errors import ConfigError

from .loading import has_products

LEAST = {3: 128, 1: 64}
"""Parts of a number (three for float32, one if factors are rounded) → rows and columns of a product
below which PyTorch's own is as fast."""
LEAST_DEPTH = 32
BATCHED = torch._C._dispatch_key_parse("Batched")
"""Key of tensors in `is_grads_batched`, which has a `vmap` of its own."""


_Setting = tuple[Any, str, Any]
"""What has a setting, its name, its value."""

_rounds = ContextVar("_rounds", default=False)


@contextmanager
def rounding_products(*, rounds: bool) -> Iterator[None]:
    """Switch the rounding of float32 products' factors to bfloat16.

    Sums stay float32. It holds for this thread, and with it for backward passes on the CPU. Off, it
    computes exactly within a block that rounds, whatever autocast says.
    """
    token = _rounds.set(rounds)
    try:
        with nullcontext() if rounds else torch.autocast("cpu", enabled=False):
            yield
    finally:
        _rounds.reset(token)


@contextmanager
def library_products(*, tf32: bool) -> Iterator[None]:
    """Keep the libraries' float32 products from rounding, but for CUDA's TensorFloat-32.

    Whatever the caller has set, and then restored: which of them round where, nobody can tell.
    """
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    products = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    wanted: list[_Setting] = [(products, "fp32_precision", "ieee")]
    wanted += [(part, "allow_tf32", tf32) for part in (matmul, cudnn)]
    try:
        before = _exchange(wanted)
    except RuntimeError:
        # The caller uses the newer names of the same settings; PyTorch refuses a mixture.
        name = "tf32" if tf32 else "ieee"
        parts = (matmul, cudnn.conv, cudnn.rnn)
        wanted = [*wanted[:1], *((part, "fp32_precision", name) for part in parts)]
        before = _exchange(wanted)
    try:
        yield
    finally:
        _exchange(before)


def _exchange(wanted: Sequence[_Setting]) -> list[_Setting]:
    """Set attributes, and return what they were."""
    with warnings.catch_warnings():
        # PyTorch 2.9 says of the older names, once, that there are newer ones.
        warnings.filterwarnings("ignore", "Please use the new API settings to control TF32")
        before = [(part, name, getattr(part, name)) for part, name, _ in wanted]
        for part, name, value in wanted:
            setattr(part, name, value)
    return before


def autocast_dtype(device: str) -> torch.dtype | None:
    """Return the type to which autocast rounds, or `None`, as on `meta`."""
    # Asking PyTorch fails where there is no autocast at all.
    available = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return torch.get_autocast_dtype(device) if available else None


def without_autocast(device: str) -> AbstractContextManager[Any]:
    """Make a context without autocast, on devices that have none, too."""
    dtype = autocast_dtype(device)
    return nullcontext() if dtype is None else torch.autocast(device, enabled=False)


def rounds_products(device: torch.device) -> bool:
    """Return whether float32 products round to bfloat16 here and now.

    On the CPU that is `rounding_products` or autocast; elsewhere it is autocast.
    """
    if dtype := autocast_dtype(device.type):
        return dtype == torch.bfloat16
    return device.type == "cpu" and _rounds.get()


def is_transformed(*tensors: Tensor) -> bool:
    """Return whether `torch.func` differentiates or vectorises one of them."""
    # A compiler sees through the transforms.
    return not torch.compiler.is_compiling() and any(
        map(torch._C._functorch.is_functorch_wrapped_tensor, tensors)
    )


def is_batched(*tensors: Tensor | None) -> bool:
    """Return whether autograd goes back for many gradients at once (`is_grads_batched`)."""
    return any(one is not None and torch._C._dispatch_keys(one).has(BATCHED) for one in tensors)


def refuse_trace(what: str = "encodings and networks of pernn") -> None:
    """Refuse `torch.jit.trace`, which would silently fix the number of steps."""
    if torch._C._get_tracing_state() is not None:
        raise ConfigError(
            f"torch.jit.trace cannot follow {what}: use torch.export.export, which takes "
            "dynamic_shapes"
        )


def rounded(values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the nearest bfloat16 numbers, ties to even, as float32."""
    return values.bfloat16().float()


# The compiler asks once, and takes the answer for granted (see `find_kernels`).
rounds_products._dynamo_marked_constant = True  # type: ignore[attr-defined]


def product(
    left: Float[Tensor, "rows inner"],
    right: Float[Tensor, "inner columns"],
    out: Float[Tensor, "rows columns"] | None = None,
    *,
    add: bool = False,
    rounds: bool | None = None,
) -> Float[Tensor, "rows columns"]:
    """Multiply two matrices, outside of autograd.

    Rows or columns of each lie in one piece. The result goes to `out`, or is added to it. Factors
    are rounded as here and now unless `rounds` says it: a backward pass does what its forward did.
    """
    if out is None:
        out = left.new_empty(len(left), right.shape[1])
    if rounds is None:
        rounds = _rounds_factors(left)
    if _is_compiled(left, right, out, rounds=rounds):
        torch.ops.pernn.matmul(out, left, right, 1 if rounds else 3, add)
        return out
    if rounds:
        left, right = rounded(left), rounded(right)
    if add:
        out.addmm_(left, right)
    else:
        torch.mm(left, right, out=out)
    return out


def linear(
    inputs: Float[Tensor, "*rows width"],
    weight: Float[Tensor, "out width"],
    bias: Float[Tensor, " out"] | None = None,
) -> Float[Tensor, "*rows out"]:
    """`torch.nn.functional.linear`, forward and back by compiled products where they pay.

    Its three products, of the outputs and of both gradients, round their factors or none does.
    """
    rows = inputs.reshape(-1, inputs.shape[-1])
    rounds = _rounds_factors(rows)
    if not rounds and not _is_compiled(rows, weight.t(), None, rounds=False):
        return F.linear(inputs, weight, bias)
    if is_transformed(rows, weight):
        if rounds:
            inputs, weight = rounded(inputs), rounded(weight)
        return F.linear(inputs, weight, bias)
    found: Tensor = _Linear.apply(rows, weight, bias, rounds)  # type: ignore[no-untyped-call]
    return found.view(*inputs.shape[:-1], weight.shape[0])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        rounds: bool,  # noqa: FBT001  # `apply` takes no keywords
    ) -> Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.rounds = rounds
        found = product(rows, weight.t(), rounds=rounds)
        return found if bias is None else found.add_(bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        wants = ctx.needs_input_grad
        # To be differentiated again, or to be one of many, a gradient must be made of PyTorch's own
        # operations.
        is_plain = torch.is_grad_enabled() or is_batched(grad)
        multiply = _differentiable_product if is_plain else product
        grad = grad.contiguous()
        return (
            multiply(grad, weight, rounds=ctx.rounds) if wants[0] else None,
            multiply(grad.t(), rows, rounds=ctx.rounds) if wants[1] else None,
            grad.sum(0) if wants[2] else None,
            None,
        )


def _differentiable_product(left: Tensor, right: Tensor, *, rounds: bool) -> Tensor:
    return rounded(left) @ rounded(right) if rounds else left @ right


def _rounds_factors(factor: Tensor) -> bool:
    """Return whether a factor is to be rounded by us: on CUDA, autocast does it."""
    on_cpu = factor.device.type == "cpu" and factor.dtype == torch.float32
    return on_cpu and rounds_products(factor.device)


def _is_compiled(left: Tensor, right: Tensor, out: Tensor | None, *, rounds: bool) -> bool:
    """Return whether kernels should do a product."""
    parts = 1 if rounds else 3
    return (
        not torch.compiler.is_compiling()
        and min(len(left), right.shape[1]) >= LEAST[parts]
        and right.shape[0] >= LEAST_DEPTH
        and left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and (out is None or (out.dtype == torch.float32 and out.stride(1) == 1))
        and all(1 in (side.stride(0), side.stride(1)) for side in (left, right))
        and has_products(parts)
    )
