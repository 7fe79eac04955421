"""S4D, a diagonal state-space model: as a convolution or a recurrence.

A channel h with input u, step width Δ and complex modes A_n, C_n, in two equal forms:

    x_t = e^{ΔA} x_{t−1} + (e^{ΔA} − 1)/A · u_t        y_t = 2 Re Σ_n C_n x_{n,t}
    k_l = 2 Re Σ_n C_n (e^{ΔA_n} − 1)/A_n · e^{ΔA_n l}   y_t = Σ_{l ≤ t} k_l u_{t−l}

Source: Gu, Gupta, Goel and Ré (2022), "On the parameterization and initialization of diagonal
state space models": S4D-Lin, zero-order hold, B = 1.
"""

from typing import Any, Literal, cast, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pernn.errors import ConfigError

from .core import Core, Linear, check_sizes
from .projected import Projected
from .s4d_jacobian import StateSpaceJacobian
from .s4d_layer import S4DLayer

Method = Literal["auto", "toeplitz", "fft", "recurrence"]

TOEPLITZ_STEPS = 128
"""Longest sequence that `auto` runs as a Toeplitz product.

At 128 steps it took 48 ms and the FFT 50, at 256 steps 116 and 90 (H 128, B 32, one thread).
"""


class S4D(Core):
    """A linear projection to the hidden width, then S4D layers.

    A layer: state space, skip connection, GELU, pointwise linear map to twice the width, GLU. No
    residual connection and no normalisation.

    Args:
        input_size: Width of one input vector.
        hidden_size: Number of channels, H.
        num_layers: Number of stacked layers.
        state_size: Modes of a channel, N; even, as they are N/2 conjugate pairs, one of each kept.
        batch_first: Whether `forward` takes and returns `(batch, time, …)`: true, as PyTorch has
            no such layer whose default this could be.
        method: How to compute the state space: `toeplitz` multiplies with a triangular matrix of
            real numbers, `fft` convolves by Fourier transforms, `recurrence` goes step by step;
            `auto` takes the first up to 128 steps, the second above, the third for a single step.
            Only in the third do NaN and inf leave earlier outputs alone; the second rounds those
            relative to the largest input.
        device: Where the weights go once they are drawn.
        dtype: Their type there.
        generator: Source of the initial weights; PyTorch's default generator if absent.
        options: Further options of PyTorch's recurrent layers; refused unless they are off.

    Raises:
        ConfigError: If a size is not positive, `state_size` is odd, there is no such method, or
            dropout or a second direction is asked for.

    Differs: From the published implementation in that one learning rate serves all parameters, and
        that there is neither dropout nor an upper bound on the real part of A.

    Examples:
        >>> outputs, state = S4D(4, 8)(torch.zeros(2, 5, 4))
        >>> tuple(outputs.shape), tuple(state.shape)
        ((2, 5, 8), (1, 2, 8, 32, 2))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        state_size: int = 64,
        batch_first: bool = True,
        method: Method = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, batch_first=batch_first, **options)
        check_sizes(self, state_size=state_size)
        if state_size % 2:
            raise ConfigError(f"S4D: state_size must be even, got {state_size}")
        if method not in get_args(Method):
            raise ConfigError(
                f"S4D: no method {method!r}: one of {', '.join(map(str, get_args(Method)))}"
            )
        self.state_size, self.gate_size = state_size, hidden_size
        self.method: Method = method
        self.input = Linear(input_size, hidden_size, draw=False)
        self.layers = nn.ModuleList(S4DLayer(hidden_size, state_size) for _ in range(num_layers))
        self._draw(generator, device, dtype)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the projection as `torch.nn.Linear` does, and every layer."""
        self.input.reset_parameters(generator)
        for layer in self.layers:
            cast(S4DLayer, layer).reset_parameters(generator)

    def input_map(self) -> nn.Module:
        """Return the linear map before the layers."""
        return self.input

    def recur(
        self,
        gates: "Float[Tensor, 'batch time hidden'] | Projected",
        state: Float[Tensor, "_ _ ..."] | None = None,
        *,
        num_outputs: int | None = None,
    ) -> "tuple[Float[Tensor, 'batch scored hidden'], Any]":
        """Run all layers over time.

        Args:
            gates: What `project` made of the inputs, whole or by parts.
            state: Of every layer, the complex states x as pairs of real and imaginary part; zeros
                if absent.
            num_outputs: Last steps whose outputs are returned, and no final state, which costs
                extra; all steps if absent.

        Returns:
            The top layer's outputs, and the final state of every layer, `(layers, batch, hidden,
            mode, 2)`; `None` if `num_outputs` is given.

        Raises:
            ConfigError: If there is no time step, or the state has another shape.
        """
        values = gates.gates() if isinstance(gates, Projected) else gates.transpose(0, 1)
        num_steps, batch = values.shape[:2]
        self._check_steps(num_steps, num_outputs)
        expected = (self.num_layers, batch, self.hidden_size, self.state_size // 2, 2)
        if state is not None:
            (state,) = self._check_state(state, [expected], "hidden, mode, part")
        method, finals, wants_state = self._choose(num_steps), [], num_outputs is None
        for index, layer in enumerate(self.layers):
            is_last = index == self.num_layers - 1
            count = num_outputs if is_last and num_outputs is not None else num_steps
            before = None if state is None else state[index]
            values, final = layer(values, before, method, count, wants_state=wants_state)
            finals.append(final)
        return values.transpose(0, 1), torch.stack(finals) if wants_state else None

    def _choose(self, num_steps: int) -> Literal["toeplitz", "fft", "recurrence"]:
        if self.method != "auto":
            return self.method
        if num_steps == 1:
            return "recurrence"
        # A compiled program has one way for all lengths; a Toeplitz matrix would fix its own.
        compiles = torch.compiler.is_compiling()
        return "fft" if compiles or num_steps > TOEPLITZ_STEPS else "toeplitz"

    def linearisation(self) -> type[StateSpaceJacobian] | None:
        """Return the closed form of a single layer."""
        is_known = self.num_layers == 1 and type(self.layers[0].mix) is Linear
        return StateSpaceJacobian if is_known else None
