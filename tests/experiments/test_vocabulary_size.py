"""The first experiment: its grids, pairs and claims."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from pernn.errors import ConfigError
from pernn.experiments import CATALOGUE, find_experiment, trials
from pernn.runs import build

GOLDEN = Path(__file__).parents[1] / "golden" / "experiments.json"
EXPERIMENT = find_experiment("vocabulary_size")
SCALES = ("demo", "small", "paper")


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
            (scale, trials(find_experiment(name), scale)) for scale in find_experiment(name).scales
        )
    }


def test_specs_are_those_of_the_golden_file():
    """If this fails, runs get other names: make the file anew and say so in the changelog."""
    assert digests() == json.loads(GOLDEN.read_text())


def test_paper_scale_is_the_papers_grid():
    specs = trials(EXPERIMENT, "paper")
    assert {spec.core.kind for spec in specs} == {"elman", "gru", "lstm"}
    assert {spec.encoding.kind for spec in specs} == {"none", "sinusoidal"}
    assert {spec.task.vocab_size for spec in specs} == {2**n for n in range(1, 15)}
    assert {spec.seed for spec in specs} == {111, 222, 333, 444, 555}
    assert {(spec.task.length, spec.task.num_held_out) for spec in specs} == {(64, 1024)}
    assert {spec.protocol for spec in specs} == {"as-run"}
    assert len({spec.fingerprint() for spec in specs}) == len(specs) == 3 * 2 * 14 * 5
    training = {json.dumps(spec.training.dump(), sort_keys=True) for spec in specs}
    assert len(training) == 1
    one = specs[0].training
    assert (one.iterations, one.batch_size, one.learning_rate) == (300_000, 512, 1e-3)
    assert (one.warmup_updates, one.checkpoint_interval) == (1_000, 5_000)


@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_has_its_pair(scale):
    cells = Counter(
        (spec.core.kind, spec.task.vocab_size, spec.seed) for spec in trials(EXPERIMENT, scale)
    )
    assert set(cells.values()) == {2}
    assert len({seed for _, _, seed in cells}) >= 5


@pytest.mark.parametrize("scale", SCALES)
def test_an_unfinished_sweep_is_a_study_with_fewer_seeds(scale):
    seeds = [spec.seed for spec in trials(EXPERIMENT, scale)]
    assert seeds == sorted(seeds)


def test_demo_trials_build():
    import torch

    for spec in trials(EXPERIMENT, "demo")[:2]:
        assert build(spec, torch.device("cpu")).model.num_parameters > 0


def test_overrides_reach_every_spec_and_drop_doubles():
    specs = trials(EXPERIMENT, "demo", {"protocol": "as-written"})
    assert {spec.protocol for spec in specs} == {"as-written"}
    assert len(trials(EXPERIMENT, "demo", {"seed": 1})) == len(trials(EXPERIMENT, "demo")) // 5


@pytest.mark.parametrize(
    ("name", "scale", "said"),
    [
        ("vocabulary_sise", "demo", "did you mean 'vocabulary_size'"),
        ("vocabulary_size", "tiny", "known: demo, small, paper"),
    ],
)
def test_unknown_names_are_answered_with_the_known(name, scale, said):
    with pytest.raises(ConfigError, match=said):
        trials(find_experiment(name), scale)


def test_claims_name_columns_that_records_have():
    specs = trials(EXPERIMENT, "paper")
    from pernn.store import flatten

    columns = set().union(*(flatten(spec.dump()) for spec in specs))
    for claim in EXPERIMENT.claims:
        assert set(claim.predicate.where) <= columns
    assert len({claim.name for claim in EXPERIMENT.claims}) == len(EXPERIMENT.claims)


def test_claims_about_the_papers_setting_match_its_trials():
    from pernn.store import flatten

    specs = [flatten(spec.dump()) for spec in trials(EXPERIMENT, "paper")]
    for claim in EXPERIMENT.claims:
        assert any(
            all(spec.get(key) == value for key, value in claim.predicate.where.items())
            for spec in specs
        ), claim.name
