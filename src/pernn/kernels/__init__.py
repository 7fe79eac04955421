"""C++ kernels, compiled on first use where there is a compiler.

`PERNN_KERNELS` is `auto` (the default) or `off`.
`PERNN_KERNELS_TARGET` is the processor to compile for, as `-march` takes it; by default
instructions that PyTorch itself uses here.
"""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .loading import (
        MAX_HIDDEN as MAX_HIDDEN,
        Kernels as Kernels,
        UsualNetwork as UsualNetwork,
        describe_arithmetic as describe_arithmetic,
        describe_kernels as describe_kernels,
        find_kernels as find_kernels,
        flush_denormals as flush_denormals,
        has_products as has_products,
        has_whole_updates as has_whole_updates,
        set_variables as set_variables,
        whole_updates as whole_updates,
        without_kernels as without_kernels,
    )
    from .products import (
        autocast_dtype as autocast_dtype,
        is_batched as is_batched,
        is_transformed as is_transformed,
        library_products as library_products,
        linear as linear,
        product as product,
        refuse_trace as refuse_trace,
        rounded as rounded,
        rounding_products as rounding_products,
        rounds_products as rounds_products,
        without_autocast as without_autocast,
    )

__getattr__ = exports(__name__)
