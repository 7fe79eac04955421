"""One layer of S4D, as a convolution or as a recurrence."""

import math
from contextlib import nullcontext
from typing import Literal

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional as F

from pernn.kernels import rounding_products, rounds_products, without_autocast

from .core import Linear


class S4DLayer(nn.Module):
    """One state-space layer, from vectors to vectors of equal width.

    All parameters are real: checkpoints hold no complex numbers, and `double()` leaves complex
    tensors alone.

    Args:
        hidden_size: Number of channels, H.
        state_size: Modes of a channel, N, even.
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
        method: Literal["toeplitz", "fft", "recurrence"],
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
        method: Literal["toeplitz", "fft"],
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
    """Convolve causally by one matrix product per channel: O(time²), but without overhead.

    Args:
        kernel: Of each channel.
        inputs: Of each channel.
        num_outputs: Last steps to compute.
    """
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
    """Convolve causally by Fourier transforms, padded to twice the length.

    The arguments are those of `toeplitz`.
    """
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
