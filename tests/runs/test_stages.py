"""A stage after another: extension after pretraining, analysis after training; cut anywhere."""

import json
import shutil

import numpy as np
import pytest
import torch

from command_line import call, succeed
from pernn.errors import BusyError, ConfigError, CorruptError, TrialError
from pernn.lab.runs import RunSpec, execute, execution
from pernn.lab.store import RunDirectory, sealed
from pernn.lab.training import advance
from runs import test_anatomy
from runs.bits import contents, cut
from tiny import after, tiny

FIRST = tiny("reverse_ordering", "gru", vocab_size=4, training={"iterations": 9})
EXTENDED = after(FIRST, tiny(core="gru", vocab_size=8, training={"iterations": 7}))
TRAINING = tiny("dual_frequency", training={"keep_interval": 4, "iterations": 10})
SPEC = TRAINING.override({"analysis": {"num_per_condition": 3, "map_per_condition": 2}})


def test_the_first_stage_is_an_ordinary_run():
    plain = EXTENDED.first_stage()
    assert "pretraining" not in plain.dump()
    assert plain.first_stage() is None
    assert RunSpec.load(EXTENDED.dump()) == EXTENDED
    assert EXTENDED.num_updates == 9 + 7
    assert SPEC.first_stage() == TRAINING
    assert "analysis" not in TRAINING.dump()
    assert SPEC.analysed_updates == (0, 4, 8, 10)
    assert SPEC.num_updates == 10 + 4
    sparse = SPEC.override({"training.keep_interval": None})
    assert sparse.analysed_updates == (0, 10)


@pytest.mark.parametrize(
    ("spec", "updates"),
    # In the first stage, at its end, at the beginning of the second, in it.
    [
        *((EXTENDED, (3, 9, 10, 14)), (SPEC, (5, 10, 11, 13))),
        *((test_anatomy.SPEC, (61, 62)), (test_anatomy.DESCENT, (61, 65))),
    ],
    ids=["extended", "analysed", "anatomy", "descent"],
)
def test_cut_anywhere_it_ends_in_the_same_bits(tmp_path, spec, updates):
    cut(spec, tmp_path, updates)


def test_trials_share_a_pretraining_whose_weights_stay_frozen(tmp_path):
    execute(EXTENDED, tmp_path, device="cpu")
    before, after = (
        RunDirectory(tmp_path, one.fingerprint()).checkpoints.load_latest()[0].arrays
        for one in (EXTENDED.first_stage(), EXTENDED)
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
    heard: list[int] = []
    other = EXTENDED.override({"training.iterations": 5})
    execute(other, tmp_path, device="cpu", on_update=lambda n: not heard.append(n))
    assert heard == list(range(10, 15))


def test_a_damaged_analysis_goes_on_once_the_advice_is_followed(tmp_path):
    whole = execute(SPEC, tmp_path / "whole", device="cpu").result
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update < 12)
    own, first = (RunDirectory(tmp_path, one.fingerprint()) for one in (SPEC, TRAINING))
    log, tensors = own.path / "metrics.jsonl", first.path / "checkpoints/update-000000008"
    log.write_text(log.read_text().replace("1", "2"))
    with pytest.raises(CorruptError, match=r"metrics\.jsonl.*; delete that file to measure again"):
        execute(SPEC, tmp_path, device="cpu")
    log.unlink()
    (tensors / "tensors.safetensors").write_bytes(b"")
    with pytest.raises(CorruptError, match=f"; delete {first.path} to train it again"):
        execute(SPEC, tmp_path, device="cpu")
    shutil.rmtree(first.path)
    assert execute(SPEC, tmp_path, device="cpu").result == whole


