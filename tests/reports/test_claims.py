"""Each predicate's verdicts, and what they rest on."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.errors import ConfigError
from pernn.experiments import AtLeast, Claim, Differs, Grows, LimitNear, Predicate
from pernn.reports import bootstrap_interval, judge, student_interval
from reports.trials import CODE, SEEDS, trial

Cells = dict[int, list[float]]
"""Vocabulary size → one value per seed."""


def claim(predicate: Predicate) -> Claim:
    return Claim("name", "statement", "source", predicate)


def grid(cells: Cells, code: str = "sinusoidal") -> list[dict[str, Any]]:
    return [
        trial(seed=seed, k=size, encoding__kind=code, core__kind="gru", m=value)
        for size, values in cells.items()
        for seed, value in zip(SEEDS, values, strict=False)
    ]


def pairs(differences: Cells) -> list[dict[str, Any]]:
    baseline = {size: [0.5] * len(values) for size, values in differences.items()}
    treated = {size: [0.5 + value for value in values] for size, values in differences.items()}
    return grid(baseline, "none") + grid(treated)


def differs(sign: Any = 1) -> Claim:
    return claim(Differs("m", {"core.kind": "gru"}, CODE, cells="k", sign=sign))


def grows() -> Claim:
    return claim(Grows("m", {"core.kind": "gru"}, CODE, along="k"))


def at_least(*required: int) -> Claim:
    where = {"encoding.kind": "sinusoidal"}
    return claim(AtLeast("m", where, cells="k", required=required, threshold=0.95))


def limit_near(near: float, *required: float) -> Claim:
    return claim(LimitNear("m", {}, along="k", required=required, threshold=0.95, near=near))


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.1, 0.2, 0.15], "supported"),
        ([-0.1, -0.2, -0.15], "contradicted"),
        ([0.1, -0.2, 0.15], "inconclusive"),
        ([0.0, 0.0, 0.0], "inconclusive"),
        ([0.1], "not run"),
        ([], "not run"),
    ],
)
def test_differs(values: list[float], verdict: str) -> None:
    assert judge(differs(), pairs({4: values, 8: values})).verdict == verdict


@given(st.lists(st.integers(-8, 8).map(lambda n: n / 16), min_size=2, max_size=5))
def test_the_verdict_flips_with_the_sign(values: list[float]) -> None:
    opposite = {"supported": "contradicted", "contradicted": "supported"}
    found = judge(differs(), pairs({4: values})).verdict
    flipped = opposite.get(found, found)
    assert judge(differs(-1), pairs({4: values})).verdict == flipped
    assert judge(differs(), pairs({4: [-value for value in values]})).verdict == flipped


def test_differs_averages_over_cells_within_a_seed() -> None:
    found = judge(differs(), pairs({4: [0.25, 0.5], 8: [0.0, -0.25]}))
    expected = [0.125, 0.125]
    assert found.interval == bootstrap_interval(expected)
    assert found.student == student_interval(expected)
    assert found.num_seeds == 2
    assert found.detail == "over k = 4, 8"


def test_seeds_with_every_cell_are_preferred() -> None:
    # The third seed has only the cell in which nothing is gained.
    found = judge(differs(), pairs({4: [0.0, 0.0, 0.0], 8: [0.5, 0.25]}))
    assert found.num_seeds == 2
    assert found.interval == bootstrap_interval([0.25, 0.125])
    assert found.detail == "over k = 4, 8; 1 unfinished seed left out"


def test_cells_that_all_seeds_share_serve_where_too_few_seeds_are_complete() -> None:
    found = judge(differs(), pairs({4: [0.25, 0.5], 8: [0.75]}))
    assert found.num_seeds == 2
    assert found.interval == bootstrap_interval([0.25, 0.5])
    assert found.detail == "over k = 4"


def test_seeds_without_a_common_cell_are_not_compared() -> None:
    records = pairs({4: [0.5], 8: [0.5, 0.5]})
    apart = [one for one in records if (one["seed"] == SEEDS[0]) == (one["k"] == 4)]
    found = judge(differs(), apart)
    assert (found.verdict, found.detail) == ("not run", "no value of k has all 2 seeds")


def test_the_order_of_the_records_does_not_matter() -> None:
    records = pairs({4: [0.3, 0.1, 0.2, 0.4], 8: [0.2, 0.5, 0.1, 0.0]})
    for about in (differs(), grows()):
        assert judge(about, records) == judge(about, records[::-1])


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ({4: [0.1, 0.1, 0.1], 8: [0.2, 0.3, 0.2], 16: [0.3, 0.5, 0.4]}, "supported"),
        ({4: [0.3, 0.5, 0.4], 8: [0.2, 0.3, 0.2], 16: [0.1, 0.1, 0.1]}, "contradicted"),
        ({4: [0.1, 0.4, 0.1], 8: [0.2, 0.3, 0.1]}, "inconclusive"),
        ({4: [0.1, 0.1, 0.1]}, "not run"),
        ({4: [0.1], 8: [0.2]}, "not run"),
    ],
)
def test_grows(cells: Cells, verdict: str) -> None:
    assert judge(grows(), pairs(cells)).verdict == verdict


def test_grows_reports_the_slope_per_doubling() -> None:
    found = judge(grows(), pairs({4: [0.0, 0.0], 8: [0.125, 0.25], 32: [0.375, 0.75]}))
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx((0.125 + 0.25) / 2)
    assert found.quantity == "m, sinusoidal − none, change per doubling of k"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.0, 0.005, -0.005], "supported"),
        ([-0.2, -0.1, -0.3], "supported"),
        ([0.05, 0.02, 0.04], "contradicted"),
        ([0.0, 0.03, 0.005], "inconclusive"),
    ],
)
def test_no_gain_to_speak_of(values: list[float], verdict: str) -> None:
    """With sign −1 and a negative margin, small gains and all losses support the claim."""
    about = claim(Differs("m", {"core.kind": "gru"}, CODE, cells="k", sign=-1, margin=-0.01))
    found = judge(about, pairs({4: values}))
    assert found.verdict == verdict
    assert "against 0.01" in found.detail


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ({4: [0.9, 0.8, 0.9], 8: [0.5, 0.4, 0.5]}, "supported"),
        ({4: [0.5, 0.4, 0.5], 8: [0.9, 0.8, 0.9]}, "contradicted"),
        ({4: [0.5, 0.9, 0.5], 8: [0.9, 0.5, 0.5]}, "inconclusive"),
        ({4: [0.9, 0.8, 0.9]}, "not run"),
        ({4: [0.9], 8: [0.5]}, "not run"),
    ],
)
def test_a_metric_itself_falls(cells: Cells, verdict: str) -> None:
    where = {"encoding.kind": "sinusoidal"}
    found = judge(claim(Grows("m", where, None, along="k", sign=-1)), grid(cells))
    assert found.verdict == verdict


def test_what_cannot_be_doubled_is_refused() -> None:
    with pytest.raises(ConfigError, match="k must be positive numbers"):
        judge(grows(), pairs({0: [0.1, 0.1], 8: [0.2, 0.2]}))


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ({4: [1.0, 0.99], 8: [0.95, 0.96]}, "supported"),
        ({4: [1.0, 0.99], 8: [0.5, 0.9]}, "contradicted"),
        ({4: [1.0, 0.99], 8: [0.5, 1.0]}, "inconclusive"),
        ({4: [1.0, 0.99], 8: [1.0]}, "not run"),
        ({4: [1.0, 0.99]}, "not run"),
        ({}, "not run"),
    ],
)
def test_at_least(cells: Cells, verdict: str) -> None:
    assert judge(at_least(4, 8), grid(cells)).verdict == verdict


def test_at_least_reports_the_worst_cell() -> None:
    found = judge(at_least(4, 8, 16), grid({4: [1.0, 0.5], 8: [0.1, 0.2], 16: [0.0, 1.0]}))
    assert found.quantity == "m at k = 8"
    assert found.interval == bootstrap_interval([0.1, 0.2])
    assert found.detail == "the worst of 3 cells; threshold 0.95"


def test_at_least_judges_required_cells_only() -> None:
    assert judge(at_least(4), grid({4: [1.0, 1.0], 64: [0.0, 0.0]})).verdict == "supported"


def test_at_least_names_what_is_missing() -> None:
    found = judge(at_least(4, 8), grid({4: [1.0, 1.0]}))
    assert found.detail == "needs at least 2 seeds at k = 8"
    assert found.interval is None
    assert found.num_seeds == 0


GOOD, BAD = [0.99, 0.98, 1.0], [0.5, 0.6, 0.4]


@pytest.mark.parametrize(
    ("near", "cells", "verdict"),
    [
        (8.0, {4: GOOD, 8: GOOD, 16: BAD}, "supported"),
        (4.0, {4: GOOD, 8: GOOD, 16: BAD}, "supported"),
        (64.0, {4: GOOD, 8: GOOD, 16: BAD}, "contradicted"),
        (2.0, {4: GOOD, 8: GOOD, 16: BAD}, "contradicted"),
        (8.0, {4: [0.99, 0.99, 0.5], 8: GOOD, 16: BAD}, "inconclusive"),
        (8.0, {4: GOOD, 8: GOOD}, "not run"),
        (8.0, {4: GOOD, 8: GOOD, 16: BAD[:1]}, "not run"),
    ],
)
def test_limit_near(near: float, cells: Cells, verdict: str) -> None:
    assert judge(limit_near(near, 4.0, 8.0, 16.0), grid(cells)).verdict == verdict


def test_a_limit_is_reached_before_the_first_failure() -> None:
    found = judge(limit_near(4.0, 4.0, 8.0, 16.0), grid({4: GOOD, 8: BAD, 16: GOOD}))
    assert found.interval == bootstrap_interval([2.0, 2.0, 2.0])


def test_a_limit_of_zero_counts_as_half_the_smallest_value() -> None:
    found = judge(limit_near(64.0, 4.0, 8.0), grid({4: BAD, 8: BAD}))
    assert found.verdict == "contradicted"
    assert found.interval == bootstrap_interval([1.0, 1.0, 1.0])
    assert found.detail.endswith("a limit of 0 counts as half of 4")


@pytest.mark.parametrize(
    ("near", "verdict"), [(8.0, "inconclusive"), (64.0, "inconclusive"), (2.0, "contradicted")]
)
def test_a_limit_above_all_that_was_tried_is_only_known_from_below(
    near: float, verdict: str
) -> None:
    found = judge(limit_near(near, 4.0, 8.0), grid({4: GOOD, 8: GOOD}))
    assert found.verdict == verdict
    assert found.detail.endswith("3 of 3 seeds never fail, so their limit is unknown")


def test_the_remark_tells_when_student_disagrees() -> None:
    found = judge(differs(), pairs({4: [0.01, 0.2, 0.4]}))
    assert found.verdict == "supported"
    assert found.student is not None
    assert found.student.low < 0
    assert found.remark == "by Student's t this would be inconclusive"
    assert judge(differs(), pairs({4: [0.2, 0.21, 0.22]})).remark == ""


def test_where_selects_by_value_or_by_any_of_several() -> None:
    records = pairs({4: [0.1, 0.2], 8: [-0.5, -0.6], 16: [-0.5, -0.7]})
    few = claim(Differs("m", {"k": 4}, CODE, cells="k"))
    some = claim(Differs("m", {"k": (8, 16)}, CODE, cells="k"))
    other = claim(Differs("m", {"k": (64, 32), "missing": 1}, CODE, cells="k"))
    assert judge(few, records).verdict == "supported"
    assert judge(some, records).verdict == "contradicted"
    found = judge(other, records)
    assert found.verdict == "not run"
    assert found.detail == "no finished trial has k = 64 or 32, missing = 1"


def test_trials_that_lack_the_metric_do_not_count() -> None:
    records = pairs({4: [0.1, 0.2, 0.3]})
    records[0]["m"] = None
    assert judge(differs(), records).num_seeds == 2


@pytest.mark.parametrize("about", [differs(), grows(), at_least(4), limit_near(4.0, 4.0)])
def test_competing_trials_are_refused(about: Claim) -> None:
    records = pairs({4: [0.1, 0.2], 8: [0.1, 0.2]})
    with pytest.raises(ConfigError, match="two trials"):
        judge(about, records * 2)


def test_a_verdict_is_plain_json() -> None:
    found = judge(differs(), pairs({4: [0.25, 0.5]}))
    dump = json.loads(json.dumps(found.dump(), allow_nan=False))
    assert dump["claim"] == "name"
    assert dump["statement"] == "statement"
    assert dump["verdict"] == "supported"
    assert dump["interval"]["low"] == 0.25
    assert judge(differs(), []).dump()["interval"] is None


def test_what_is_not_a_number_becomes_null() -> None:
    from dataclasses import replace

    found = judge(differs(), pairs({4: [0.25, 0.5]}))
    single = replace(found, interval=bootstrap_interval([0.5]))
    assert math.isnan(bootstrap_interval([0.5]).low)
    assert single.dump()["interval"]["low"] is None
