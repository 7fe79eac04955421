"""Means over trials with their uncertainty, and the rules that decide.

The unit is the seed, never the token.

Student's t decides; the percentile bootstrap is the paper's and stands beside it: with five trials
its nominal 95 % covers 84 %. Rules take many samples at once, so that benchmarks/verdicts.py and
the tests simulate the very rules that decide; docs/statistics.md has the error rates of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from pernn.errors import ConfigError
from pernn.lab.experiments import Rule
from pernn.randomness import RandomStream, Split, integers

from .records import sort_key

LEVEL = 0.95
"""Nominal coverage of all intervals."""
NUM_RESAMPLES = 10_000
EXACT = 6
"""Up to this many values all resamples are enumerated, so that chance and order play no part."""
MAX_FLIPPED = 16
"""Up to this many differences all signs are tried."""
CELLS = 1_000_000
"""So many ranks are in memory at once, about."""
ROUNDING = 1e-12
"""Means and spreads below this are rounding errors of metrics, which are of the order of 1."""


@dataclass(frozen=True)
class Interval:
    """A mean and where it may lie.

    Attributes:
        estimate: Mean over the values, in their unit.
        low: Lower bound; NaN if one value gives none.
        high: Upper bound; NaN if one value gives none.
        method: What made the bounds, or why there are none.
    """

    estimate: float
    low: float
    high: float
    method: str

    @property
    def bounded(self) -> bool:
        """True if there are bounds."""
        return not math.isnan(self.low)

    def __str__(self) -> str:
        return f"{self.shown} {self.bounds}"

    @property
    def shown(self) -> str:
        """The estimate as text."""
        return self.show(self.estimate)

    @property
    def bounds(self) -> str:
        """Both bounds in brackets, or why there are none."""
        if not self.bounded:
            return f"({self.method})"
        # A bound next to zero keeps a digit: readers look on which side it lies.
        texts = (
            np.format_float_positional(bound, 1, fractional=False, trim="-")
            if float(text := self.show(bound)) == 0 and abs(bound) > ROUNDING
            else text
            for bound in (self.low, self.high)
        )
        return f"[{', '.join(texts)}]"

    def as_factor(self) -> "Interval":
        """Return the interval of a factor for that of its log2."""
        return Interval(2**self.estimate, 2**self.low, 2**self.high, self.method)

    def show(self, value: float) -> str:
        """Return a value as text, to the interval's precision."""
        half = (self.high - self.low) / 2
        if not ROUNDING < half < math.inf:
            # Numbers of updates are whole: no reader wants their exponent.
            return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
        decimals = max(0, 1 - math.floor(math.log10(half)))
        # What rounds to zero has no sign.
        return f"{round(value, decimals) + 0.0:.{decimals}f}"