@pytest.mark.parametrize("spec", [EXTENDED, SPEC], ids=["extended", "analysed"])
@pytest.mark.parametrize("date", ["2026-01-02T03:04:05+00:00", None])
def test_a_trial_is_as_old_as_its_first_stage(tmp_path, spec, date):
    execute(spec.first_stage(), tmp_path, device="cpu")
    path = RunDirectory(tmp_path, spec.first_stage().fingerprint()).path / "environment.json"
    content = json.loads(path.read_text())
    del content["checksum"], content["date"]
    path.write_text(json.dumps(sealed(content | ({"date": date} if date else {}))))
    execute(spec, tmp_path, device="cpu")
    assert RunDirectory(tmp_path, spec.fingerprint()).read_environment()["date"] == (date or "")


def test_a_pretraining_that_is_busy_is_left_to_whom_it_belongs(tmp_path):
    first = RunDirectory(tmp_path, EXTENDED.first_stage().fingerprint())
    with first.locked(), pytest.raises(BusyError, match="is working on this run"):
        execute(EXTENDED, tmp_path, device="cpu")
    assert execute(EXTENDED, tmp_path, device="cpu").state == "finished"


def test_a_pretraining_without_its_checkpoint_is_said(tmp_path):
    execute(EXTENDED, tmp_path, device="cpu", on_update=lambda n: n != 10)
    folder = RunDirectory(tmp_path, EXTENDED.first_stage().fingerprint()).path / "checkpoints"
    for file in (folder / "update-000000009").iterdir():
        file.write_bytes(b"")
    with pytest.raises(CorruptError, match="delete this directory to pretrain again"):
        execute(EXTENDED, tmp_path, device="cpu")


def diverge(*_):
    raise TrialError("the loss became nan")


def test_what_follows_on_a_diverged_pretraining_has_diverged_too(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "advance", diverge)
    said: list[str] = []
    result = execute(EXTENDED, tmp_path, device="cpu", on_warning=said.append).result
    assert [line.partition(": ")[2] for line in said] == [
        "the loss became nan",
        "its pretraining diverged: the loss became nan",
    ]
    assert result["metrics"]["token_accuracy"] == 0.0
    assert result["diverged"] == {
        "update": 0,
        "reason": "its pretraining diverged: the loss became nan",
    }


def test_the_stability_of_a_diverged_pretraining_is_that_of_no_update(tmp_path, monkeypatch):
    monkeypatch.setattr(execution, "advance", diverge)
    spec = EXTENDED.override({"analysis": {"num_per_condition": 2}})
    result = execute(spec, tmp_path, device="cpu", on_warning=lambda line: None).result
    table = result["tables"]["gradient_stability"]
    later = [one for n, one in zip(table["update"], table["similarity"], strict=True) if n]
    assert table["update"][0] == 0
    assert later == [-1.0] * len(later)


@pytest.mark.parametrize("threads", [2, 3])
def test_checkpoints_side_by_side_give_the_same_bits(tmp_path, threads):
    before = torch.get_num_threads()
    for name in ("a", "b"):
        execute(TRAINING, tmp_path / name, device="cpu")
    execute(SPEC, tmp_path / "a", device="cpu")
    heard: list[int] = []
    # Cut while others are under way: they are lost, those that were told of are kept.
    stop = execute(
        SPEC,
        tmp_path / "b",
        device="cpu",
        threads=threads,
        on_update=lambda n: (heard.append(n), n < 12)[1],
    )
    assert stop.state == "stopped"
    execute(SPEC, tmp_path / "b", device="cpu", on_update=lambda n: not heard.append(n))
    assert heard == [11, 12, 13, 14]
    assert contents(SPEC, tmp_path / "a") == contents(SPEC, tmp_path / "b")
    torch.set_num_threads(before)


