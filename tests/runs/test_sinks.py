"""Training shown elsewhere: every point once, whatever was killed, and the same bits as without."""

import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from pernn.errors import ConfigError, MachineError
from pernn.lab.cli.options import Launch
from pernn.lab.runners import LocalRunner
from pernn.lab.runs import SINKS_VARIABLE, choose_sinks, execute, sinks
from pernn.lab.store import RunDirectory
from tiny import tiny

SPEC = tiny("reverse_ordering", "elman")


def single(value):
    return float(np.float32(value))


def read_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (place,) = folder.iterdir()
    (events,) = place.iterdir()
    found = EventAccumulator(str(events), {"scalars": 0}).Reload()
    return Counter(
        (tag, one.step, single(one.value))
        for tag in found.Tags()["scalars"]
        for one in found.Scalars(tag)
    )


class WandB(ModuleType):
    """Stands in for `wandb`: takes what its offline runs are told, and forgets what it deletes."""

    def __init__(self):
        super().__init__("wandb")
        self.Settings = dict

    def init(self, **options):
        assert (options["mode"], options["id"]) == ("offline", SPEC.fingerprint())
        self.file = Path(str(options["dir"]), "points.jsonl")
        return self

    def log(self, values, step):
        with self.file.open("a") as file:
            file.write(json.dumps([values, step]) + "\n")

    def finish(self):
        """Nothing is open."""


def read_wandb(folder):
    (file,) = folder.glob("*/points.jsonl")
    lines = map(json.loads, file.read_text().splitlines())
    return Counter((key, step, single(one)) for found, step in lines for key, one in found.items())


READERS = {"tensorboard": read_tensorboard, "wandb": read_wandb}


def expected(root):
    directory = RunDirectory(root, SPEC.fingerprint())
    last = {"update": 12, "kind": "test", **directory.read_result()["metrics"]}
    return Counter(
        (f"{line['kind']}/{key}", line["update"], single(value))
        for line in [*directory.read_metrics(), last]
        for key, value in line.items()
        if key not in ("kind", "update")
    )


class KilledError(Exception):
    """Ends a process between two updates."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    root = tmp_path_factory.mktemp("plain")
    return execute(SPEC, root, device="cpu").result["weights_sha256"]


@pytest.mark.parametrize("name", READERS)
def test_every_point_stands_once_however_often_a_run_is_taken_up(
    name, tmp_path, plain, monkeypatch
):
    monkeypatch.setitem(sys.modules, "wandb", WandB())
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home))
    root = tmp_path / "results"

    def killed(update):
        if update == 11:
            raise KilledError
        return True

    # From the fourth update on only: what was measured before is shown as well.
    execute(SPEC, root, device="cpu", on_update=lambda update: update < 4)
    monkeypatch.setenv(SINKS_VARIABLE, f"{name},{name}")
    make, begun = sinks.SINKS[name], []
    monkeypatch.setitem(sinks.SINKS, name, lambda *given: begun.append(given) or make(*given))
    with pytest.raises(KilledError):
        execute(SPEC, root, device="cpu", on_update=killed)
    # Update 9 was shown, and is done again from the checkpoint of update 8.
    execute(SPEC, root, device="cpu", on_update=lambda update: update < 10)
    outcome = execute(SPEC, root, device="cpu", on_warning=pytest.fail)
    assert outcome.result["weights_sha256"] == plain
    assert len(begun) == 3
    found = READERS[name](root / "logs" / name)
    assert found == expected(root)
    assert {*found.values()} == {1}
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_worker_processes_write_them_and_a_missing_package_is_said_before(tmp_path, monkeypatch):
    monkeypatch.setenv(SINKS_VARIABLE, "tensorboard")
    LocalRunner(device="cpu").run([SPEC], tmp_path, lambda event: None)
    assert read_tensorboard(tmp_path / "logs" / "tensorboard") == expected(tmp_path)
    monkeypatch.setenv(SINKS_VARIABLE, "")
    monkeypatch.setattr(sinks, "find_spec", lambda name: None)
    with pytest.raises(MachineError, match=r"--log-to wandb .*: .*pip install .*\[wandb\]'"):
        Launch(log_to=["wandb"], jobs=1).make_runner()
    monkeypatch.setattr(sinks, "find_spec", lambda name: object())
    choose_sinks(["wandb", "tensorboard"])
    assert sinks.os.environ[SINKS_VARIABLE] == "wandb,tensorboard"
    monkeypatch.setenv(SINKS_VARIABLE, "tensorbord")
    with pytest.raises(ConfigError, match=r"expected one of .*, got 'tensorbord'"):
        choose_sinks(None)


def test_a_sink_that_fails_is_left_out_and_the_run_goes_on(tmp_path, plain, monkeypatch):
    written = []

    def write(update, values):
        if update > 6:
            raise OSError("no space\nleft")
        written.append(update)

    def begin(folder, spec):
        assert folder.parent == tmp_path / "logs" / "wandb"
        return write, lambda: None

    monkeypatch.setitem(sinks.SINKS, "wandb", begin)
    monkeypatch.setenv(SINKS_VARIABLE, "wandb")
    said: list[str] = []
    outcome = execute(SPEC, tmp_path, device="cpu", on_warning=said.append)
    assert outcome.result["weights_sha256"] == plain
    assert written == [3, 5, 6]
    assert said == ["logging to wandb ended: OSError: no space\\nleft"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_logs_that_cannot_be_here_are_left_out(tmp_path, monkeypatch, kind):
    monkeypatch.setenv(SINKS_VARIABLE, "tensorboard")
    place, elsewhere, said = tmp_path / "logs", tmp_path / "elsewhere", list[str]()
    elsewhere.mkdir()
    if kind == "link":
        place.symlink_to(elsewhere)
    else:
        place.touch()
    assert execute(SPEC, tmp_path, device="cpu", on_warning=said.append).state == "finished"
    assert said[0].startswith("logging to tensorboard ended: ")
    assert not [*elsewhere.iterdir()]
