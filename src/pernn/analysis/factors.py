"""Per-step factors of the Jacobian of Elman, GRU and LSTM, from one forward pass.

Going back through one step of one layer, the adjoint g of its new state becomes

    g_old = Σ_k (src_k ⊙ s_k) U_k = Σ_k src_k · diag(s_k) U_k,

k a gate, U_k its recurrent weights, s_k its slope: how much the state gains per unit of its
pre-activation. src is h's adjoint, or in the LSTM, but for the output gate, the cell's. Slopes do
not depend on the row of the Jacobian: the gates of one source make one matrix, Σ_k diag(s_k) U_k.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from pernn.cores import GRU, LSTM, Elman, RecurrentCore


@dataclass(frozen=True)
class LayerFactors:
    """One layer's factors; time first.

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


def trace(
    core: RecurrentCore, gates: Float[Tensor, "batch time gate"], source: int
) -> tuple[Float[Tensor, "batch hidden"], list[LayerFactors]]:
    """Run all layers; give the last output, and every layer's factors of the steps after `source`.

    The first layer's factors come first.
    """
    values = gates.transpose(0, 1).contiguous()
    zeros = values.new_zeros(values.shape[1], core.hidden_size)
    layers = []
    for layer in range(core.num_layers):
        if layer:
            values = F.linear(values, core.weight("ih", layer), _input_bias(core, layer))
        outputs, _ = core.scan(layer, values, (zeros,) * core.num_states)
        before = torch.cat([zeros.unsqueeze(0), outputs[:-1]])
        layers.append(FACTORS[type(core)](core, layer, values, before, source))
        values = outputs
    return values[-1], layers


def _input_bias(core: RecurrentCore, layer: int) -> Tensor | None:
    if not core.bias:
        return None
    late = core.bias_of("hh", layer)
    if isinstance(core, GRU):
        late = torch.cat([late[: 2 * core.hidden_size], late.new_zeros(core.hidden_size)])
    return core.bias_of("ih", layer) + late


def _elman(
    core: RecurrentCore, layer: int, gates: Tensor, before: Tensor, source: int
) -> LayerFactors:
    gates, before = gates[source:], before[source:]
    outputs = torch.tanh(gates + F.linear(before, core.weight("hh", layer)))
    slopes = (1 - outputs * outputs).unsqueeze(2)
    return LayerFactors(slopes, slopes, ((0,),))


def _gru(
    core: RecurrentCore, layer: int, gates: Tensor, before: Tensor, source: int
) -> LayerFactors:
    gates, before = gates[source:], before[source:]
    inner = F.linear(before, core.weight("hh", layer)).unflatten(2, (3, -1))
    early = gates.unflatten(2, (3, -1))
    raw = inner[:, :, 2]
    if core.bias:
        raw = raw + core.bias_of("hh", layer)[2 * core.hidden_size :]
    reset, keep = torch.sigmoid(inner[:, :, :2] + early[:, :, :2]).unbind(2)
    new = torch.tanh(early[:, :, 2] + reset * raw)
    fresh = (1 - keep) * (1 - new * new)
    shut = fresh * raw * reset * (1 - reset)
    hold = keep * (1 - keep) * (before - new)
    return LayerFactors(
        torch.stack([shut, hold, fresh * reset], dim=2),
        torch.stack([shut, hold, fresh], dim=2),
        ((0, 1, 2),),
        keep=keep,
    )


def _lstm(
    core: RecurrentCore, layer: int, gates: Tensor, before: Tensor, source: int
) -> LayerFactors:
    pre = (gates + F.linear(before, core.weight("hh", layer))).unflatten(2, (4, -1))
    entry, forget, exit_ = (torch.sigmoid(pre[:, :, gate]) for gate in (0, 1, 3))
    update = torch.tanh(pre[:, :, 2])
    cells = torch.empty_like(before)
    cell = torch.zeros_like(before[0])
    entered = entry * update
    for step in range(len(cells)):
        cell = torch.addcmul(entered[step], forget[step], cell, out=cells[step])
    old = torch.cat([torch.zeros_like(cells[:1]), cells[:-1]])[source:]
    entry, forget, exit_, update, cells = (
        part[source:] for part in (entry, forget, exit_, update, cells)
    )
    flat = torch.tanh(cells)
    slopes = torch.stack(
        [
            update * entry * (1 - entry),
            old * forget * (1 - forget),
            entry * (1 - update * update),
            flat * exit_ * (1 - exit_),
        ],
        dim=2,
    )
    leak = exit_ * (1 - flat * flat)
    return LayerFactors(slopes, slopes, ((3,), (0, 1, 2)), leak=leak, forget=forget)


FACTORS: dict[type, Callable[[RecurrentCore, int, Tensor, Tensor, int], LayerFactors]] = {
    Elman: _elman,
    GRU: _gru,
    LSTM: _lstm,
}
"""Core → its factors; a subclass may compute something else and is not among them."""
