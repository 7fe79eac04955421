"""A setting chosen for each condition by seeds that are not judged."""

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pernn.lab import compare
from pernn.lab.config import flatten
from pernn.lab.experiments import (
    Choice,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Place,
    find_experiment,
    trials,
)
from pernn.lab.experiments.grids import RATE, VALIDATION_SEEDS
from pernn.lab.experiments.learning_rate import RATES
from pernn.lab.experiments.tuning import over_values
from pernn.lab.reports import Report, at_own_best, draw
from pernn.lab.reports.forms import OWN_BEST
from pernn.lab.reports.texts import footer
from reports.test_claims import judge
from reports.trials import ENCODING, SEEDS, experiment, trial

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "evidence"
CLAIMS = ROOT / "docs/evidence/tuned_vocabulary_size-small-77d93bcd/claims.json"
BEST = {"none": 1e-2, "sinusoidal": 3e-3}
CHOICE = Choice(RATE, "token_accuracy", VALIDATION_SEEDS)
CLAIM = Claim(
    "helps", "It helps.", Place("v3", "x"), Differs("token_accuracy", {}, ENCODING, "core.kind"),
    choice=CHOICE,
)  # fmt: skip


def records(*, overfit="", skip=None, best=BEST):
    """Both networks reach 0.9 at their own best rates, and lose 0.1 per step away from it.

    The one that is overfit is best at 0.03 in the choosing seeds only.
    """
    noise, found = random.Random(7), []
    seeds = (*SEEDS, *VALIDATION_SEEDS)
    for seed, kind, rate in product(seeds, best, RATES):
        accuracy = 0.9 - 0.1 * abs(RATES.index(rate) - RATES.index(best[kind]))
        if kind == overfit and rate == RATES[-1] and seed in VALIDATION_SEEDS:
            accuracy = 1.0
        if (rate, seed) != skip:
            about = trial(
                run=f"{len(found):016x}", core__kind="gru", encoding__kind=kind, seed=seed
            )
            found.append(
                about | {RATE: rate, "token_accuracy": accuracy + noise.uniform(-0.01, 0.01)}
            )
    return found


def test_the_best_of_each_are_compared_in_seeds_that_did_not_choose():
    found = judge(CLAIM, records())
    assert abs(found.interval.estimate) < 0.01
    assert found.num_seeds == len(SEEDS)
    assert found.detail.endswith("training.learning_rate: none 0.01; sinusoidal 0.003")
    found = judge(CLAIM, records(overfit="sinusoidal"))
    assert "sinusoidal 0.03 (the largest tried)" in found.detail
    assert found.interval.estimate == pytest.approx(-0.2, abs=0.01)
    found = judge(CLAIM, records(skip=(3e-2, VALIDATION_SEEDS[0])))
    assert found.verdict == "not run"
    said = "the choice needs seeds 1009, 2003, 3001 at training.learning_rate = 0.03"
    assert said in found.detail


def test_differences_of_own_parts_and_comparisons_are_those_of_judged_seeds():
    """Each arm at its own best value: seeds that chose it, and other values, take no part."""
    about = experiment(figure=over_values(experiment().figure, RATE, "core.kind"), claims=(CLAIM,))
    found = [one | {"core.kind": "mine:Own"} for one in records()]
    ((_, own),) = Report(about, "demo", found, [], "command").own
    (cell,) = own.cells
    assert sorted(cell.differences) == sorted(SEEDS)
    assert abs(cell.interval.estimate) < 0.01
    # What is also judged at equal rates is compared at these.
    at_one = replace(CLAIM, choice=replace(CHOICE, value=1e-3))
    equal, columns = at_own_best(replace(about, claims=(CLAIM, at_one)), found)
    assert (len(equal), columns) == (len(SEEDS) * 2 * len(RATES), ())
    named, columns = at_own_best(about, found, f"{RATE}=0.01")
    assert (len(named), columns) == (len(SEEDS) * 2 * len(RATES), ())
    sides, sweep = ("encoding.kind=sinusoidal", "encoding.kind=none"), "tuned_vocabulary_size-small"
    published = compare(*sides, sweep=f"{sweep}-77d93bcd", evidence=EVIDENCE)
    claim = json.loads(CLAIMS.read_text())["claims"][0]
    estimate = pytest.approx(claim["interval"]["estimate"])
    assert (claim["claim"], published.overall.interval.estimate) == (
        "encoding_helps_gru_tuned",
        estimate,
    )


def test_of_equally_good_values_the_smallest_is_judged_as_a_tuned_sweep_runs_it():
    found = [r | {"token_accuracy": 0.5} if r["seed"] in VALIDATION_SEEDS else r for r in records()]
    smallest = f"{RATES[0]} (the smallest tried)"
    assert judge(CLAIM, found).detail.endswith(f"none {smallest}; sinusoidal {smallest}")


