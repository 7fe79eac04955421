"""Every experiment: its grids, pairs and claims."""

import fnmatch
import functools
import hashlib
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from claims import UNCLAIMED, claim_list
from pernn.lab.config import flatten
from pernn.lab.experiments import (
    CATALOGUE,
    LABELS,
    PLANNED,
    find_experiment,
    first_seeds,
    names_of,
    trials,
)
from pernn.lab.reports import Report
from pernn.lab.runners import InlineRunner
from pernn.lab.trials import gather

GOLDEN = Path(__file__).parents[1] / "golden" / "experiments.json"
ALL = [find_experiment(name) for name in CATALOGUE]
EVERY = [
    pytest.param(experiment, scale, id=f"{experiment.name}-{scale}")
    for experiment in ALL
    for scale in experiment.scales
]
SEEDS = (111, 222, 333, 444, 555)
VALIDATION = dict.fromkeys(("learning_rate", "tuned_vocabulary_size"), (1009, 2003, 3001))
"""Seeds that choose a setting, beside the published ones."""
MORE = (666, 777, 888)
"""Seeds of published evidence, beside the published ones."""
FRESH = {"other_optimizers_gru": first_seeds(24)[8:]}
"""Experiment → seeds of its scale `small`, where others had been looked at."""


@functools.cache
def planned(name, scale):
    specs = trials(find_experiment(name), scale)
    return specs, [flatten(spec.dump()) for spec in specs]


def specs_of(experiment, scale):
    return planned(experiment.name, scale)[1]


def digests():
    return {
        f"{name}/{scale}": {
            "num_trials": len(specs),
            "digest": hashlib.sha256(
                json.dumps([spec.dump() for spec in specs], sort_keys=True).encode()
            ).hexdigest(),
        }
        for name in CATALOGUE
        for scale, specs in (
            (scale, planned(name, scale)[0]) for scale in find_experiment(name).scales
        )
    }


def test_specs_are_those_of_the_golden_file():
    """If this fails, runs get other names: make the file anew and say so in the changelog."""
    assert digests() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(("experiment", "scale"), EVERY)
def test_every_condition_has_every_seed_one_place_and_its_baseline(experiment, scale):
    seeds = defaultdict(list)
    for flat in specs_of(experiment, scale):
        seeds[json.dumps({**flat, "seed": None}, sort_keys=True)].append(flat["seed"])
    found = {tuple(sorted(some)) for some in seeds.values()}
    expected = (*SEEDS, *VALIDATION.get(experiment.name, ()))
    more = {tuple(sorted({*expected, *MORE}))} if scale != "paper" else set()
    if scale == "small" and experiment.name in FRESH:
        expected, more = FRESH[experiment.name], set()
    assert len(found) == 1
    assert found <= {expected, *more}
    layout = experiment.figure
    named = (layout.x, layout.panels, layout.rows, layout.lines, "seed")
    columns = [column for some in named for column in names_of(some)]
    specs = specs_of(experiment, scale)
    if layout.table:  # whose columns no spec has; trials without that table are in other figures
        columns = [column for column in columns if any(column in spec for spec in specs)]
        specs = [spec for spec in specs if all(column in spec for column in columns)]
    places = Counter(tuple(spec.get(column) for column in columns) for spec in specs)
    assert set(places.values()) == {1}
    for claim in experiment.claims:
        contrast = claim.predicate.contrasts.get("contrast")
        if contrast is None or claim.table:
            continue
        cells = claim.predicate.column
        chosen = [spec for spec in specs_of(experiment, scale) if about(spec, claim)]
        sides = [
            {(spec["seed"], spec[cells]) for spec in chosen if spec.get(contrast.column) == side}
            for side in (contrast.treated, contrast.baseline)
        ]
        assert sides[0] == sides[1], claim.name


def about(spec, claim):
    """Whether a claim's `where` allows a trial, as far as it names settings."""
    for column, allowed in claim.predicate.where.items():
        if claim.table and column not in spec:
            continue
        if spec.get(column) not in (allowed if isinstance(allowed, tuple) else (allowed,)):
            return False
    return True


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
def test_every_claim_is_about_trials_of_some_scale_and_what_a_figure_shows_has_a_name(experiment):
    specs = [spec for scale in experiment.scales for spec in specs_of(experiment, scale)]
    assert len({claim.name for claim in experiment.claims}) == len(experiment.claims)
    for claim in experiment.claims:
        chosen = [spec for spec in specs if about(spec, claim)]
        assert chosen, claim.name
        if not claim.table and claim.predicate.required != PLANNED:
            there = {spec[claim.predicate.column] for spec in chosen}
            assert set(claim.predicate.required) <= there, claim.name
    layout = experiment.figure
    words = {*names_of(layout.x), *names_of(layout.lines), *layout.metrics}
    assert words <= experiment.labels.keys() | LABELS.keys()
    # Values that count together have a name together, if any.
    alone = [layout.lines] if isinstance(layout.lines, str) else []
    columns = (*names_of(layout.x), *names_of(layout.panels), *alone)
    for scale in experiment.scales:
        for spec in specs_of(experiment, scale):
            values = {value for column in columns if isinstance(value := spec.get(column), str)}
            assert values <= experiment.labels.keys() | LABELS.keys()


