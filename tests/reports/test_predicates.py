"""The verdicts of each kind of claim about a mean over cells, a slope, a limit or every trial."""

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import AtMost, Contrast, Differs, DiffersMore, Grows
from pernn.lab.reports import student_interval
from reports.cases import (
    BAD,
    GOOD,
    NEAR,
    around,
    at_least,
    claim,
    differs,
    equivalent,
    every_trial,
    grid,
    grows,
    judge,
    limit_near,
    pairs,
)
from reports.trials import ENCODING


def along(*means):
    """Cells of growing size, whose seeds' noise is not the same."""
    shifted = [around(mean)[place:] + around(mean)[:place] for place, mean in enumerate(means)]
    return dict(zip((4, 8, 16), shifted, strict=False))


def cells(four, eight):
    return pairs(dict(zip((4, 8), around(four, eight), strict=True)))


FALLS = claim(Grows("m", {"encoding.kind": "sinusoidal"}, None, along="k", sign=-1))
NO_GAIN = differs(-1, margin=-0.05, margin_origin="ours")
"""Small gains and all losses support the claim."""
AT_MOST = claim(AtMost("m", {}, "k", (4, 8), 2.0, "ours"))
TWO, THREE = (4.0, 8.0), (4.0, 8.0, 16.0)
SPLIT = [0.99, 0.99, 0.5, 0.5, 0.5]
REACHED = grid({4: GOOD, 8: GOOD, 16: BAD})


@pytest.mark.parametrize(
    ("about", "records", "verdict"),
    [
        (grows(), pairs(along(0.1, 0.25, 0.4)), "supported"),
        (grows(), pairs(along(0.4, 0.25, 0.1)), "contradicted"),
        (grows(), pairs(along(0.2, 0.21, 0.2)), "inconclusive"),
        (grows(), pairs(along(0.1)), "not run"),
        (FALLS, grid({4: around(0.9), 8: around(0.5)}), "supported"),
        (FALLS, grid({4: around(0.5), 8: around(0.9)}), "contradicted"),
        (FALLS, grid({4: [0.5, 0.9, 0.5, 0.9, 0.7], 8: [0.9, 0.5, 0.5, 0.8, 0.7]}), "inconclusive"),
        (FALLS, grid({4: around(0.9)}), "not run"),
        (FALLS, grid({4: [0.9], 8: [0.5]}), "too few seeds"),
        (NO_GAIN, pairs({4: around(0.0)}), "supported"),
        (NO_GAIN, pairs({4: around(-0.2)}), "supported"),
        (NO_GAIN, pairs({4: around(0.1)}), "contradicted"),
        (NO_GAIN, pairs({4: around(0.05)}), "inconclusive"),
        (equivalent(), cells(0.0, 0.01), "supported"),
        (equivalent(), cells(0.0, -0.2), "contradicted"),
        (equivalent(), cells(0.2, 0.0), "contradicted"),
        (equivalent(), cells(0.2, -0.2), "contradicted"),  # their average is no excuse
        (equivalent(), cells(0.0, 0.04), "inconclusive"),
        (equivalent(4, 16), pairs({4: around(0.0)}), "not run"),
        (at_least(4, 8), grid({4: GOOD, 8: GOOD}), "supported"),
        (at_least(4, 8), grid({4: GOOD, 8: [0.95] * 5}), "supported"),
        (at_least(4, 8), grid({4: GOOD, 8: BAD}), "contradicted"),
        (at_least(4, 8), grid({4: GOOD, 8: NEAR}), "inconclusive"),
        (at_least(4, 8), grid({4: GOOD, 8: GOOD[:4]}), "too few seeds"),
        (at_least(4, 8), grid({4: GOOD, 8: GOOD[:1]}), "too few seeds"),
        (at_least(4, 8), grid({4: GOOD}), "not run"),
        (at_least(4, 8), [], "not run"),
        (at_least(4), grid({4: GOOD, 64: [0.0] * 5}), "supported"),
        (AT_MOST, grid({4: [1.0, 1.2, 1.1, 0.9, 1.0], 8: around(0.5)}), "supported"),
        (AT_MOST, grid({4: [3.0, 3.5, 3.1, 3.2, 3.4], 8: around(0.5)}), "contradicted"),
        (AT_MOST, grid({4: [1.0, 3.0, 2.0, 1.0, 3.0], 8: around(0.5)}), "inconclusive"),
        (AT_MOST, grid({4: [2.0] * 5, 8: around(0.5)}), "supported"),
        (limit_near(8.0, *THREE), REACHED, "supported"),
        (limit_near(7.9, *THREE), REACHED, "supported"),
        (limit_near(4.0, *THREE), REACHED, "inconclusive"),  # exactly twice as large
        (limit_near(64.0, *THREE), REACHED, "contradicted"),
        (limit_near(2.0, *THREE), REACHED, "contradicted"),
        (limit_near(8.0, *THREE), grid({4: SPLIT, 8: GOOD, 16: BAD}), "inconclusive"),
        (limit_near(8.0, *THREE), grid({4: GOOD, 8: GOOD}), "not run"),
        (limit_near(8.0, *THREE), grid({4: GOOD, 8: GOOD, 16: BAD[:1]}), "too few seeds"),
        (limit_near(64.0, *TWO), grid({4: BAD, 8: BAD}), "contradicted"),
        # Above all that was tried, a limit is only known from below.
        (limit_near(8.0, *TWO), grid({4: GOOD, 8: GOOD}), "inconclusive"),
        (limit_near(64.0, *TWO), grid({4: GOOD, 8: GOOD}), "inconclusive"),
        (limit_near(2.0, *TWO), grid({4: GOOD, 8: GOOD}), "contradicted"),
    ],
)
def test_verdicts(about, records, verdict):
    assert judge(about, records).verdict == verdict


