"""Every kind of claim, simulated: how often its verdict is wrong, and how often it comes."""

import numpy as np
import pytest
from scipy.stats import binom
from verdicts import SCENARIOS, family

from pernn.errors import ConfigError
from pernn.lab.reports.statistics import ALPHA, correct, exceeds

NUM_DRAWS = 4_000
BOUND = binom.ppf(1 - 1e-4, NUM_DRAWS, ALPHA) / NUM_DRAWS
"""More than this is seen of a rate of 2.5 % once in ten thousand times; the draws are fixed."""


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: f"{one.claim}: {one.truth}")
def test_verdicts_are_wrong_at_most_as_often_as_stated(one):
    for count in (5, 8):
        supported, contradicted = one.rates(count, NUM_DRAWS)
        # On the edge of the claim both are wrong.
        assert one.holds or supported <= BOUND
        assert one.holds is False or contradicted <= BOUND


SEEN = [
    one for one in SCENARIOS if one.truth.startswith(("two spreads", "three", "half", "all 0.98"))
]


@pytest.mark.parametrize("one", SEEN, ids=lambda one: f"{one.claim}: {one.truth}")
def test_clear_effects_are_seen(one):
    supported, contradicted = one.rates(5, NUM_DRAWS)
    assert (supported if one.holds else contradicted) > 0.65


def test_correction_holds_for_all_claims_together():
    """Judged alone, ten claims without an effect would yield a verdict in 40 % of studies."""
    alone, corrected = family(10, 5, NUM_DRAWS)
    assert alone > 0.3
    assert corrected <= binom.ppf(1 - 1e-4, NUM_DRAWS, 2 * ALPHA) / NUM_DRAWS


def test_holm_reads_the_direction_off_and_corrects_primary_claims_for_their_own_number():
    """p-values of the sorting claims: the second missed the one-sided rule by 0.00004."""
    found = [(0.001, 0.999), (0.005593, 0.994407), (0.999, 0.001), *[(0.3, 0.7)] * 3]
    older = correct(found, [False] * 6, "2026-11")
    assert older == ["supported", "inconclusive", "contradicted", *["inconclusive"] * 3]
    newer = correct(found, [False] * 6, "2026-12")
    assert newer == ["supported", "supported", "contradicted", *["inconclusive"] * 3]
    found = [(0.0063, 0.9937), *[(0.4, 0.6)] * 14]
    primary = [True, *[False] * 14]
    assert correct(found, primary, "2026-12")[0] == "supported"
    assert correct(found, [False] * 15, "2026-12")[0] == "inconclusive"
    assert correct(found, primary, "2026-11")[0] == "inconclusive"
    # What the others are does not matter to it, nor it to them.
    assert correct([found[0], *[(1e-9, 1.0)] * 14], primary, "2026-12")[1:] == ["supported"] * 14
    unchecked = getattr(correct, "__wrapped__", correct)  # by beartype, which only tests have
    with pytest.raises(ConfigError, match="rule is invalid: expected one of"):
        unchecked([], [], "2027-01")


def test_the_newer_rule_is_wrong_in_either_family_at_most_as_often_as_stated():
    """Primary claims and others, all without an effect, that share half of their variance."""
    generator, num_draws = np.random.default_rng(1), 1_500
    primary = [place < 3 for place in range(12)]
    wrong = np.zeros(2)
    for _ in range(num_draws):
        values = generator.normal(0, 1, (12, 8)) + generator.normal(0, 1, 8)
        found = list(zip(*(p.tolist() for p in exceeds(values, 0.0)), strict=True))
        decided = [one != "inconclusive" for one in correct(found, primary, "2026-12")]
        wrong += any(decided[:3]), any(decided[3:])
    assert (wrong / num_draws <= binom.ppf(1 - 1e-4, num_draws, 2 * ALPHA) / num_draws).all()
