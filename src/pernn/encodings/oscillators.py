"""Checks of oscillators, for the sinusoidal encoding and its config."""

import math
from collections.abc import Sequence


def oscillator_problem(
    size: int | None,
    frequencies: Sequence[float] | None,
    phases: Sequence[float] | None,
    base: float | None,
) -> str:
    """Return the problem of oscillators (of any size if `None`), or nothing."""
    for name, values in (("frequencies", frequencies), ("phases", phases)):
        if values is None:
            continue
        if not all(math.isfinite(value) for value in values):
            return f"{name} is invalid: expected finite numbers, got {list(values)}"
        if size is not None and 2 * len(values) != size:
            return (
                f"{name} is invalid: expected {size // 2} of them, half of size {size}, got "
                f"{len(values)}; try size {2 * len(values)}"
            )
    if frequencies is not None:
        if not frequencies or min(frequencies) <= 0:
            return f"frequencies is invalid: expected positive numbers, got {list(frequencies)}"
        if base is not None:
            return "base is invalid: expected none beside frequencies, which leave nothing to space"
    if base is not None and not 1 < base < math.inf:
        return f"base is invalid: expected a finite number above 1, got {base}"
    return ""
