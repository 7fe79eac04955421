"""Analysis of trained networks: gradients, errors, and how states hold tokens."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

from .pairing import ALL as ALL, Pairs as Pairs
from .recall import RecallErrors as RecallErrors, recall_errors as recall_errors
from .similarities import KINDS as KINDS

if TYPE_CHECKING:
    from .comparison import Comparison as Comparison, compare_jacobians as compare_jacobians
    from .descent import gradient_noise as gradient_noise, lead as lead
    from .jacobians import jacobian as jacobian, linearise as linearise
    from .linearisation import Linearisation as Linearisation, Projecting as Projecting
    from .memory import (
        input_gradients as input_gradients,
        latent_states as latent_states,
        log_slope as log_slope,
        perturb as perturb,
        position_changes as position_changes,
        subspace_overlap as subspace_overlap,
    )
    from .probes import read_linearly as read_linearly
    from .stability import Stability as Stability, gradient_stability as gradient_stability

__getattr__ = exports(__name__)
