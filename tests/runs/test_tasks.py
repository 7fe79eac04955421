"""Every task trains, stops and goes on, and ends in the same bits."""

import json

import pytest
import torch

from pernn.lab.runs import RunSpec, build, execute
from pernn.lab.store import RunDirectory
from pernn.lab.tasks import TASKS
from runs.bits import cut
from tiny import tiny


@pytest.mark.parametrize("kind", TASKS.names())
def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path, kind):
    spec = tiny(kind)
    whole = cut(spec, tmp_path, (3, 8))
    task, model = spec.build_task(), build(spec, torch.device("cpu")).model
    rows, metrics = len(model.embedding.weight), whole.result["metrics"]
    if kind == "infinite_vocabulary":  # a linear map instead of rows
        assert metrics["loss"] == pytest.approx(1 - metrics["cosine_similarity"])
    else:
        assert 0 <= metrics["token_accuracy"] <= 1
        assert rows == task.vocab_size + len(task.extra_rows)
    stored = RunDirectory(tmp_path / "cut", spec.fingerprint()).path / "spec.json"
    assert RunSpec.load(json.loads(stored.read_text())["spec"]) == spec


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_run_of_s4d_ends_in_the_same_bits(tmp_path, precision):
    training = {"precision": precision, "evaluation_interval": 7, "checkpoint_interval": 5}
    spec = tiny("reverse_ordering", "s4d", training=training)
    cut(spec.override({"core.num_layers": 2, "core.state_size": 8}), tmp_path, (1, 4, 10))


def test_every_evaluation_has_the_training_loss_and_what_is_fed_back_is_told_apart(tmp_path):
    spec = tiny("reverse_ordering")
    curve = execute(spec, tmp_path, device="cpu").result["tables"]["by_update"]
    lines = RunDirectory(tmp_path, spec.fingerprint()).read_metrics()
    logged = {line["update"]: line["loss"] for line in lines if line["kind"] == "train"}
    assert list(logged) == [3, 6, 9, 12]
    assert curve["update"] == [5, 10, 12]
    # A line is the mean of the updates since the line before; it counts where it is written.
    expected = [logged[3], (logged[6] + logged[9]) / 2, logged[12]]
    assert curve["train_loss"] == pytest.approx(expected)
    sparse = spec.override({"training.log_interval": 10})
    curve = execute(sparse, tmp_path, device="cpu").result["tables"]["by_update"]
    assert [value is None for value in curve["train_loss"]] == [True, False, False]
    result = execute(tiny("autoregressive"), tmp_path, device="cpu").result
    table, metrics = result["tables"]["by_feedback"], result["metrics"]
    assert table["feedback"] == ["own output", "truth"]
    assert {name: table[name][0] for name in metrics} == metrics
    assert table["loss"][1] != metrics["loss"]
