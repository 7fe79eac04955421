"""The verdicts of each kind of claim about a mean over cells, a slope, a limit or every trial."""

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import Contrast, DiffersMore, Grows
from pernn.lab.reports import judge, student_interval
from reports.cases import (
    BAD,
    GOOD,
    NEAR,
    Cells,
    around,
    at_least,
    claim,
    differs,
    equivalent,
    every_trial,
    grid,
    grows,
    limit_near,
    pairs,
)
from reports.trials import ENCODING


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((0.1, 0.25, 0.4), "supported"),
        ((0.4, 0.25, 0.1), "contradicted"),
        ((0.2, 0.21, 0.2), "inconclusive"),
        ((0.1,), "not run"),
    ],
)
def test_grows(means: tuple[float, ...], verdict: str) -> None:
    shifted = [around(mean)[place:] + around(mean)[:place] for place, mean in enumerate(means)]
    cells = dict(zip((4, 8, 16), shifted, strict=False))
    assert judge(grows(), pairs(cells)).verdict == verdict


def test_grows_reports_the_slope_per_doubling() -> None:
    found = judge(grows(), pairs({4: [0.0, 0.0], 8: [0.125, 0.25], 32: [0.375, 0.75]}))
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx((0.125 + 0.25) / 2)
    assert found.quantity == "m, sinusoidal − none, change per doubling of k"
    assert found.verdict == "too few seeds"


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.0, "supported"), (-0.2, "supported"), (0.1, "contradicted"), (0.05, "inconclusive")],
)
def test_no_gain_to_speak_of(mean: float, verdict: str) -> None:
    """`sign` −1 with a negative margin: small gains and all losses support the claim."""
    found = judge(differs(-1, margin=-0.05, margin_origin="ours"), pairs({4: around(mean)}))
    assert found.verdict == verdict
    assert found.detail.endswith("against 0.05 (ours)")


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((0.0, 0.01), "supported"),
        ((0.0, -0.2), "contradicted"),
        ((0.2, 0.0), "contradicted"),
        ((0.2, -0.2), "contradicted"),  # their average is no excuse
        ((0.0, 0.04), "inconclusive"),
    ],
)
def test_equivalent(means: tuple[float, float], verdict: str) -> None:
    four, eight = around(*means)
    found = judge(equivalent(), pairs({4: four, 8: eight}))
    assert found.verdict == verdict
    assert found.detail == "the worst of 2 cells; margin ± 0.05 (ours)"
    assert judge(equivalent(4, 16), pairs({4: four})).verdict == "not run"


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [(0.3, 0.1, "supported"), (0.1, 0.3, "contradicted"), (0.1, 0.1, "inconclusive")],
)
def test_differs_more(more: float, less: float, verdict: str) -> None:
    """The gain in one task against the gain in another, both above zero."""
    between = Contrast("task", treated="reverse", baseline="sort", baseline_where={"rule": "up"})
    about = claim(DiffersMore("m", {}, ENCODING, between, "k"))
    gains = around(more), around(less)[::-1]
    records = pairs({4: gains[0]}, task="reverse") + pairs({4: gains[1]}, task="sort", rule="up")
    found = judge(about, records)
    assert found.verdict == verdict
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx(more - less)
    assert found.quantity == ("m, sinusoidal − none, more with task reverse than sort at k = 4")
    other = pairs({4: gains[0]}, task="reverse") + pairs({4: gains[1]}, task="sort", rule="down")
    assert judge(about, other).verdict == "not run"


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        ({4: around(0.9), 8: around(0.5)}, "supported"),
        ({4: around(0.5), 8: around(0.9)}, "contradicted"),
        ({4: [0.5, 0.9, 0.5, 0.9, 0.7], 8: [0.9, 0.5, 0.5, 0.8, 0.7]}, "inconclusive"),
        ({4: around(0.9)}, "not run"),
        ({4: [0.9], 8: [0.5]}, "too few seeds"),
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
        ({4: GOOD, 8: GOOD}, "supported"),
        ({4: GOOD, 8: [0.95] * 5}, "supported"),
        ({4: GOOD, 8: BAD}, "contradicted"),
        ({4: GOOD, 8: NEAR}, "inconclusive"),
        ({4: GOOD, 8: GOOD[:4]}, "too few seeds"),
        ({4: GOOD, 8: GOOD[:1]}, "too few seeds"),
        ({4: GOOD}, "not run"),
        ({}, "not run"),
    ],
)
def test_at_least(cells: Cells, verdict: str) -> None:
    assert judge(at_least(4, 8), grid(cells)).verdict == verdict


