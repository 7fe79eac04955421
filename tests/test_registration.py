"""A registered plan: what its lock file holds, what is refused, and the mark of every verdict."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import nct, t

from command_line import call, succeed
from docs.test_readme import blocks
from pernn.errors import ConfigError, CorruptError
from pernn.lab.experiments import Choice, Place, find_experiment
from pernn.lab.lookup import read_plan
from pernn.lab.registration import register
from pernn.lab.reports import claim_digest, find_registered
from pernn.lab.store import RunDirectory, load_sweep, read_registrations
from pernn.lab.sweeps import plan_sweep, report_of
from pernn.lab.trials import publish
from rebuild import rebuild
from test_evidence import run as run_seeds
from tiny import TINY

SEEDS = [111, 222, 333, 444, 555]
CLAIM = "encoding_helps_lstm"
PLAN = """\
title = "Tiny"
seeds = [111, 222, 333, 444, 555]
pilots = [9, 10]

[[experiments]]
name = "vocabulary_size"
scale = "demo"
set = {settings}
expectations = [
    {{text = "It helps", expected = "supported", claims = ["encoding_helps_lstm"]}},
    {{text = "Accuracy", expected = "at least", bound = 0.01, metric = "token_accuracy", terms = [
        {{weight = 1, where = {{"encoding.kind" = "sinusoidal"}}}}]}},
]
"""


def text(**changes):
    settings = ", ".join(f'"{path}" = {value}' for path, value in {**TINY, **changes}.items())
    return PLAN.format(settings=f"{{{settings}}}")


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A plan that is not registered yet, where reports look for plans."""
    monkeypatch.setenv("PERNN_PLANS", str(tmp_path / "plans"))
    path = tmp_path / "plans" / "tiny.toml"
    path.parent.mkdir()
    path.write_text(text())
    return path


def run(root, *seeds):
    return run_seeds(root, None, *(seeds or SEEDS))[0].name


@pytest.fixture(scope="module")
def ran(tmp_path_factory, one_format):
    """The five seeds, run once: what is registered later comes too late for them."""
    root = tmp_path_factory.mktemp("registered") / "results"
    return root, run(root)


def verdicts(root, name, **changes):
    """Those of the report; the experiment may be another."""
    found = read_plan(root, name, pytest.fail)
    found = replace(found, experiment=replace(found.experiment, **changes))
    return report_of(root, found, pytest.fail).verdicts


def marks(root, name, **changes):
    """What the report says of each claim that was judged."""
    found = [one for one in verdicts(root, name, **changes) if one.verdict != "not run"]
    return {one.claim.name: (one.registration, one.remark) for one in found}


EARLY = "2026-01-01T00:00:00+00:00"
LATE = "2999-01-01T00:00:00+00:00"
OURS = ("registered", "registered (plan tiny)")


def exploratory(said):
    return "exploratory", f"exploratory (plan tiny): {said}"


def register_at(plan, date, **values):
    """Register a plan as if at another time, or commit."""
    path, _ = register(plan)
    (found,) = read_registrations().values()
    path.write_bytes(found.override({"date": date, **values}).to_json())


def claim_of():
    return next(c for c in find_experiment("vocabulary_size").claims if c.name == CLAIM)


@pytest.fixture
def copy(ran, tmp_path):
    root, name = ran
    shutil.copytree(root, tmp_path / "copy")

    def change(edit, runs=slice(None)):
        for one in load_sweep(tmp_path / "copy", name).runs[runs]:
            directory = RunDirectory(tmp_path / "copy", one)
            values = directory.read_environment()
            edit(directory, values)
            with directory.locked():
                directory.write_environment(values)

    return tmp_path / "copy", change


