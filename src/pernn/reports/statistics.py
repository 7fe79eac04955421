"""Means over trials with their uncertainty; the unit of replication is the seed, never the token.

Two intervals stand side by side. The percentile bootstrap is the paper's; with five trials its
nominal 95 % covers about 82 %. Student's t keeps its promise if the trials are roughly normal.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from pernn.errors import ConfigError
from pernn.experiments import Contrast
from pernn.randomness import RandomStream, Split, integers

Record = dict[str, Any]
"""One finished trial, or a row of its table: its spec by dotted path beside its metrics."""

NUM_RESAMPLES = 10_000


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
        """Whether there are bounds."""
        return not math.isnan(self.low)

    def __str__(self) -> str:
        if not self.bounded:
            return f"{self.estimate:.4g} ({self.method})"
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


def bootstrap_interval(
    values: Sequence[float],
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Give the percentile bootstrap interval of the mean.

    Which resamples are drawn depends on `seed`, the number of values and nothing else, so that the
    same values in the same order always have the same interval.

    Args:
        values: One per trial, in the order of the seeds.
        level: Nominal coverage, in (0, 1).
        num_resamples: Resamples with replacement, each as large as the data.
        seed: Of the resampling.

    Returns:
        The interval, in the values' unit; without bounds if there is one value only.

    Raises:
        ConfigError: If there are no values, one is not finite, or a parameter is out of range.

    Source: Efron (1979), "Bootstrap methods: another look at the jackknife".
    """
    data = _checked(values, level)
    if num_resamples < 1:
        raise ConfigError(f"num_resamples must be at least 1, got {num_resamples}")
    return _bootstrap(data.tobytes(), level, num_resamples, seed)


@lru_cache(maxsize=2**16)
def _bootstrap(content: bytes, level: float, num_resamples: int, seed: int) -> Interval:
    """Resample once what figure, table, claims and page ask for again."""
    data = np.frombuffer(content, dtype=np.float64)
    if data.size == 1:
        return _unbounded(data)
    chosen = _resamples(seed, data.size, num_resamples)
    # Deviations from one of the values: trials that are all equal have an interval of width 0.
    means = data[0] + (data - data[0])[chosen].mean(axis=1)
    # Quantiles of sorted values are found faster, sorting included.
    low, high = np.quantile(np.sort(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(_mean(data), float(low), float(high), f"bootstrap {level:.4g}")


@lru_cache(maxsize=8)
def _resamples(seed: int, size: int, count: int) -> Int64[np.ndarray, "count size"]:
    """Draw which values each resample takes: the same for every figure point and table row."""
    stream = RandomStream(seed, "pernn.reports.bootstrap", Split.ANALYSIS)
    chosen = integers(stream.words(size, count * size), size).reshape(count, size)
    chosen.flags.writeable = False
    return chosen


def student_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Give Student's t interval of the mean.

    Args:
        values: One per trial.
        level: Nominal coverage, in (0, 1).

    Returns:
        The interval, in the values' unit; without bounds if there is one value only.

    Raises:
        ConfigError: If there are no values, one is not finite, or the level is out of range.

    Source: Student (1908), "The probable error of a mean".
    """
    data = _checked(values, level)
    if data.size == 1:
        return _unbounded(data)
    deviation = (data - data[0]).std(ddof=1)
    reach = student_quantile(level, data.size - 1) * float(deviation) / math.sqrt(data.size)
    mean = _mean(data)
    return Interval(mean, mean - reach, mean + reach, f"Student t {level:.4g}")


def rank_correlation(
    x: Sequence[float],
    y: Sequence[float],
    clusters: Sequence[Any],
    level: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Give Spearman's rank correlation over all points, with an interval that resamples clusters.

    Points of one cluster (trials of one seed, rows of one trial) stay together: each resample
    takes as many clusters as there are, with all their points, and ranks them anew. Resamples
    in which the correlation is undefined are left out.

    Args:
        x: One number per point; equal ones share the mean of their ranks.
        y: The other, in the same order.
        clusters: What each point belongs to.
        level: Nominal coverage, in (0, 1).
        num_resamples: Resamples with replacement.
        seed: Of the resampling.

    Returns:
        The interval, in [−1, 1]. Without bounds if there is one cluster, or if more than
        1 − level of the resamples leave the correlation undefined; NaN if it is undefined itself,
        because all x or all y are equal.

    Raises:
        ConfigError: If the arguments differ in length, are empty or not finite, or a parameter is
            out of range.

    Source: Spearman (1904); Field and Welsh (2007), "Bootstrapping clustered data".
    """
    left, right = _checked(x, level), _checked(y, level)
    if not left.size == right.size == len(clusters):
        raise ConfigError(
            f"a correlation needs pairs in clusters, got {left.size} x, {right.size} y and "
            f"{len(clusters)} clusters"
        )
    if num_resamples < 1:
        raise ConfigError(f"num_resamples must be at least 1, got {num_resamples}")
    names = sorted(set(clusters), key=rank)
    member = np.array([names.index(cluster) for cluster in clusters])
    pairs = ((left, right), (left, left), (right, right))
    tensors = [_rank_products(one, other, member) for one, other in pairs]
    estimate = float(_correlations(tensors, np.ones((1, len(names))))[0])
    if math.isnan(estimate):
        return Interval(math.nan, math.nan, math.nan, "constant: no correlation")
    if len(names) == 1:
        return Interval(estimate, math.nan, math.nan, "n = 1: no interval")
    chosen = _resamples(seed, len(names), num_resamples)
    weights = (chosen[:, :, None] == np.arange(len(names))).sum(axis=1).astype(np.float64)
    found = _correlations(tensors, weights)
    defined = found[~np.isnan(found)]
    if defined.size < level * num_resamples:
        return Interval(estimate, math.nan, math.nan, "too often undefined: no interval")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), f"cluster bootstrap {level:.4g}")