def test_at_least_shows_the_cell_that_decides_and_all_others() -> None:
    found = judge(at_least(4, 8, 16), grid({4: GOOD, 8: NEAR, 16: [0.96] * 5}))
    assert found.quantity == "m at k = 8"
    assert found.interval == student_interval(NEAR)
    assert found.detail == "the worst of 3 cells; threshold 0.95 (ours)"
    assert [(cell.name, cell.interval) for cell in found.cells] == [
        ("k = 4", student_interval(GOOD)),
        ("k = 8", student_interval(NEAR)),
        ("k = 16", student_interval([0.96] * 5)),
    ]


def test_one_cell_of_many_contradicts_only_after_correction() -> None:
    """A cell that alone would be below (p = 0.018) is none among fourteen."""
    low = [0.943, 0.948, 0.941, 0.9485, 0.938]
    assert judge(at_least(4), grid({4: low})).verdict == "contradicted"
    cells = {4: low} | {2**n: GOOD for n in range(3, 16)}
    assert judge(at_least(*cells), grid(cells)).verdict == "inconclusive"


def test_at_least_judges_required_cells_only() -> None:
    assert judge(at_least(4), grid({4: GOOD, 64: [0.0] * 5})).verdict == "supported"


@pytest.mark.parametrize(
    ("near", "cells", "verdict"),
    [
        (8.0, {4: GOOD, 8: GOOD, 16: BAD}, "supported"),
        (7.9, {4: GOOD, 8: GOOD, 16: BAD}, "supported"),
        (4.0, {4: GOOD, 8: GOOD, 16: BAD}, "inconclusive"),  # exactly twice as large
        (64.0, {4: GOOD, 8: GOOD, 16: BAD}, "contradicted"),
        (2.0, {4: GOOD, 8: GOOD, 16: BAD}, "contradicted"),
        (8.0, {4: [0.99, 0.99, 0.5, 0.5, 0.5], 8: GOOD, 16: BAD}, "inconclusive"),
        (8.0, {4: GOOD, 8: GOOD}, "not run"),
        (8.0, {4: GOOD, 8: GOOD, 16: BAD[:1]}, "too few seeds"),
    ],
)
def test_limit_near(near: float, cells: Cells, verdict: str) -> None:
    assert judge(limit_near(near, 4.0, 8.0, 16.0), grid(cells)).verdict == verdict


def test_a_limit_is_reached_before_the_first_failure() -> None:
    found = judge(limit_near(4.0, 4.0, 8.0, 16.0), grid({4: GOOD, 8: BAD, 16: GOOD}))
    assert found.interval == student_interval([2.0] * 5)


def test_a_limit_of_zero_counts_as_half_the_smallest_value() -> None:
    found = judge(limit_near(64.0, 4.0, 8.0), grid({4: BAD, 8: BAD}))
    assert found.verdict == "contradicted"
    assert found.interval == student_interval([1.0] * 5)
    assert found.detail.endswith("a limit of 0 counts as half of 4")


@pytest.mark.parametrize(
    ("near", "verdict"), [(8.0, "inconclusive"), (64.0, "inconclusive"), (2.0, "contradicted")]
)
def test_a_limit_above_all_that_was_tried_is_only_known_from_below(
    near: float, verdict: str
) -> None:
    found = judge(limit_near(near, 4.0, 8.0), grid({4: GOOD, 8: GOOD}))
    assert found.verdict == verdict
    assert found.detail.endswith("5 of 5 seeds never fail, so their limit is unknown")


@pytest.mark.parametrize(
    ("odd", "verdict"),
    [(1.0, "supported"), (0.99, "supported"), (0.985, "inconclusive"), (0.5, "contradicted")],
)
def test_every_trial(odd: float, verdict: str) -> None:
    """One counterexample of ten refutes it, if it is none by measurement error."""
    found = judge(every_trial(), grid({4: [1.0, 0.125, 0.13, 1.0, 0.12], 8: [1.0] * 4 + [odd]}))
    assert found.verdict == verdict
    assert found.interval is not None
    near = 10 if verdict == "supported" else 9
    assert found.detail.startswith(f"{near} of 10 trials lie within 0.01 of 0.125 or 1 (ours)")
    assert found.interval.estimate == near / 10
    assert found.interval.low == pytest.approx({10: 0.6915, 9: 0.5550}[near], abs=1e-4)
