"""Lists of runs under a name."""

import json

import pytest

from pernn.errors import ConfigError, CorruptError, VersionError
from pernn.lab.store import Sweep, list_sweeps, load_sweep, save_sweep

SWEEP = Sweep("study-demo", "study", "demo", {"seed": 1}, ["0" * 16])


def test_load_gives_what_was_saved(tmp_path):
    save_sweep(tmp_path, SWEEP)
    assert load_sweep(tmp_path, "study-demo") == SWEEP
    assert list_sweeps(tmp_path) == ["study-demo"]


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "", ".hidden", "<script>", "a\nb"])
def test_names_cannot_lead_elsewhere(tmp_path, name):
    with pytest.raises(ConfigError):
        load_sweep(tmp_path, name)


def test_an_unknown_sweep_is_answered_with_the_known(tmp_path):
    save_sweep(tmp_path, SWEEP)
    with pytest.raises(ConfigError, match="study-demo"):
        load_sweep(tmp_path, "other")


@pytest.mark.parametrize(
    ("change", "error"),
    [({"format": 99}, VersionError), ({"more": 1}, CorruptError), ({"runs": "x"}, CorruptError)],
)
def test_damaged_lists_are_refused(tmp_path, change, error):
    path = save_sweep(tmp_path, SWEEP) / "sweep.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(error):
        load_sweep(tmp_path, "study-demo")


def test_people_read_what_was_changed_not_a_digest():
    changes = {"core.kind": "gru", "task.vocab_size": [16, 64], "+encoding.kind": "learned"}
    sweep = Sweep("study-demo-98a0c730", "study", "demo", changes, [])
    changed = "core.kind=gru, task.vocab_size=[16, 64], +encoding.kind=learned"
    assert sweep.title == f"study-demo · {changed}"
    assert Sweep("study-demo", "study", "demo", {}, []).title == "study-demo"
