"""Spec → live objects."""

import pytest
import torch

from pernn.errors import ConfigError, StoreError
from pernn.lab.runs import RunSpec, build, execute
from pernn.lab.store import RunDirectory
from tiny import tiny

CPU = torch.device("cpu")
SMALL = {"embedding_size": 16, "core.hidden_size": 16, "encoding.size": 16, "task.vocab_size": 8}
SPEC = RunSpec().override(SMALL)


@pytest.mark.parametrize("kind", ["reverse_ordering", "autoregressive", "infinite_vocabulary"])
def test_trials_of_one_seed_share_data_and_shared_weights(kind):
    spec = tiny(kind)
    encoded = build(spec, CPU)
    expected = encoded.model.state_dict()
    for change in ({"encoding.kind": "none"}, {"core.kind": "gru"}):
        trial = build(spec.override(change), CPU)
        assert (trial.stream.train(3, 4).tokens == encoded.stream.train(3, 4).tokens).all()
        assert (trial.stream.test().tokens == encoded.stream.test().tokens).all()
        weights = trial.model.state_dict()
        shared = [name for name in weights if not name.startswith("core.")]
        assert {"embedding.weight", "output_layer.weight", "output_layer.bias"} <= {*shared}
        assert ("phase" in shared) == (kind == "autoregressive")
        assert all(torch.equal(weights[name], expected[name]) for name in shared)


def test_seeds_share_nothing():
    one, two = build(SPEC, CPU), build(SPEC.override({"seed": 222}), CPU)
    assert not (one.stream.train(0, 4).tokens == two.stream.train(0, 4).tokens).all()
    assert not torch.equal(one.model.embedding.weight, two.model.embedding.weight)
    assert not torch.equal(one.model.core.weight_hh_l0, two.model.core.weight_hh_l0)


@pytest.mark.parametrize(
    ("preset", "layout"), [("as-run", "halves"), ("as-written", "interleaved")]
)
def test_the_preset_decides_the_layout(preset, layout):
    trial = build(SPEC.override({"preset": preset}), CPU)
    assert trial.model.encoding.layout == layout
    asked = SPEC.override({"preset": preset, "encoding.layout": "halves"})
    assert build(asked, CPU).model.encoding.layout == "halves"


def test_a_run_is_not_resumed_on_another_corpus(tmp_path, monkeypatch):
    spec = tiny("language_modelling")
    execute(spec, tmp_path, device="cpu", on_update=lambda n: n != 3)
    environment = RunDirectory(tmp_path, spec.fingerprint()).read_environment()
    assert len(environment["data_sha256"]) == 64
    with monkeypatch.context() as patch:
        patch.setattr("pernn.lab.corpora.language_modelling.ParagraphStream.digest", "another")
        with pytest.raises(StoreError, match=r"began on data with SHA-256 .* now it is another"):
            execute(spec, tmp_path, device="cpu")
    assert execute(spec, tmp_path, device="cpu").state == "finished"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"core.hidden_siz": 3}, "core.hidden_siz: unknown key, did you mean 'hidden_size'?"),
        ({"cor.hidden_size": 3}, "has no part 'cor', did you mean 'core.hidden_size'? (known: "),
        (
            {"training.optimizer.lr": 3},
            "no part 'optimizer', did you mean 'training.learning_rate'",
        ),
        ({"training.lr": 0.1}, "training.lr: unknown key, did you mean 'learning_rate'? (known: "),
        ({"lr": 0.1}, "lr: unknown key, did you mean 'training.learning_rate'?"),
        ({"hidden_size": 4}, "hidden_size: unknown key, did you mean 'core.hidden_size'?"),
        ({"task.length": 2, "task.vocab_size": 8}, "only 64 sequences of 2 tokens exist"),
        ({"seed": -1}, "seed"),
        ({"seed": 10**30}, "seed"),
        ({"training.precision": "fp16"}, "training.precision"),
        ({"preset": "as-imagined"}, "preset"),
        ({"encoding.combine": "add", "encoding.size": 128}, "make them equal"),
        (
            {"task.kind": "delayed_addition", "task.length": 16, "encoding.masked": "output"},
            "needs an output phase of queries",
        ),
    ],
)
def test_bad_values_are_said_in_one_line(change, said):
    with pytest.raises(ConfigError) as caught:
        RunSpec().override(change)
    assert said in str(caught.value)
    assert "\\n" not in str(caught.value)


def widths(spec):
    return spec.core.hidden_size, spec.embedding_size, getattr(spec.encoding, "size", None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"core": {"kind": "gru", "hidden_size": 64}}, (64, 64, 64)),
        ({"core": {"kind": "gru", "hidden_size": 64}, "embedding_size": 32}, (64, 32, 32)),
        ({"core": {"kind": "gru", "hidden_size": 64}, "encoding": "none"}, (64, 64, None)),
        (
            {"core": {"kind": "gru", "hidden_size": 64}, "encoding": {"kind": "random", "size": 3}},
            (64, 64, 3),
        ),
    ],
)
def test_the_width_of_the_state_is_the_one_that_is_not_given(values, expected):
    for spec in (RunSpec.load(values), RunSpec(**values)):
        assert widths(spec) == expected
        assert spec.dump()["embedding_size"] == expected[1]
        assert RunSpec.load(spec.dump()) == spec


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (64, 64, 64)),
        ({"embedding_size": 16}, (64, 16, 64)),
        ({"encoding.size": 16}, (64, 64, 16)),
        ({"encoding.kind": "learned"}, (64, 64, 64)),
        ({"encoding.kind": "none"}, (64, 64, None)),
    ],
)
def test_an_overridden_width_takes_its_equals_along(changes, expected):
    assert widths(RunSpec().override({"core.hidden_size": 64, **changes})) == expected
    # A width that was another one before stays what it is.
    narrow = RunSpec().override({"embedding_size": 8, "encoding.size": 4})
    assert widths(narrow.override({"core.hidden_size": 64})) == (64, 8, 4)
