"""Stacks of layers that are modules: their state and step form."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .core import Core, Linear, Projected

Gates = Float[Tensor, "time batch gate"]
"""A layer's inputs after its linear map."""
Outputs = Float[Tensor, "scored batch hidden"]
"""A layer's outputs of the last steps."""


class Layer(nn.Module):
    """One layer: a linear map of the inputs, then a recurrence.

    `forward(gates, state, num_outputs)` returns the outputs of the last steps and the final state.
    """

    def __init__(self, input_size: int, gate_size: int, *state_shape: int) -> None:
        super().__init__()
        self.enter, self.state_shape = Linear(input_size, gate_size, draw=False), state_shape

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the linear map as `torch.nn.Linear` does."""
        self.enter.reset_parameters(generator)


class Stacked(Core):
    """Layers of one kind, each on the outputs of the one below.

    The arguments are those of `MinGRU`.
    """

    layer_class: Callable[..., Layer]
    """Takes the width of its inputs, `hidden_size`, and what is in `layer_sizes`."""
    layer_sizes: tuple[int, ...] = ()

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, batch_first=batch_first, **options)
        widths = [input_size, *[hidden_size] * (num_layers - 1)]
        sizes = hidden_size, *self.layer_sizes
        self.layers: Any = nn.ModuleList(self.layer_class(width, *sizes) for width in widths)
        self.gate_size = self.input_map().out_features
        # Drawn before, the weights do not depend on where they go.
        self.reset_parameters(generator)
        self.to(device=device, dtype=dtype)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw every layer.

        Call this one, not that of each module: layers set rows of their linear maps themselves.
        """
        for layer in self.layers:
            layer.reset_parameters(generator)

    def input_map(self) -> Any:
        """Return the first layer's linear map."""
        return self.layers[0].enter

    def recur(
        self,
        gates: "Float[Tensor, 'batch time gate'] | Projected",
        state: Any = None,
        *,
        num_outputs: int | None = None,
    ) -> tuple[Float[Tensor, "batch scored hidden"], Tensor]:
        """Run all layers over time, as `Core.recur`."""
        values = gates.gates() if isinstance(gates, Projected) else gates.transpose(0, 1)
        num_steps, batch = values.shape[:2]
        counts, finals = self._count_outputs(num_steps, num_outputs), []
        shape, dtype = (batch, *self.layers[0].state_shape), self.layers[0].enter.weight.dtype
        if state is None:
            state = values.new_zeros((self.num_layers, *shape), dtype=dtype)
        else:
            (state,) = self._check_state(state, dtype, 1, *shape)
        for index, layer in enumerate(self.layers):
            gates = layer.enter(values) if index else values
            values, final = layer(gates.to(dtype), state[index], counts[index])
            finals.append(final)
        return values.transpose(0, 1), torch.stack(finals)