def test_a_plan_is_run_and_every_verdict_is_registered(plan, tmp_path, one_format):
    path, [(planned, own)] = register(plan)
    name = run(tmp_path / "results")
    assert (path.name, own.name) == ("tiny.lock.json", name)
    assert set(own.runs) == {*planned.specs}
    page = tmp_path / "results" / "sweeps" / name
    found = marks(tmp_path / "results", name)
    assert (len(found), found[CLAIM]) == (2, OURS)
    assert OURS[1] in (page / "index.html").read_text()
    dumped = json.loads((page / "claims.json").read_text())["claims"]
    assert {one.get("registration") for one in dumped} == {"registered", None}
    # Published, it stays registered, and the page of expectations has the plan's.
    publish(tmp_path / "results", load_sweep(tmp_path / "results", name), tmp_path / "all")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "expectations.json").write_text("[]")
    rebuild(tmp_path / "all", pages, pytest.fail)
    for text in ((pages / name / "report.md").read_text(), (pages / "study.html").read_text()):
        assert OURS[1] in text
    predicted = (pages / "predicted.md").read_text()
    for said in ("## tiny. Tiny (registered ", "Accuracy: at least 0.01", "2 rows"):
        assert said in predicted
    assert re.search(rf"\]\((\./)?{name}/report\.md\)", predicted)


def test_trials_that_ran_before_are_exploratory(plan, ran):
    assert marks(*ran)[CLAIM][0] == ""
    register_at(plan, LATE)
    assert marks(*ran)[CLAIM] == exploratory("10 trials run before it was registered")


def test_there_is_no_verdict_before_all_trials_are_finished(plan, ran, copy):
    (root, _), (_, name) = copy, ran
    shutil.rmtree(root / "runs" / load_sweep(root, name).runs[0])

    def judged():
        (one,) = (one for one in verdicts(root, name) if one.claim.name == CLAIM)
        return one

    # Without a plan four seeds are judged, as far as they go.
    assert (judged().verdict, judged().num_missing) == ("too few seeds", 1)
    register(plan)
    assert (judged().verdict, judged().interval, judged().num_missing) == ("not run", None, 1)
    said = "no verdict before all trials are finished (plan tiny); 1 trial missing"
    assert judged().detail == said


def test_a_claim_that_came_later_changes_no_registered_verdict(plan, ran):
    register_at(plan, EARLY)
    one = claim_of()
    (alone,) = verdicts(*ran, claims=(one,))
    three = (replace(one, name="a"), one, replace(one, name="b"))
    first, registered, last = verdicts(*ran, claims=three)
    assert registered == alone
    assert [first.claim.name, last.claim.name] == ["a", "b"]
    # They are corrected for all three.
    assert first.detectable == last.detectable > alone.detectable


def test_departures_are_listed_but_not_other_commits(plan, ran, copy):
    register_at(plan, EARLY, commit="another")
    assert marks(*ran)[CLAIM] == OURS
    # Another claim under its name; another rule; one that no plan knows.
    one = claim_of()
    stricter = replace(one, predicate=replace(one.predicate, margin=0.1, margin_origin="ours"))
    unknown = replace(one, name="unknown")
    found = marks(*ran, claims=(stricter, unknown), rules={"demo": "2026-12"})
    rule = "judged by the rule 2026-12, registered was 2026-11"
    assert exploratory(f"{rule}; the claim was changed")[1] in found[CLAIM][1]
    assert exploratory(f"{rule}; the claim is not in the plan")[1] in found["unknown"][1]
    # Other seeds than the plan's.
    other = run(copy[0], 111, 222, 333, 444, 666)
    said = "2 registered trials not in this sweep; 2 trials not registered, of seeds 666"
    assert marks(copy[0], other)[CLAIM] == exploratory(said)
    copy[1](lambda _, values: values.update(commit="another"), slice(1))
    kind, remark = marks(copy[0], ran[1])[CLAIM]
    assert kind == "registered"
    assert "trials ran at 2 commits" in remark


def test_trials_that_only_choose_may_be_older(plan, ran, copy):
    register_at(plan, EARLY)

    def age(directory, values):
        if directory.read_spec()["seed"] == 111:
            values["date"] = "2025-01-01T00:00:00+00:00"

    copy[1](age)
    one = claim_of()
    early = "2 trials run before it was registered"
    assert early in marks(copy[0], ran[1], claims=(one,))[CLAIM][1]
    chooses = replace(one, choice=Choice("training.learning_rate", "token_accuracy", (111,)))
    assert early not in marks(copy[0], ran[1], claims=(chooses,))[CLAIM][1]


