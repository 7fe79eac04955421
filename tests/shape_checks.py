"""The run-time checker of annotations, which pytest puts around every function of pernn."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype

# An int is welcome where a float is: type checkers agree.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
# This file may be imported under two names.
check_shapes = getattr(jaxtyping.jaxtyped, "original", jaxtyping.jaxtyped)


def _resolve(hint: Any, names: dict[str, Any]) -> Any:
    """Return what a hint means, `Any` where that is not known yet: as jaxtyping does."""
    holder = type("Holder", (), {"__annotations__": {"hint": hint}})
    try:
        return get_type_hints(holder, names, include_extras=True)["hint"]
    except Exception:  # noqa: BLE001  # whatever evaluating a name of elsewhere raises
        return Any


def _has_shape(hint: Any) -> bool:
    if isinstance(hint, list | tuple):
        return any(map(_has_shape, hint))
    if isinstance(hint, TypeVar):
        return _has_shape((hint.__bound__, *hint.__constraints__))
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return get_origin(hint) is not Literal and _has_shape(get_args(hint))


def _is_blind(hint: Any) -> bool:
    """Return whether a protocol asks for more than methods.

    From Python 3.12 on `isinstance` does not find the parts of a module, which are no attributes.
    """
    return any(
        not callable(getattr(part, name, None))
        for part in get_args(hint) or (hint,)
        for name in getattr(part, "__protocol_attrs__", ())
    )


def _check_function(found: Any, typechecker: Any) -> Any:
    hints, names = found.__annotations__, found.__globals__
    resolved = {name: _resolve(hint, names) for name, hint in hints.items()}
    blind = {name: Any for name, hint in resolved.items() if _is_blind(hint)}
    if _has_shape([*resolved.values()]):
        found.__annotations__ = hints | blind
        checked = check_shapes(found, typechecker=typechecker)
    else:
        found.__annotations__ = resolved | blind
        checked = check(found)
    found.__annotations__ = checked.__annotations__ = hints
    return checked


def jaxtyped(*, typechecker: Any) -> Callable[[Any], Any]:
    """Check what jaxtyping's own decorator checks, in less time where no annotation has a shape.

    That one binds the arguments of every call to their names, and checks them twice.
    """

    def decorate(found: Any) -> Any:
        if inspect.isfunction(found):
            return _check_function(found, typechecker)
        # Of a data class the values are checked after its own `__post_init__`.
        return check_shapes(found, typechecker=typechecker)

    return decorate


jaxtyped.original = check_shapes  # type: ignore[attr-defined]
jaxtyping.jaxtyped = jaxtyped
