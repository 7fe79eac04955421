"""Spec → live objects."""

import pytest
import torch

from pernn.lab.interfaces import BatchStream, SequenceModel
from pernn.lab.runs import RunSpec, build, execute
from pernn.lab.tasks import ReverseOrderingConfig

CPU = torch.device("cpu")
SMALL = {"embedding_size": 16, "core.hidden_size": 16, "encoding.size": 16, "task.vocab_size": 8}
SPEC = RunSpec().override(SMALL)


def test_trials_of_one_seed_share_data_and_shared_weights() -> None:
    encoded = build(SPEC, CPU)
    vanilla = build(SPEC.override({"encoding.kind": "none"}), CPU)
    other = build(SPEC.override({"core.kind": "gru", "core.hidden_size": 16}), CPU)
    for trial in (vanilla, other):
        assert (trial.stream.train(3, 4).tokens == encoded.stream.train(3, 4).tokens).all()
        assert (trial.stream.test().tokens == encoded.stream.test().tokens).all()
        assert torch.equal(trial.model.embedding.weight, encoded.model.embedding.weight)
        assert torch.equal(trial.model.output_layer.weight, encoded.model.output_layer.weight)


def test_seeds_share_nothing() -> None:
    one, two = build(SPEC, CPU), build(SPEC.override({"seed": 222}), CPU)
    assert not (one.stream.train(0, 4).tokens == two.stream.train(0, 4).tokens).all()
    assert not torch.equal(one.model.embedding.weight, two.model.embedding.weight)
    assert not torch.equal(one.model.core.weight_hh_l0, two.model.core.weight_hh_l0)


def test_no_global_random_state_is_touched() -> None:
    before = torch.get_rng_state()
    build(SPEC.override({"encoding.kind": "learned", "encoding.size": 16}), CPU)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    one = build(SPEC, CPU)
    torch.manual_seed(2)
    two = build(SPEC, CPU)
    assert torch.equal(one.model.core.weight_ih_l0, two.model.core.weight_ih_l0)


@pytest.mark.parametrize(
    ("preset", "layout"), [("as-run", "halves"), ("as-written", "interleaved")]
)
def test_the_preset_decides_the_layout(preset: str, layout: str) -> None:
    trial = build(SPEC.override({"preset": preset}), CPU)
    assert trial.model.encoding.layout == layout
    asked = SPEC.override({"preset": preset, "encoding.layout": "halves"})
    assert build(asked, CPU).model.encoding.layout == "halves"


@pytest.mark.parametrize("code", ["none", "repeated_embedding", "sinusoidal", "learned", "random"])
def test_every_code_builds_for_the_tasks_length(code: str) -> None:
    trial = build(SPEC.override({"encoding.kind": code, "task.length": 70}), CPU)
    assert isinstance(trial.stream, BatchStream)
    assert isinstance(trial.model, SequenceModel)
    batch = trial.stream.train(0, 2)
    logits = trial.model(torch.from_numpy(batch.tokens), batch.num_queries)
    assert logits.shape == (2, 70, 8)


def test_a_run_builds_its_task_and_checks_its_spec_once(tmp_path, monkeypatch) -> None:
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