def test_a_later_plan_that_judges_other_seeds_is_of_another_sweep(plan, ran):
    plan.write_text(text().replace("[111, 222, 333, 444, 555]", "[555, 666, 777, 888, 999, 1110]"))
    register_at(plan, LATE)
    one = claim_of()
    assert marks(*ran, claims=(one,))[CLAIM][0] == "exploratory"
    # That they have a seed in common which chooses, and is not judged, does not count.
    chooses = replace(one, choice=Choice("training.learning_rate", "token_accuracy", (555,)))
    assert marks(*ran, claims=(chooses,))[CLAIM][0] == ""
    # Run after it, they are a choice of seeds that it has not.
    plan.with_suffix(".lock.json").unlink()
    register_at(plan, EARLY)
    assert marks(*ran, claims=(chooses,))[CLAIM][0] == "exploratory"


def test_of_plans_that_tune_alike_that_of_the_judged_seeds_counts(plan):
    tuned = "0.001:0.002:2"
    content = text(**{"~training.learning_rate": f'"{tuned}"'}).replace(CLAIM, f"{CLAIM}_tuned")
    seeds = [666, 777, 888, 999, 1110]
    later = plan.with_name("tiny_again.toml")
    for path, own in ((plan, content), (later, content.replace(str(SEEDS), str(seeds)))):
        path.write_text(own)
        register(path)
    for own, name in ((SEEDS, "tiny"), (seeds, "tiny_again")):
        changes = {**TINY, "~training.learning_rate": tuned, "seed": own}
        found = plan_sweep(find_experiment("vocabulary_size"), "demo", changes)
        for date in (LATE, EARLY):  # and what was registered too late is not forgotten
            ran = {run: {"date": date} for run in found.specs}
            registered = find_registered(found.sweep, found.experiment, found.specs, ran)
            assert (registered.name, registered.is_tuned) == (name, True)


def test_trials_without_a_date_have_no_plan(plan, ran, copy):
    register(plan)
    copy[1](lambda _, values: values.pop("date"))
    assert {kind for kind, _ in marks(copy[0], ran[1]).values()} == {""}


def test_the_plan_of_the_page_is_registered(plan):
    page = (Path(__file__).parents[1] / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (block,) = blocks("toml", page)
    plan.write_text(block, encoding="utf-8")
    register(plan)
    registration = read_registrations()["tiny"]
    (sweep,) = registration.sweeps
    assert registration.title == "Does the gain last in wider networks?"
    assert sweep.overrides["core.hidden_size"] == 96
    assert len(sweep.overrides["seed"]) == 16
    (expectation,) = registration.expectations
    assert expectation["claims"] == [f"{sweep.name}: encoding_helps_gru"]


def test_a_plan_is_registered_once_and_a_changed_lock_is_noticed(plan, ran):
    path, _ = register(plan)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"tiny\.lock\.json: this plan is registered; a changed"):
        register(plan)
    assert path.read_bytes() == before
    path.write_text(path.read_text().replace('"Tiny"', '"Large"'))
    with pytest.raises(CorruptError, match="changed since it was written"):
        marks(*ran)
    path.write_text('{"format": 1, "title": "Tiny"}')
    with pytest.raises(CorruptError, match=r"not a registered plan: date: "):
        read_registrations()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"vocabulary_size"', '"vocabulary_sizes"', "did you mean 'vocabulary_size'"),
        ('"demo"', '"large"', "no scale 'large'"),
        ("core.hidden_size", "core.hidden_sizes", "core.hidden_sizes"),
        ("pilots =", "pilot =", "pilot: unknown key, did you mean 'pilots'"),
        ("[9, 10]", "[9, 222]", "seed 222 is one of the pilots'"),
        ("[111, 222, 333, 444, 555]", "[111, 222]", "a verdict needs 5 seeds, the plan has 2"),
        ('["encoding_helps_lstm"]', '["encoding_help_lstm"]', "did you mean 'encoding_helps_lstm'"),
        ('"demo"', '"demo"\nprimary = ["encoding_helps_lstm"]', "rule 2026-11 at scale demo: none"),
        ('"supported"', '"above"', "expected either `claims`"),
        ('"supported"', '"likely"', "expected"),
        ("bound = 0.01, ", "", "expected either `claims`"),
        ('metric = "token_accuracy", ', "", "expected either `claims`"),
    ],
)
def test_unknown_names_are_refused_and_nothing_is_written(plan, old, new, message):
    content = plan.read_text()
    assert old in content
    plan.write_text(content.replace(old, new, 1))
    with pytest.raises(ConfigError, match=re.escape(message)):
        register(plan)
    assert [*plan.parent.iterdir()] == [plan]


