"""Cores without products of their state beside their authors' parallel forms in plain PyTorch.

    python benchmarks/parallel_forms.py --seconds 2 [--core lru] [--shape 64,64,16]

One line per core and shape (width, sequences, steps): time of the authors' form / time of ours, in
turns, without gradients and with all of them; the same for one step after the other. Times are
this process's, on one thread, the least of all turns.
"""

from collections.abc import Callable

import torch
import typer
from layers import Shape, ratio, run_once
from torch import Tensor
from torch.nn import functional as F
from turns import print_table

from pernn.cores import LRU, GatedDelta, MinGRU, MinLSTM

CORES = {"min_gru": MinGRU, "min_lstm": MinLSTM, "lru": LRU, "gated_delta": GatedDelta}
SHAPES = [(64, 64, 16), (128, 32, 64), (256, 16, 256)]


def scan_in_logarithms(log_factors: Tensor, log_inputs: Tensor) -> Tensor:
    """Return s_t = f_t s_{t−1} + x_t of positive numbers from s_0 = 0 (Feng et al., appendix B).

    With a_t = Σ_{s ≤ t} log f_s it is exp(a_t + log Σ_{s ≤ t} exp(log x_s − a_s)).
    """
    sums = log_factors.cumsum(0)
    return torch.exp(sums + torch.logcumsumexp(log_inputs - sums, 0))


