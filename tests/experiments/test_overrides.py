"""Overriding an experiment's specs: each takes what it has."""

import pytest

from pernn.errors import ConfigError
from pernn.lab.experiments import find_experiment, trials


def test_a_value_that_only_some_have_is_overridden_in_those():
    specs = trials(find_experiment("vocabulary_size"), "demo", {"encoding.size": 96})
    sizes = [getattr(spec.encoding, "size", None) for spec in specs]
    assert sorted(set(sizes), key=str) == [96, None]
    assert sizes.count(96) == sizes.count(None) == 16


def test_a_kind_decides_what_else_can_be_overridden():
    changes = {"encoding.size": 96, "encoding.kind": "learned", "encoding.normalize": True}
    specs = trials(find_experiment("vocabulary_size"), "demo", changes)
    assert {(spec.encoding.kind, spec.encoding.size) for spec in specs} == {("learned", 96)}
    assert all(spec.encoding.normalize for spec in specs)
    assert len(specs) == 16


def test_a_kind_that_the_grid_has_is_chosen_from_it():
    experiment = find_experiment("vocabulary_size")
    whole = trials(experiment, "small")
    gru = tuple(spec for spec in whole if spec.core.kind == "gru")
    assert trials(experiment, "small", {"core.kind": "gru"}) == gru
    two = trials(experiment, "small", {"core.kind": ["gru", "elman"]})
    assert set(two) == {spec for spec in whole if spec.core.kind in ("gru", "elman")}
    # What belongs to another core alone, S4D's place of the target, does not become the GRU's.
    changes = {"core.kind": "gru", "task.vocab_size": [16, 32, 64]}
    specs = trials(find_experiment("gradient_stability"), "small", changes)
    assert {spec.analysis.source_step for spec in specs} == {1}
    assert len(specs) == 3 * 2 * 8


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("encoding.sise", "unknown key, did you mean|encoding.sise"),
        ("encodin.size", "has no part 'encodin'"),
        ("pretraining.training.iterations", "has no part 'pretraining'"),
    ],
)
def test_a_value_that_none_has_is_refused(path, said):
    with pytest.raises(ConfigError, match=said):
        trials(find_experiment("vocabulary_size"), "demo", {path: 1})


def test_either_stage_can_be_shortened():
    changes = {"training.iterations": 5, "pretraining.training.iterations": 3}
    specs = trials(find_experiment("vocabulary_extension"), "demo", changes)
    assert {spec.num_updates for spec in specs} == {5, 8}
