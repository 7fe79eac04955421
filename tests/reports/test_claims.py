"""Verdicts of each kind of claim: what decides them, what they rest on and what they show."""

import json
import math
from dataclasses import replace

import pytest
from scipy.stats import ttest_1samp

from pernn.errors import ConfigError
from pernn.lab.experiments import (
    PLANNED,
    AtLeast,
    AtMost,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Equivalent,
    EveryTrial,
    Grows,
    LimitNear,
    Place,
)
from pernn.lab.experiments.predicates import with_primary
from pernn.lab.reports import bootstrap_interval, judge_all, judge_experiment, student_interval
from reports.trials import ENCODING, SEEDS, experiment, finished, planned, trial

NOISE = [0.0, 0.02, -0.02, 0.01, -0.01]
"""Of five seeds, mean 0."""


def around(*means):
    """Five trials about each mean; a list of cells if there are several."""
    cells = [[mean + one for one in NOISE] for mean in means]
    return cells[0] if len(cells) == 1 else cells


def claim(predicate, **more):
    return Claim("name", "statement", Place("v3", "Fig. 2"), predicate, **more)


def judge(about, *what):
    return judge_all([about], *what)[0]


def grid(cells, code="sinusoidal", **more):
    return [
        trial(run=f"{size}{seed}{code}{more}", seed=seed, k=size, encoding__kind=code, m=value)
        | {"core.kind": "gru"}
        | more
        for size, values in cells.items()
        for seed, value in zip(SEEDS, values, strict=False)
    ]


def pairs(differences, **more):
    baseline = {size: [0.5] * len(values) for size, values in differences.items()}
    treated = {size: [0.5 + value for value in values] for size, values in differences.items()}
    return grid(baseline, "none", **more) + grid(treated, **more)


def differs(sign=1, **more):
    return claim(Differs("m", {"core.kind": "gru"}, ENCODING, cells="k", sign=sign, **more))


def grows():
    return claim(Grows("m", {"core.kind": "gru"}, ENCODING, along="k"))


def at_least(*required):
    where = {"encoding.kind": "sinusoidal"}
    return claim(AtLeast("m", where, "k", required, 0.95, threshold_origin="ours"))


def equivalent(*required):
    where, margin = (required or PLANNED), 0.05
    return claim(Equivalent("m", {}, ENCODING, "k", where, margin, margin_origin="ours"))


def limit_near(near, *required):
    return claim(LimitNear("m", {}, "k", required, 0.95, near, threshold_origin="the text's"))


def every_trial():
    return claim(EveryTrial("m", {}, "k", PLANNED, (0.125, 1.0), 0.01, tolerance_origin="ours"))


GOOD, BAD, NEAR = [0.99, 0.98, 1.0, 0.99, 0.98], [0.5, 0.6, 0.4, 0.5, 0.7], around(0.951)


def about(cells="k", **where):
    return claim(Differs("m", where, ENCODING, cells))


SOME = pairs({4: around(0.1), 8: around(0.1)[:3]})
SIZES = pairs({4: around(0.1), 8: around(-0.5), 16: around(-0.6)})
APART = [r for r in pairs({4: [0.5], 8: [0.5] * 2}) if (r["seed"] == SEEDS[0]) == (r["k"] == 4)]
ONE_SIDE = [r for r in pairs({4: around(0.1)}) if r["encoding.kind"] == "none"]
LACKING = [r if n else r | {"m": None} for n, r in enumerate(pairs({4: around(0.1)}))]
BOTH = "both sinusoidal and none at"
MISSPELT = claim(Differs("mm", {}, ENCODING, "kk"))
MEANT = "'mm', did you mean 'm'?; no trial has a column 'kk', did you mean 'k'?"