def scan_by_pairs(factors: Tensor, inputs: Tensor) -> Tensor:
    """Return s_t = f_t s_{t−1} + x_t from s_0 = 0 by an associative scan, as Orvieto et al. do.

    Neighbours become one step of both; what is known of every second step gives the others.
    """
    if len(inputs) == 1:
        return inputs
    odd, even = factors[1::2], factors[: len(factors) // 2 * 2 : 2]
    joined = odd * inputs[: len(inputs) // 2 * 2 : 2] + inputs[1::2]
    late = scan_by_pairs(odd * even, joined)
    early = factors[2::2] * late[: (len(inputs) - 1) // 2] + inputs[2::2]
    states = torch.empty_like(inputs)
    states[0], states[1::2], states[2::2] = inputs[0], late, early
    return states


def run_chunks(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, strength: Tensor, size: int = 64
) -> Tensor:
    """Run the gated delta rule from S_0 = 0 in chunks of the extended WY form of Yang et al.

    Args:
        query: `(batch, head, time, key)`.
        key: The same.
        value: `(batch, head, time, value)`.
        decay: log α, `(batch, head, time)`.
        strength: β, the same.
        size: Steps of a chunk.
    """
    state = value.new_zeros(*value.shape[:2], value.shape[-1], key.shape[-1])
    outputs = []
    for start in range(0, query.shape[2], size):
        q, k, v, g, b = (
            part[:, :, start : start + size] for part in (query, key, value, decay, strength)
        )
        sums = g.cumsum(2)
        ones = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device)
        ratios = (sums.unsqueeze(3) - sums.unsqueeze(2)).masked_fill(ones.triu(1), -torch.inf).exp()
        weighted = b.unsqueeze(3) * k
        strict = (weighted @ k.mT * ratios).tril(-1)
        identity = torch.eye(q.shape[2], dtype=q.dtype, device=q.device)
        inverse = torch.linalg.solve_triangular(
            identity + strict, identity.expand_as(strict), upper=False, unitriangular=True
        )
        known = inverse @ (b.unsqueeze(3) * v)
        old = inverse @ (weighted * sums.exp().unsqueeze(3))
        written = known - old @ state.mT
        outputs.append((q * sums.exp().unsqueeze(3)) @ state.mT + (q @ k.mT * ratios) @ written)
        last = sums[:, :, -1:]
        state = state * last.exp().unsqueeze(3)
        state = state + written.mT @ (k * (last - sums).exp().unsqueeze(3))
    return torch.cat(outputs, dim=2)


def min_gru(core: MinGRU, inputs: Tensor) -> Tensor:
    """Run minGRU as its authors do, whose candidates are made positive."""
    update, candidate = core.layers[0].enter(inputs).chunk(2, dim=2)
    return scan_in_logarithms(-F.softplus(update), -F.softplus(-update) + _log_positive(candidate))


def min_lstm(core: MinLSTM, inputs: Tensor) -> Tensor:
    """Run minLSTM as its authors do, whose candidates are made positive."""
    forget, enter, candidate = core.layers[0].enter(inputs).chunk(3, dim=2)
    difference = F.softplus(-forget) - F.softplus(-enter)
    log_inputs = -F.softplus(-difference) + _log_positive(candidate)
    return scan_in_logarithms(-F.softplus(difference), log_inputs)


def _log_positive(values: Tensor) -> Tensor:
    """Return log g, with g(x) = x + ½ above 0 and σ(x) below."""
    return torch.where(values >= 0, (F.relu(values) + 0.5).log(), -F.softplus(-values))


def lru(core: LRU, inputs: Tensor) -> Tensor:
    """Run an LRU by an associative scan."""
    layer, size = core.layers[0], core.state_size
    gates = layer.enter(inputs)
    factors = torch.exp(torch.complex(-layer.log_decay.exp(), layer.log_phase.exp()))
    parts = gates[..., : 2 * size].unflatten(2, (-1, 2))
    entries = layer.log_scale.exp() * torch.complex(parts[..., 0], parts[..., 1])
    states = scan_by_pairs(factors.expand_as(entries), entries)
    real, negative = layer.readout.unflatten(1, (-1, 2)).unbind(2)
    sums = (states @ torch.complex(real, -negative).t()).real
    return F.glu(layer.mix(F.gelu(sums + gates[..., 2 * size :])), dim=2)


def gated_delta(core: GatedDelta, inputs: Tensor) -> Tensor:
    """Run the gated delta rule in chunks."""
    layer, heads = core.layers[0], core.num_heads
    gates = layer.enter(inputs)
    width = 4 * core.hidden_size
    query, key, value, gate = (
        F.silu(part).unflatten(2, (heads, -1)).permute(1, 2, 0, 3)
        for part in gates[..., :width].chunk(4, dim=2)
    )
    query, key = (
        part * torch.rsqrt(part.square().sum(-1, keepdim=True) + 1e-6) for part in (query, key)
    )
    decay, strength = gates[..., width:].permute(1, 2, 0).chunk(2, dim=1)
    decay = -layer.log_decay.exp().unsqueeze(1) * F.softplus(decay)
    seen = run_chunks(query, key, value, decay, torch.sigmoid(strength))
    shown = F.rms_norm(seen, seen.shape[-1:], eps=1e-6) * gate
    return layer.leave(shown.permute(2, 0, 1, 3).flatten(2))


FORMS: dict[str, Callable[..., Tensor]] = {
    "min_gru": min_gru,
    "min_lstm": min_lstm,
    "lru": lru,
    "gated_delta": gated_delta,
}


class Form(torch.nn.Module):
    """A core's weights in its authors' form.

    Args:
        kind: Which core.
        core: Its weights, one layer; time first.
    """

    def __init__(self, kind: str, core: torch.nn.Module) -> None:
        super().__init__()
        self.core, self.form = core, FORMS[kind]

    def forward(self, inputs: Tensor) -> tuple[Tensor]:
        """Return the outputs of `(time, batch, input)`."""
        return (self.form(self.core, inputs),)


def measure(kind: str, shape: Shape, seconds: float) -> dict[str, str]:
    """Return the cells of one line."""
    width, batch, steps = shape
    core = CORES[kind](width, width)
    inputs, arriving = torch.randn(2, steps, batch, width)
    turned = [part.transpose(0, 1).contiguous() for part in (inputs, arriving)]
    row = {"core": kind, "width": str(width), "batch": str(batch), "steps": str(steps)}
    for way in ("inference", "inputs too"):
        theirs = run_once(Form(kind, core), inputs, arriving, way)
        row[way] = f"{ratio(theirs, run_once(core, *turned, way), seconds):.2f}"
    stepwise = run_once(core.to_plain(), *turned, "inputs too")
    ours = run_once(core, *turned, "inputs too")
    return row | {"step by step, inputs too": f"{ratio(stepwise, ours, seconds):.2f}"}


def main(core: str = ",".join(CORES), shape: str = "", seconds: float = 1.0) -> None:
    """Time cores of one shape (width, sequences, steps), or of three usual ones."""
    torch.set_num_threads(1)
    shapes = [tuple(map(int, shape.split(",")))] if shape else SHAPES
    print_table(measure(kind, one, seconds) for kind in core.split(",") for one in shapes)


if __name__ == "__main__":
    typer.run(main)
