"""The interface of Jacobians: their rows, some at a time."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from pernn.cores import Recurrence
from pernn.kernels import library_products, rounding_products

Gates = Float[Tensor, "batch time gate"]
"""Projected inputs of all steps."""
Rows = Float[Tensor, "batch rows width"]
"""Some rows of each sequence's Jacobian."""
Exponents = Int[Tensor, "batch rows"]
"""Powers of two by which rows are divided."""


@runtime_checkable
class Projecting(Protocol):
    """A network with a `core` and projected inputs, as in `pernn.models`."""

    core: Recurrence

    def project(self, tokens: Tensor, num_queries: int = 0) -> Tensor:
        """Return the core's projected inputs of all steps, both phases."""
        ...


@runtime_checkable
class Linearisation(Protocol):
    """Jacobians of a batch, from one step's state to a later output.

    Rows may be given in other coordinates, the same for all sequences, in which inner products are
    what they are in the state's own; `expand` gives the latter.

    Attributes:
        outputs: The later outputs.
        width: Length of a row as `rows` gives it.
    """

    outputs: Float[Tensor, "batch rows"]
    width: int

    def rows(self, first: int, last: int) -> tuple[Rows, Exponents]:
        """Return rows of outputs `first … last − 1`, each over 2^exponent."""
        ...

    def expand(self, rows: Rows) -> Float[Tensor, "batch rows state"]:
        """Return rows in the coordinates of the flattened state."""
        ...


def divide_work(
    per_sequence: int, per_row: int, num_rows: int, num_sequences: int, memory_budget: int
) -> tuple[int, int]:
    """Return how many sequences, and rows of each, to take at once.

    All rows of a few sequences, or, if not even two fit with all their rows, some rows of two; at
    least one row, whatever the budget.
    """
    whole = per_sequence + num_rows * per_row
    if memory_budget >= 2 * whole:
        return min(num_sequences, memory_budget // whole // 2 * 2), num_rows
    left = memory_budget - 2 * per_sequence
    return 2, min(num_rows, max(1, left // (2 * per_row)))


def even_blocks(total: int, largest: int) -> Iterator[tuple[int, int]]:
    """Cut 0 … total into the fewest blocks of about equal length."""
    count = math.ceil(total / largest)
    for block in range(count):
        yield block * total // count, (block + 1) * total // count


def exponents_of(largest: Tensor) -> Tensor:
    """Return the exponents of numbers, as far as one factor undoes them."""
    bound = -math.frexp(torch.finfo(largest.dtype).tiny)[1]
    return torch.frexp(largest).exponent.clamp(-bound, bound)


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute without gradients and lower precisions, then restore the settings."""
    with (
        torch.no_grad(),
        library_products(tf32=False),
        rounding_products(rounds=False),
        torch.autocast("cuda", enabled=False),
    ):
        yield
