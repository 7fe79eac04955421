"""What no machine can hold is refused before any of it is allocated."""

import pytest
import torch

from pernn.errors import ConfigError, CorruptError, MachineError, VersionError
from pernn.lab.runs import RunSpec, execute
from pernn.lab.runs.execution import least_bytes
from pernn.lab.store import RunDirectory
from runs.test_execute import SPEC

HUGE = [
    {"task.vocab_size": 2**31, "embedding_size": 2**20},
    {"task.length": 2**16, "training.batch_size": 10**6, "task.vocab_size": 2**20},
    {"core.hidden_size": 2**20, "core.num_layers": 2**10},
    {"task.num_held_out": 2**24, "task.length": 2**16, "task.vocab_size": 2**20},
]


@pytest.mark.parametrize("sizes", HUGE)
def test_what_cannot_fit_is_refused_and_leaves_nothing(tmp_path, sizes):
    with pytest.raises(MachineError, match="GiB of memory"):
        execute(SPEC.override(sizes), tmp_path, device="cpu")
    assert not list(tmp_path.iterdir())


def test_the_least_is_no_more_than_what_is_there():
    device = torch.device("cpu")
    spec = RunSpec()
    weights = 64 * (512 + 512) + 512 * 512
    held_out = 1024 * 128
    batch = 512 * 128
    least = least_bytes(spec, spec.build_task(), device)
    assert least == 4 * (3 * weights + batch * 512) + 8 * (batch + held_out)


def test_an_analysis_of_a_billion_checkpoints_is_refused():
    every = {"checkpoint_interval": 1, "keep_interval": 1, "iterations": 10**9}
    with pytest.raises(ConfigError, match="analysis of 1,000,000,001 checkpoints"):
        RunSpec.load({"analysis": {}, "training": every})


@pytest.mark.parametrize("value", [2**63, 10**400])
@pytest.mark.parametrize(
    "path", ["core.hidden_size", "core.num_layers", "encoding.size", "training.log_interval"]
)
def test_every_size_has_a_bound(path, value):
    with pytest.raises(ConfigError, match=rf"{path}: expected at most \S+, got {str(value)[:9]}"):
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
    for threads in ("1", 0, 2**20, None):
        directory.write_environment({**environment, "threads": threads})
        with pytest.raises(CorruptError, match="does not say device and threads"):
            execute(SPEC, tmp_path, device="cpu")
    (directory.path / "environment.json").unlink()
    with pytest.raises(CorruptError, match="is missing"):
        execute(SPEC, tmp_path, device="cpu")
