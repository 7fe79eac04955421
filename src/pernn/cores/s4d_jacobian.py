"""The Jacobian of a single S4D layer, a product of three matrices.

With z = e^{ΔA}, v_h = (2 Re C z^d, −2 Im C z^d) of d steps, a = GELU(s + D u) and the GLU of W a:

    ∂y_i/∂x_hn = K_ih · GELU'(s_h + D_h u_h) · v_hn,   K = diag(σ(q)) W_p + diag(p σ'(q)) W_q.

Only the first two depend on the sequence, and rows of different v_h do not overlap: inner products
of whole rows are those of rows of H numbers, weighted by ‖v_h‖².
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


class StateSpaceJacobian:
    """The Jacobians of a batch of sequences through S4D with one layer.

    A row holds H numbers, one per channel; `expand` gives (H × modes × 2) numbers, of every mode
    the derivative by the real part and by the imaginary part: the core's own layout of its state.

    Args:
        core: S4D with one layer.
        gates: Projected inputs, from the first step on.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.
    """

    def __init__(
        self, core: Any, gates: Float[Tensor, "batch time hidden"], source: int, target: int
    ) -> None:
        gates = gates[:, :target]
        outputs, state = core.recur(gates)
        self.outputs = outputs[:, -1]
        self.width = core.hidden_size
        layer: Any = core.layers[0]
        readout = torch.view_as_complex(layer.readout.double())
        modes = torch.complex(-layer.log_decay.double().exp(), layer.frequency.double())
        rate = layer.log_step.double().exp().unsqueeze(1) * modes
        late = 2 * readout * torch.exp(rate * (target - source))
        seen = torch.view_as_real(late.conj().resolve_conj()).flatten(1)
        norms = torch.linalg.vector_norm(seen, dim=1)
        self._norms = norms.to(gates.dtype)
        self._directions = (seen / norms.clamp_min(torch.finfo(norms.dtype).tiny)[:, None]).to(
            gates.dtype
        )
        sums = 2 * (torch.view_as_real(readout.conj().resolve_conj()) * state[0]).sum((2, 3))
        before = sums.to(gates.dtype) + layer.skip * gates[:, -1]
        bell = torch.exp(-before * before / 2) / math.sqrt(2 * math.pi)
        self._slopes = (1 + torch.erf(before / math.sqrt(2))) / 2 + before * bell
        self._mix = layer.mix.weight.detach().unflatten(0, (2, -1))
        self._value, gate = layer.mix(F.gelu(before)).chunk(2, dim=1)
        self._gate = torch.sigmoid(gate)

    def rows(
        self, first: int, last: int
    ) -> tuple[Float[Tensor, "batch rows width"], Int[Tensor, "batch rows"]]:
        """Return the rows of outputs `first … last − 1`, with exponents of 0."""
        gate, value = (part[:, first:last, None] for part in (self._gate, self._value))
        rows = (
            gate * self._mix[0, first:last]
            + (value * gate * (1 - gate)) * (self._mix[1, first:last])
        )
        rows *= (self._slopes * self._norms).unsqueeze(1)
        return rows, torch.zeros(rows.shape[:2], dtype=torch.int32, device=rows.device)

    def expand(self, rows: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch rows state"]:
        """Return the derivatives by every mode's real and imaginary part."""
        expanded: Tensor = (rows.unsqueeze(3) * self._directions).flatten(2)
        return expanded

    @staticmethod
    def footprint(
        core: Any, gates: Float[Tensor, "batch time hidden"], num_factors: int
    ) -> tuple[int, int]:
        """Return bytes per sequence and per row, at any distance."""
        del num_factors
        modes = core.state_size // 2
        forward = core.hidden_size * (6 * gates.shape[1] + 8 * modes)
        return gates.itemsize * forward, gates.itemsize * 3 * core.hidden_size
