"""Gradient stability: similarity of long gradients under changed disturbants."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

from .comparison import Comparison, compare_jacobians
from .linearisation import Projecting, even_blocks, exact_products
from .pairing import ALL, Pairs
from .similarities import KINDS

LOW = (torch.bfloat16, torch.float16)
SHARE_OF_INPUTS = 1 / 4
"""Part of the memory budget that goes to projected inputs."""


@dataclass(frozen=True)
class Stability:
    """Measurements of every pair.

    Attributes:
        pairs: The pairs.
        values: Name → number per pair. The similarities of `KINDS`, `similarity` the default one;
            `norm` and `effective_rank`, means over the two Jacobians, the latter only for states
            up to four times as wide as the output; `distance` of the two outputs.
    """

    pairs: Pairs
    values: Mapping[str, Float64[np.ndarray, " pairs"]]

    def table(self) -> dict[str, list[Any]]:
        """Return the means per condition, one row each."""
        names, member = self.pairs.conditions, self.pairs.condition
        table: dict[str, list[Any]] = {
            "condition": [ALL if ALL in name else " among ".join(name) for name in names],
            "target": [target for target, _ in names],
            "disturbants": [disturbants for _, disturbants in names],
        }
        for name, values in self.values.items():
            table[name] = [float(values[member == row].mean()) for row in range(len(names))]
        table["num_pairs"] = [int((member == row).sum()) for row in range(len(names))]
        return table


def gradient_stability(model: Projecting, pairs: Pairs, *, memory_budget: int = 2**29) -> Stability:
    """Compare the gradients of both sequences of every pair.

    Always in float32 or better: lower precisions are raised in a copy. The same call gives the
    same bits on the same machine with the same number of threads.

    Args:
        model: Any network of `pernn.models` but an autoregressive one, or whatever has its
            `project` and `core`.
        pairs: Sequences, and the steps between which gradients are taken.
        memory_budget: Bytes that may be worked with.

    Returns:
        All measures of all pairs.

    Raises:
        ConfigError: If the model takes no such sequences.

    Examples:
        >>> from pernn.models import PositionEncodedRNN
        >>> model = PositionEncodedRNN(8, "gru", embedding_size=4, hidden_size=6)
        >>> ids = np.arange(24).reshape(2, 3, 4) % 8
        >>> ids[1, :, 0] = ids[0, :, 0]  # both sequences of a pair share the target
        >>> pairs = Pairs(first=ids[0], second=ids[1], num_queries=4, source=1, target=8,
        ...     conditions=(("all", "all"),), condition=np.zeros(3, np.int64))
        >>> gradient_stability(model, pairs).table()["num_pairs"]
        [3]

    Source: Morita (2024), section 4.3 and figure 5.

    Differs: The default similarity is that of the program behind the figure, not the printed
        equation: see `KINDS`.
    """
    model = _raised(model)
    tensors = model.parameters() if isinstance(model, nn.Module) else iter(())
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    compare = partial(
        compare_jacobians,
        model.core,
        source=pairs.source,
        target=pairs.target,
        memory_budget=int(memory_budget * (1 - SHARE_OF_INPUTS)),
    )

    def project(tokens: np.ndarray) -> Tensor:
        gates = model.project(torch.from_numpy(tokens).to(device), pairs.num_queries)
        return gates.float() if gates.dtype in LOW else gates

    with exact_products():
        # In `project`, inputs are there twice for a moment, on both sides of the pair.
        bytes_per_pair = 4 * project(pairs.first[:1]).nbytes
        num_pairs = max(1, int(memory_budget * SHARE_OF_INPUTS) // bytes_per_pair)
        values = [
            _measures(compare(project(pairs.first[a:b]), project(pairs.second[a:b])))
            for a, b in even_blocks(len(pairs), num_pairs)
        ]
    return Stability(pairs, {name: np.concatenate([v[name] for v in values]) for name in values[0]})


def _measures(comparison: Comparison) -> dict[str, np.ndarray]:
    values = {kind: comparison.similarity(kind) for kind in KINDS}
    norms = [
        np.linalg.norm(side, axis=1) for side in (comparison.first_norms, comparison.second_norms)
    ]
    values["norm"] = (norms[0] + norms[1]) / 2
    ranks = (comparison.first_rank + comparison.second_rank) / 2
    if not np.isnan(ranks).all():
        values["effective_rank"] = ranks
    values["distance"] = comparison.distance
    return values


def _raised(model: Projecting) -> Projecting:
    """Return the model, or a copy in float32 if any of it is less precise."""
    if not isinstance(model, nn.Module):
        return model
    if not any(tensor.dtype in LOW for tensor in (*model.parameters(), *model.buffers())):
        return model
    raised = copy.deepcopy(model)
    for tensor in (*raised.parameters(), *raised.buffers()):
        if tensor.dtype in LOW:
            tensor.data = tensor.data.float()
    return raised