@lru_cache(maxsize=2**10)
def student_quantile(level: float, degrees: int) -> float:
    """Give the t that a Student variable exceeds in size with probability 1 − level.

    The probability of |T| < t is a finite sum in θ = arctan(t / √ν); θ is found by bisection.

    Args:
        level: In (0, 1).
        degrees: Degrees of freedom ν, from 1.

    Returns:
        The quantile, > 0.

    Raises:
        ConfigError: If an argument is out of range.

    Source: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    if not 0 < level < 1 or degrees < 1:
        raise ConfigError(f"needs 0 < level < 1 and degrees ≥ 1, got {level} and {degrees}")
    odd = degrees % 2
    # Factors of consecutive terms: 2/3 · 4/5 · … for odd ν, 1/2 · 3/4 · … for even ν.
    steps = np.arange(1 + odd, degrees - 1, 2)
    weights = np.concatenate([[1.0], np.cumprod(steps / (steps + 1))])
    powers = 2 * np.arange(weights.size) + odd

    def coverage(angle: float) -> float:
        series = math.sin(angle) * float(weights @ np.cos(angle) ** powers)
        if not odd:
            return series
        return 2 / math.pi * (angle + (series if degrees > 1 else 0.0))

    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if coverage(middle) < level else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def paired_differences(
    records: Sequence[Record], metric: str, contrast: Contrast, match_columns: Sequence[str] = ()
) -> dict[tuple[Any, ...], float]:
    """Subtract the baseline from the treated condition wherever both are there.

    Args:
        records: Finished trials; those of other conditions are left out.
        metric: What is compared.
        contrast: The two conditions; `None` in it stands for records without that column.
        match_columns: Columns in which the two trials of a pair agree, besides the seed.

    Returns:
        (seed, *values of match_columns) → difference in the metric's unit, in the keys' order.

    Raises:
        ConfigError: If two trials compete for one place, as nothing then says which pair to take.
    """
    sides: dict[Any, dict[tuple[Any, ...], float]] = {contrast.treated: {}, contrast.baseline: {}}
    holders: dict[tuple[Any, ...], Record] = {}
    columns = ("seed", *match_columns)
    for record in records:
        condition = record.get(contrast.column)
        side = sides.get(condition)
        value = number(record, metric)
        if side is None or value is None:
            continue
        key = tuple(record.get(column) for column in columns)
        if key in side:
            place = ", ".join(f"{name} = {part}" for name, part in zip(columns, key, strict=True))
            raise ConfigError(
                f"two trials of {contrast.column} = {condition} at {place}: match more columns or "
                f"select fewer records{difference_of(holders[condition, *key], record)}"
            )
        side[key], holders[condition, *key] = value, record
    treated, baseline = sides[contrast.treated], sides[contrast.baseline]
    both = sorted(treated.keys() & baseline.keys(), key=lambda key: [rank(part) for part in key])
    return {key: treated[key] - baseline[key] for key in both}


def difference_of(one: Record, other: Record) -> str:
    """Say in which settings or words two records differ that should have been one."""
    names = sorted(
        column
        for column in one.keys() | other.keys()
        if column not in ("run", "tables", "num_parameters")
        and one.get(column) != other.get(column)
        and not isinstance(one.get(column, other.get(column)), float)
    )
    return f"; they differ in {', '.join(names)}" if names else ""


def number(record: Record, column: str) -> float | None:
    """Give a finite number of a record; `None` if it has none there."""
    value = record.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def rank(value: Any) -> tuple[bool, float, str]:
    """Order values of any kind: numbers by size, then the rest by their text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (False, float(value), "")
    return (True, 0.0, str(value))


