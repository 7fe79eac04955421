"""Intervals against SciPy, and the laws they keep."""

import math
import random
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from pernn.errors import ConfigError
from pernn.lab.reports import bootstrap_interval, paired_differences, student_interval
from pernn.lab.reports.records import number, sort_key
from pernn.lab.reports.statistics import (
    Interval,
    detectable,
    exceeds,
    holm,
    lies_within,
    p_above,
    rank_correlation,
    share_interval,
)
from reports.trials import ENCODING, trial

ACCURACIES = [0.912, 0.931, 0.874, 0.952, 0.903, 0.25, 0.941]


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_student_interval_agrees_with_scipy(count):
    values = ACCURACIES[:count]
    found = student_interval(values)
    low, high = scipy.stats.t.interval(
        0.95, count - 1, loc=np.mean(values), scale=scipy.stats.sem(values)
    )
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
    assert found.estimate == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize("count", [3, 5, 7])
def test_bootstrap_agrees_with_scipy(count):
    values, noise = ACCURACIES[:count], np.random.default_rng(0)
    options = {"method": "percentile", "n_resamples": 100_000, "confidence_level": 0.95}
    expected = scipy.stats.bootstrap((values,), np.mean, rng=noise, **options).confidence_interval
    found = bootstrap_interval(values)
    # Two samples of the same distribution; its steps are single values divided by their number.
    tolerance = 0.03 * (max(values) - min(values))
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=tolerance)


@pytest.mark.parametrize("values", [[0.9, 0.95, 0.8, 0.99], [1.0, 0.0, 1.0, 1.0, 0.0], [3.0, 1.0]])
def test_bootstrap_of_few_values_is_that_of_all_resamples(values):
    count = len(values)
    means = sorted(sum(chosen) / count for chosen in product(values, repeat=count))
    place = math.ceil(0.025 * count**count) - 1
    found = bootstrap_interval(values)
    assert (found.low, found.high) == pytest.approx((means[place], means[-1 - place]), abs=1e-15)


@given(st.permutations(ACCURACIES))
def test_intervals_do_not_depend_on_the_order(values):
    for count in (5, 7):
        some = values if count == 7 else [one for one in values if one > 0.9]
        plain = [one for one in ACCURACIES if one in some]
        assert bootstrap_interval(some) == bootstrap_interval(plain)
        assert student_interval(some) == student_interval(plain)


@pytest.mark.parametrize("make", [bootstrap_interval, student_interval])
def test_equal_values_have_no_width_and_one_value_or_none_no_interval(make):
    for value in (0.1, 0.95, 1 / 3):
        interval = make([value] * 5)
        assert interval.low == interval.estimate == interval.high == value
    alone = make([0.5])
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    assert not alone.bounded
    assert str(alone) == "0.5 (n = 1: no interval)"
    for values in ([], [0.5, math.nan], [math.inf]):
        with pytest.raises(ConfigError, match="an interval needs"):
            make(values)


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.0046390, 0.0031849, 0.0060921, "t"), "0.0046 [0.0032, 0.0061]"),
        (Interval(-1.526e-05, -0.0004349, 0.0004044, "t"), "-0.00002 [-0.00043, 0.00040]"),
        (Interval(-0.0001, -0.061, 0.05, "t"), "0.000 [-0.061, 0.050]"),
        (Interval(0.05, 0.0001, 0.0999, "t"), "0.050 [0.0001, 0.100]"),
        (Interval(-0.0027, -0.0053, -4.2e-05, "t"), "-0.0027 [-0.0053, -0.00004]"),
        (Interval(-0.05, -0.1, 0.0, "t"), "-0.050 [-0.100, 0.000]"),
        (Interval(1234.5, 1200.2, 1268.8, "t"), "1234 [1200, 1269]"),
        (Interval(0.123456, 0.123456, 0.123456, "t"), "0.1235 [0.1235, 0.1235]"),
        (Interval(0.5, 0.5 - 1e-14, 0.5 + 1e-14, "t"), "0.5 [0.5, 0.5]"),
        (Interval(0.123456, math.nan, math.nan, "n = 1: none"), "0.1235 (n = 1: none)"),
    ],
)
def test_an_interval_is_shown_to_two_digits_of_its_half_width(interval, text):
    assert str(interval) == text


def test_p_values_agree_with_scipy():
    samples = np.random.default_rng(0).normal(0.1, 1, (20, 5))
    expected = scipy.stats.ttest_1samp(samples, 0.05, axis=1, alternative="greater").pvalue
    np.testing.assert_allclose(p_above(samples, 0.05), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("value", "strict", "or_equal"), [(0.3, 0.0, 0.0), (0.1, 1.0, 1.0), (0.2, 1.0, 0.0)]
)
def test_p_values_of_equal_values_are_limits(value, strict, or_equal):
    values = np.full(5, value + 1e-17)
    assert p_above(values, 0.2) == strict
    assert p_above(values, 0.2, or_equal=True) == or_equal


def test_outside_of_two_bounds_is_tested_on_both_sides():
    for values in ([0.3, 0.2, 0.1, 0.4, 0.25], [-0.3, -0.2, -0.1, -0.4, -0.25]):
        expected = scipy.stats.ttest_1samp(np.abs(values), 0.1).pvalue
        assert lies_within(np.array(values), -0.1, 0.1).contradicts == pytest.approx(expected)
        assert lies_within(np.array(values), -0.5, 0.5).contradicts == 1.0