def test_a_plan_of_a_name_that_is_taken_counts_too(plan, tmp_path, monkeypatch):
    monkeypatch.delenv("PERNN_PLANS")
    monkeypatch.chdir(tmp_path)
    register(plan)
    theirs = tmp_path / "docs" / "evidence" / "plans"
    theirs.mkdir(parents=True)
    lock = plan.with_suffix(".lock.json")
    shutil.copy(lock, theirs)
    assert {*read_registrations()} == {"tiny"}
    lock.unlink()
    plan.write_text(text().replace('title = "Tiny"', 'title = "Mine"'))
    register(plan)
    titles = {name: one.title for name, one in read_registrations().items()}
    assert titles == {"tiny": "Mine", "docs/evidence/plans/tiny": "Tiny"}


def test_primary_claims_are_those_of_the_code(plan, monkeypatch):
    """Of an experiment whose rule knows them."""
    plan.write_text(text().replace('"vocabulary_size"', '"later"'))
    older = find_experiment("vocabulary_size")
    claims = tuple(replace(one, primary=one.name == CLAIM) for one in older.claims)
    later = replace(older, name="later", rules={"demo": "2026-12"}, claims=claims)
    known = plan_sweep(later, "demo", {**TINY, "seed": SEEDS})
    planning = "pernn.lab.registration.plan_sweep"
    monkeypatch.setattr(planning, lambda *words: plan_sweep(later, *words[1:]))
    with pytest.raises(ConfigError, match=f"at scale demo: {CLAIM}; the plan must name"):
        register(plan)
    plan.write_text(plan.read_text().replace("set =", f'primary = ["{CLAIM}"]\nset ='))
    _, [(_, own)] = register(plan)
    assert [name for name, one in own.claims.items() if one.primary] == [CLAIM]
    assert own.runs == tuple(known.specs)
    # Alone in its family it is seen best; the other claim about the LSTM is alone in its own.
    assert own.claims[CLAIM].seen < 2.3


def test_the_smallest_effect_is_seen_with_80_percent(plan):
    """By the power of the t test at the first step of Holm's procedure."""
    plan.write_text(text(**{"core.kind": '"gru"'}).replace("555]", "555, 666, 777, 888]"))
    _, [(_, own)] = register(plan)
    seen = [one.seen for one in own.claims.values() if one.seen is not None]
    assert 1 < len(seen) < len(own.claims)
    for effect in seen:
        needed = t.ppf(1 - 0.025 / len(seen), 7)
        assert nct.sf(needed, 7, effect * 8**0.5) == pytest.approx(0.8, abs=1e-3)


def test_a_digest_has_what_decides_and_not_where_it_is_printed():
    one = claim_of()
    # Pinned: lock files hold it.
    assert claim_digest(one) == "833817da668de0cf"
    elsewhere = replace(one, source=Place("v9", "Fig. 9"), paper_value=0.9)
    assert claim_digest(elsewhere) == claim_digest(one)
    changed = [
        replace(one, statement="Another."),
        replace(one, predicate=replace(one.predicate, metric="loss")),
        replace(one, predicate=replace(one.predicate, sign=-1)),
        replace(one, choice=Choice("training.learning_rate", "token_accuracy", (1,))),
        replace(one, primary=not one.primary),
    ]
    assert len({claim_digest(claim) for claim in (one, *changed)}) == 6


def test_the_command_says_what_to_run_and_where_plans_are_looked_for(tmp_path):
    (tmp_path / "tiny.toml").write_text(text())
    done = succeed("register", "tiny.toml", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == "tiny.lock.json"
    assert "pernn run vocabulary_size --scale demo --set core.hidden_size=8" in done.stdout
    assert "10 trials, 17 claims; smallest effects seen with 80 % power" in done.stdout
    assert "reports look for plans in plans and docs/evidence/plans" in done.stderr
    again = call("register", "tiny.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert len(again.stderr.splitlines()) == 1
