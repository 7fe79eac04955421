"""Recurrences written out step by step, to be differentiated by PyTorch alone."""

import math

import torch
from torch.nn import functional as F


def elman(core, layer, gate, hidden):
    return (torch.tanh(gate + core.weight("hh", layer) @ hidden),)


def gru(core, layer, gate, hidden):
    inner = core.weight("hh", layer) @ hidden
    late = core.bias_of("hh", layer).chunk(3)[2] if core.bias else 0
    (a, b, c), (d, e, f) = gate.chunk(3), inner.chunk(3)
    reset, keep = torch.sigmoid(a + d), torch.sigmoid(b + e)
    return ((1 - keep) * torch.tanh(c + reset * (f + late)) + keep * hidden,)


def lstm(core, layer, gate, hidden, cell):
    entry, forget, update, exit_ = (gate + core.weight("hh", layer) @ hidden).chunk(4)
    cell = torch.sigmoid(forget) * cell + torch.sigmoid(entry) * torch.tanh(update)
    return torch.sigmoid(exit_) * torch.tanh(cell), cell


def s4d(core, layer, value, state):
    part = core.layers[layer]
    modes = torch.complex(-part.log_decay.exp(), part.frequency)
    factor = torch.exp(part.log_step.exp()[:, None] * modes)
    entry = (factor - 1) / modes
    before = torch.view_as_complex(state.unflatten(0, (core.hidden_size, -1, 2)))
    after = factor * before + entry * value[:, None]
    sums = 2 * (torch.view_as_complex(part.readout) * after).real.sum(1) + part.skip * value
    active = sums * (1 + torch.erf(sums / math.sqrt(2))) / 2
    left, right = (part.mix.weight @ active + part.mix.bias).chunk(2)
    return left * torch.sigmoid(right), torch.view_as_real(after).flatten()


def min_gru(core, part, gate, hidden):
    update, new = gate.chunk(2)
    hidden = hidden + torch.sigmoid(update) * (new - hidden)
    return hidden, hidden


def min_lstm(core, part, gate, hidden):
    forget, enter, new = gate.chunk(3)
    forget, enter = torch.sigmoid(forget), torch.sigmoid(enter)
    hidden = (forget * hidden + enter * new) / (forget + enter)
    return hidden, hidden


def lru(core, part, gate, state):
    size = core.state_size
    factor = torch.exp(torch.complex(-part.log_decay.exp(), part.log_phase.exp()))
    entry = torch.complex(gate[: 2 * size : 2], gate[1 : 2 * size : 2])
    before = torch.complex(state[::2], state[1::2])
    after = torch.view_as_real(factor * before + part.log_scale.exp() * entry).flatten()
    left, right = part.mix(F.gelu(part.readout @ after + gate[2 * size :])).chunk(2)
    return left * torch.sigmoid(right), after


def gated_delta(core, part, gate, state):
    size = core.hidden_size
    query, key, value, shown = (F.silu(one) for one in gate[: 4 * size].chunk(4))
    query, key = (one / torch.sqrt((one * one).sum() + 1e-6) for one in (query, key))
    keep = torch.exp(-part.log_decay.exp() * F.softplus(gate[-2]))
    matrix = keep * state.unflatten(0, (size, size))
    error = torch.sigmoid(gate[-1]) * (value - matrix @ key)
    matrix = matrix + torch.outer(error, key)
    seen = matrix @ query
    seen = seen / torch.sqrt((seen * seen).mean() + 1e-6)
    return part.leave(seen * shown), matrix.flatten()


STEPS = {"Elman": elman, "GRU": gru, "LSTM": lstm}
STACKED = {"MinGRU": min_gru, "MinLSTM": min_lstm, "LRU": lru, "GatedDelta": gated_delta}


def run(core, gates, state):
    """Carry a flat state over one sequence's gates; give the last output and the new state."""
    name = type(core).__name__
    layers, outputs = core.num_layers, None
    if name == "S4D":
        parts = list(state.unflatten(0, (layers, -1)))
        for gate in gates:
            outputs = gate
            for layer in range(layers):
                outputs, parts[layer] = s4d(core, layer, outputs, parts[layer])
        return outputs, torch.cat(parts)
    if name in STACKED:
        parts = list(state.unflatten(0, (layers, -1)))
        for gate in gates:
            for layer, part in enumerate(core.layers):
                gate = part.enter(outputs) if layer else gate
                outputs, parts[layer] = STACKED[name](core, part, gate, parts[layer])
        return outputs, torch.cat(parts)
    # (parts, layers, hidden): the hidden states of all layers, then the cells.
    blocks = [list(part) for part in state.unflatten(0, (core.num_states, layers, -1))]
    for gate in gates:
        for layer in range(layers):
            if layer:
                bias = core.input_bias(layer)
                gate = F.linear(outputs, core.weight("ih", layer), bias)
            new = STEPS[name](core, layer, gate, *(part[layer] for part in blocks))
            for part, value in zip(blocks, new, strict=True):
                part[layer] = value
            outputs = new[0]
    return outputs, torch.cat([value for part in blocks for value in part])


def oracle(core, gates, source, target):
    """The Jacobians by `torch.func.jacrev`, one sequence after another."""
    if type(core).__name__ == "S4D":
        size = core.num_layers * core.hidden_size * core.state_size
    elif type(core).__name__ in STACKED:
        size = core.num_layers * math.prod(core.layers[0].state_shape)
    else:
        size = core.num_states * core.num_layers * core.hidden_size
    found = []
    for steps in gates.detach():
        _, state = run(core, steps[:source], steps.new_zeros(size))
        later = steps[source:target]
        found.append(torch.func.jacrev(lambda z, later=later: run(core, later, z)[0])(state))
    return torch.stack(found).detach()
