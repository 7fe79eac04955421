"""Every kind of claim, simulated: how often its verdict is wrong, and how often it comes."""

import pytest
from scipy.stats import binom
from verdicts import SCENARIOS, Scenario, family

from pernn.reports.rules import ALPHA

NUM_DRAWS = 4_000
BOUND = binom.ppf(1 - 1e-4, NUM_DRAWS, ALPHA) / NUM_DRAWS
"""More than this is seen of a rate of 2.5 % once in ten thousand times; the draws are fixed."""


@pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: f"{one.claim}: {one.truth}")
def test_verdicts_are_wrong_at_most_as_often_as_stated(one: Scenario) -> None:
    for count in (5, 8):
        assert one.wrong(*one.rates(count, NUM_DRAWS)) <= BOUND


SEEN = [
    one for one in SCENARIOS if one.truth.startswith(("two spreads", "three", "half", "all 0.98"))
]


@pytest.mark.parametrize("one", SEEN, ids=lambda one: f"{one.claim}: {one.truth}")
def test_clear_effects_are_seen(one: Scenario) -> None:
    supported, contradicted = one.rates(5, NUM_DRAWS)
    assert (supported if one.holds else contradicted) > 0.65


def test_correction_holds_for_all_claims_together() -> None:
    """Judged alone, ten claims without an effect would yield a verdict in 40 % of studies."""
    alone, corrected = family(10, 5, NUM_DRAWS)
    assert alone > 0.3
    assert corrected <= binom.ppf(1 - 1e-4, NUM_DRAWS, 2 * ALPHA) / NUM_DRAWS
