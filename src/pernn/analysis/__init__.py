"""Analysis of trained networks: how stable gradients are when other tokens stand between."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .pairing import Pairs, dual_frequency_pairs
from .similarities import KINDS

if TYPE_CHECKING:
    from .comparison import Comparison, compare_jacobians, similarity
    from .jacobians import jacobian, linearise
    from .linearisation import Linearisation, Projecting
    from .maps import stability_map
    from .stability import Stability, gradient_stability

__all__ = [
    "KINDS",
    "Comparison",
    "Linearisation",
    "Pairs",
    "Projecting",
    "Stability",
    "compare_jacobians",
    "dual_frequency_pairs",
    "gradient_stability",
    "jacobian",
    "linearise",
    "similarity",
    "stability_map",
]

__getattr__ = exports(
    __name__,
    {
        "Comparison": ".comparison",
        "Linearisation": ".linearisation",
        "Projecting": ".linearisation",
        "Stability": ".stability",
        "compare_jacobians": ".comparison",
        "gradient_stability": ".stability",
        "jacobian": ".jacobians",
        "linearise": ".jacobians",
        "similarity": ".comparison",
        "stability_map": ".maps",
    },
)
