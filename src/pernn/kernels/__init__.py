"""Kernels in C++, compiled on first use where there is a compiler; PyTorch does without them.

`PERNN_KERNELS` is `auto` (the default), `off`, or `require` (an error where they cannot be had).
`PERNN_KERNELS_TARGET` is the processor to compile for, as `-march` takes it; by default this one.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .cache import cache_directory, may_compile_first

if TYPE_CHECKING:
    from .arithmetic import describe_arithmetic, set_variables
    from .loading import Kernels, describe_kernels, find_kernels, without_kernels
    from .products import linear, product, rounded, rounding_products, rounds_products

__all__ = [
    "Kernels",
    "cache_directory",
    "describe_arithmetic",
    "describe_kernels",
    "find_kernels",
    "linear",
    "may_compile_first",
    "product",
    "rounded",
    "rounding_products",
    "rounds_products",
    "set_variables",
    "without_kernels",
]

__getattr__ = exports(
    __name__,
    {
        "Kernels": ".loading",
        "describe_arithmetic": ".arithmetic",
        "describe_kernels": ".loading",
        "find_kernels": ".loading",
        "linear": ".products",
        "product": ".products",
        "rounded": ".products",
        "rounding_products": ".products",
        "rounds_products": ".products",
        "set_variables": ".arithmetic",
        "without_kernels": ".loading",
    },
)
