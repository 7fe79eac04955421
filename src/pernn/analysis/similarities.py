"""Similarities of two Jacobians from their rows' inner products: NumPy only.

With rows a_i, b_i, every similarity is a function of ⟨a_i, b_i⟩, ‖a_i‖ and ‖b_i‖.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

Rows = Float64[np.ndarray, "pairs rows"]
Values = Float64[np.ndarray, " pairs"]


def by_row_norms(dots: Rows, first: Rows, second: Rows) -> Values:
    """Return the rows' cosines weighted by norms (the default).

    Σ⟨a_i, b_i⟩ / Σ‖a_i‖‖b_i‖

    Returns:
        One number per pair, in [−1, 1]; 0 where all products of norms vanish.

    Source: Morita (2024), the program behind figure 5.
    """
    return _quotient(dots.sum(axis=1), (first * second).sum(axis=1))


def frobenius(dots: Rows, first: Rows, second: Rows) -> Values:
    """Return the cosine of the matrices, by Frobenius' inner product.

    ⟨A, B⟩_F / (‖A‖_F ‖B‖_F): the printed equation with unit rows and α_i = ‖a_i‖/√Σ‖a_k‖².

    Returns:
        One number per pair, in [−1, 1]; 0 where a Jacobian vanishes.
    """
    return _quotient(dots.sum(axis=1), _norm(first) * _norm(second))


def printed_sum(dots: Rows, first: Rows, second: Rows) -> Values:
    """Return the printed sum, for comparison only.

    Σ α_i α'_i ⟨a_i, b_i⟩ with α_i = ‖a_i‖/Σ‖a_k‖

    Not 1 for identical Jacobians, and not invariant under scaling.

    Source: Morita (2024), versions 2 and 3, equations 3 and 4.
    """
    weights = _quotient(first, first.sum(axis=1, keepdims=True))
    others = _quotient(second, second.sum(axis=1, keepdims=True))
    total: Values = (weights * others * dots).sum(axis=1)
    return total


def printed_root(dots: Rows, first: Rows, second: Rows) -> Values:
    """Return the printed sum with root weights, for comparison only.

    Σ α_i α'_i ⟨a_i, b_i⟩ with α_i = ‖a_i‖/√Σ‖a_k‖²

    Not 1 for identical Jacobians, and not invariant under scaling.

    Source: Morita (2024), versions 4 and 5, equations of section 4.3.
    """
    weights = _quotient(first, _norm(first)[:, None])
    others = _quotient(second, _norm(second)[:, None])
    total: Values = (weights * others * dots).sum(axis=1)
    return total


def row_cosine(dots: Rows, first: Rows, second: Rows) -> Values:
    """Return the unweighted mean of the rows' cosines, 0 for vanishing rows.

    Returns:
        One number per pair, in [−1, 1].
    """
    mean: Values = _quotient(dots, first * second).mean(axis=1)
    return mean


KINDS: dict[str, Callable[[Rows, Rows, Rows], Values]] = {
    "similarity": by_row_norms,
    "frobenius": frobenius,
    "printed_sum": printed_sum,
    "printed_root": printed_root,
    "row_cosine": row_cosine,
}
"""Name → similarity; the first is the default."""


def _norm(norms: Rows) -> Values:
    """‖A‖_F from the norms of the rows; scaled, as squares of tiny norms would vanish."""
    largest = norms.max(axis=1, keepdims=True)
    scaled = _quotient(norms, largest)
    total: Values = largest[:, 0] * np.sqrt((scaled * scaled).sum(axis=1))
    return total


def _quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0/0 = 0."""
    above, below = np.broadcast_arrays(numerator, denominator)
    quotient: np.ndarray = np.divide(above, below, out=np.zeros_like(above), where=below != 0)
    return quotient
