"""S4D, a diagonal state-space model: as a convolution or a recurrence.

A channel h with input u, step width Δ and complex modes A_n, C_n, in two equal forms:

    x_t = e^{ΔA} x_{t−1} + (e^{ΔA} − 1)/A · u_t        y_t = 2 Re Σ_n C_n x_{n,t}
    k_l = 2 Re Σ_n C_n (e^{ΔA_n} − 1)/A_n · e^{ΔA_n l}   y_t = Σ_{l ≤ t} k_l u_{t−l}

Source: Gu, Gupta, Goel and Ré (2022), "On the parameterization and initialization of diagonal
state space models": S4D-Lin, zero-order hold, B = 1.
"""

import math
from contextlib import nullcontext
from typing import Any, Literal, cast, get_args

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.kernels import rounding_products, rounds_products, without_autocast

from .core import Core, Linear, Projected

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
        batch_first: Whether `forward` takes and returns `(batch, time, …)`.
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
        self._check_sizes(state_size=state_size)
        if state_size % 2:
            self._refuse(f"state_size must be even, got {state_size}")
        if method not in get_args(Method):
            self._refuse(f"no method {method!r}: one of {', '.join(get_args(Method))}")
        self.state_size, self.gate_size, self.method = state_size, hidden_size, method
        self.input = Linear(input_size, hidden_size, draw=False)
        layers = (S4DLayer(hidden_size, state_size) for _ in range(num_layers))
        self.layers: Any = nn.ModuleList(layers)
        # Drawn before, the weights do not depend on where they go.
        self.reset_parameters(generator)
        self.to(device=device, dtype=dtype)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the projection as `torch.nn.Linear` does, and every layer."""
        self.input.reset_parameters(generator)
        for layer in self.layers:
            layer.reset_parameters(generator)

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
        """Run all layers over time, as `Core.recur`.

        The state holds the complex states x as pairs of real and imaginary part, `(layers, batch,
        hidden, mode, 2)`. It costs extra at the end: with `num_outputs` it is `None`.
        """
        values = gates.gates() if isinstance(gates, Projected) else gates.transpose(0, 1)
        num_steps, batch = values.shape[:2]
        counts = self._count_outputs(num_steps, num_outputs)
        if state is not None:
            shape = batch, self.hidden_size, self.state_size // 2, 2
            (state,) = self._check_state(state, self.layers[0].skip.dtype, 1, *shape)
        method, finals, wants_state = self._choose(num_steps), [], num_outputs is None
        for index, layer in enumerate(self.layers):
            before = None if state is None else state[index]
            values, final = layer(values, before, method, counts[index], wants_state=wants_state)
            finals.append(final)
        return values.transpose(0, 1), torch.stack(finals) if wants_state else None

    def _choose(self, num_steps: int) -> Method:
        if self.method != "auto":
            return self.method
        if num_steps == 1:
            return "recurrence"
        # A compiled program has one way for all lengths; a Toeplitz matrix would fix its own.
        compiles = torch.compiler.is_compiling()
        return "fft" if compiles or num_steps > TOEPLITZ_STEPS else "toeplitz"

    def linearisation(self) -> "type[StateSpaceJacobian] | None":
        """Return the closed form of a single layer."""
        is_known = self.num_layers == 1 and type(self.layers[0].mix) is Linear
        return StateSpaceJacobian if is_known else None


class S4DLayer(nn.Module):
    """One state-space layer, from vectors to vectors of equal width.

    All parameters are real: checkpoints hold no complex numbers, and `double()` leaves complex
    tensors alone.
    """

    def __init__(self, hidden_size: int, state_size: int) -> None:
        super().__init__()
        modes = hidden_size, state_size // 2
        self.log_step = nn.Parameter(torch.empty(hidden_size))
        """log Δ."""
        self.log_decay = nn.Parameter(torch.empty(modes))
        """log(−Re A)."""
        self.frequency = nn.Parameter(torch.empty(modes))
        """Im A."""
        self.readout = nn.Parameter(torch.empty(*modes, 2))
        """C, as pairs of real and imaginary part."""
        self.skip = nn.Parameter(torch.empty(hidden_size))
        """D."""
        self.mix = Linear(hidden_size, 2 * hidden_size, draw=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw Δ, C and D, and set A_n = −½ + iπn.

        Δ is log-uniform in [0.001, 0.1], C and D are normal.
        """
        nn.init.uniform_(self.log_step, math.log(1e-3), math.log(1e-1), generator=generator)
        nn.init.constant_(self.log_decay, math.log(0.5))
        with torch.no_grad():
            self.frequency.copy_(math.pi * torch.arange(self.frequency.shape[1]))
        # Half the variance of a standard complex number lies in each part.
        nn.init.normal_(self.readout, std=math.sqrt(0.5), generator=generator)
        nn.init.normal_(self.skip, generator=generator)
        self.mix.reset_parameters(generator)

    def forward(
        self,
        values: Float[Tensor, "time batch hidden"],
        state: Float[Tensor, "batch hidden mode 2"] | None,
        method: Method,
        num_outputs: int,
        *,
        wants_state: bool,
    ) -> tuple[Float[Tensor, "scored batch hidden"], Float[Tensor, "batch hidden mode 2"] | None]:
        """Return the last steps' outputs and, if wanted, the final state."""
        # Errors of a rounded kernel would add up over time; only `mix` may round.
        # A compiler cannot trace a setting that is changed; where nothing rounds, nothing is.
        rounds = rounds_products(values.device)
        exact = rounding_products(rounds=False) if rounds else nullcontext()
        with without_autocast(values.device.type), exact:
            # Hidden first inside: every channel is a sequence of its own.
            inputs = values.to(self.skip.dtype).permute(2, 1, 0).contiguous()
            before, first = None, values.shape[0] - num_outputs
            if state is not None:
                before = torch.view_as_complex(state.contiguous()).transpose(0, 1)
            final: Tensor | None
            if method == "recurrence":
                sums, final = self._step(inputs, before)
                sums = sums[:, :, first:]
            else:
                sums, final = self._convolve(
                    inputs, before, method, num_outputs, wants_state=wants_state
                )
            skipped = self.skip[:, None, None] * inputs[:, :, first:]
            active = F.gelu((sums + skipped).permute(2, 1, 0).contiguous())
        mixed = self.mix(active)
        outputs = F.glu(mixed.to(active.dtype), dim=2)
        return outputs, None if final is None else torch.view_as_real(final.transpose(0, 1))

    def _discretise(self) -> tuple[Complex[Tensor, "hidden mode"], Complex[Tensor, "hidden mode"]]:
        """Return ΔA, the rate per step, and (e^{ΔA} − 1)/A, an input's entry into the state."""
        modes = torch.complex(-self.log_decay.exp(), self.frequency)
        rate = self.log_step.exp().unsqueeze(1) * modes
        # ΔA may be as small as 0.0005: `exp(rate) - 1` would lose four digits.
        return rate, torch.expm1(rate) / modes

    def _step(
        self,
        inputs: Float[Tensor, "hidden batch time"],
        state: Complex[Tensor, "hidden batch mode"] | None,
    ) -> tuple[Float[Tensor, "hidden batch time"], Complex[Tensor, "hidden batch mode"]]:
        """Run the recurrence, one step after the other."""
        rate, entry = (values.unsqueeze(1) for values in self._discretise())
        factor = torch.exp(rate)
        readout = torch.view_as_complex(self.readout).unsqueeze(1)
        if state is None:
            state = torch.zeros_like(factor).expand(-1, inputs.shape[1], -1)
        sums = []
        for step in inputs.unbind(2):
            state = factor * state + entry * step.unsqueeze(2)
            sums.append(2 * (readout * state).real.sum(2))
        return torch.stack(sums, dim=2), state

    def _convolve(
        self,
        inputs: Float[Tensor, "hidden batch time"],
        state: Complex[Tensor, "hidden batch mode"] | None,
        method: Method,
        num_outputs: int,
        *,
        wants_state: bool,
    ) -> tuple[Float[Tensor, "hidden batch scored"], Complex[Tensor, "hidden batch mode"] | None]:
        """Convolve with the kernel; compute the final state, if wanted, for all modes at once."""
        num_steps = inputs.shape[2]
        rate, entry = self._discretise()
        readout = torch.view_as_complex(self.readout)
        # z^l = z^(m⌊l/m⌋) z^(l mod m): exponentials of 2√T numbers instead of T.
        # A compiler knows no roots of a length that it leaves open.
        whole = torch.compiler.is_compiling()
        width = num_steps if whole else math.isqrt(num_steps - 1) + 1
        steps = torch.arange(width, device=inputs.device).unsqueeze(1)
        blocks = steps[:1] if whole else steps
        coarse, fine = (torch.exp(rate.unsqueeze(1) * count) for count in (width * blocks, steps))
        weights = (readout * entry).unsqueeze(1) * coarse
        kernel = 2 * _real_product(weights, fine).flatten(1)[:, :num_steps]
        convolve = toeplitz if method == "toeplitz" else fourier
        sums = convolve(kernel, inputs, num_outputs)
        if state is None and not wants_state:
            return sums, None
        powers = (coarse.unsqueeze(2) * fine.unsqueeze(1)).flatten(1, 2)[:, :num_steps]
        # x_T = Σ_l z^(T−1−l) B̄ u_l, a real product with the two parts side by side.
        parts = inputs @ torch.view_as_real(powers.flip(1)).flatten(2)
        final = torch.view_as_complex(parts.unflatten(2, (-1, 2))) * entry.unsqueeze(1)
        if state is not None:
            factor = torch.exp(rate).unsqueeze(1)
            late = readout.unsqueeze(1) * factor * powers
            sums = sums + 2 * _real_product(state, late[:, num_steps - num_outputs :])
            final = final + factor * powers[:, -1:] * state
        return sums, final


