"""Factors of one layer's step in a Jacobian."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class LayerFactors:
    """One layer's factors of the Jacobian, time first.

    Going back through one step, the adjoint g of the layer's new state becomes

        g_old = Σ_k (src_k ⊙ s_k) U_k = Σ_k src_k · diag(s_k) U_k,

    k a gate, U_k its recurrent weights, s_k its slope: how much the state gains per unit of its
    pre-activation. src is h's adjoint, or in the LSTM, but for the output gate, the cell's. Slopes
    do not depend on the row of the Jacobian: the gates of one source make one matrix,
    Σ_k diag(s_k) U_k.

    Attributes:
        recurrent: Slopes of all gates with respect to what comes from the old state.
        entering: The same with respect to what comes from the layer below.
        groups: Gates of each source: of h's adjoint, then of the cell's if there is one.
        keep: What of h goes on by itself, in the GRU.
        leak: What of the cell shows in h, in the LSTM.
        forget: What of the cell goes on by itself.
    """

    recurrent: Float[Tensor, "time batch block hidden"]
    entering: Float[Tensor, "time batch block hidden"]
    groups: tuple[tuple[int, ...], ...]
    keep: Float[Tensor, "time batch hidden"] | None = None
    leak: Float[Tensor, "time batch hidden"] | None = None
    forget: Float[Tensor, "time batch hidden"] | None = None