@pytest.mark.parametrize(("experiment", "scale"), [one for one in EVERY if "demo" not in one.id])
def test_what_a_claim_compares_is_all_there_or_not_at_all(experiment, scale):
    """A grid with some of the sizes that a claim needs is trained in vain."""
    for claim in experiment.claims:
        if claim.table:
            continue
        predicate = claim.predicate
        needed = {} if predicate.required == PLANNED else {predicate.column: {*predicate.required}}
        for contrast in predicate.contrasts.values():
            needed.setdefault(contrast.column, set()).update((contrast.treated, contrast.baseline))
        chosen = [spec for spec in specs_of(experiment, scale) if about(spec, claim)]
        for column, values in needed.items():
            there = {spec.get(column) for spec in chosen} & values
            assert there in (set(), values), (claim.name, column)


@pytest.mark.parametrize("experiment", ALL, ids=lambda one: one.name)
def test_every_number_that_decides_has_an_origin(experiment):
    none = {"margin": 0, "factor": 1, "threshold": None, "tolerance": None}
    for one in (vars(claim.predicate) for claim in experiment.claims):
        decides = [name for name in none if one.get(name, none[name]) != none[name]]
        assert all(one[f"{name}_origin"] for name in decides)


def test_the_page_has_each_claim_and_every_statement_its_version():
    text = claim_list()
    for experiment in ALL:
        head, *rows = re.split(rf"^## {experiment.name}$", text, flags=re.MULTILINE)
        own = rows[0].partition("\n## ")[0]
        assert head
        for claim in experiment.claims:
            assert own.count(f"`{claim.name}`") >= 1, claim.name
            assert claim.statement.replace("|", "\\|") in own, claim.name
    for experiment in ALL:
        cited = [place for claim in experiment.claims for place in claim.places]
        assert {place.version for place in cited} <= {"v1", "v3", "v5"}
        assert all(place.where for place in cited)
    named = {claim.name for experiment in ALL for claim in experiment.claims}
    for one in UNCLAIMED:
        assert one.experiment in CATALOGUE
        assert one.source.version in {"v1", "v3", "v5"}
        for pattern in re.findall(r"`([a-z0-9_*]+_[a-z0-9_*]+)`", one.reason):
            assert pattern in CATALOGUE or fnmatch.filter(named, pattern), pattern
    for experiment in ALL:
        for claim in experiment.claims:
            versions = {place.version for place in claim.places}
            if "s4d" in claim.name:  # version 1 and 3 have none
                assert versions == {"v5"}, (experiment.name, claim.name)
            if "elman" in claim.name:  # nor has version 5 an Elman network
                assert versions == {"v1"}, (experiment.name, claim.name)


MINIATURE = {
    "iterations": lambda n: min(max(2, n // 120), 8),
    "batch_size": lambda n: n // 16,
    "hidden_size": lambda n: 8,
    "embedding_size": lambda n: 8,
    "size": lambda n: 8,
    "length": lambda n: n // 2,
    "keep_interval": lambda n: max(1, n // 50),
    "checkpoint_interval": lambda n: max(1, n // 50),
    "num_per_condition": lambda n: 2,
    "map_per_condition": lambda n: 1,
    "min_length": lambda n: n // 2,
    "num_held_out": lambda n: 8,
}
"""What becomes of a setting, by the last word of its path; what a grid varies still varies."""


def miniature(spec):
    small, settings = {}, flatten(spec.dump())
    if "encoding.frequencies" in settings:
        del settings["encoding.size"]  # their number, which is the arm
    for path, value in settings.items():
        shrink = MINIATURE.get(path.rpartition(".")[2])
        if shrink and isinstance(value, int):
            small[path] = shrink(value)
    return spec.override(small)


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
def test_a_miniature_goes_from_specs_to_figure_and_verdicts(experiment, tmp_path):
    """One seed, two panels, two values of the horizontal axis; real trials, a real report."""
    layout = experiment.figure
    specs = [miniature(spec) for spec in planned(experiment.name, "demo")[0]]
    flat = [flatten(spec.dump()) for spec in specs]
    allowed = {"seed": {111}}
    if all(claim.choice and claim.choice.value is None for claim in experiment.claims):
        # Without them nothing can be judged.
        allowed["seed"].update(VALIDATION.get(experiment.name, ()))
    # A contrast needs all lines.
    for column in {*names_of(layout.x), *names_of(layout.panels)[:1]} - {*names_of(layout.lines)}:
        values = {spec.get(column) for spec in flat}
        allowed[column] = set(sorted(values, key=str)[:2])
    chosen = [
        spec
        for spec, settings in zip(specs, flat, strict=True)
        if all(settings.get(column) in values for column, values in allowed.items())
    ]
    InlineRunner(device="cpu").run(chosen, tmp_path, lambda event: None)
    runs = [spec.fingerprint() for spec in chosen]
    records = [one.row() for one in gather(tmp_path, runs, on_warning=pytest.fail)]
    assert len(records) == len(chosen)
    report = Report(experiment, "demo", records, chosen, "command", formats=("svg",))
    report.write(tmp_path / "report")
    assert all(path.stat().st_size for path in report.paths)
    judged = {verdict.verdict for verdict in report.verdicts}
    # A claim that names a setting which was shrunk is about none of these trials.
    claims = [claim for claim in experiment.claims if any(about(spec, claim) for spec in records)]
    assert not claims or "too few seeds" in judged  # everything but the other seeds is there