def test_each_vocabulary_size_has_its_own_best():
    claim = replace(CLAIM, predicate=replace(CLAIM.predicate, cells="task.vocab_size"))
    sizes = {4: BEST, 8: {**BEST, "none": 3e-2}}
    found = [
        one | {"task.vocab_size": size, "run": f"{size}{one['run']}"}
        for size, best in sizes.items()
        for one in records(best=best)
    ]
    means = [cell.interval.estimate for cell in judge(claim, found).cells]
    assert means == pytest.approx([0.0, 0.0], abs=0.01)


@pytest.mark.parametrize("contrast", [ENCODING, None])
def test_a_figure_rings_what_is_chosen_and_tells_what_is_judged(contrast):
    """Seeds that choose are pooled with no others, and shown where there are none."""
    layout = over_values(experiment().figure, RATE, "core.kind")
    about = experiment(figure=replace(layout, contrast=contrast), claims=(CLAIM,))
    best = {"none": 1e-2, "sinusoidal": 3e-2}
    found = records(overfit="sinusoidal")
    found = [
        r for r in found if r["seed"] in VALIDATION_SEEDS or r[RATE] == best[r["encoding.kind"]]
    ]
    axes, *below = draw(about, found).axes
    judged = {rate: [] for rate in best.values()}
    for one in found:
        if one["seed"] in SEEDS:
            judged[one[RATE]].append(one["token_accuracy"])
    means = {rate: sum(values) / len(values) for rate, values in judged.items()}
    rings = [one.get_xydata() for one in axes.lines if one.get_markerfacecolor() == "none"]
    assert dict(map(tuple, np.concatenate(rings))) == pytest.approx(means)
    drawn = axes.containers[1][0]
    assert drawn.get_ydata()[[*drawn.get_xdata()].index(3e-2)] == pytest.approx(means[3e-2])
    assert axes.figure.legends[0].get_texts()[0].get_text() == OWN_BEST
    told = f"{judge(CLAIM, found).interval}, n = 5".replace("-", "−")
    (said,) = (one.get_text() for one in axes.texts)
    assert said == f"Position-encoded − Vanilla, each at its best:\n{told}"
    assert axes.get_title(loc="right") == "n = 3 or 5"
    assert [one.get_title(loc="right") for one in below] == (["n = 3"] if contrast else [])
    said = footer(about, found)
    assert said.startswith("n = 3 or 5 seeds · ")
    shown = "seeds 1009, 2003, 3001 choose, and are shown only where there are no others"
    assert said.endswith(shown)


def test_means_are_of_what_is_judged_and_trials_that_choose_are_not_missed():
    about = experiment(figure=over_values(experiment().figure, RATE, "core.kind"), claims=(CLAIM,))
    found = records(overfit="sinusoidal")
    some = [r for r in found if r["seed"] in VALIDATION_SEEDS or r[RATE] == 3e-2]
    rows = Report(about, "small", some, [], "command").rows
    assert {row.condition[RATE]: row.num_seeds for row in rows} == {
        rate: 5 if rate == 3e-2 else 3 for rate in RATES
    }
    (measured,) = [
        row.metrics["token_accuracy"].values
        for row in rows
        if (row.condition[RATE], row.condition["encoding.kind"]) == (3e-2, "sinusoidal")
    ]
    assert [*measured] == [*SEEDS]
    about = find_experiment("learning_rate")
    specs = trials(about, "demo")
    noise = random.Random(3)
    finished = [
        {**flatten(spec.dump()), "run": spec.fingerprint(), "token_accuracy": noise.random()}
        for spec in specs
        if spec.seed != SEEDS[0]
    ]
    (claim,) = [one for one in about.claims if one.name == "encoding_helps_gru_tuned"]
    found = judge(claim, finished, specs)
    assert (found.verdict, found.num_seeds, found.num_missing) == ("too few seeds", 4, 2)


def test_conditions_that_a_claim_does_not_compare_are_not_asked_for():
    between = Contrast("core.kind", treated="lstm", baseline="gru")
    more = DiffersMore("token_accuracy", {}, ENCODING, between, "task.vocab_size")
    claim = replace(CLAIM, predicate=more)

    def of(core):
        about = {"core.kind": core, "task.vocab_size": 8}
        return [one | about | {"run": f"{core}{one['run']}"} for one in records()]

    two = [*of("gru"), *of("lstm")]
    # A third core, of which no trial that chooses has run.
    third = [one for one in of("elman") if one["seed"] not in VALIDATION_SEEDS]
    found, alone = judge(claim, [*two, *third]), judge(claim, two)
    assert alone.interval is not None
    assert (found.verdict, found.interval) == (alone.verdict, alone.interval)
    assert "elman" not in found.detail
