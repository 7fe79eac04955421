"""Analysis of trained networks: how stable gradients are when other tokens stand between."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .pairing import Pairs as Pairs, dual_frequency_pairs as dual_frequency_pairs
from .similarities import KINDS as KINDS

if TYPE_CHECKING:
    from .comparison import (
        Comparison as Comparison,
        compare_jacobians as compare_jacobians,
        similarity as similarity,
    )
    from .jacobians import jacobian as jacobian, linearise as linearise
    from .linearisation import Linearisation as Linearisation, Projecting as Projecting
    from .maps import stability_map as stability_map
    from .stability import Stability as Stability, gradient_stability as gradient_stability

__getattr__ = exports(__name__)
