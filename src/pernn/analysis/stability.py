"""Gradient stability: similarity of long gradients under changed disturbants."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from pernn.cores import Recurrence
from pernn.errors import ConfigError

from .jacobians import (
    Linearisation,
    check_steps,
    choose_form,
    divide_work,
    even_blocks,
    exact_products,
    linearise,
)

ALL = "all"
"""The one condition of a task whose ids are all alike."""
LOW = (torch.bfloat16, torch.float16)
SHARE_OF_INPUTS = 1 / 4
"""Part of the memory budget that goes to projected inputs."""
WIDEST_SPECTRUM = 4
"""Largest ratio of state to output width with an effective rank: the Gram matrix is squared."""
LOWEST_EXPONENT = -(2**29)
"""Of what is 0; twice that is still an integer in 32 bits."""


def _norm(norms: np.ndarray) -> np.ndarray:
    """Return ‖A‖_F from the norms of the rows."""
    # Squares of tiny norms would vanish.
    largest = norms.max(axis=1, keepdims=True)
    scaled = _ratio(norms, largest)
    return cast(np.ndarray, largest * np.sqrt((scaled * scaled).sum(axis=1, keepdims=True)))


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0/0 = 0."""
    above, below = np.broadcast_arrays(numerator, denominator)
    out = np.zeros_like(above)
    return cast(np.ndarray, np.divide(above, below, out=out, where=below != 0))


KINDS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    # Σ⟨a_i, b_i⟩ / Σ‖a_i‖‖b_i‖; the program behind figure 5 of Morita (2024).
    "similarity": lambda dots, a, b: _ratio(dots.sum(1), (a * b).sum(1)),
    # ⟨A, B⟩_F / (‖A‖_F ‖B‖_F); the printed equation with unit rows and α_i = ‖a_i‖/√Σ‖a_k‖².
    "frobenius": lambda dots, a, b: _ratio(dots.sum(1), (_norm(a) * _norm(b))[:, 0]),
    # Σ α_i α'_i ⟨a_i, b_i⟩ with α_i = ‖a_i‖/Σ‖a_k‖; versions 2 and 3, equations 3 and 4.
    "printed_sum": lambda dots, a, b: (
        _ratio(a, a.sum(1, keepdims=True)) * _ratio(b, b.sum(1, keepdims=True)) * dots
    ).sum(1),
    # The same with α_i = ‖a_i‖/√Σ‖a_k‖²; versions 4 and 5, section 4.3.
    "printed_root": lambda dots, a, b: (_ratio(a, _norm(a)) * _ratio(b, _norm(b)) * dots).sum(1),
    # The mean of the rows' cosines, 0 for vanishing rows.
    "row_cosine": lambda dots, a, b: _ratio(dots, a * b).mean(1),
}
"""Similarities of Jacobians, from their rows' ⟨a_i, b_i⟩, ‖a_i‖ and ‖b_i‖; the default first.

One number per pair, 0 where a denominator vanishes, as ‖a_i‖‖b_i‖ does below 10⁻³⁰⁸. The printed
ones are for comparison only: neither in [−1, 1] nor 1 for identical Jacobians, nor invariant under
scaling.
"""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs of sequences, and the two steps between which gradients are compared.

    Attributes:
        first: Tokens of the first sequence of each pair.
        second: Tokens of the second, equal to the first up to step `source`.
        num_queries: Steps after them whose input is the query row.
        source: Step of the target token, counted from 1: gradients are taken with respect to the
            latent state after it.
        target: Step at which the target token is to be given back: gradients are those of the
            output of this step.
        conditions: Class of the target, class of the disturbants.
        condition: Which of the conditions each pair belongs to.

    Raises:
        ConfigError: If the two sides, or the steps, do not fit each other.
    """

    first: Int64[np.ndarray, "pairs input_time"]
    second: Int64[np.ndarray, "pairs input_time"]
    num_queries: int
    source: int
    target: int
    conditions: tuple[tuple[str, str], ...]
    condition: Int64[np.ndarray, " pairs"]

    def __post_init__(self) -> None:
        check_steps(self.source, self.target, self.first.shape[1] + self.num_queries)
        if not np.array_equal(self.first[:, : self.source], self.second[:, : self.source]):
            raise ConfigError(f"the sequences of a pair must share their first {self.source} ids")

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.first)


@runtime_checkable
class Projecting(Protocol):
    """A network with a `core` and projected inputs, as in `pernn.models`."""

    core: Recurrence

    def project(self, tokens: Tensor, num_queries: int = 0) -> Tensor:
        """Return the core's projected inputs of all steps, both phases."""
        ...


