"""Rules of decision by two one-sided p-values of the seeds' values.

All of them take many samples at once, so that benchmarks/verdicts.py and the tests simulate the
very rules that decide.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float64, Shaped

from pernn.errors import ConfigError
from pernn.lab.experiments import Rule

from .statistics import ROUNDING, Interval, p_above

Outcome = Literal["supported", "contradicted", "inconclusive", "too few seeds", "not run"]

ALPHA = 0.025
"""Level of each one-sided test: a claim is decided where a two-sided 95 % interval would."""
MIN_SEEDS = 5
"""With fewer trials nothing is decided: the spread of three or four says too little."""


class Evidence(NamedTuple):
    """p-values for and against a statement, small ones strong evidence.

    Attributes:
        supports: p-value of the test whose rejection supports the claim.
        contradicts: p-value of the test whose rejection contradicts it.
    """

    supports: Float64[np.ndarray, "*samples"]
    contradicts: Float64[np.ndarray, "*samples"]


def exceeds(
    values: Shaped[np.ndarray, "*samples trials"],
    bound: float,
    sign: int = 1,
    *,
    or_equal: bool = False,
) -> Evidence:
    """Test if the mean lies above a bound, or below it.

    Args:
        values: One per trial along the last axis.
        bound: In the values' unit.
        sign: +1 for above, −1 for below.
        or_equal: Whether trials that all lie on the bound support it.
    """
    above = p_above(sign * values, sign * bound, or_equal=or_equal)
    return Evidence(above, p_above(-sign * values, -sign * bound))


def lies_within(values: Shaped[np.ndarray, "*samples trials"], low: float, high: float) -> Evidence:
    """Test if the mean lies strictly between two bounds.

    Two one-sided tests support it, both of which must reject (Schuirmann, 1987). It is
    contradicted on either side, so that p-value is doubled.
    """
    supports = np.maximum(p_above(values, low), p_above(-values, -high))
    outside = np.minimum(p_above(values, high), p_above(-values, -low))
    return Evidence(supports, np.minimum(1.0, 2 * outside))


def in_every(cells: Sequence[Evidence]) -> Evidence:
    """Combine the tests of all cells into one of "in every cell".

    Every cell must support it by its own test, uncorrected: the intersection–union test (Berger,
    1982). It is contradicted if one cell does, after Bonferroni's correction for their number.
    """
    supports = np.max([cell.supports for cell in cells], axis=0)
    worst = np.min([cell.contradicts for cell in cells], axis=0)
    return Evidence(supports, np.minimum(1.0, len(cells) * worst))


def trials_near(
    values: Shaped[np.ndarray, "*samples trials"], allowed: Sequence[float], tolerance: float
) -> Evidence:
    """Check every single trial against a few values.

    The p-values are 0 or 1.

    A trial further than twice the tolerance from all of them is a counterexample. No trial beyond
    the tolerance supports the statement as far as it was tried.
    """
    away = np.min([np.abs(values - one) for one in allowed], axis=0).max(axis=-1)
    # A measured share can lie on the edge of a range, where rounding must not decide.
    inside, outside = away <= tolerance * (1 + 1e-9), away > 2 * tolerance * (1 + 1e-9)
    return Evidence(np.where(inside, 0.0, 1.0), np.where(outside, 0.0, 1.0))


def correct(
    found: Sequence[tuple[float, float]], primary: Sequence[bool], rule: Rule
) -> list[Outcome]:
    """Decide claims together, each by its p-values for and against it.

    Args:
        found: p-values of each claim: of the test that supports it, and that contradicts it.
        primary: Whether each claim is a primary one; only "2026-12" asks.
        rule: "2026-11": Holm's procedure over all tests, two of each claim. "2026-12": over the
            claims, primary ones and others apart, each by twice its smaller p-value; what was
            smaller tells the direction.

    Raises:
        ConfigError: If there is no such rule.

    Source: Holm (1979); Shaffer (1980), "Control of directional errors with stagewise rejective
    multiple test procedures".
    """
    if rule not in get_args(Rule):
        raise ConfigError(f"rule is invalid: expected one of {get_args(Rule)}, got {rule!r}")
    outcomes: list[Outcome] = ["inconclusive"] * len(found)
    if rule == "2026-11":
        rejected = iter(holm([p for pair in found for p in pair]))
        return [decide(next(rejected), next(rejected)) for _ in found]
    for family in (True, False):
        places = [place for place, one in enumerate(primary) if one is family]
        smaller = [min(1.0, 2 * min(found[place])) for place in places]
        for place, is_rejected in zip(places, holm(smaller), strict=True):
            supports, contradicts = found[place]
            outcomes[place] = decide(
                is_rejected and supports < contradicts, is_rejected and contradicts < supports
            )
    return outcomes


def detectable(
    interval: Interval, count: int, alpha: float, power: float = 0.8, *, both_sides: bool = False
) -> float | None:
    """Return the smallest distance that a one-sided t test sees.

    Args:
        interval: Student's 95 % interval of the values.
        count: How many values.
        alpha: Level of the test.
        power: Chance that it rejects at that distance.
        both_sides: Whether two tests must reject, one on either side of the mean: the distance is
            then the smallest margin within which equality is shown if there is no difference.

    Returns:
        The distance in the values' unit; `None` if the values have no spread or no interval.

    Source: Johnson and Welch (1940), "Applications of the non-central t-distribution"; of two
    sides, Phillips (1990), with the chance to miss halved between them.
    """
    from scipy.special import nctdtrinc, stdtrit

    half = (interval.high - interval.low) / 2
    if not half > ROUNDING:
        return None
    missed = (1 - power) / (2 if both_sides else 1)
    noncentrality = nctdtrinc(count - 1, missed, stdtrit(count - 1, 1 - alpha))
    return float(noncentrality * half / stdtrit(count - 1, 0.975))


def decide(supports: bool, contradicts: bool) -> Outcome:  # noqa: FBT001 two findings, no options
    """Name what two tests found."""
    return "supported" if supports else "contradicted" if contradicts else "inconclusive"


def holm(p_values: Sequence[float], level: float = 2 * ALPHA) -> list[bool]:
    """Return the hypotheses rejected by Holm's procedure.

    All are rightly so with probability 1 − level.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for place, number in enumerate(order):
        if p_values[number] > level / (len(p_values) - place):
            break
        rejected[number] = True
    return rejected
