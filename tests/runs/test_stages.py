"""Two stages: pretraining in a run of its own, then extension; cut anywhere, the same bits."""

import numpy as np
import pytest

from pernn.errors import BusyError, ConfigError, CorruptError, TrialError
from pernn.lab.runs import RunSpec, execute, execution
from pernn.lab.store import RunDirectory
from runs.bits import cut
from tiny import tiny

FIRST = tiny("reverse_ordering", "gru", vocab_size=4, training={"iterations": 9})
SPEC = tiny("reverse_ordering", "gru", vocab_size=8, training={"iterations": 7}).override(
    {"pretraining": {"task": FIRST.task.dump(), "training": FIRST.training.dump()}}
)


def test_a_spec_without_pretraining_does_not_mention_it():
    plain = SPEC.first_stage()
    assert "pretraining" not in plain.dump()
    assert plain.first_stage() is None
    assert RunSpec.load(SPEC.dump()) == SPEC
    assert SPEC.num_updates == 9 + 7


def test_cut_anywhere_it_ends_in_the_same_bits(tmp_path):
    # In the first stage, at its end, at the beginning of the second, in it.
    cut(SPEC, tmp_path, (3, 9, 10, 14))


def test_frozen_weights_are_those_of_the_pretraining(tmp_path):
    execute(SPEC, tmp_path, device="cpu")
    before, after = (
        RunDirectory(tmp_path, one.fingerprint()).checkpoints.load_latest()[0].arrays
        for one in (SPEC.first_stage(), SPEC)
    )
    embedding, output_layer = "model.embedding", "model.output_layer"
    rows = f"{embedding}.parametrizations.weight.0"
    assert after[f"{rows}.before"].tobytes() == before[f"{embedding}.weight"][:4].tobytes()
    assert after[f"{rows}.after"].tobytes() == before[f"{embedding}.weight"][4:].tobytes()
    for name in ("weight", "bias"):
        frozen = after[f"{output_layer}.parametrizations.{name}.0.before"]
        assert frozen.tobytes() == before[f"{output_layer}.{name}"].tobytes()
    cores = [name for name in before if name.startswith("model.core.")]
    assert cores
    assert all(np.array_equal(before[name], after[name]) for name in cores)


def test_trials_share_a_pretraining(tmp_path):
    execute(SPEC, tmp_path, device="cpu")
    heard: list[int] = []
    other = SPEC.override({"training.iterations": 5})
    execute(other, tmp_path, device="cpu", on_update=lambda n: not heard.append(n))
    assert heard == list(range(10, 15))


def test_a_pretraining_that_is_busy_is_left_to_whom_it_belongs(tmp_path):
    first = RunDirectory(tmp_path, SPEC.first_stage().fingerprint())
    with first.locked(), pytest.raises(BusyError, match="is working on this run"):
        execute(SPEC, tmp_path, device="cpu")
    assert execute(SPEC, tmp_path, device="cpu").state == "finished"


def test_a_pretraining_without_its_checkpoint_is_said(tmp_path):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda n: n != 10)
    folder = RunDirectory(tmp_path, SPEC.first_stage().fingerprint()).path / "checkpoints"
    for file in (folder / "update-000000009").iterdir():
        file.write_bytes(b"")
    with pytest.raises(CorruptError, match="delete this directory to pretrain again"):
        execute(SPEC, tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pretraining.task.vocab_size": 8}, "8 are not fewer than 8"),
        ({"pretraining.steps": 3}, "unknown key"),
    ],
)
def test_stages_that_do_not_fit_are_refused(change, said):
    with pytest.raises(ConfigError, match=said):
        SPEC.override(change)


def test_what_follows_on_a_diverged_pretraining_has_diverged_too(tmp_path, monkeypatch):
    def diverge(*_):
        raise TrialError("the loss became nan")

    monkeypatch.setattr(execution, "advance", diverge)
    said: list[str] = []
    result = execute(SPEC, tmp_path, device="cpu", on_warning=said.append).result
    assert [line.partition(": ")[2] for line in said] == [
        "the loss became nan",
        "its pretraining diverged: the loss became nan",
    ]
    assert result["metrics"]["token_accuracy"] == 0.0
    assert result["diverged"] == {
        "update": 0,
        "reason": "its pretraining diverged: the loss became nan",
    }