@dataclass(frozen=True)
class Stability:
    """Measurements of every pair.

    Attributes:
        pairs: The pairs.
        values: Name → number per pair. The similarities of `KINDS`, `similarity` the default one;
            `norm` and `effective_rank`, means over the two Jacobians, the latter not for states
            wider than four outputs, but for S4D of one layer; `distance` of the two outputs.
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
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    if any(tensor.dtype in LOW for tensor in tensors):
        model = cast(Any, copy.deepcopy(model)).float()
    device = next((tensor.device for tensor in tensors), torch.device("cpu"))
    steps = pairs.source, pairs.target
    rest = int(memory_budget * (1 - SHARE_OF_INPUTS))

    def project(tokens: np.ndarray) -> Tensor:
        gates = model.project(torch.from_numpy(tokens).to(device), pairs.num_queries)
        return gates.float() if gates.dtype in LOW else gates

    parts = []
    with exact_products():
        # In `project`, inputs are there twice for a moment, on both sides of the pair.
        bytes_per_pair = 4 * project(pairs.first[:1]).nbytes
        num_pairs = max(1, int(memory_budget * SHARE_OF_INPUTS) // bytes_per_pair)
        for a, b in even_blocks(len(pairs), num_pairs):
            sides = project(pairs.first[a:b]), project(pairs.second[a:b])
            found = compare_jacobians(model.core, *sides, *steps, memory_budget=rest)
            parts.append(found._measures())
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if np.isnan(values["effective_rank"]).all():
        del values["effective_rank"]
    return Stability(pairs, values)


@dataclass(frozen=True)
class Comparison:
    """Similarities of pairs of Jacobians A, B, in float64 on the CPU.

    Attributes:
        dots: ⟨a_i, b_i⟩ of the rows.
        first_norms: ‖a_i‖.
        second_norms: ‖b_i‖.
        first_rank: Effective rank of A, (Σσ²)²/Σσ⁴ in [1, rows] of its singular values σ: how many
            equal ones would be as spread. 0 if A vanishes, NaN for states wider than four outputs,
            but for S4D of one layer.
        second_rank: The same of B.
        distance: ‖h^A − h^B‖ of the outputs themselves.
    """

    dots: Float64[np.ndarray, "pairs rows"]
    first_norms: Float64[np.ndarray, "pairs rows"]
    second_norms: Float64[np.ndarray, "pairs rows"]
    first_rank: Float64[np.ndarray, " pairs"]
    second_rank: Float64[np.ndarray, " pairs"]
    distance: Float64[np.ndarray, " pairs"]

    def similarity(self, kind: str = "similarity") -> Float64[np.ndarray, " pairs"]:
        """Return one of the similarities of `KINDS`.

        Raises:
            ConfigError: If there is no such kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"no similarity {kind!r}: one of {', '.join(KINDS)}")
        return KINDS[kind](self.dots, self.first_norms, self.second_norms)

    def _measures(self) -> dict[str, Float64[np.ndarray, " pairs"]]:
        """Return the values of `Stability`."""
        values = {kind: self.similarity(kind) for kind in KINDS}
        first, second = (np.linalg.norm(n, axis=1) for n in (self.first_norms, self.second_norms))
        values["norm"] = (first + second) / 2
        values["effective_rank"] = (self.first_rank + self.second_rank) / 2
        return values | {"distance": self.distance}