@pytest.mark.parametrize(
    ("one", "records", "verdict", "num_seeds", "detail"),
    [
        (differs(), pairs({4: around(0.1), 8: around(0.1)}), "supported", 5, "over k = 4, 8"),
        (differs(), pairs({4: around(-0.1), 8: around(-0.1)}), "contradicted", 5, ""),
        (differs(), pairs({4: [0.1, -0.2, 0.15, 0.1, 0.0]}), "inconclusive", 5, ""),
        (differs(), pairs({4: [0.1, 0.2, 0.15, 0.1]}), "too few seeds", 4, ""),
        (differs(), pairs({4: [0.1]}), "too few seeds", 1, ""),
        (differs(), [], "not run", 0, ""),
        (differs(required=(4,)), SOME, "supported", 5, ""),
        (differs(required=(4, 8)), SOME, "too few seeds", 3, "4, 8; 2 incomplete seeds left out"),
        (differs(required=(4, 8, 16, 32)), SOME, "not run", 0, f"needs {BOTH} k = 16, 32"),
        (differs(), APART, "not run", 0, "no seed has all of k = 4, 8"),
        (differs(), ONE_SIDE, "not run", 0, f"nothing finished or planned has {BOTH} any k"),
        (differs(), LACKING, "too few seeds", 4, ""),
        (MISSPELT, [r | {"m3": 0} for r in SOME], "not run", 0, MEANT),
        # Selected by value, or by any of several.
        (about(k=4), SIZES, "supported", 5, ""),
        (about(k=(8, 16)), SIZES, "contradicted", 5, ""),
        (about(k=(64, 32), z=1), SIZES, "not run", 0, "no finished trial has k = 64 or 32, z = 1"),
    ],
)
def test_differs(one, records, verdict, num_seeds, detail):
    found = judge(one, records)
    assert (found.verdict, found.num_seeds) == (verdict, num_seeds)
    assert found.detail.endswith(detail)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.25, "supported"), (-0.25, "contradicted"), (0.0, "inconclusive")]
)
def test_equal_values_decide_unless_they_lie_on_the_bound(value, verdict):
    found = judge(differs(), pairs({4: [value] * 5}))
    assert found.verdict == verdict
    assert found.remark == "all 5 values are equal, so their spread is unknown"