@pytest.mark.parametrize(("hits", "count"), [(0, 5), (5, 5), (3, 10), (1, 1)])
def test_share_interval_agrees_with_scipy(hits, count):
    expected = scipy.stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
    found = share_interval(hits, count)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_holm_is_holms_and_without_a_spread_nothing_can_be_said():
    """The example of Holm's paper's kind: 0.01 ≤ 0.05 / 4, 0.02 > 0.05 / 3, so the rest stays."""
    assert holm([0.02, 0.01, 0.03, 0.04], 0.05) == [False, True, False, False]
    assert holm([0.01, 0.012, 0.025, 0.05], 0.05) == [True] * 4
    assert holm([], 0.05) == []
    for values in ([0.5, 0.5], [0.5]):
        assert detectable(student_interval(values), len(values), 0.025) is None


def test_pairs_match_by_seed_and_cell_and_only_finite_numbers_are_numbers():
    cells = [
        (2, 8, "sinusoidal", 0.75), (1, 8, "none", 0.25), (1, 4, "sinusoidal", 1.0),
        (1, 8, "sinusoidal", 0.5), (1, 8, "random", 0.0), (2, 8, "none", 1.0), (3, 8, "none", 1.0),
    ]  # fmt: skip
    records = [trial(seed=seed, k=k, encoding__kind=kind, m=m) for seed, k, kind, m in cells]
    found = paired_differences(records, "m", ENCODING, ["k"])
    assert list(found.items()) == [((1, 8), 0.25), ((2, 8), -0.25)]
    for value in (None, "0.5", True, math.nan, math.inf):
        assert number({"m": value}, "m") is None
    assert number({}, "m") is None
    assert number({"m": 2}, "m") == 2.0
    assert sorted(["b", 16, 2.5, "a", None], key=sort_key) == [2.5, 16, None, "a", "b"]


@pytest.mark.parametrize(("count", "alpha"), [(5, 0.025), (8, 0.025 / 15), (16, 0.0025)])
@pytest.mark.parametrize("both_sides", [False, True])
def test_what_can_be_seen_is_seen_in_four_of_five_studies(count, alpha, both_sides):
    """The very tests that decide, on studies whose effect, or margin, is that of the formula."""
    spread = scipy.stats.norm.ppf(0.75)  # any number
    values = np.random.default_rng(1).normal(0, spread, (40_000, count))
    # An interval of just this spread.
    half = scipy.stats.t.ppf(0.975, count - 1) * spread / count**0.5
    size = detectable(Interval(0.0, -half, half, ""), count, alpha, both_sides=both_sides)
    seen = lies_within(values, -size, size) if both_sides else exceeds(values + size, 0.0)
    seen = seen.supports <= alpha
    # Both sides are rarely missed at once, so that halving the chance to miss asks for a bit more.
    assert 0.79 < seen.mean() < (0.83 if both_sides else 0.81)


NUMBERS = st.integers(-3, 3) | st.floats(-1e6, 1e6)
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 4)), min_size=2, max_size=30)


@settings(max_examples=40, deadline=None)
@given(POINTS)
def test_the_estimate_is_scipys_with_ties_and_clusters(points):
    x, y, seeds = zip(*points, strict=True)
    found = rank_correlation(x, y, seeds)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(found.estimate)
        assert not found.bounded
    else:
        assert found.estimate == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        assert not found.bounded or -1 <= found.low <= found.high <= 1


def test_the_interval_resamples_whole_seeds():
    noise = random.Random(7)
    seeds = [seed for seed in (1, 2, 3, 4) for _ in range(6)]
    x = [noise.randrange(8) + seed for seed in seeds]
    y = [noise.randrange(4) + one for one in x]
    found = rank_correlation(x, y, seeds)
    slow = []
    for chosen in product((1, 2, 3, 4), repeat=4):
        places = [i for cluster in chosen for i, seed in enumerate(seeds) if seed == cluster]
        slow.append(spearmanr([x[i] for i in places], [y[i] for i in places]).statistic)
    slow.sort()
    assert (found.low, found.high) == pytest.approx((slow[6], slow[-7]))  # 256 · 0.025 = 6.4
    assert found.method == "cluster bootstrap 0.95"
    pairs = sorted(zip(seeds, x, y, strict=True), key=lambda pair: pair[1:])
    seeds, x, y = zip(*pairs, strict=True)
    assert rank_correlation(x, y, seeds) == found


def test_exact_agreement_is_one_and_too_few_seeds_or_constants_have_no_interval():
    x = [0.1, 0.2, 0.3, 5.0, 7.0]
    assert rank_correlation(x, [one**3 for one in x], "abcde").estimate == 1.0
    assert rank_correlation(x, [-one for one in x], "abcde").estimate == -1.0
    assert rank_correlation([1, 2, 3], [1, 3, 2], [5, 5, 5]).method == "n = 1: no interval"
    assert rank_correlation([1, 1], [1, 2], [1, 2]).method == "constant: no correlation"
    # Half of the resamples of two seeds with a point each are one point twice.
    assert rank_correlation([1, 2], [1, 2], [1, 2]).method == "too often undefined: no interval"


@pytest.mark.parametrize(
    ("x", "y", "seeds"),
    [([], [], []), ([1], [1, 2], [1]), ([1, 2], [1, 2], [1]), ([math.nan, 1], [1, 2], [1, 2])],
)
def test_impossible_arguments_are_refused(x, y, seeds):
    with pytest.raises(ConfigError):
        rank_correlation(x, y, seeds)
