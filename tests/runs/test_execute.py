"""Executing a run: new, stopped, resumed, done, damaged."""

import math
from functools import partial

import pytest
import torch

from command_line import python
from pernn.errors import ConfigError, CorruptError, MachineError, StoreError, VersionError
from pernn.kernels import find_kernels, without_kernels
from pernn.lab.runs import RunSpec, execute, execution
from pernn.lab.runs.building import build_stage
from pernn.lab.runs.execution import least_bytes
from pernn.lab.store import CheckpointFolder, RunDirectory, read_status
from pernn.lab.training import advance
from pernn.lab.trials import gather
from runs import bits
from tiny import tiny

SPEC = tiny(
    hidden_size=16,  # wide enough for the compiled kernels
    vocab_size=4,
    length=5,
    training={"iterations": 20, "evaluation_interval": 7, "checkpoint_interval": 5},
)
RUN = SPEC.fingerprint()
contents = partial(bits.contents, SPEC)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    root = tmp_path_factory.mktemp("undisturbed")
    assert execute(SPEC, root, device="cpu").state == "finished"
    return contents(root)


def test_a_run_that_ends_while_its_lock_is_waited_for_is_not_done_again(tmp_path, monkeypatch):
    locked = RunDirectory.locked

    def late(run, expired):
        monkeypatch.undo()
        assert execute(SPEC, tmp_path, device="cpu").state == "finished"
        return locked(run, expired)

    monkeypatch.setattr(RunDirectory, "locked", late)
    end = execute(SPEC, tmp_path, device="cpu")
    assert end.is_new is False
    events = [line["event"] for line in RunDirectory(tmp_path, RUN).read_journal()]
    assert events == ["started", "finished"]


def test_stopped_and_resumed_ends_in_the_same_bits(tmp_path):
    bits.cut(SPEC, tmp_path, (1, 3, 4, 5, 6, 11, 19, 20))


RARE = SPEC.override(
    {"task.vocab_size": 10_000, "task.length": 2, "training.batch_size": 2}
    | {"training.optimizer": "sign", "training.iterations": 1_000}
    | {f"training.{one}_interval": 300 for one in ("evaluation", "checkpoint")}
)
"""Threads share a weight so large; momentum of ids that do not come for 800 updates falls below
2⁻¹²⁶, and only its sign counts."""
PART = """
import sys
from pernn.lab.runs import RunSpec, execute
spec, last = RunSpec.load(eval(sys.argv[2])), int(sys.argv[3])
execute(spec, sys.argv[1], device="cpu", threads=2, on_update=lambda update: update < last)
"""


def test_two_threads_resume_in_the_same_bits(tmp_path):
    """In processes of their own, whose threads are made by what comes first."""
    for root, last in (("whole", 1_001), ("parts", 300), ("parts", 1_001)):
        done = python("-c", PART, tmp_path / root, RARE.dump(), last)
        assert done.returncode == 0, done.stderr
    whole, parts = (
        RunDirectory(tmp_path / root, RARE.fingerprint()).read_result()
        for root in ("whole", "parts")
    )
    assert whole == parts


def test_a_damaged_checkpoint_costs_time_only(tmp_path, undisturbed):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda n: n != 12)
    folder = RunDirectory(tmp_path, RUN).path
    newest = folder / "checkpoints" / "update-000000012" / "tensors.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    said: list[str] = []
    assert execute(SPEC, tmp_path, device="cpu", on_warning=said.append).state == "finished"
    assert len(said) == 1
    assert "update-000000012" in said[0]
    assert "\n" not in said[0]
    assert contents(tmp_path) == undisturbed
    events = [line["event"] for line in RunDirectory(tmp_path, RUN).read_journal()]
    assert "damaged checkpoint set aside" in events


def test_what_a_kill_kept_from_being_pruned_is_pruned_later(tmp_path, undisturbed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "prune", lambda *words: None)
        execute(SPEC, tmp_path, device="cpu")
    directory = RunDirectory(tmp_path, RUN)
    assert len(directory.checkpoints.updates()) == 4
    (directory.path / "result.json").unlink()
    execute(SPEC, tmp_path, device="cpu")
    assert directory.checkpoints.updates() == [15, 20]
    assert contents(tmp_path) == undisturbed


