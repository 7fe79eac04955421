"""Updates to a level: the measure, its columns, claims, comparisons and the page."""

import json
import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pernn.lab.experiments import LEVELS, Choice, Equivalent, Grows, Sooner, pace_column
from pernn.lab.reports import Report, Side, compare_pace, select
from pernn.lab.store import Sweep
from pernn.lab.trials import Pace, Trial, gather, publish, read_published, updates_to
from rebuild import pace_parts
from reports.test_claims import claim, judge
from reports.trials import ENCODING, SEEDS, experiment, trial
from store.finished import finish, spec

CONDITIONS = ("sinusoidal", "none")
CAP = 1000.0
curves = st.lists(st.floats(0, 1), min_size=1, max_size=40).map(
    lambda values: ([CAP * (n + 1) / len(values) for n in range(len(values))], values)
)
levels = st.floats(0.01, 1)


def log_linear(updates):
    return [0.1 * math.log2(update) for update in updates]


@given(curves, levels, levels, st.floats(1, CAP))
def test_a_higher_level_is_no_sooner_none_is_after_the_cap_and_censored_is_what_is_not_reached(
    curve, one, other, cap
):
    low, high = (updates_to(level, *curve, CAP) for level in sorted((one, other)))
    assert low.updates <= high.updates * (1 + 1e-12)
    assert low.censored <= high.censored
    reached = max(curve[1]) >= max(one, other)
    assert high.censored is not reached
    assert reached or high == Pace(CAP, censored=True)
    found = updates_to(one, *curve, cap)
    assert 0 < found.updates <= cap
    assert found.updates == cap or not found.censored


@given(
    st.sets(st.integers(2, 999), max_size=30),
    st.sets(st.integers(2, 999), max_size=30),
    st.floats(0.15, 0.99),
)
def test_finer_points_of_a_log_linear_curve_change_nothing(few, more, level):
    coarse, fine = sorted({2, *few, 1000}), sorted({2, *few, *more, 1000})
    found = [updates_to(level, some, log_linear(some), CAP) for some in (coarse, fine)]
    assert found[0].updates == pytest.approx(found[1].updates)
    assert found[0].updates == pytest.approx(2 ** (level / 0.1))


def test_the_first_crossing_counts_and_nothing_is_smoothed():
    noisy = ([100, 200, 400, 800], [0.1, 0.9, 0.3, 0.95])
    assert updates_to(0.5, *noisy, 800).updates == pytest.approx(100 * math.sqrt(2))
    assert updates_to(0.9, *noisy, 800) == (200, False)
    assert updates_to(0.05, *noisy, 800) == (100, False)  # by the first point, no sooner
    assert updates_to(0.5, [], [], 800) == (800, True)


def with_pace(about, curves, levels=LEVELS):
    """A record with the columns that a trial of such a curve has."""
    spec = {key: value for key, value in about.items() if key.startswith("training.")}
    lost = {"diverged": {"update": about["diverged"]}} if "diverged" in about else {}
    made = Trial(about["run"], spec, {"metrics": {}, **lost}, {}, curves).row(levels)
    return about | {key: value for key, value in made.items() if key.startswith("updates_to_")}


def record(seed, kind, factor, **more):
    """A trial with the pace of a log-linear curve that ends after 1,024 updates."""
    updates = [2**n for n in range(11)]
    curve = [min(1.0, 0.1 * math.log2(max(1.0, update / factor))) for update in updates]
    about = trial(run=f"{kind}{seed}{sorted(more.items())}", seed=seed, encoding__kind=kind)
    about |= {"task.vocab_size": 8, "training.iterations": 1024}
    return with_pace({**about, **more}, {"update": updates, "token_accuracy": curve})


def test_records_have_columns_that_say_what_is_censored():
    found = record(1, "none", 1.25)
    assert [found[pace_column(level)] for level in LEVELS[:3]] == pytest.approx([40, 320, 640])
    assert found["updates_to_0.95_censored"] is False
    assert [found[f"{pace_column(x)}_censored"] for x in (0.5, 0.95)] == [False, False]
    slow = record(1, "none", 4.0)
    assert (slow["updates_to_0.9"], slow["updates_to_0.9_censored"]) == (1024, True)
    assert slow["updates_to_0.8_censored"] is False
    lost = record(1, "none", 1.25, diverged=1000)
    assert (lost["updates_to_0.5"], lost["updates_to_0.5_censored"]) == (1024, True)
    assert with_pace({"run": "a"}, {"update": [1, 2]}) == {"run": "a"}
    holes = {"update": [1, 2, 4], "token_accuracy": [0.1, None, 0.9]}
    found = with_pace({"run": "a"}, holes, [0.5])
    assert found["updates_to_0.5"] == pytest.approx(2)


