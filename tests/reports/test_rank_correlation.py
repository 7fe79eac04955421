"""Spearman's correlation against SciPy, and its interval over seeds against slow resampling."""

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from pernn.errors import ConfigError
from pernn.lab.reports.statistics import rank_correlation

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


def test_exact_agreement_is_exactly_one():
    x = [0.1, 0.2, 0.3, 5.0, 7.0]
    assert rank_correlation(x, [one**3 for one in x], "abcde").estimate == 1.0
    assert rank_correlation(x, [-one for one in x], "abcde").estimate == -1.0


def test_one_seed_has_no_interval_and_constants_have_no_correlation():
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
