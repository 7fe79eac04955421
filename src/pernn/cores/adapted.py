"""Somebody's own layer as a core, without a word about projections."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from pernn.errors import ConfigError

from .core import Core
from .projected import Projected


class Adapted(Core):
    """A plain `torch.nn.Module` as a core, fed with joined inputs.

    Nothing is folded, so each step costs the whole input vector's product, as in a usual script;
    the Jacobian is autograd's.

    Args:
        layer: Module with `input_size`, `hidden_size` and `forward(inputs, state=None)`, which
            takes `(batch, time, input_size)` and returns `(batch, time, hidden_size)` and a state
            to go on from.

    Raises:
        ConfigError: If the layer lacks one of them, or is not batch first.
    """

    def __init__(self, layer: nn.Module) -> None:
        inputs, hidden = (getattr(layer, name, None) for name in ("input_size", "hidden_size"))
        if not isinstance(inputs, int) or not isinstance(hidden, int):
            raise ConfigError(
                f"core {type(layer).__name__} is invalid: expected a module with integers "
                f"input_size and hidden_size, got {inputs!r} and {hidden!r}"
            )
        if not getattr(layer, "batch_first", True):
            raise ConfigError(
                f"core {type(layer).__name__} is invalid: expected (batch, time, input), got "
                "batch_first=False; build it with batch_first=True"
            )
        super().__init__(inputs, hidden)
        self.layer, self.gate_size = layer, self.input_size

    def project(self, inputs: Tensor, *, offset: int = 0, bias: bool = True) -> Tensor:
        """Put features at their place, and zeros at all others.

        Raises:
            ConfigError: If there are not that many features.
        """
        left = self.input_size - offset - inputs.shape[-1]
        if left < 0:  # padding would cut features
            raise ConfigError(f"{type(self.layer).__name__}: takes {self.input_size} features")
        return F.pad(inputs, (offset, left))

    def recur(
        self, gates: Tensor | Projected, state: Any = None, *, num_outputs: int | None = None
    ) -> tuple[Tensor, Any]:
        """Run the layer.

        Raises:
            ConfigError: If it returns something else than outputs and a state, or there are not
                that many steps.
        """
        inputs = gates.gates().transpose(0, 1) if isinstance(gates, Projected) else gates
        self._check_steps(inputs.shape[1], num_outputs)
        found = self.layer(inputs, state)
        expected = (*inputs.shape[:2], self.hidden_size)
        is_pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], Tensor)
        if not is_pair or found[0].shape != expected:
            shape = tuple(found[0].shape) if is_pair else type(found).__name__
            raise ConfigError(
                f"core {type(self.layer).__name__} is invalid: expected a pair from forward, "
                f"outputs {expected} and a state, got {shape}"
            )
        outputs, final = found
        return outputs if num_outputs is None else outputs[:, -num_outputs:], final
