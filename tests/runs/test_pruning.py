"""Pruning: what a finished run can do without goes, what any unfinished one needs stays."""

import pytest

from pernn.errors import PernnError
from pernn.lab.runs import delete_leftovers, execute, find_leftovers, with_stages
from pernn.lab.store import RunDirectory, list_runs
from tiny import after, tiny

OFTEN = {"evaluation_interval": 6, "checkpoint_interval": 2, "keep_interval": 4}
TRAINING = tiny("dual_frequency", "gru", vocab_size=8, length=8, num_per_cell=2, training=OFTEN)
ANALYSIS = TRAINING.override({"analysis": {"num_per_condition": 2}})
FIRST = tiny(vocab_size=4, training={**OFTEN, "keep_interval": None})
SECOND = after(FIRST, tiny(core="gru", training=OFTEN))


def updates(root, spec):
    return RunDirectory(root, spec.fingerprint()).checkpoints.updates()


def prune(root, *waiting, **options):
    found = list(find_leftovers(root, list_runs(root), waiting, **options))
    assert not [one.skipped for one in found if one.skipped]
    assert not any(delete_leftovers(root, one) for one in found)
    folders = [folder for one in found for folder in one.folders]
    assert not any(folder.exists() for folder in folders)
    assert sum(one.num_bytes for one in found) > 0 or not folders
    return sorted(folder.name for folder in folders)


def test_the_last_and_the_kept_ones_stay_unless_all_are_to_go(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    before = updates(tmp_path, TRAINING)
    assert before == [4, 8, 10, 12]
    folder = RunDirectory(tmp_path, TRAINING.fingerprint()).checkpoints.path
    for name in ("damaged-update-000000002", ".update-000000006.77.partial"):
        (folder / name).mkdir()
        (folder / name / "state.json").write_text("{}")
    gone = prune(tmp_path)
    assert gone == [".update-000000006.77.partial", "damaged-update-000000002", "update-000000010"]
    assert updates(tmp_path, TRAINING) == [4, 8, 12]
    assert prune(tmp_path) == []
    assert len(prune(tmp_path, all_checkpoints=True)) == 3
    assert list(folder.iterdir()) == []
    assert execute(TRAINING, tmp_path, device="cpu").is_new is False


def test_unfinished_and_running_runs_are_left_alone(tmp_path):
    execute(TRAINING, tmp_path, device="cpu", on_update=lambda update: update != 11)
    before = updates(tmp_path, TRAINING)
    assert prune(tmp_path, all_checkpoints=True) == []
    assert updates(tmp_path, TRAINING) == before
    execute(TRAINING, tmp_path, device="cpu")
    (found,) = find_leftovers(tmp_path, list_runs(tmp_path))
    with RunDirectory(tmp_path, TRAINING.fingerprint()).locked():
        assert "is working on this run" in delete_leftovers(tmp_path, found)
    assert all(folder.exists() for folder in found.folders)
    (RunDirectory(tmp_path, TRAINING.fingerprint()).path / "result.json").unlink()
    assert delete_leftovers(tmp_path, found) == "no longer finished"


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(("second", "stay"), [(ANALYSIS, [4, 8, 12]), (SECOND, [12])])
def test_what_a_later_stage_needs_stays(tmp_path, second, stay, *, begun):
    first = second.first_stage()
    num_first = first.num_updates
    if begun:
        execute(second, tmp_path, device="cpu", on_update=lambda update: update <= num_first)
        assert with_stages(tmp_path, [second.fingerprint()]) == [
            first.fingerprint(),
            second.fingerprint(),
        ]
    else:
        execute(first, tmp_path, device="cpu")
    waiting = () if begun else (second,)
    prune(tmp_path, *waiting, all_checkpoints=True)
    assert updates(tmp_path, first) == stay
    undisturbed = tmp_path / "undisturbed"
    result = execute(second, tmp_path, device="cpu").result
    assert result == execute(second, undisturbed, device="cpu").result
    prune(tmp_path, all_checkpoints=True)
    assert updates(tmp_path, first) == updates(tmp_path, second) == []


def test_a_run_whose_needs_are_unknown_stops_everything(tmp_path):
    execute(TRAINING, tmp_path, device="cpu")
    execute(ANALYSIS, tmp_path, device="cpu", on_update=lambda update: update <= 13)
    spec = RunDirectory(tmp_path, ANALYSIS.fingerprint()).path / "spec.json"
    spec.write_text(spec.read_text()[:-20])
    with pytest.raises(PernnError, match=r"spec\.json"):
        list(find_leftovers(tmp_path, list_runs(tmp_path), all_checkpoints=True))