def toeplitz(
    kernel: Float[Tensor, "hidden time"],
    inputs: Float[Tensor, "hidden batch time"],
    num_outputs: int,
) -> Float[Tensor, "hidden batch scored"]:
    """Convolve causally by one matrix product per channel: O(time²), but without overhead."""
    # Row s holds k_{T−S−s} … k_{T−1−s} for S outputs, with k_l = 0 for l < 0.
    matrix = F.pad(kernel, (num_outputs - 1, 0)).unfold(1, num_outputs, 1).flip(1)
    sums = inputs @ matrix
    if sums.requires_grad:
        # It comes back transposed, which the products take channel by channel, many times slower.
        sums.register_hook(lambda grad: None if grad is None else grad.contiguous())
    return sums


def fourier(
    kernel: Float[Tensor, "hidden time"],
    inputs: Float[Tensor, "hidden batch time"],
    num_outputs: int,
) -> Float[Tensor, "hidden batch scored"]:
    """Convolve causally by Fourier transforms, padded to twice the length."""
    num_steps = kernel.shape[1]
    if not inputs.numel():  # some backends refuse to transform nothing
        return torch.zeros_like(inputs[:, :, num_steps - num_outputs :])
    spectrum = torch.fft.rfft(kernel, n=2 * num_steps).unsqueeze(1)
    product = spectrum * torch.fft.rfft(inputs, n=2 * num_steps)
    sums: Tensor = torch.fft.irfft(product, n=2 * num_steps)
    return sums[:, :, num_steps - num_outputs : num_steps]


