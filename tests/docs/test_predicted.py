"""What a plan expected, beside what was found."""

import json
from dataclasses import replace

import pytest

from pernn.lab.experiments import Choice
from pernn.lab.reports import Report
from pernn.lab.store import Registration
from predicted import predicted_and_found
from reports.test_choosing import CLAIM, RATE, RATES, records
from reports.test_claims import around, differs, judge, pairs
from reports.trials import SEEDS, experiment


def study(values, name="sweep-small"):
    records = pairs({4: values})
    never = replace(judge(differs(), []), claim=replace(differs(), name="never"))
    found = Report(experiment(), "small", records, [], "command", name=name)
    vars(found)["verdicts"] = (judge(differs(), records), never)
    return found


def number(expected, **more):
    terms = [
        {"weight": weight, "sweep": "sweep-small", "where": {"encoding.kind": kind}}
        for weight, kind in ((1, "sinusoidal"), (-1, "none"))
    ]
    return {"number": "1", "text": "It", "expected": expected, "metric": "m", "terms": terms} | more


def claims(expected, *names, **more):
    named = [f"sweep-small: {name}" for name in names or ("name",)]
    return {"number": "2", "text": "That", "expected": expected, "claims": named} | more


def page(*expectations, values):
    content = [{"section": 1, "title": "It all", "expectations": list(expectations)}]
    return predicted_and_found(json.dumps(content), [study(values)], {})


OUTCOMES = [
    ("supported", 0.1, "held"), ("supported", -0.1, "missed"), ("supported", 0.0, "not decided"),
    ("contradicted", -0.1, "held"), ("contradicted", 0.1, "missed"),
    ("not supported", 0.0, "not decided"), ("not supported", -0.1, "held"),
    ("not supported", 0.1, "missed"), ("open", 0.1, "open"),
]  # fmt: skip
BOUNDS = [
    ("above", 0.05, "held"), ("above", 0.15, "missed"), ("below", 0.15, "held"),
    ("above", 0.1, "not decided"), ("at least", 0.099, "held"), ("at least", 0.101, "missed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "mean", "outcome"),
    [
        *((claims(expected), mean, outcome) for expected, mean, outcome in OUTCOMES),
        (claims("supported", "never"), 0.1, "not run"),
        *((number(side, bound=bound), 0.1, outcome) for side, bound, outcome in BOUNDS),
        (number("open"), 0.1, "open"),
    ],
)
def test_outcomes(expected, mean, outcome):
    text = page(expected, values=around(mean))
    assert f"1 rows: 1 {outcome}." in text
    row = text.splitlines()[-1]
    assert row.endswith(f"| {outcome} |")
    if outcome != "not run":
        assert f"{mean:.3f} \\[{mean - 0.0196:.3f}, {mean + 0.0196:.3f}\\]" in row


@pytest.mark.parametrize(("mean", "fails"), [(0.1, False), (0.0, True), (-0.1, True)])
def test_a_failure_to_replicate_is_said(mean, fails):
    for expected in ("supported", "open"):
        text = page(claims(expected, failure=True), values=around(mean))
        assert ("failure to replicate" in text) == fails
    text = page(claims("not supported", failure=True), values=around(mean))
    assert ("failure to replicate" in text) == (mean == 0.1)
    text = page(claims("contradicted", failure=True), values=around(mean))
    assert ("failure to replicate" in text) == (mean != -0.1)


def test_seeds_that_choose_a_rate_count_for_no_number():
    about = experiment(claims=(replace(differs(), choice=Choice("rate", "m", SEEDS[3:])),))
    found = Report(about, "small", pairs({4: around(0.1)}), [], "command", name="sweep-small")
    content = [{"section": 1, "title": "It all", "expectations": [number("open")]}]
    assert "n = 3 | open |" in predicted_and_found(json.dumps(content), [found], {})


def test_of_a_tuned_sweep_a_number_is_of_each_network_at_its_own_best():
    tried = records(best={"none": RATES[-1], "sinusoidal": RATES[1]})
    found = Report(experiment(claims=(CLAIM,)), "small", tried, [], "command", name="sweep-small")
    for named, bound in (({}, 0.03), ({RATE: RATES[-1]}, -0.17)):
        one = number("below", bound=bound, metric="token_accuracy")
        for term in one["terms"]:
            term["where"] |= named
        content = json.dumps([{"section": 1, "title": "It all", "expectations": [one]}])
        assert predicted_and_found(content, [found], {}).endswith("| held |\n"), named


def test_what_is_not_published_was_not_run_and_a_registered_sweep_is_known_by_its_trials():
    absent = number("above", terms=[{"weight": 1, "sweep": "nowhere", "where": {}}])
    two = claims("supported", failure=True, claims=["nowhere: name", "nowhere: other"])
    text = page(absent, two, values=around(0.1))
    assert "2 rows: 2 not run." in text
    assert "failure to replicate" not in text
    assert text.count("no trial is published") == 2
    found = study(around(0.1))
    sweep = {"experiment": "vocabulary_size", "scale": "small", "overrides": {}, "rule": "2026-12"}
    sweep |= {"claims": {}, "name": "sweep-small-1234"}
    expected = claims("supported", claims=["sweep-small-1234: name"])
    plan = {"title": "Plan", "date": "2026-11-24", "version": None, "commit": None, "pilots": []}
    plan["expectations"] = [expected]
    for runs, outcome in (([one["run"] for one in found.records], "held"), (["other"], "not run")):
        plan["sweeps"] = [{**sweep, "runs": runs}]
        text = predicted_and_found("[]", [found], {"plan": Registration.load(plan)})
        assert f"1 rows: 1 {outcome}." in text
        assert ("](sweep-small/report.md)" in text) == (outcome == "held")
