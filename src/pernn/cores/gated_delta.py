"""Gated delta rule: associations in a matrix, corrected before they grow.

Of one head, with keys and queries of norm 1:

    S_t = α_t S_{t−1} (I − β_t k_t k_tᵀ) + β_t v_t k_tᵀ = α_t S_{t−1} + w_t k_tᵀ
    w_t = β_t (v_t − α_t S_{t−1} k_t)    o_t = S_t q_t

Over a chunk of steps from S_0, with c_t = Π_{s ≤ t} α_s, rows for steps, ⊙ an elementwise product:

    (I + A) W = β ⊙ (V − c ⊙ K S_0ᵀ)    A_ts = β_t (c_t / c_s) k_t·k_s for s < t, else 0
    o_t = c_t S_0 q_t + Σ_{s ≤ t} (c_t / c_s) (k_s·q_t) w_s

one triangular system instead of a step after the other.

Source: Yang, Kautz and Hatamizadeh (2024), "Gated delta networks: improving Mamba2 with delta
rule", section 3.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.kernels import without_autocast

from .core import Linear
from .stacked import Gates, Layer, Outputs, Stacked

CHUNK = 64
"""Steps that are solved for together."""
TINY = 1e-6
"""Added to squared norms, as the authors do."""


class GatedDeltaLayer(Layer):
    """One layer of the gated delta rule.

    The map of the inputs holds queries, keys, values and output gates, then α and β of each head.
    """

    def __init__(self, input_size: int, hidden_size: int, num_heads: int) -> None:
        size = hidden_size // num_heads
        super().__init__(input_size, 4 * hidden_size + 2 * num_heads, num_heads, size, size)
        self.log_decay = nn.Parameter(torch.empty(num_heads))
        """a: α = exp(−e^a softplus(its row))."""
        self.leave = Linear(hidden_size, hidden_size, draw=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw maps as `torch.nn.Linear` does, decays as Mamba2.

        e^a is uniform in 1 … 16, softplus of α's bias log-uniform in 0.001 … 0.1.
        """
        super().reset_parameters(generator)
        self.leave.reset_parameters(generator)
        heads = len(self.log_decay)
        with torch.no_grad():
            self.log_decay.uniform_(1, 16, generator=generator).log_()
            steps = torch.empty(heads).uniform_(math.log(1e-3), math.log(0.1), generator=generator)
            # The inverse of softplus.
            self.enter.bias[-2 * heads : -heads] = steps.exp().expm1().log()

    def forward(self, gates: Gates, state: Tensor, num_outputs: int) -> tuple[Outputs, Tensor]:
        """Return the outputs of the last steps, and the final state."""
        heads, num_steps = len(self.log_decay), gates.shape[0]
        width = gates.shape[2] - 2 * heads
        query, key, value, gate = (
            F.silu(part).unflatten(2, (heads, -1)).permute(1, 2, 0, 3)
            for part in gates[..., :width].chunk(4, dim=2)
        )
        decay, strength = gates[..., width:].permute(1, 2, 0).chunk(2, dim=1)
        decay = -self.log_decay.exp().unsqueeze(1) * F.softplus(decay)
        parts = [_unit(query), _unit(key), value, decay, torch.sigmoid(strength)]
        # A compiler cannot follow a loop whose length it leaves open.
        whole = torch.compiler.is_compiling()
        starts, length = ((0,), num_steps) if whole else (range(0, num_steps, CHUNK), CHUNK)
        sums = []
        with without_autocast(gates.device.type):
            run = _run_step if num_steps == 1 else _run_chunk
            for start in starts:
                q, k, v, a, b = (values[:, :, start : start + length] for values in parts)
                found, state = run(q, k, v, a, b, state)
                sums.append(found)
        first = num_steps - num_outputs
        seen = torch.cat(sums, dim=2)[:, :, first:]
        # A weight of the norm would be one of the map that follows.
        shown = F.rms_norm(seen, seen.shape[-1:], eps=TINY) * gate[:, :, first:]
        left = self.leave(shown.permute(2, 0, 1, 3).flatten(2))
        return left.to(gates.dtype), state


def _unit(values: Tensor) -> Tensor:
    return values * torch.rsqrt(values.square().sum(-1, keepdim=True) + TINY)


def _run_step(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, strength: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Run one step by its definition."""
    kept = decay.exp().unsqueeze(3) * state
    written = strength.unsqueeze(3) * (value - key @ kept.mT)
    state = kept + written.mT @ key
    return query @ state.mT, state


def _run_chunk(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, strength: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Run some steps by the solution of a triangular system."""
    # Differences of sums: in double precision, or late steps would lose digits to early ones.
    sums = decay.double().cumsum(2)
    steps = torch.arange(decay.shape[2], device=decay.device)
    later = steps > steps.unsqueeze(1)
    ratios = (sums.unsqueeze(3) - sums.unsqueeze(2)).to(decay.dtype)
    ratios = ratios.masked_fill(later, -torch.inf).exp()
    whole, strength = sums.to(decay.dtype).exp().unsqueeze(3), strength.unsqueeze(3)
    # Of the system only what is below the diagonal is read: ones are on it. There are fewer steps
    # than numbers in a value, and products are faster than solutions.
    unit = torch.eye(decay.shape[2], dtype=key.dtype, device=key.device)
    system = strength * ratios * (key @ key.mT)
    inverse = torch.linalg.solve_triangular(
        system, unit.expand_as(system), upper=False, unitriangular=True
    )
    written = inverse @ (strength * (value - whole * (key @ state.mT)))
    outputs = whole * (query @ state.mT) + (ratios * (query @ key.mT)) @ written
    last = (ratios[:, :, -1].unsqueeze(3) * written).mT @ key
    return outputs, whole[:, :, -1:] * state + last


class GatedDelta(Stacked):
    """Gated delta rule: per head a matrix that forgets, corrects, recalls.

    The state is `(layers, batch, head, value, key)`. Outputs are normalised, gated by SiLU and
    mixed by a linear map.

    Args:
        input_size: Width of one input vector.
        hidden_size: Width of one output, of queries, keys and values of all heads.
        num_layers: Number of stacked layers.
        num_heads: Heads, which share the width; a divisor of `hidden_size`.
        rest: `batch_first`, true by default, `device`, `dtype` and `generator`, as in `S4D`.

    Raises:
        ConfigError: As `S4D`, or if the heads do not divide the width.

    Differs: From the authors' layer in that there is no short convolution before queries, keys and
        values, values are as wide as keys, and all maps have a bias.

    Examples:
        >>> outputs, state = GatedDelta(4, 8, num_heads=2)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 2, 4, 4))
    """

    layer_class = GatedDeltaLayer

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        num_heads: int = 1,
        **rest: Any,
    ) -> None:
        self._check_sizes(num_heads=num_heads)
        if hidden_size % num_heads:
            self._refuse(f"num_heads must divide hidden_size, got {num_heads} and {hidden_size}")
        self.num_heads, self.layer_sizes = num_heads, (num_heads,)
        super().__init__(input_size, hidden_size, num_layers, **rest)