def _checked(values: Sequence[float], level: float) -> Float64[np.ndarray, " trials"]:
    data = np.array(values, dtype=np.float64)
    if data.ndim != 1 or not data.size:
        raise ConfigError("an interval needs at least one value")
    if not np.isfinite(data).all():
        raise ConfigError(f"an interval needs finite values, got {data[~np.isfinite(data)][0]}")
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, got {level}")
    return data


def _rank_products(
    x: Float64[np.ndarray, " points"],
    y: Float64[np.ndarray, " points"],
    member: Int64[np.ndarray, " points"],
) -> Float64[np.ndarray, "clusters clusters clusters"]:
    """Sum, over the points of each cluster, products of their ranks within each two clusters.

    A centred rank is half of how many points lie below, less those above: in a resample it is the
    sum of that over the clusters, as often as they were taken. So the sums of products of a
    resample follow from these whole numbers, whatever it consists of.
    """
    size = int(member.max()) + 1
    ranks = []
    for data in (x, y):
        groups = [np.sort(data[member == cluster]) for cluster in range(size)]
        below = np.array([np.searchsorted(group, data, "left") for group in groups])
        upto = np.array([np.searchsorted(group, data, "right") for group in groups])
        ranks.append((below + upto - np.bincount(member)[:, None]).astype(np.float64))
    inside = [member == cluster for cluster in range(size)]
    return np.array([ranks[0][:, own] @ ranks[1][:, own].T for own in inside])


def _correlations(
    products: Sequence[Float64[np.ndarray, "clusters clusters clusters"]],
    weights: Float64[np.ndarray, "resamples clusters"],
) -> Float64[np.ndarray, " resamples"]:
    """Correlate the ranks of each resample; NaN where all of one kind are equal."""
    size = weights.shape[1]
    sums = []
    for tensor in products:
        twice = (weights @ tensor.reshape(size, -1)).reshape(-1, size, size)
        sums.append(np.einsum("rtu,rt,ru->r", twice, weights, weights, optimize=True))
    both, one, other = sums
    spread = np.sqrt(one * other)
    return np.where(spread > 0, both / np.where(spread > 0, spread, 1.0), math.nan).clip(-1, 1)


def _mean(data: Float64[np.ndarray, " trials"]) -> float:
    return float(data[0] + (data - data[0]).mean())


def _unbounded(data: Float64[np.ndarray, " trials"]) -> Interval:
    return Interval(float(data[0]), math.nan, math.nan, "n = 1: no interval")