def compare_jacobians(
    core: Recurrence,
    first: Float[Tensor, "pairs time gate"],
    second: Float[Tensor, "others steps gate"],
    source: int,
    target: int,
    *,
    memory_budget: int = 2**29,
) -> Comparison:
    """Compare the Jacobians of two sequences each, pair by pair.

    Neither is ever held whole.

    Args:
        core: Module that recurs, from the zero state.
        first: Projected inputs of the first sequences.
        second: Projected inputs of the second ones.
        source: Step after which the state is taken, counted from 1.
        target: Step of the outputs.
        memory_budget: Bytes that may be worked with. Sequences and rows are divided accordingly.

    Raises:
        ConfigError: If the sides are not alike, or there are no such steps.
    """
    if first.shape != second.shape or not len(first):
        raise ConfigError(
            "the two sides must be equally many sequences of one length, at least one; "
            f"got {tuple(first.shape)} and {tuple(second.shape)}"
        )
    check_steps(source, target, first.shape[1])
    per_sequence, per_row = choose_form(core).footprint(core, first, target - source)
    # Beside the rows: their Gram matrix, one more product of the kind, one pair in float64.
    width = per_row // first.itemsize
    gram = min(width, WIDEST_SPECTRUM * core.hidden_size) ** 2 * first.itemsize
    num_sequences, num_rows = divide_work(
        per_sequence + 2 * gram, 3 * per_row, core.hidden_size, 2 * len(first), memory_budget
    )
    parts = []
    for start, end in even_blocks(len(first), num_sequences // 2):
        gates = torch.cat([first[start:end], second[start:end]])
        linear = linearise(core, gates, source, target)
        with exact_products():
            parts.append(_compare(linear, num_rows))
    return Comparison(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _compare(linear: Linearisation, num_rows: int) -> tuple[np.ndarray, ...]:
    """Return the numbers of `Comparison` for a batch of first sequences, then their partners."""
    half, total = len(linear.outputs) // 2, linear.outputs.shape[1]
    spectrum = _Spectrum(linear) if linear.width <= WIDEST_SPECTRUM * total else None
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    for first, last in even_blocks(total, num_rows):
        rows, exponents = linear.rows(first, last)
        numbers = linear.outputs.new_empty(3, half, last - first, dtype=torch.float64)
        for pair in range(half):
            left, right = rows[pair].double(), rows[pair + half].double()
            torch.linalg.vecdot(left, right, out=numbers[0, pair])
            torch.linalg.vector_norm(left, dim=1, out=numbers[1, pair])
            torch.linalg.vector_norm(right, dim=1, out=numbers[2, pair])
        ahead, behind = exponents[:half], exponents[half:]
        powers = ahead + behind, ahead, behind
        columns.append(tuple(map(torch.ldexp, numbers, powers)))  # type: ignore[arg-type]
        if spectrum is not None:
            spectrum.add(rows, exponents)
    dots, ones, others = (_numpy(torch.cat(blocks, dim=1)) for blocks in zip(*columns, strict=True))
    ranks = np.full(2 * half, math.nan) if spectrum is None else _numpy(spectrum.rank())
    apart = linear.outputs[:half].double() - linear.outputs[half:].double()
    distance = _numpy(torch.linalg.vector_norm(apart, dim=1))
    return dots, ones, others, ranks[:half], ranks[half:], distance


class _Spectrum:
    """Σσ² and Σσ⁴ of Jacobians whose rows come in blocks."""

    def __init__(self, linear: Linearisation) -> None:
        batch = len(linear.outputs)
        self._gram = linear.outputs.new_zeros(batch, linear.width, linear.width)
        self._exponents = linear.outputs.new_full((batch,), LOWEST_EXPONENT, dtype=torch.int32)

    def add(self, rows: Tensor, exponents: Tensor) -> None:
        # A row of zeros has no scale: it must not shift the others away.
        exponents = exponents.masked_fill((rows == 0).all(2), LOWEST_EXPONENT)
        largest = torch.maximum(exponents.amax(1), self._exponents)
        shift, self._exponents = 2 * (self._exponents - largest), largest
        self._gram = torch.ldexp(self._gram, shift[:, None, None])
        scaled = torch.ldexp(rows, (exponents - largest.unsqueeze(1)).unsqueeze(2))
        self._gram.baddbmm_(scaled.transpose(1, 2), scaled)

    def rank(self) -> Tensor:
        """Return (Σσ²)²/Σσ⁴ per sequence, 0 where all vanish."""
        fourth = torch.linalg.vector_norm(self._gram, dim=(1, 2), dtype=torch.float64).square()
        second = self._gram.diagonal(dim1=1, dim2=2).double().sum(1)
        return torch.where(fourth == 0, 0.0, second.square() / fourth)


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().double().cpu().numpy()
