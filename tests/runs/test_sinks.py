"""Training shown elsewhere: every point once, whatever was killed, and the same bits as without."""

import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pernn.cli.launch import Launch
from pernn.errors import ConfigError, MachineError, StoreError
from pernn.runners import Limits, LocalRunner
from pernn.runs import SINKS, SINKS_VARIABLE, RunSpec, choose_sinks, execute, sinks
from pernn.store import RunDirectory

SPEC = RunSpec.load(
    {
        "task": {"kind": "reverse_ordering", "vocab_size": 4, "length": 5, "num_held_out": 16},
        "core": {"kind": "elman", "hidden_size": 8},
        "training": {
            "iterations": 12,
            "batch_size": 4,
            "log_interval": 3,
            "evaluation_interval": 5,
            "checkpoint_interval": 4,
        },
    }
)


def single(value: float) -> float:
    """The number as TensorBoard keeps it."""
    return float(np.float32(value))


def read_tensorboard(folder: Path) -> Counter:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (place,) = folder.iterdir()
    (events,) = place.iterdir()
    found = EventAccumulator(str(events), {"scalars": 0}).Reload()
    return Counter(
        (tag, one.step, single(one.value))
        for tag in found.Tags()["scalars"]
        for one in found.Scalars(tag)
    )


def read_wandb(folder: Path) -> Counter:
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    wandb.teardown()
    (file,) = folder.glob("*/wandb/offline-run-*/run-*.wandb")
    return Counter(
        (
            item.key or "/".join(item.nested_key),
            history.step.num,
            single(json.loads(item.value_json)),
        )
        for history in (Record.FromString(one).history for one in log_records(file.read_bytes()))
        for item in history.item
        if not (item.key or item.nested_key[0]).startswith("_")
    )


def log_records(data: bytes) -> Iterator[bytes]:
    """The records of a log as LevelDB writes it: blocks of 32 KiB, records in one or more parts."""
    place, record = 7, b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:
            place += 2**15 - place % 2**15
            continue
        length, part = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        record += data[place + 7 : place + 7 + length]
        place += 7 + length
        if part in (1, 4):
            yield record
            record = b""


READERS = {"tensorboard": read_tensorboard, "wandb": read_wandb}


def expected(root: Path) -> Counter:
    """All lines of the run's metrics, and the result."""
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


def needs(name: str) -> None:
    package = SINKS[name][0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: `make test-sinks` installs it")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("plain")
    return execute(SPEC, root, device="cpu").result["weights_sha256"]


@pytest.mark.filterwarnings("ignore:::wandb", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", READERS)
def test_every_point_stands_once_however_often_a_run_is_taken_up(
    name: str, tmp_path: Path, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(name)
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(home))
    root = tmp_path / "results"

    def killed(update: int) -> bool:
        if update == 11:
            raise KilledError
        return True

    # From the fourth update on only: what was measured before is shown as well.
    execute(SPEC, root, device="cpu", on_update=lambda update: update < 4)
    monkeypatch.setenv(SINKS_VARIABLE, name)
    with pytest.raises(KilledError):
        execute(SPEC, root, device="cpu", on_update=killed)
    # Update 9 was shown, and is done again from the checkpoint of update 8.
    execute(SPEC, root, device="cpu", on_update=lambda update: update < 10)
    outcome = execute(SPEC, root, device="cpu", warn=pytest.fail)
    assert outcome.result["weights_sha256"] == plain
    found = READERS[name](root / "logs" / name)
    assert found == expected(root)
    assert {*found.values()} == {1}
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_worker_processes_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("tensorboard")
    monkeypatch.setenv(SINKS_VARIABLE, "tensorboard")
    LocalRunner(device="cpu").run([SPEC], tmp_path, lambda event: None)
    assert read_tensorboard(tmp_path / "logs" / "tensorboard") == expected(tmp_path)


def test_a_sink_that_fails_is_left_out_and_the_run_goes_on(
    tmp_path: Path, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    class Full:
        def __init__(self, folder: Path, spec: RunSpec) -> None:
            assert folder == tmp_path / "logs" / "wandb"

        def write(self, update: int, values: dict[str, float]) -> None:
            if update > 6:
                raise OSError("no space\nleft")
            written.append(update)

    monkeypatch.setitem(sinks.SINKS, "wandb", ("wandb", Full))
    monkeypatch.setenv(SINKS_VARIABLE, "wandb")
    said: list[str] = []
    outcome = execute(SPEC, tmp_path, device="cpu", warn=said.append)
    assert outcome.result["weights_sha256"] == plain
    assert written == [3, 5, 6]
    assert said == ["logging to wandb ended: OSError: no space\\nleft"]


def test_a_missing_package_is_said_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SINKS_VARIABLE, "")
    monkeypatch.setattr(sinks, "find_spec", lambda name: None)
    with pytest.raises(MachineError, match=r"--log-to wandb .*: .*pip install .*\[wandb\]'"):
        Launch(log_to=["wandb"], jobs=1).make_runner(Limits())
    monkeypatch.setattr(sinks, "find_spec", lambda name: object())
    choose_sinks(["wandb", "tensorboard"])
    assert sinks.os.environ[SINKS_VARIABLE] == "wandb,tensorboard"
    monkeypatch.setenv(SINKS_VARIABLE, "tensorbord")
    with pytest.raises(ConfigError, match="expected one of tensorboard, wandb, got"):
        choose_sinks(None)


def test_logs_do_not_leave_the_results_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SINKS_VARIABLE, "tensorboard")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        execute(SPEC, tmp_path, device="cpu")
