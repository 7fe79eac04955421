"""Overriding an experiment's specs: each takes what it has."""

import pytest

from pernn.errors import ConfigError
from pernn.experiments import find_experiment, trials


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
