"""A device that is not there: PyTorch's `meta`, with what a GPU can do and nothing more.

Tensors on it have shapes and types and no numbers. `StandIn` watches every operation: what would
stop a GPU, or what a recording could not repeat, is refused with its reason.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")
WAITING = {
    "_local_scalar_dense": "waits for a number (.item(), float(), bool(), an index)",
    "nonzero": "counts on the device",
    "masked_select": "counts on the device",
    "unique_dim": "counts on the device",
    "_unique2": "counts on the device",
    "equal": "waits for a number",
    "is_nonzero": "waits for a number",
}
"""Operations whose result decides shapes or goes to Python: a GPU must be waited for."""
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "_addmm_activation", "linear"}
WIDE = (torch.float64, torch.complex128)


class RefusedError(AssertionError):
    """What a recording on a GPU could not do."""


class StandIn(TorchDispatchMode):
    """Refuses what does not go on a GPU; numbers that are fetched outside of it are zeros."""

    device = META

    def __init__(self, factors: set[torch.dtype]) -> None:
        super().__init__()
        self.factors = factors  # types of products' factors in a recording
        self.recorded = list[str]()  # operations that were let through in one
        self.is_steady = False  # all is set up: copies to the device must not wait
        self.pinned: list[Tensor] = []
        self._is_recording = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._is_recording = True
        try:
            yield
        finally:
            self._is_recording = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if self._is_recording:
            self._check_given(name, given, args)
        elif any(tensor.device == self.device for tensor in given):
            fetched = self._fetched(name, args, kwargs)
            if fetched is not None:
                return fetched
        if self.is_steady:
            self._check_copy(name, args, kwargs)
        if name == "_fused_adam_":
            assert {(one.device, one.dtype) for one in given} == {(META, torch.float32)}
        found = None if name == "_fused_adam_" else func(*args, **kwargs)
        if self._is_recording:
            self._check_made(name, found)
        return found

    def _check_given(self, name: str, given: Sequence[Tensor], args: Sequence[Any]) -> None:
        if name in WAITING:
            raise RefusedError(f"{name}: {WAITING[name]}")
        indices = [i for i in tree_leaves(args[1:2]) if isinstance(i, Tensor)]
        is_masked = any(index.dtype in (torch.bool, torch.uint8) for index in indices)
        if is_masked and name in ("index", "index_put", "index_put_", "_index_put_impl_"):
            raise RefusedError(f"{name}: a boolean mask counts on the device")
        away = [tensor for tensor in given if tensor.device != self.device]
        if away:
            raise RefusedError(f"{name}: a tensor of {away[0].device} in the recording")
        # The first argument of what adds to a product is a summand.
        factors = given[1:] if name in ("addmm", "baddbmm", "_addmm_activation") else given
        odd = {factor.dtype for factor in factors} - self.factors
        if name in PRODUCTS and odd:
            raise RefusedError(f"{name}: factors of type {odd.pop()}, not one of {self.factors}")

    def _check_made(self, name: str, found: Any) -> None:
        self.recorded.append(name)
        for tensor in tree_leaves(found):
            if not isinstance(tensor, Tensor):
                continue
            if tensor.device != self.device:
                raise RefusedError(f"{name}: makes a tensor on {tensor.device} in the recording")
            # The sums of what is logged, three numbers, are the only float64.
            if tensor.dtype in WIDE and tensor.numel() > 3:
                raise RefusedError(f"{name}: makes {tensor.dtype} in the recording")

    def _check_copy(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Refuse copies to the device that wait for it."""
        source, at_once = None, False
        if name == "_to_copy" and kwargs.get("device") == self.device:
            source, at_once = args[0], kwargs.get("non_blocking", False)
        elif name == "copy_" and args[0].device == self.device:
            source, at_once = args[1], len(args) > 2 and args[2]
        if source is None or source.device == self.device:
            return
        if not (at_once and any(source is one for one in self.pinned)):
            raise RefusedError(f"{name}: copies from memory that is not pinned, or waits for it")

    def _fetched(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return zeros for what goes to the CPU; nothing if nothing does."""
        if name == "_local_scalar_dense":
            return torch.zeros((), dtype=args[0].dtype).item()
        to = kwargs.get("device")
        if name == "_to_copy" and to is not None and torch.device(to).type == "cpu":
            return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        return None


class Autocast(TorchFunctionMode):
    """What `torch.autocast` does on CUDA to the products that we use; `meta` has none."""

    NAMES = ("linear", "matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm")

    dtype: torch.dtype | None = None

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        kwargs = kwargs or {}
        # Neither what is done in place nor what has a place for its result is cast.
        if self.dtype and getattr(func, "__name__", "") in self.NAMES and "out" not in kwargs:
            args = tuple(self._cast(value) for value in args)
            kwargs = {name: self._cast(value) for name, value in kwargs.items()}
        return func(*args, **kwargs)

    def _cast(self, value: Any) -> Any:
        is_single = isinstance(value, Tensor) and value.dtype == torch.float32
        return value.to(self.dtype) if is_single else value


@contextmanager
def stand_in(patch: pytest.MonkeyPatch, factors: set[torch.dtype]) -> Iterator[StandIn]:
    """Put the device in place of a GPU; inside, `meta` has autocast and pinned memory."""
    mode, cast = StandIn(factors), Autocast()

    @contextmanager
    def autocast(kind, dtype=None, enabled=True, **options) -> Iterator[None]:
        before, cast.dtype = cast.dtype, (dtype or torch.bfloat16) if enabled else None
        try:
            yield
        finally:
            cast.dtype = before

    def on_meta(module: Any, name: str, stand_in: Callable[..., Any]) -> None:
        real = getattr(module, name)

        def choose(kind="cpu", *args, **kwargs):
            return (stand_in if kind == "meta" else real)(kind, *args, **kwargs)

        patch.setattr(module, name, choose)

    def pin(tensor: Tensor) -> Tensor:
        mode.pinned.append(tensor.clone())
        return mode.pinned[-1]

    on_meta(torch, "autocast", autocast)
    on_meta(torch.amp, "is_autocast_available", lambda kind: True)
    on_meta(torch, "is_autocast_enabled", lambda kind: cast.dtype is not None)
    on_meta(torch, "get_autocast_dtype", lambda kind: cast.dtype)
    patch.setattr(Tensor, "pin_memory", pin)
    with cast, mode:
        yield mode
