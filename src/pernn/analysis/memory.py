"""Measures of how a state holds tokens, and linear reading of it."""

import copy
from typing import Any, TypeVar, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from pernn.cores import Recurrence
from pernn.errors import ConfigError, MachineError, install_command
from pernn.randomness import RandomStream, Split, uniform

from .jacobians import (
    Gates,
    batch_axes,
    exact_products,
    exponents_of,
    flatten_state,
    refuse_inference,
)

Network = TypeVar("Network", bound=nn.Module)
JITTER = 1e-6
"""Noise on a state, as a share of its spread: discriminants divide by what does not tell labels."""
LEAST = JITTER / 100
"""Directions with less spread than this share of the largest are left out."""


def latent_states(core: Recurrence, gates: Gates) -> Float[Tensor, "batch time state"]:
    """Return the flattened state after every step.

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps: `core.project(vectors)`, `model.project(tokens)`.
    """
    axes, state, found = batch_axes(core, gates), None, []
    with exact_products():
        for gate in gates.split(1, dim=1):
            _, state = core.recur(gate, state)
            found.append(flatten_state(tree_leaves(state), axes))
    return torch.stack(found, dim=1)


def input_gradients(
    core: Recurrence, gates: Gates, width: int | None = None
) -> Float[Tensor, "batch time"]:
    """Return ‖∂h_L/∂x_i‖_F of the last output for each input.

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all L steps.
        width: How many of the input's features count, from the first; all if absent. Of a network
            those of the embedding, which stand before the encoding.

    Returns:
        Norms, of a module in float64 if any vanishes in float32. In half precision small gradients
        vanish: `.float()` core and gates.

    Raises:
        ConfigError: If `core.project` takes no first features alone, or in `torch.inference_mode`.
    """
    refuse_inference("gradients in the inputs")
    with exact_products(), torch.enable_grad():
        size = core.input_size if width is None else width
        moved = gates.new_zeros(*gates.shape[:2], size).requires_grad_()
        # Whatever a projection adds to its inputs is in the gates already.
        change = core.project(moved, bias=False) - core.project(torch.zeros_like(moved), bias=False)
        if change.shape != gates.shape:  # one number would be added to all
            raise ConfigError(f"{type(core).__name__}.project takes no first {size} features alone")
        outputs, _ = core.recur(gates.detach() + change)
        squares = gates.new_zeros(gates.shape[:2])
        precise = torch.zeros_like(squares, dtype=torch.float64)
        for unit in range(core.hidden_size):
            # Sequences do not see each other: the sum's gradient holds every sequence's own.
            last = outputs[:, -1, unit].sum()
            (gradient,) = torch.autograd.grad(last, moved, retain_graph=True)
            squares += gradient.square().sum(2)
            precise += gradient.double().square().sum(2)
    # Published norms are sums in float32, in which the squares of small gradients vanish.
    norms = torch.where(squares > 1e-30, squares.sqrt(), precise.sqrt().to(squares))
    if norms.dtype != torch.float32 or norms.all() or not isinstance(core, nn.Module):
        return norms
    return input_gradients(copy.deepcopy(cast(Any, core)).double(), gates.double(), width)


def log_slope(values: Float[Tensor, "batch time"]) -> Float[Tensor, " batch"]:
    """Return the least-squares slope of ln values, NaN where one is 0."""
    steps = torch.arange(values.shape[1], dtype=values.dtype, device=values.device)
    steps -= steps.mean()
    logs = values.log()
    return logs.where(logs.isfinite(), torch.nan) @ steps / steps.square().sum()


def position_changes(
    core: Recurrence, gates: Gates, others: Gates
) -> Float[Tensor, "time batch state"]:
    """Return the last state's changes when each step's input is replaced.

    Args:
        core: Module that recurs, from the zero state.
        gates: Projected inputs of all steps.
        others: Those of other sequences, from which a step's replacement is taken.
    """
    last, found = latent_states(core, gates)[:, -1], []
    for step in range(gates.shape[1]):
        replaced = gates.clone()
        replaced[:, step] = others[:, step]
        found.append(latent_states(core, replaced)[:, -1] - last)
    return torch.stack(found)


def subspace_overlap(
    changes: Float[Tensor, "positions batch state"],
) -> Float[Tensor, "positions positions"]:
    """Compare the subspaces in which positions change a state, in pairs.

    With C_i = Σ d dᵀ over the changes d of position i it is ⟨C_i, C_j⟩_F / (‖C_i‖_F ‖C_j‖_F), the
    squared cosines between the principal directions of the two, weighted by their variances: 0 if
    and only if the subspaces are orthogonal, 1 if they and their variances are the same. It does
    not depend on the basis of the state, nor on the scale of a position. A position that changes
    nothing has 0 with all, itself too.

    Args:
        changes: How the state changes when one position's token is replaced, for each position.

    Examples:
        >>> subspace_overlap(torch.eye(2).unsqueeze(1))
        tensor([[1., 0.],
                [0., 1.]])
    """
    # Squares of very small or large changes would be 0 or infinite.
    exponents = exponents_of(changes.abs().amax((1, 2), keepdim=True))
    changes = torch.ldexp(changes, -exponents)
    scale = torch.linalg.vector_norm(changes, dim=(1, 2), keepdim=True)
    scale = scale.masked_fill(scale == 0, 1.0)
    with exact_products():
        gram = (changes / scale).transpose(1, 2) @ (changes / scale)
        flat = torch.nn.functional.normalize(gram.flatten(1), dim=1)
        return flat @ flat.T


def perturb(network: Network, share: float, generator: torch.Generator) -> Network:
    """Copy a network, with Gaussian noise on its weights.

    Args:
        network: Any module.
        share: Standard deviation of the noise, as a share of each tensor's root mean square.
        generator: Of the noise, on the CPU.
    """
    noisy = copy.deepcopy(network)
    with torch.no_grad():
        for weight in noisy.parameters():
            noise = torch.randn(weight.shape, generator=generator).to(weight)
            weight.add_(share * weight.square().mean().sqrt() * noise)
    return noisy


def read_linearly(
    states: Float[np.ndarray, "samples state"], labels: Int64[np.ndarray, " samples"]
) -> Bool[np.ndarray, " samples"]:
    """Tell which samples' labels linear discriminants read from their states.

    Each half of the samples, in their order, is judged by the discriminants of the other half.

    Args:
        states: One per sample.
        labels: What is to be read; a class that is in one half only counts as not read, and so does
            everything if all states are equal.

    Raises:
        ValueError: If a half has no more samples than labels, or a state is not finite.
        MachineError: If scikit-learn is not installed.
    """
    try:
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
        from sklearn.model_selection import KFold, cross_val_predict
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MachineError(
            f"linear probes need scikit-learn: {install_command('probes')}"
        ) from None
    words = RandomStream(0, "read_linearly", Split.ANALYSIS).words(0, states.size)
    noise = (uniform(words) - 0.5).reshape(states.shape)
    noisy = states + JITTER * states.std(axis=0, dtype=np.float64) * noise
    if (noisy == noisy[0]).all():
        return np.zeros(len(labels), dtype=np.bool_)
    # With one thread the sums have one order.
    with threadpool_limits(1, "blas"):
        probe = LinearDiscriminantAnalysis(tol=LEAST)
        read = cross_val_predict(probe, noisy, labels, cv=KFold(2))
    return cast(np.ndarray, read == labels)
