"""Every experiment: its grids, pairs and claims."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from pernn.errors import ConfigError
from pernn.experiments import CATALOGUE, find_experiment, trials
from pernn.reports import write_report
from pernn.runners import InlineRunner
from pernn.runs import build
from pernn.store import flatten, read_records

GOLDEN = Path(__file__).parents[1] / "golden" / "experiments.json"
EXPERIMENT = find_experiment("vocabulary_size")
ALL = [find_experiment(name) for name in CATALOGUE]
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
    assert {spec.core.kind for spec in specs} == {"elman", "gru", "lstm", "s4d"}
    assert {spec.encoding.kind for spec in specs} == {"none", "sinusoidal"}
    assert {spec.task.vocab_size for spec in specs} == {2**n for n in range(1, 15)}
    assert {spec.seed for spec in specs} == {111, 222, 333, 444, 555}
    assert {(spec.task.length, spec.task.num_held_out) for spec in specs} == {(64, 1024)}
    assert {spec.protocol for spec in specs} == {"as-run"}
    assert len({spec.fingerprint() for spec in specs}) == len(specs) == 4 * 2 * 14 * 5
    training = {json.dumps(spec.training.dump(), sort_keys=True) for spec in specs}
    assert len(training) == 1
    one = specs[0].training
    assert (one.iterations, one.batch_size, one.learning_rate) == (300_000, 512, 1e-3)
    assert (one.warmup_updates, one.checkpoint_interval) == (1_000, 5_000)


def test_input_lengths_of_the_paper():
    specs = trials(find_experiment("input_length"), "paper")
    assert {spec.task.length for spec in specs} == {64, 128, 256, 512}
    assert {spec.task.vocab_size for spec in specs} == {2}
    assert len({spec.fingerprint() for spec in specs}) == len(specs) == 3 * 2 * 4 * 5


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
@pytest.mark.parametrize("scale", SCALES)
def test_every_trial_has_its_pair(experiment, scale):
    cells = Counter(
        (spec.core.kind, spec.task.vocab_size, spec.task.length, spec.seed)
        for spec in trials(experiment, scale)
    )
    assert set(cells.values()) == {2}
    assert len({seed for *_, seed in cells}) >= 5


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
@pytest.mark.parametrize("scale", SCALES)
def test_an_unfinished_sweep_is_a_study_with_fewer_seeds(experiment, scale):
    seeds = [spec.seed for spec in trials(experiment, scale)]
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


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
def test_every_claim_is_about_trials_of_the_papers_grid(experiment):
    specs = [flatten(spec.dump()) for spec in trials(experiment, "paper")]
    assert len({claim.name for claim in experiment.claims}) == len(experiment.claims)
    for claim in experiment.claims:
        assert any(
            all(spec.get(key) == value for key, value in claim.predicate.where.items())
            for spec in specs
        ), claim.name


@pytest.mark.parametrize("experiment", ALL, ids=lambda found: found.name)
def test_a_miniature_goes_from_specs_to_figure_and_verdicts(experiment, tmp_path):
    """Two seeds, two values of the horizontal axis, a few updates; real trials, a real report."""
    tiny = {
        "training.iterations": 3,
        "training.batch_size": 4,
        "core.hidden_size": 8,
        "task.num_held_out": 8,
    }
    specs = [spec.override(tiny) for spec in trials(experiment, "demo")]
    across = sorted({flatten(spec.dump())[experiment.figure.x] for spec in specs})[:2]
    chosen = [
        spec
        for spec in specs
        if spec.seed in (111, 222) and flatten(spec.dump())[experiment.figure.x] in across
    ]
    InlineRunner(device="cpu").run(chosen, tmp_path, lambda event: None)
    records = read_records(tmp_path, [spec.fingerprint() for spec in chosen])
    assert len(records) == len(chosen)
    report = write_report(experiment, "demo", records, len(specs), tmp_path / "report", "command")
    assert all(path.stat().st_size for path in report.paths)
    judged = {verdict.verdict for verdict in report.verdicts}
    assert judged & {"supported", "contradicted", "inconclusive"}
