"""Analysis of trained networks: gradients, errors, and how states hold tokens."""

from typing import TYPE_CHECKING

from pernn.lazy import exports

if TYPE_CHECKING:
    from .descent import gradient_noise as gradient_noise, lead as lead
    from .jacobians import (
        Linearisation as Linearisation,
        jacobian as jacobian,
        linearise as linearise,
    )
    from .memory import (
        input_gradients as input_gradients,
        latent_states as latent_states,
        log_slope as log_slope,
        perturb as perturb,
        position_changes as position_changes,
        read_linearly as read_linearly,
        subspace_overlap as subspace_overlap,
    )
    from .recall import RecallErrors as RecallErrors, recall_errors as recall_errors
    from .stability import (
        ALL as ALL,
        KINDS as KINDS,
        Comparison as Comparison,
        Pairs as Pairs,
        Projecting as Projecting,
        Stability as Stability,
        compare_jacobians as compare_jacobians,
        gradient_stability as gradient_stability,
    )

__getattr__ = exports(__name__)