def sooner(**changes):
    values = {"level": 0.9, "where": {}, "contrast": ENCODING, "cells": "task.vocab_size"}
    return claim(Sooner(**{**values, **changes}))


FACTORS = (1.1, 1.3, 1.2, 1.5, 1.4)


def pairs(*factors):
    """Pairs whose encoded trial needs 640 updates to 0.9, and the vanilla one a factor more."""
    found = []
    for seed, factor in zip(SEEDS, factors, strict=False):
        found += [record(seed, "none", 1.25 * factor), record(seed, "sinusoidal", 1.25)]
    return found


def test_sooner_is_students_t_of_log2_factors():
    found = judge(sooner(), pairs(*FACTORS))
    expected = stats.ttest_1samp(np.log2(FACTORS), 0.0)
    bounds = expected.confidence_interval()
    assert found.verdict == "supported"
    assert found.interval.estimate == pytest.approx(np.mean(np.log2(FACTORS)))
    assert (found.interval.low, found.interval.high) == pytest.approx((bounds.low, bounds.high))
    assert found.p_supports == pytest.approx(expected.pvalue / 2)
    assert found.detail.startswith("a factor of 1.29 [1.1")
    assert found.quantity.startswith("log2 of updates_to_0.9, none − sinusoidal")
    assert found.remark == ""
    assert judge(sooner(sign=-1), pairs(*FACTORS)).verdict == "contradicted"
    more = sooner(factor=1.29, factor_origin="ours")
    assert judge(more, pairs(*FACTORS)).verdict == "inconclusive"


def test_trials_that_never_arrive_count_at_the_last_update_and_others_are_not_run():
    found = judge(sooner(), pairs(1.1, 1.3, 1.2, 4.0, 8.0))
    restricted = np.log2([1.1, 1.3, 1.2, 1.6, 1.6])
    assert found.interval.estimate == pytest.approx(restricted.mean())
    assert found.num_seeds == 5
    assert "never reached, and counted at the last update: 2 of 5 none" in found.remark
    bare = [{k: v for k, v in one.items() if "updates_to" not in k} for one in pairs(*FACTORS)]
    assert judge(sooner(), bare).verdict == "not run"
    assert json.dumps(judge(sooner(), pairs(*FACTORS)).dump())


PACE, SIZE, VANILLA = pace_column(0.9), "task.vocab_size", {"encoding.kind": "none"}


@pytest.mark.parametrize(
    ("predicate", "before", "after"),
    [
        (Equivalent(PACE, {}, ENCODING, SIZE, (16,), 0.7, "ours"), "supported", "inconclusive"),
        (Grows(PACE, {}, ENCODING, SIZE, sign=-1), "contradicted", "inconclusive"),
        (Grows(PACE, VANILLA, None, SIZE), "supported", "supported"),
        # What is less than no gain, and more than one, each as 0 has it.
        (Sooner(0.9, {SIZE: 16}, ENCODING, SIZE, (16,), -1, 0.5, "o"), "supported", "inconclusive"),
        (Sooner(0.9, {SIZE: 16}, ENCODING, SIZE, (16,), 1, 2, "o"), "contradicted", "inconclusive"),
        (Sooner(0.9, {}, ENCODING, SIZE), "supported", "supported"),
    ],
)
def test_where_neither_side_arrives_their_equality_decides_nothing(
    predicate, before, after, monkeypatch
):
    slow = [
        record(seed, kind, 3.0 if place or kind == "none" else 1.95, **{SIZE: 16})
        for place, seed in enumerate(SEEDS)
        for kind in CONDITIONS
    ]
    found = judge(claim(predicate), [*pairs(*FACTORS), *slow])
    assert found.verdict == after
    if predicate.contrast is not None:
        assert "at task.vocab_size = 16 half or more of each side's trials" in found.remark
        assert ("decides nothing here" in found.remark) is (after != before)
        assert found.detectable is None
        assert found.dump()["is_cut"] is True
    monkeypatch.setattr("pernn.lab.reports.findings._is_cut", lambda *about: False)
    assert judge(claim(predicate), [*pairs(*FACTORS), *slow]).verdict == before