def test_rounding_and_the_order_of_the_records_decide_nothing():
    # 0.3 − 0.1 and 0.2 differ in their last bit, five times in the same direction.
    records = grid({4: [0.2] * 5}, "none") + grid({4: [0.3 - 0.1] * 5})
    assert 0.3 - 0.1 != 0.2
    assert judge(differs(), records).verdict == "inconclusive"
    assert judge(at_least(4), grid({4: [0.95 - 1e-16] * 5})).verdict == "supported"
    records = pairs({4: [0.3, 0.1, 0.2, 0.4, 0.1], 8: [0.2, 0.5, 0.1, 0.0, 0.3]})
    for about in (differs(), grows(), equivalent()):
        assert judge(about, records) == judge(about, records[::-1])
    one_code = records[: len(records) // 2]
    assert judge(every_trial(), one_code) == judge(every_trial(), one_code[::-1])


def test_students_t_decides_and_everything_is_shown():
    values = [0.02, 0.2, 0.45, 0.04, 0.01]
    found = judge(differs(), pairs({4: values}))
    assert found.verdict == found.uncorrected == "inconclusive"
    assert found.bootstrap == bootstrap_interval([0.5 + one - 0.5 for one in values])
    assert found.bootstrap.low > 0  # the paper's interval would have supported it
    assert found.p_supports == pytest.approx(ttest_1samp(values, 0, alternative="greater").pvalue)
    assert found.p_contradicts == pytest.approx(1 - found.p_supports)
    assert found.intervals == (
        f", 95 % {found.interval.bounds} by Student's t, {found.bootstrap.bounds} by the paper's "
        "bootstrap, n = 5, one-sided p 0.081 for, 0.92 against"
    )


def test_an_average_says_where_the_sign_is_the_opposite_and_which_trials_diverged():
    four, eight, sixteen = around(0.4, -0.1, -0.001)
    found = judge(differs(), pairs({4: four, 8: eight, 16: sixteen}))
    assert found.verdict == "supported"
    assert found.remark == (
        "cells disagree in sign: opposite to the average at 2 of 3, k = 8, k = 16, where the 95 % "
        "interval excludes 0 at k = 8"
    )
    records = pairs({4: around(0.1)})
    for record in records[-2:]:
        record |= {"diverged": 7, "m": 0.0}
    found = judge(differs(), records)
    assert (found.verdict, found.num_diverged) == ("inconclusive", 2)
    assert found.remark == "2 trials diverged and count as the worst"
    del records[-1]["m"]  # before it could be measured
    assert judge(differs(), records).num_diverged == 1


def test_where_accuracies_are_compared_errors_are_divided_by_a_factor():
    """Points shrink near 1; a factor of errors does not."""
    gains = [0.25, 0.3, 0.2, 0.375, 0.25]
    records = [{**r, "token_accuracy": r["m"]} for r in pairs({4: gains, 8: [0.25] * 5}, task="t")]
    about = claim(Differs("token_accuracy", {}, ENCODING, "k"))
    found = judge(about, records)
    logs = [(math.log2(0.5 / (0.5 - one)) + 1) / 2 for one in gains]
    low, high = ttest_1samp(logs, 0).confidence_interval()
    expected = [2**one for one in (sum(logs) / 5, low, high)]
    assert found.errors == "{:.2f} [{:.2f}, {:.2f}]".format(*expected)
    assert found.divided == f"errors divided by {found.errors}"
    assert found.dump()["errors"] == found.errors
    slope = judge(claim(Grows("token_accuracy", {}, ENCODING, "k")), records)
    assert slope.errors.endswith(" times as much per doubling")
    # Beside a trial without errors there is no factor, nor of other metrics.
    faultless = [{**one, "token_accuracy": 1.0} if one["k"] == 8 else one for one in records]
    assert judge(about, faultless).errors == ""
    lacking = [r | {"token_accuracy": None} if r["seed"] == SEEDS[0] else r for r in records]
    assert (judge(about, lacking).num_seeds, judge(about, lacking).errors) == (4, "")
    assert "errors" not in judge(differs(), records).dump()
    assert judge(claim(Differs("token_accuracy", {"k": 4}, ENCODING, "k")), faultless).errors


def test_a_claim_fits_the_grid_of_every_sweep():
    """What is planned must be there; what other sweeps plan need not."""
    about = claim(Differs("token_accuracy", {"core.kind": "lstm"}, ENCODING, "task.vocab_size"))
    records, specs = finished(), planned()
    four = [record for record in records if record["task.vocab_size"] == 4]
    assert judge(about, records, specs).verdict == "supported"
    assert judge(about, four).verdict == "supported"  # nobody knows of more
    found = judge(about, four, specs)
    assert found.verdict == "not run"
    assert found.detail == "needs both sinusoidal and none at task.vocab_size = 8, 16, 32"
    found = judge(about, records[:-1], specs)
    assert (found.verdict, found.num_missing) == ("too few seeds", 1)
    assert found.remark.endswith("1 trial not finished")
    smaller = [spec for spec in specs if spec.task.dump()["vocab_size"] == 4]
    assert judge(about, four, smaller).verdict == "supported"
    # What is planned of one side alone is asked of none.
    alone = [
        (one, spec)
        for one, spec in zip(records, specs, strict=True)
        if (one["task.vocab_size"], one["encoding.kind"]) != (32, "none")
    ]
    assert judge(about, *map(list, zip(*alone, strict=True))).verdict == "supported"


def test_holm_corrects_for_the_other_claims():
    """What is clear alone is not among nine claims without an effect; both are stored."""
    records = pairs({4: [0.1, 0.25, 0.03, 0.2, 0.13], 8: [0.1, -0.1, 0.05, -0.05, 0.0]})
    about, nothing = differs(required=(4,)), claim(Differs("m", {"k": 8}, ENCODING, "k"))
    alone = judge(about, records)
    assert alone.p_supports is not None
    assert 0.025 / 10 < alone.p_supports < 0.025
    found = judge_all([about, *[nothing] * 9], records)
    assert {one.verdict for one in found} == {"inconclusive"}
    assert (alone.verdict, found[0].uncorrected) == ("supported", "supported")
    assert found[0].remark == "supported if it were the only claim, not as one of 10"
    # Claims that cannot be judged take nothing away.
    absent = claim(Differs("m", {"k": 64}, ENCODING, "k"))
    assert judge_all([about, *[absent] * 9], records)[0] == alone
    # A clear one makes room for the next.
    clear = claim(Differs("m", {"k": 16}, ENCODING, "k"))
    more = records + pairs({16: [0.2] * 5})
    assert judge_all([about, clear], more)[0].verdict == "supported"


@pytest.mark.parametrize("about", [differs(), grows(), at_least(4), limit_near(4.0, 4.0)])
def test_competing_trials_are_refused(about):
    records = pairs({4: [0.1, 0.2], 8: [0.1, 0.2]})
    with pytest.raises(ConfigError, match=r"two trials at .*seed = 111"):
        judge(about, records * 2)


def test_a_verdict_is_plain_json():
    about = replace(differs(), source=(Place("v3", "Fig. 2"), Place("v1", "Fig. 2")), paper_value=1)
    found = judge(about, pairs({4: around(0.25)}))
    dump = json.loads(json.dumps(found.dump(), allow_nan=False))
    assert (dump["claim"], dump["statement"]) == ("name", "statement")
    assert (dump["source"], dump["paper_value"]) == ("v3, Fig. 2; v1, Fig. 2", 1)
    assert (dump["verdict"], dump["uncorrected"]) == ("supported", "supported")
    assert dump["interval"]["method"] == "Student's t 0.95"
    assert dump["cells"][0]["bootstrap"]["low"] > 0.23
    assert judge(differs(), []).dump()["interval"] is None
    # What is not a number becomes null.
    alone = judge(differs(), pairs({4: [0.25]}))
    assert (alone.dump()["interval"]["low"], alone.p_supports) == (None, None)


def test_a_scale_registered_later_is_judged_by_its_own_rule():
    """Two claims, one primary: the newer rule corrects it for itself only."""
    records = pairs({4: around(0.03)})
    others = [replace(differs(-1), name=f"{i}") for i in range(9)]
    claims = (replace(differs(), primary=True), *others)
    about = experiment(claims=claims, rules={"later": "2026-12"})
    older, newer = (judge_experiment(about, scale, records)[0] for scale in ("small", "later"))
    assert older.uncorrected == newer.uncorrected == newer.verdict
    assert (older.verdict, newer.verdict) == ("inconclusive", "supported")
    assert newer.detectable < older.detectable
    with pytest.raises(ConfigError, match="primary claims"):
        with_primary(claims, "nothing")


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


def test_details_end_with_what_decides_and_all_cells_are_shown():
    assert judge(NO_GAIN, pairs({4: around(0.0)})).detail.endswith("against 0.05 (ours)")
    worst = "the worst of 2 cells; margin ± 0.05 (ours)"
    assert judge(equivalent(), cells(0.0, 0.01)).detail.endswith(worst)
    found = judge(at_least(4, 8, 16), grid({4: GOOD, 8: NEAR, 16: [0.96] * 5}))
    assert found.quantity == "m at k = 8"
    assert found.interval == student_interval(NEAR)
    assert found.detail == "the worst of 3 cells; threshold 0.95 (ours)"
    assert [(cell.name, cell.interval) for cell in found.cells] == [
        ("k = 4", student_interval(GOOD)),
        ("k = 8", student_interval(NEAR)),
        ("k = 16", student_interval([0.96] * 5)),
    ]


def test_grows_reports_the_slope_per_doubling_of_positive_numbers():
    found = judge(grows(), pairs({4: [0.0, 0.0], 8: [0.125, 0.25], 32: [0.375, 0.75]}))
    assert found.interval.estimate == pytest.approx((0.125 + 0.25) / 2)
    assert found.quantity == "m, sinusoidal − none, change per doubling of k"
    assert found.verdict == "too few seeds"
    with pytest.raises(ConfigError, match="k must be positive numbers"):
        judge(grows(), pairs({0: [0.1, 0.1], 8: [0.2, 0.2]}))


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


def test_limits_above_all_that_was_tried_are_tested_on_both_sides():
    """Limits of 4, and of 8 or more, against 1, near which nothing is above 2."""
    found = judge(limit_near(1.0, *TWO), grid({4: GOOD, 8: [0.5, 0.5, 0.99, 0.99, 0.99]}))
    logs = [2.0, 2.0, 3.0, 3.0, 3.0]
    assert found.p_contradicts == pytest.approx(ttest_1samp(logs, 1.0).pvalue)


@pytest.mark.parametrize(
    ("odd", "verdict"),
    [
        (1.0, "supported"), (0.99, "supported"), (0.985, "inconclusive"), (0.975, "contradicted"),
        (0.5, "contradicted"),
    ],
)  # fmt: skip
def test_every_trial(odd, verdict):
    """One counterexample of ten refutes it, if it is none by measurement error."""
    found = judge(every_trial(), grid({4: [1.0, 0.125, 0.13, 1.0, 0.12], 8: [1.0] * 4 + [odd]}))
    assert found.verdict == verdict
    near = 10 if verdict == "supported" else 9
    assert found.detail.startswith(f"{near} of 10 trials lie within 0.01 of 0.125 or 1 (ours)")
    assert found.interval.estimate == near / 10
    assert found.interval.low == pytest.approx({10: 0.6915, 9: 0.5550}[near], abs=1e-4)