def test_a_result_has_accuracy_and_stability(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    heard: list[int] = []
    result = execute(SPEC, tmp_path, device="cpu", on_update=lambda n: not heard.append(n)).result
    assert heard == [11, 12, 13, 14]  # the training was done before
    metrics, tables = result["metrics"], result["tables"]
    trained = RunDirectory(tmp_path, TRAINING.fingerprint()).read_result()
    assert metrics.items() >= trained["metrics"].items()
    assert tables.keys() == {*trained["tables"], "gradient_stability", "stability_map"}
    table = tables["gradient_stability"]
    assert table["update"] == [n for n in (0, 4, 8, 10) for _ in range(4)]
    assert table["percent"] == [n for n in (0, 40, 80, 100) for _ in range(4)]
    assert table["num_pairs"] == [3] * 16
    assert all(-1 <= value <= 1 for value in table["similarity"])
    last = dict(zip(table["condition"][-4:], table["similarity"][-4:], strict=True))
    assert metrics["similarity"] == pytest.approx(sum(last.values()) / 4)
    rare = (last["Rare among Rare"] + last["Frequent among Rare"]) / 2
    assert metrics["similarity_rare_disturbants"] == pytest.approx(rare)
    assert set(tables["stability_map"]["position"]) == {1, 2, 3, 4}


def test_stages_that_do_not_fit_and_what_is_gone_are_said(tmp_path):
    wrong = (("task.vocab_size", 8, "8 are not fewer than 8"), ("steps", 3, "unknown key"))
    for path, value, said in wrong:
        with pytest.raises(ConfigError, match=said):
            EXTENDED.override({f"pretraining.{path}": value})
    with pytest.raises(ConfigError, match=r"analysis\.source_step 5 lies beyond the input"):
        SPEC.override({"analysis.source_step": 5})
    other = tiny("language_modelling").override({"analysis": {"num_per_condition": 2}})
    with pytest.raises(ConfigError, match="measured on tokens"):
        execute(other, tmp_path, device="cpu")
    execute(TRAINING, tmp_path, device="cpu")
    folder = RunDirectory(tmp_path, TRAINING.fingerprint()).path / "checkpoints"
    (folder / "update-000000004" / "tensors.safetensors").write_bytes(b"no")
    with pytest.raises(CorruptError, match="update-000000004"):
        execute(SPEC, tmp_path, device="cpu")


def test_the_command_analyses_a_half_finished_run(tmp_path):
    execute(TRAINING, tmp_path, device="cpu", on_update=lambda n: n != 9)
    run = RunDirectory(tmp_path, TRAINING.fingerprint()).path
    before = sorted(run.rglob("*"))
    output = tmp_path / "rows.csv"
    done = succeed("analyze", run, "--pairs", 3, "--device", "cpu", "--json", "-o", output)
    table = json.loads(done.stdout)["gradient_stability"]
    assert sorted(set(table["update"])) == [0, 4, 8, 9]
    assert len(output.read_text().splitlines()) == 1 + 16
    assert sorted(run.rglob("*")) == before
    execute(SPEC, tmp_path, device="cpu")
    whole = execute(SPEC, tmp_path, device="cpu").result["tables"]["gradient_stability"]
    # What both measured is the same.
    assert table["similarity"][:12] == whole["similarity"][:12]
    shown = call("analyze", run, "--pairs", 1, "--device", "cpu")
    assert "Rare among Frequent" in shown.stdout


def test_gradients_of_a_diverged_training_count_as_the_worst(tmp_path, monkeypatch):
    """What was kept before is measured; from then on similarities are −1."""

    def diverge_late(state, *arguments):
        for event in advance(state, *arguments):
            yield event
            if state.update == 5:
                diverge()

    monkeypatch.setattr(execution, "advance", diverge_late)
    with pytest.warns(UserWarning, match="diverged after update 5"):
        result = execute(SPEC, tmp_path, device="cpu").result
    assert result["diverged"] == {"update": 5, "reason": "the loss became nan"}
    table = result["tables"]["gradient_stability"]
    worst = {update: [] for update in (0, 4, 8, 10)}
    for update, similarity in zip(table["update"], table["similarity"], strict=True):
        worst[update].append(similarity == -1.0)
    assert [all(found) for found in worst.values()] == [False, False, True, True]
    assert len({len(found) for found in worst.values()}) == 1
    assert set(table["norm"][-4:]) == {None}
    assert result["metrics"]["similarity_rare_disturbants"] == -1.0
    assert result["metrics"]["token_accuracy"] == 0.0