def _real_product(
    left: Complex[Tensor, "hidden rows mode"], right: Complex[Tensor, "hidden columns mode"]
) -> Float[Tensor, "hidden rows columns"]:
    """Re(left · rightᵀ) as one product of real matrices: Re(ab) = Re a Re b − Im a Im b."""
    mirrored = torch.view_as_real(right.conj_physical()).flatten(2)
    return torch.view_as_real(left).flatten(2) @ mirrored.transpose(1, 2)


class StateSpaceJacobian:
    """The Jacobians of a batch of sequences through S4D with one layer.

    With z = e^{ΔA}, v_h = (2 Re C z^d, −2 Im C z^d) of d steps, a = GELU(s + D u), GLU of W a:

        ∂y_i/∂x_hn = K_ih · GELU'(s_h + D_h u_h) · v_hn,   K = diag(σ(q)) W_p + diag(p σ'(q)) W_q.

    Only the first two depend on the sequence, and rows of different v_h do not overlap: inner
    products of whole rows are those of rows of H numbers, weighted by ‖v_h‖². `expand` gives
    (H × modes × 2) numbers, of every mode the derivative by the real and by the imaginary part: the
    core's own layout of its state. Arguments are those of `pernn.analysis.jacobian`.
    """

    def __init__(
        self, core: Any, gates: Float[Tensor, "batch time hidden"], source: int, target: int
    ) -> None:
        gates = gates[:, :target]
        outputs, state = core.recur(gates)
        self.outputs, self.width = outputs[:, -1], core.hidden_size
        layer: Any = core.layers[0]
        readout = torch.view_as_complex(layer.readout.double())
        modes = torch.complex(-layer.log_decay.double().exp(), layer.frequency.double())
        rate = layer.log_step.double().exp().unsqueeze(1) * modes
        late = 2 * readout * torch.exp(rate * (target - source))
        seen = torch.view_as_real(late.conj().resolve_conj()).flatten(1)
        norms = torch.linalg.vector_norm(seen, dim=1)
        directions = seen / norms.clamp_min(torch.finfo(norms.dtype).tiny)[:, None]
        self._norms, self._directions = norms.to(gates.dtype), directions.to(gates.dtype)
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
        left, right = self._mix[:, first:last]
        rows = gate * left + (value * gate * (1 - gate)) * right
        rows *= (self._slopes * self._norms).unsqueeze(1)
        return rows, torch.zeros(rows.shape[:2], dtype=torch.int32, device=rows.device)

    def expand(self, rows: Float[Tensor, "batch rows width"]) -> Float[Tensor, "batch rows state"]:
        """Return the derivatives by every mode's real and imaginary part."""
        return cast(Tensor, (rows.unsqueeze(3) * self._directions).flatten(2))

    @staticmethod
    def footprint(core: Any, gates: Float[Tensor, "batch time hidden"], _: int) -> tuple[int, int]:
        """Return bytes per sequence and per row, at any distance."""
        modes = core.state_size // 2
        forward = core.hidden_size * (6 * gates.shape[1] + 8 * modes)
        return gates.itemsize * forward, gates.itemsize * 3 * core.hidden_size