@dataclass(frozen=True)
class LowerBound(Interval):
    """A mean of values, some of them known to be too small."""

    @property
    def shown(self) -> str:
        """The estimate as text, after a sign."""
        return f"≥ {super().shown}"


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Return the percentile bootstrap interval of the mean.

    Up to six values it is exact: every one of the n^n resamples counts. Of more, 10,000 resamples
    are drawn from a fixed stream. Either way the order of the values plays no part.

    Source: Efron (1979), "Bootstrap methods: another look at the jackknife".
    """
    return _bootstrap(tuple(_sorted(values).tolist()))


@lru_cache(maxsize=2**16)
def _bootstrap(values: tuple[float, ...]) -> Interval:
    """Resample once what figure, table, claims and page ask for again."""
    data = np.array(values)
    if data.size == 1:
        return _unbounded(data)
    counts, weights = _resamples(data.size)
    # Deviations from one of the values: trials that are all equal have an interval of width 0.
    means = data[0] + counts @ (data - data[0]) / data.size
    return Interval(_mean(data), *_percentiles(means, weights), f"bootstrap {LEVEL}")


@lru_cache(maxsize=8)
def _resamples(
    size: int,
) -> tuple[Int64[np.ndarray, "resamples {size}"], Int64[np.ndarray, " resamples"]]:
    """Return how often each resample takes each value, and how many resamples do the same."""
    if size <= EXACT:
        chosen = np.array(list(combinations_with_replacement(range(size), size)))
    else:
        stream = RandomStream(0, "pernn.reports.bootstrap", Split.ANALYSIS)
        words = stream.words(size, NUM_RESAMPLES * size)
        chosen = integers(words, size).reshape(NUM_RESAMPLES, size)
    counts = np.array([np.bincount(one, minlength=size) for one in chosen])
    if size > EXACT:
        return counts, np.ones(len(chosen), dtype=np.int64)
    factorials = np.array([math.factorial(n) for n in range(size + 1)])
    return counts, factorials[size] // factorials[counts].prod(axis=1)


def _percentiles(
    values: Float64[np.ndarray, " resamples"], weights: Int64[np.ndarray, " resamples"]
) -> tuple[float, float]:
    """Return the values between which 95 % of the weight lies; the same from either end."""

    def lowest(data: Float64[np.ndarray, " resamples"]) -> float:
        order = np.argsort(data)
        cumulated = np.cumsum(weights[order])
        return float(data[order][np.searchsorted(cumulated, (1 - LEVEL) / 2 * cumulated[-1])])

    return lowest(values), -lowest(-values)


def student_interval(values: Sequence[float]) -> Interval:
    """Return Student's t interval of the mean.

    It has no bounds if there is one value only, and width 0 if all are equal.

    Source: Student (1908), "The probable error of a mean".
    """
    from scipy.special import stdtrit

    data = _sorted(values)
    if data.size == 1:
        return _unbounded(data)
    deviation = float((data - data[0]).std(ddof=1))
    reach = float(stdtrit(data.size - 1, (1 + LEVEL) / 2)) * deviation / math.sqrt(data.size)
    mean = _mean(data)
    return Interval(mean, mean - reach, mean + reach, f"Student's t {LEVEL}")


def p_above(
    values: Shaped[np.ndarray, "*samples trials"], bound: float, *, or_equal: bool = False
) -> Float64[np.ndarray, "*samples"]:
    """Return Student's one-sided p-value of a mean above a bound.

    Where all values are equal nothing was seen of their spread, and the test's limit for a
    vanishing spread is taken: 0 above the bound, 1 below. On the bound it is 1, or 0 if that is
    enough (`or_equal`).
    """
    from scipy.special import stdtr

    count = values.shape[-1]
    values = np.sort(values, axis=-1)  # so that their order plays no part
    first = values[..., :1]
    gaps = (first - bound)[..., 0] + (values - first).mean(axis=-1)
    spreads = (values - first).std(axis=-1, ddof=1) / math.sqrt(count)
    constant = spreads <= ROUNDING
    gaps = np.where(constant & (np.abs(gaps) <= ROUNDING), 0.0, gaps)
    limits = np.where((gaps > 0) | ((gaps == 0) & or_equal), 0.0, 1.0)
    tested = stdtr(count - 1, -gaps / np.where(constant, 1.0, spreads))
    return np.asarray(np.where(constant, limits, tested), dtype=np.float64)


def share_interval(hits: int, count: int) -> Interval:
    """Return the exact interval of a share of trials.

    Source: Clopper and Pearson (1934), "The use of confidence or fiducial limits …".
    """
    from scipy.special import betaincinv

    tail = (1 - LEVEL) / 2
    low = float(betaincinv(hits, count - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - tail)) if hits < count else 1.0
    return Interval(hits / count, low, high, f"Clopper–Pearson {LEVEL}")


def rank_correlation(x: Sequence[float], y: Sequence[float], clusters: Sequence[Any]) -> Interval:
    """Return Spearman's rank correlation with an interval that resamples clusters.

    Points of one cluster (trials of one seed, rows of one trial) stay together: each resample
    takes as many clusters as there are, with all their points, and ranks them anew. Resamples
    in which the correlation is undefined are left out.

    Args:
        x: One number per point; equal ones share the mean of their ranks.
        y: The other, in the same order.
        clusters: What each point belongs to; up to six of them all resamples are enumerated.

    Returns:
        The interval, in [−1, 1]. Without bounds if there is one cluster, or if more than 5 % of
        the resamples leave the correlation undefined; NaN if it is undefined itself, because all x
        or all y are equal.

    Raises:
        ConfigError: If the arguments differ in length, are empty or not finite.

    Source: Spearman (1904); Field and Welsh (2007), "Bootstrapping clustered data".
    """
    left, right = _checked(x), _checked(y)
    if not left.size == right.size == len(clusters):
        raise ConfigError(
            f"a correlation needs pairs in clusters, got {left.size} x, {right.size} y and "
            f"{len(clusters)} clusters"
        )
    estimate = float(_spearman(left, right, np.ones((1, left.size)))[0])
    if math.isnan(estimate):
        return Interval(math.nan, math.nan, math.nan, "constant: no correlation")
    names = sorted(set(clusters), key=sort_key)
    if len(names) == 1:
        return Interval(estimate, math.nan, math.nan, "n = 1: no interval")
    place = np.array([names.index(cluster) for cluster in clusters])
    counts, weights = _resamples(len(names))
    # Some at a time, as all of them may be gigabytes.
    parts = np.array_split(counts, math.ceil(len(counts) * left.size / CELLS))
    found = np.concatenate([_spearman(left, right, some[:, place]) for some in parts])
    defined = ~np.isnan(found)
    if weights[defined].sum() < LEVEL * weights.sum():
        return Interval(estimate, math.nan, math.nan, "too often undefined: no interval")
    bounds = _percentiles(found[defined], weights[defined])
    return Interval(estimate, *bounds, f"cluster bootstrap {LEVEL}")


def _spearman(
    x: Float64[np.ndarray, " points"],
    y: Float64[np.ndarray, " points"],
    counts: Shaped[np.ndarray, "resamples points"],
) -> Float64[np.ndarray, " resamples"]:
    """Return the correlation of ranks, points counted so often; NaN where one kind is constant."""
    one, other = (_ranks(data, counts) for data in (x, y))
    pairs = (one, other), (one, one), (other, other)
    shared, first, second = (np.einsum("rp,rp,rp->r", *pair, counts) for pair in pairs)
    spread = np.sqrt(first * second)
    found = np.divide(shared, spread, out=np.full_like(spread, math.nan), where=spread > 0)
    return np.asarray(np.clip(found, -1.0, 1.0), dtype=np.float64)


def _ranks(
    data: Float64[np.ndarray, " points"], counts: Shaped[np.ndarray, "resamples points"]
) -> Float64[np.ndarray, "resamples points"]:
    """Return mean ranks less their mean, multiples of a half, so that sums of them are exact."""
    _, place = np.unique(data, return_inverse=True)
    groups = np.zeros((counts.shape[0], place.max() + 1))
    np.add.at(groups.T, place, counts.T)
    ranks = groups.cumsum(axis=-1) - groups / 2 - groups.sum(axis=-1, keepdims=True) / 2
    return np.asarray(ranks[:, place], dtype=np.float64)


def sign_flip_test(values: Sequence[float]) -> float:
    """Return the two-sided p-value of paired differences by sign flips.

    Up to 16 differences all 2^n signs count, so the smallest p-value is 2^(1 − n); of more, 10,000
    from a fixed stream do.

    Source: Fisher (1935), "The Design of Experiments", section 21.
    """
    from scipy.stats import permutation_test

    data = _sorted(values)
    found = permutation_test(
        (data,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf if data.size <= MAX_FLIPPED else NUM_RESAMPLES,
        rng=0,
    )
    return float(found.pvalue)


class Effect(NamedTuple):
    """Size of a paired effect, in standard deviations of the differences."""

    d_z: float  # Cohen's: mean over standard deviation
    g_z: float  # the same times Hedges' correction, as d_z is too large with few pairs


def effect_size(values: Sequence[float]) -> Effect | None:
    """Return the effect size of paired differences.

    It is `None` if all are equal, or there are only two.

    Source: Cohen (1988), section 2.3.5; Hedges (1981), "Distribution theory for Glass's estimator
    of effect size".
    """
    data = _sorted(values)
    spread = float((data - data[0]).std(ddof=1)) if data.size > 2 else 0.0
    if spread <= ROUNDING:
        return None
    half = (data.size - 1) / 2
    correction = math.exp(math.lgamma(half) - math.lgamma(half - 0.5)) / math.sqrt(half)
    return Effect(_mean(data) / spread, correction * _mean(data) / spread)


def _sorted(values: Sequence[float]) -> Float64[np.ndarray, " trials"]:
    """Return finite numbers by size, so that their order plays no part."""
    return np.sort(_checked(values))


def _checked(values: Sequence[float]) -> Float64[np.ndarray, " trials"]:
    data = np.array(values, dtype=np.float64)
    if data.ndim != 1 or not data.size:
        raise ConfigError("an interval needs at least one value")
    if not np.isfinite(data).all():
        raise ConfigError(f"an interval needs finite values, got {data[~np.isfinite(data)][0]}")
    return data


def _mean(data: Float64[np.ndarray, " trials"]) -> float:
    return float(data[0] + (data - data[0]).mean())


def _unbounded(data: Float64[np.ndarray, " trials"]) -> Interval:
    return Interval(float(data[0]), math.nan, math.nan, "n = 1: no interval")


Outcome = Literal["supported", "contradicted", "inconclusive", "too few seeds", "not run"]

ALPHA = 0.025
"""Level of each one-sided test: a claim is decided where a two-sided 95 % interval would."""
MIN_SEEDS = 5
"""With fewer trials nothing is decided: the spread of three or four says too little."""


class Evidence(NamedTuple):
    """p-values for and against a statement, small ones strong evidence."""

    # p-value of the test whose rejection supports the claim.
    supports: Float64[np.ndarray, "*samples"]
    # p-value of the test whose rejection contradicts it.
    contradicts: Float64[np.ndarray, "*samples"]


def exceeds(
    values: Shaped[np.ndarray, "*samples trials"],
    bound: float,
    sign: int = 1,
    *,
    or_equal: bool = False,
) -> Evidence:
    """Test if the mean lies above a bound.

    With a sign of −1 it is below; with `or_equal` trials that all lie on the bound support it.
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