def test_details_end_with_what_decides():
    assert judge(NO_GAIN, pairs({4: around(0.0)})).detail.endswith("against 0.05 (ours)")
    worst = "the worst of 2 cells; margin ± 0.05 (ours)"
    assert judge(equivalent(), cells(0.0, 0.01)).detail.endswith(worst)


def test_grows_reports_the_slope_per_doubling():
    found = judge(grows(), pairs({4: [0.0, 0.0], 8: [0.125, 0.25], 32: [0.375, 0.75]}))
    assert found.interval.estimate == pytest.approx((0.125 + 0.25) / 2)
    assert found.quantity == "m, sinusoidal − none, change per doubling of k"
    assert found.verdict == "too few seeds"


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [(0.3, 0.1, "supported"), (0.1, 0.3, "contradicted"), (0.1, 0.1, "inconclusive")],
)
def test_differs_more(more, less, verdict):
    """The gain in one task against the gain in another, both above zero."""
    between = Contrast("task", treated="reverse", baseline="sort", baseline_where={"rule": "up"})
    about = claim(DiffersMore("m", {}, ENCODING, between, "k"))
    gains = around(more), around(less)[::-1]
    records = pairs({4: gains[0]}, task="reverse") + pairs({4: gains[1]}, task="sort", rule="up")
    found = judge(about, records)
    assert found.verdict == verdict
    assert found.interval.estimate == pytest.approx(more - less)
    assert found.quantity == ("m, sinusoidal − none, more with task reverse than sort at k = 4")
    other = pairs({4: gains[0]}, task="reverse") + pairs({4: gains[1]}, task="sort", rule="down")
    assert judge(about, other).verdict == "not run"


@pytest.mark.parametrize(
    ("treated", "baseline", "said"),
    [
        ("sinusoidal", "none", "m, sinusoidal (late) − none at k = 4"),
        (None, "none", "m, late − none at k = 4"),
        ("sinusoidal", None, "m, sinusoidal (late) − without at k = 4"),
    ],
)
def test_the_quantity_names_what_holds_on_one_side(treated, baseline, said):
    contrast = Contrast("encoding.kind", treated, baseline, {"onset": "late"})
    about = claim(Differs("m", {}, contrast, "k"))
    sides = ((treated, "late"), (baseline, None))
    both = {"k": 4, "m": 0.1, "seed": 1}
    records = [{**both, "encoding.kind": kind, "onset": onset} for kind, onset in sides]
    assert judge(about, records).quantity == said


def test_what_cannot_be_doubled_is_refused():
    with pytest.raises(ConfigError, match="k must be positive numbers"):
        judge(grows(), pairs({0: [0.1, 0.1], 8: [0.2, 0.2]}))


def test_at_least_shows_the_cell_that_decides_and_all_others():
    found = judge(at_least(4, 8, 16), grid({4: GOOD, 8: NEAR, 16: [0.96] * 5}))
    assert found.quantity == "m at k = 8"
    assert found.interval == student_interval(NEAR)
    assert found.detail == "the worst of 3 cells; threshold 0.95 (ours)"
    assert [(cell.name, cell.interval) for cell in found.cells] == [
        ("k = 4", student_interval(GOOD)),
        ("k = 8", student_interval(NEAR)),
        ("k = 16", student_interval([0.96] * 5)),
    ]


def test_one_cell_of_many_contradicts_only_after_correction():
    """A cell that alone would be below (p = 0.018) is none among fourteen."""
    low = [0.943, 0.948, 0.941, 0.9485, 0.938]
    assert judge(at_least(4), grid({4: low})).verdict == "contradicted"
    cells = {4: low} | {2**n: GOOD for n in range(3, 16)}
    assert judge(at_least(*cells), grid(cells)).verdict == "inconclusive"


def test_a_limit_is_reached_before_the_first_failure_and_is_half_the_smallest_value_or_more():
    for near, *cells, limit in ((4.0, GOOD, BAD, GOOD, 2.0), (64.0, BAD, BAD, 1.0)):
        values = dict(zip((4, 8, 16), cells, strict=False))
        found = judge(limit_near(near, *map(float, values)), grid(values))
        assert found.interval == student_interval([limit] * 5)


@pytest.mark.parametrize(
    ("odd", "verdict"),
    [(1.0, "supported"), (0.99, "supported"), (0.985, "inconclusive"), (0.5, "contradicted")],
)
def test_every_trial(odd, verdict):
    """One counterexample of ten refutes it, if it is none by measurement error."""
    found = judge(every_trial(), grid({4: [1.0, 0.125, 0.13, 1.0, 0.12], 8: [1.0] * 4 + [odd]}))
    assert found.verdict == verdict
    near = 10 if verdict == "supported" else 9
    assert found.detail.startswith(f"{near} of 10 trials lie within 0.01 of 0.125 or 1 (ours)")
    assert found.interval.estimate == near / 10
    assert found.interval.low == pytest.approx({10: 0.6915, 9: 0.5550}[near], abs=1e-4)
