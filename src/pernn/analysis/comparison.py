"""Two batches of Jacobians compared row by row, without holding either whole."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from pernn.cores import Recurrence
from pernn.errors import ConfigError

from .jacobians import choose_form, linearise
from .linearisation import Linearisation, divide_work, even_blocks, exact_products
from .similarities import KINDS

WIDEST_SPECTRUM = 4
"""Largest ratio of state to output width with an effective rank: the Gram matrix is squared."""
LOWEST_EXPONENT = -(2**29)
"""Of what is 0; twice that is still an integer in 32 bits."""


@dataclass(frozen=True)
class Comparison:
    """Similarities of pairs of Jacobians A, B, in float64 on the CPU.

    Attributes:
        dots: ⟨a_i, b_i⟩ of the rows.
        first_norms: ‖a_i‖.
        second_norms: ‖b_i‖.
        first_rank: Effective rank of A, (Σσ²)²/Σσ⁴ in [1, rows] of its singular values σ: how many
            equal ones would be as spread. 0 if A vanishes, NaN for states wider than four outputs.
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
    spectrum = Spectrum(linear) if linear.width <= WIDEST_SPECTRUM * total else None
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


class Spectrum:
    """Σσ² and Σσ⁴ of Jacobians whose rows come in blocks."""

    def __init__(self, linear: Linearisation) -> None:
        batch = len(linear.outputs)
        self._gram = linear.outputs.new_zeros(batch, linear.width, linear.width)
        self._exponents: Tensor | None = None

    def add(self, rows: Tensor, exponents: Tensor) -> None:
        """Add a block of rows, relative to each sequence's largest."""
        # A row of zeros has no scale: it must not shift the others away.
        exponents = exponents.masked_fill((rows == 0).all(2), LOWEST_EXPONENT)
        largest = exponents.amax(1)
        if self._exponents is not None:
            largest = torch.maximum(largest, self._exponents)
            shift = 2 * (self._exponents - largest)
            self._gram = torch.ldexp(self._gram, shift[:, None, None])
        self._exponents = largest
        scaled = torch.ldexp(rows, (exponents - largest.unsqueeze(1)).unsqueeze(2))
        self._gram.baddbmm_(scaled.transpose(1, 2), scaled)

    def rank(self) -> Tensor:
        """Return (Σσ²)²/Σσ⁴ per sequence, 0 where all vanish."""
        fourth = torch.linalg.vector_norm(self._gram, dim=(1, 2), dtype=torch.float64).square()
        second = self._gram.diagonal(dim1=1, dim2=2).double().sum(1)
        return torch.where(fourth == 0, 0.0, second.square() / fourth)


def _numpy(values: Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().double().cpu().numpy()
    return array
