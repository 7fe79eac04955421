"""Cores side by side: several of one kind and shape, each with weights and inputs of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .compiled import Layer, kernels_for, scan
from .projected import Projected

if TYPE_CHECKING:
    from .recurrent import RecurrentCore

State = Tensor | tuple[Tensor, ...] | None


def recur_pack(
    cores: "Sequence[RecurrentCore]",
    inputs: Sequence[Projected],
    states: Sequence[State] | None = None,
    *,
    num_outputs: int | None = None,
) -> list[tuple[Tensor, Tensor | tuple[Tensor, ...]]]:
    """Run all layers of several cores, each over its own inputs.

    Args:
        cores: One, or a pack: of one class, with the same sizes.
        inputs: What each projected; of one shape.
        states: What each begins with, as in `recur`; zeros if absent.
        num_outputs: Last steps whose hidden states are given; all if absent.

    Returns:
        For each its top layer's hidden states, time first, and the final state of every layer.

    Raises:
        ConfigError: If there is no time step, or a state has another shape.
    """
    states = [None] * len(cores) if states is None else states
    initial = [
        core.split_state(state, one) for core, state, one in zip(cores, states, inputs, strict=True)
    ]
    finals: list[list[tuple[Tensor, ...]]] = [[] for _ in cores]
    for layer in range(cores[0].num_layers):
        last = layer == cores[0].num_layers - 1
        kept = num_outputs if last and num_outputs is not None else inputs[0].num_steps
        layers = [
            Layer(one, core.weight("hh", layer), core.late_bias(layer), state[layer])
            for core, one, state in zip(cores, inputs, initial, strict=True)
        ]
        found = _recur_layers(cores, layer, layers, kept)
        for ends, (_, final) in zip(finals, found, strict=True):
            ends.append(final)
        if not last:
            inputs = [
                Projected.of(core.project_layer(layer + 1, values))
                for core, (values, _) in zip(cores, found, strict=True)
            ]
    ends = [tuple(torch.stack(parts) for parts in zip(*each, strict=True)) for each in finals]
    return [
        (values, end if len(end) > 1 else end[0])
        for (values, _), end in zip(found, ends, strict=True)
    ]


def _recur_layers(
    cores: "Sequence[RecurrentCore]", layer: int, layers: Sequence[Layer], num_outputs: int
) -> list[tuple[Tensor, tuple[Tensor, ...]]]:
    """Run one layer of each: by the compiled kernels where there are any and they fit."""
    kind = type(cores[0]).__dict__.get("kernel")
    kernels = kernels_for(layers[0]) if kind else None
    if kernels is not None and kind is not None:
        return scan(kernels, kind, layers, num_outputs)
    states = [
        one.state or (one.weight.new_zeros(one.inputs.batch, core.hidden_size),) * core.num_states
        for core, one in zip(cores, layers, strict=True)
    ]
    gates = [one.inputs.gates() for one in layers]
    # Products of a stack save launches on a GPU; on a CPU they would only give other bits.
    if kind is None or len(cores) == 1 or gates[0].device.type == "cpu":
        found = [
            core.scan(layer, each.contiguous(), state)
            for core, each, state in zip(cores, gates, states, strict=True)
        ]
    else:
        lates = [one.late for one in layers if one.late is not None]
        outputs, final = cores[0].recur_layer(
            torch.stack(gates, 1),
            torch.stack([one.weight for one in layers]),
            torch.stack(lates) if lates else None,
            tuple(torch.stack(parts) for parts in zip(*states, strict=True)),
        )
        found = [
            (outputs[:, member], tuple(part[member] for part in final))
            for member in range(len(cores))
        ]
    return [(values[len(values) - num_outputs :], final) for values, final in found]