def test_no_sound_checkpoint_means_from_the_beginning(tmp_path, undisturbed):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda n: n != 12)
    for manifest in RunDirectory(tmp_path, RUN).path.glob("checkpoints/*/manifest.json"):
        manifest.write_text("{}")
    with pytest.warns(UserWarning, match="damaged checkpoint set aside"):
        assert execute(SPEC, tmp_path, device="cpu").state == "finished"
    assert contents(tmp_path) == undisturbed


def test_a_run_goes_on_with_its_threads_and_on_its_device(tmp_path):
    execute(SPEC, tmp_path, device="cpu", threads=2, on_update=lambda n: n != 3)
    try:
        execute(SPEC, tmp_path, device="cpu", threads=1, on_update=lambda n: n != 4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    directory = RunDirectory(tmp_path, RUN)
    directory.write_environment({**directory.read_environment(), "device": "cuda:0"})
    with pytest.raises(MachineError, match="began on cuda"):
        execute(SPEC, tmp_path, device="cpu")


def test_a_diverged_trial_is_a_result(tmp_path, monkeypatch):
    def spoilt(*words):
        trial = build_stage(*words)
        trial.model.output_layer.bias.data.fill_(math.nan)
        return trial

    monkeypatch.setattr(execution, "build_stage", spoilt)
    with pytest.warns(UserWarning, match="diverged after update 3 and counts as the worst"):
        assert execute(SPEC, tmp_path, device="cpu").state == "finished"
    directory = RunDirectory(tmp_path, RUN)
    assert directory.read_journal()[-1]["event"] == "diverged"
    result = directory.read_result()
    assert result["diverged"]["update"] == 3
    assert "loss became nan within updates 1–3" in result["diverged"]["reason"]
    worst = {"token_accuracy": 0.0, "damerau_levenshtein": 5.0, "damerau_levenshtein_share": 1.0}
    worst["sequence_accuracy"] = 0.0
    assert worst.items() <= result["metrics"].items()
    assert result["metrics"]["loss"] == pytest.approx(math.log(4))
    curve = result["tables"]["by_update"]
    assert (curve["update"], curve["percent"]) == ([7, 14, 20], [35, 70, 100])
    assert curve["token_accuracy"] == [0.0] * 3
    record = gather(tmp_path, [RUN])[0].row()
    assert (record["diverged"], record["token_accuracy"]) == (3, 0.0)
    status = read_status(tmp_path, RUN)
    assert (status.state, status.reason[:10]) == ("finished", "diverged: ")
    assert execute(SPEC, str(tmp_path), device="cpu").is_new is False
    # Wherever it is stopped meanwhile, the same is found at the same update.
    execute(SPEC, tmp_path / "other", device="cpu", on_update=lambda n: n != 2)
    with pytest.warns(UserWarning, match="diverged after update 3"):
        execute(SPEC, tmp_path / "other", device="cpu")
    assert RunDirectory(tmp_path / "other", RUN).read_result() == result


@pytest.mark.parametrize("what", ["weight", "moment", "loss"])
def test_no_checkpoint_holds_what_is_not_finite(tmp_path, monkeypatch, what):
    rarely = {"training.log_interval": 100, "training.evaluation_interval": 100}
    spec = SPEC.override({**rarely, "training.checkpoint_interval": 4})

    def damaged(state, *words):
        for event in advance(state, *words):
            if state.update == 6:
                parameter = next(state.model.parameters())
                places = {
                    "weight": parameter.data.view(-1),
                    "moment": state.optimizer.state[parameter]["exp_avg"].view(-1),
                    "loss": state.sums,
                }
                places[what][0] = float("inf")
            yield event

    monkeypatch.setattr(execution, "advance", damaged)
    with pytest.warns(UserWarning, match="not finite after update 8"):
        execute(spec, tmp_path, device="cpu")
    directory = RunDirectory(tmp_path, spec.fingerprint())
    assert directory.checkpoints.updates() == [4]
    last = directory.read_journal()[-1]
    assert (last["event"], last["update"]) == ("diverged", 8)
    assert "not finite" in last["reason"]


def test_a_full_disk_is_said_in_one_line(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    execute(SPEC, tmp_path, device="cpu", on_update=lambda n: n != 6)
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        execute(SPEC, tmp_path, device="cpu")
    monkeypatch.undo()
    assert execute(SPEC, tmp_path, device="cpu").state == "finished"


def test_a_run_goes_on_without_kernels_if_it_began_so(tmp_path, undisturbed):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with without_kernels():
        execute(SPEC, whole, device="cpu")
        execute(SPEC, cut, device="cpu", on_update=lambda update: update < 6)
    execute(SPEC, cut, device="cpu")
    assert contents(cut) == contents(whole)
    if find_kernels() is not None:
        assert contents(cut) != undisturbed


@pytest.mark.skipif(find_kernels() is None, reason="no compiled kernels here")
def test_a_run_that_began_with_kernels_wants_them(tmp_path, undisturbed):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update < 6)
    with without_kernels(), pytest.raises(MachineError, match="began with compiled kernels"):
        execute(SPEC, tmp_path, device="cpu")
    execute(SPEC, tmp_path, device="cpu")
    assert contents(tmp_path) == undisturbed


HUGE = [
    {"task.vocab_size": 2**31, "embedding_size": 2**20},
    {"task.length": 2**16, "training.batch_size": 10**6, "task.vocab_size": 2**20},
    {"core.hidden_size": 2**20, "core.num_layers": 2**10},
    {"task.num_held_out": 2**24, "task.length": 2**16, "task.vocab_size": 2**20},
]


@pytest.mark.parametrize("sizes", HUGE)
def test_what_cannot_fit_is_refused_and_leaves_nothing(tmp_path, sizes):
    for wanted, device in ((SPEC.override(sizes), "cpu"), (SPEC, "cuda:99")):
        with pytest.raises(MachineError, match=r"GiB of memory|no device"):
            execute(wanted, tmp_path, device=device)
    assert not list(tmp_path.iterdir())


def test_the_least_is_no_more_than_what_is_there():
    device = torch.device("cpu")
    spec = RunSpec()
    weights = 64 * (512 + 512) + 512 * 512
    held_out = 1024 * 128
    batch = 512 * 128
    least = least_bytes(spec, spec.build_task(), device)
    assert least == 4 * (3 * weights + batch * 512) + 8 * (batch + held_out)


@pytest.mark.parametrize("value", [2**63, 10**400])
@pytest.mark.parametrize(
    "path", ["core.hidden_size", "core.num_layers", "encoding.size", "training.log_interval"]
)
def test_every_size_has_a_bound(path, value):
    with pytest.raises(
        ConfigError, match=rf"{path}: .* less than or equal to \S+, got {str(value)[:9]}"
    ):
        RunSpec().override({path: value})


def test_an_edited_spec_file_is_not_another_trial(tmp_path):
    directory = RunDirectory(tmp_path, SPEC.fingerprint())
    with directory.locked():
        directory.write_spec(SPEC.dump())
    path = directory.path / "spec.json"
    assert RunSpec.read(path) == SPEC
    text = path.read_text()
    path.write_text(text.replace('"batch_size": 4', '"batch_size": 5'))
    with pytest.raises(ConfigError, match="was changed since"):
        RunSpec.read(path)
    path.write_text(text.replace('"format": 1', '"format": 2'))
    with pytest.raises(VersionError):
        RunSpec.read(path)


def test_a_run_that_does_not_say_how_it_began_is_refused(tmp_path):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update != 5)
    directory = RunDirectory(tmp_path, SPEC.fingerprint())
    environment = directory.read_environment()
    directory.write_environment({"device": environment["device"]})
    with pytest.raises(CorruptError, match="does not say device and threads"):
        execute(SPEC, tmp_path, device="cpu")
    (directory.path / "environment.json").unlink()
    with pytest.raises(CorruptError, match="does not say device and threads"):
        execute(SPEC, tmp_path, device="cpu")
