"""Spec → live objects."""

import pytest
import torch

from pernn.errors import StoreError
from pernn.lab.runs import RunSpec, build, execute
from pernn.lab.store import RunDirectory
from pernn.lab.tasks import ReverseOrderingConfig
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


def test_a_run_builds_its_task_and_checks_its_spec_once(tmp_path, monkeypatch):
    tiny = {"task.length": 3, "task.num_held_out": 8, "training.iterations": 1}
    spec = SPEC.override({**tiny, "training.batch_size": 2})
    built, loaded = [], []
    original = ReverseOrderingConfig.build
    monkeypatch.setattr(
        ReverseOrderingConfig, "build", lambda config: built.append(config) or original(config)
    )
    monkeypatch.setattr(RunSpec, "load", loaded.append)
    execute(spec, tmp_path, device="cpu")
    assert built == [spec.task]
    assert loaded == []


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


def test_drawn_data_have_no_digest(tmp_path):
    spec = tiny("sorting")
    execute(spec, tmp_path, device="cpu")
    assert "data_sha256" not in RunDirectory(tmp_path, spec.fingerprint()).read_environment()