@pytest.mark.parametrize(("num_slow", "is_cut"), [(1, False), (2, True), (3, True)])
def test_neither_side_arrives_where_half_of_each_or_more_do_not(num_slow, is_cut):
    found = [
        record(seed, kind, 4.0 if place < num_slow else 1.25)
        for place, seed in enumerate(SEEDS[:4])
        for kind in CONDITIONS
    ]
    assert ("half or more of each side's trials" in judge(sooner(), found).remark) is is_cut


def test_trainings_of_unequal_length_are_compared_within_the_shorter():
    longer = pairs(*FACTORS)
    for one in longer:
        if one["encoding.kind"] == "none":
            one |= {"training.iterations": 2048, "updates_to_0.9": 1500.0}
    found = judge(sooner(), longer)
    assert found.interval.estimate == pytest.approx(math.log2(1024 / 640))
    assert "5 of 5 none" in found.remark
    sides = [[one for one in longer if one["encoding.kind"] == kind] for kind in CONDITIONS]
    found = compare_pace(*map(Side, CONDITIONS, sides), 0.9)
    assert found.cells[0].num_never == (0, 5)
    assert found.cells[0].interval.estimate == pytest.approx(math.log2(1024 / 640))


def compared(records, level=0.9):
    return compare_pace(*(select(f"encoding.kind={k}", records) for k in CONDITIONS), level)


def test_a_comparison_counts_who_never_arrived_on_each_side():
    found = compared(pairs(1.1, 1.3, 1.2, 4.0, 8.0))
    about = dict(zip(found.columns, found.rows[0], strict=True))
    assert (about["n"], about["never A, B"]) == ("5", "0, 2")
    assert about["B / A"].startswith("≥ ")
    assert "at the last update: 0 trials of A, 2 of B" in " ".join(found.notes)
    nothing = compared(pairs(*FACTORS), 0.95)
    assert nothing.cells[0].nothing == ""
    assert found.dump()["cells"][0]["num_never"] == (0, 2)
    assert found.columns[2] == "B / A"
    early, slow = (
        compared([one | {"updates_to_0.9": updates} for one in pairs(*FACTORS)])
        for updates in (100.0, 1024.0)
    )
    assert early.cells[0].nothing == "at once"
    assert slow.rows[0][2:6] == ("never", "–", "–", "5, 5")
    assert slow.cells[0].interval.estimate == 0


def test_arms_of_one_kind_have_a_table_each():
    plain = [{**one, "task.kind": "reverse_ordering"} for one in pairs(*FACTORS)]
    masked = [
        {**one, "run": f"m{one['run']}", "encoding.masked": "input", "updates_to_0.9": 500.0}
        for one in plain
        if one["encoding.kind"] != "none"
    ]
    found = Report(experiment(), "small", [*plain, *masked], [], "command")
    titles = re.findall("(?m)^### .*: (.*)$", pace_parts([found])["factors"])
    assert titles == ["sinusoidal", "sinusoidal, input"]


def test_seeds_that_choose_a_rate_are_in_no_factor_of_the_page():
    choosing = replace(sooner(), choice=Choice("training.learning_rate", "m", SEEDS[3:]))
    records = [{**one, "task.kind": "reverse_ordering"} for one in pairs(*FACTORS)]
    judged = [one for one in records if one["seed"] in SEEDS[:3]]
    found, expected = (
        pace_parts([Report(experiment(claims=claims), "small", some, [], "command")])
        for claims, some in (((choosing,), records), ((), judged))
    )
    assert found == expected
    assert "| 3 |" in found["factors"]


def test_a_trial_has_the_same_pace_before_and_after_it_is_published(tmp_path):
    pytest.importorskip("pyarrow")
    runs = []
    for seed in (1, 2, 3):
        run = finish(tmp_path / "results", spec(seed), random.Random(seed))
        lines = [
            {"kind": "train", "update": n, "token_accuracy": 1 - 0.1 * seed**2 * 100 / n}
            for n in range(100, 15_100, 100)
        ]
        (run.path / "metrics.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))
        runs.append(run.fingerprint)
    sweep = Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs)
    publish(tmp_path / "results", sweep, tmp_path / "evidence")
    published = {one.run: one for one in read_published(tmp_path / "evidence")}
    own = [one.row() for one in gather(tmp_path / "results", runs, {}, pytest.fail)]
    theirs = [one.row() for one in gather(tmp_path / "none", runs, published, pytest.fail)]
    assert {one["run"]: one for one in own} == {one["run"]: one for one in theirs}
    assert all(one["updates_to_0.9_censored"] is False for one in own)
