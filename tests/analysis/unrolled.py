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


STEPS = {"Elman": elman, "GRU": gru, "LSTM": lstm}


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
    else:
        size = core.num_states * core.num_layers * core.hidden_size
    found = []
    for steps in gates.detach():
        _, state = run(core, steps[:source], steps.new_zeros(size))
        later = steps[source:target]
        found.append(torch.func.jacrev(lambda z, later=later: run(core, later, z)[0])(state))
    return torch.stack(found).detach()
