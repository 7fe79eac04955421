"""What every core's `forward` does with its arguments: axes, widths, options it does not have."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from pernn.errors import ConfigError

FOREIGN = ("bidirectional", "dropout", "proj_size")
"""Options of PyTorch's layers that our cores lack."""


def refuse_options(core: nn.Module, options: dict[str, Any]) -> None:
    """Refuse what PyTorch's layers have and ours have not; its absence may be spelt out.

    Raises:
        ConfigError: If one of these is asked for.
        TypeError: If PyTorch has no such option either.
    """
    name = type(core).__name__
    for option, value in options.items():
        if option not in FOREIGN:
            raise TypeError(f"{name}: unexpected keyword argument {option!r}")
        if value:
            raise ConfigError(
                f"{name}: {option}={value} is not supported; PositionEncoded wraps PyTorch's own "
                "layers, which have it"
            )


def call_core(
    core: Any, inputs: Tensor | PackedSequence, hx: Any, num_outputs: int | None = None
) -> tuple[Tensor, Any]:
    """Project and recur, with the axes of PyTorch's layers.

    Args:
        core: A core with `batch_first`.
        inputs: `(batch, time, input)`, `(time, batch, input)` unless `batch_first`, or
            `(time, input)` of a single sequence, whose state has no batch axis either.
        hx: Initial state; zeros if absent.
        num_outputs: Last steps whose outputs are returned; all if absent.

    Raises:
        ConfigError: If the inputs are packed, have other axes, or are not `input_size` wide.
    """
    name = type(core).__name__
    if isinstance(inputs, PackedSequence):
        raise ConfigError(
            f"{name} does not take a PackedSequence: pass padded vectors, and mask the outputs"
        )
    if inputs.dim() not in (2, 3):
        raise ConfigError(
            f"{name}: the inputs' shape is invalid: expected (batch, time, input) or (time, "
            f"input), got {tuple(inputs.shape)}"
        )
    # `project` takes parts of the input, `forward` does not.
    if inputs.shape[-1] != core.input_size:
        raise ConfigError(f"{name}: takes vectors of {core.input_size}, got {inputs.shape[-1]}")
    if inputs.dim() == 2:
        hx = map_state(hx, lambda part: part.unsqueeze(1))
        outputs, state = core.recur(core.project(inputs.unsqueeze(0)), hx, num_outputs=num_outputs)
        return outputs.squeeze(0), map_state(state, lambda part: part.squeeze(1))
    if not core.batch_first:
        inputs = inputs.transpose(0, 1)
    outputs, state = core.recur(core.project(inputs), hx, num_outputs=num_outputs)
    return outputs if core.batch_first else outputs.transpose(0, 1), state


def map_state(state: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change every tensor of a core's state; no state stays none."""
    if state is None:
        return None
    return tuple(map(change, state)) if isinstance(state, tuple) else change(state)
