"""Ray: a real cluster of separate raylets on this machine; every runner gives the same bytes."""

import os
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest
from scenarios.trials import contents

from pernn.errors import ConfigError, MachineError
from pernn.lab.runners import InlineRunner, LocalRunner, RayRunner, Runner
from pernn.lab.runners import ray as ray_runner
from pernn.lab.runners.ray import describe_code
from pernn.lab.runners.runner import make_request, run_request
from pernn.lab.runs import execute
from pernn.lab.store import RunDirectory, is_done
from runners.test_runners import LONG, SPEC, SPECS, Ear

NEEDS_RAY = "ray is not installed: pip install -e '.[ray]'"


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray", reason=NEEDS_RAY)
    from scenarios.ray_cluster import ray_nodes

    with ray_nodes(num_nodes=1, cpus_per_node=2) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_node_with_other_code_ends_the_sweep(nodes, tmp_path, monkeypatch):
    code = {**ray_runner.describe_code(), "pernn": "9.9"}
    monkeypatch.setattr(ray_runner, "describe_code", lambda: code)
    ear = Ear()
    with pytest.raises(MachineError, match=r"has pernn .* where the driver has 9\.9"):
        RayRunner(address=nodes.address, device="cpu").run(SPECS, tmp_path, ear)
    assert not ear


def test_a_cluster_without_what_a_trial_needs_is_told(tmp_path):
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with pytest.raises(MachineError, match="no node of the Ray cluster has 1 CPU and 1 GPU"):
        RayRunner(address="local", gpus_per_trial=1).run(SPECS, tmp_path, Ear())


@pytest.mark.parametrize("address", ["127.0.0.1:9", "somewhere", "ray://host:1", f"{'x' * 99}:1"])
def test_an_address_without_a_cluster_is_told_soon(tmp_path, address):
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with pytest.raises(MachineError, match=f"no Ray cluster at {address} .*start one with"):
        RayRunner(address=address).run(SPECS, tmp_path, Ear())
    assert not list(tmp_path.iterdir())


def test_an_address_where_something_else_listens_is_told(tmp_path, monkeypatch):
    import socket

    pytest.importorskip("ray", reason=NEEDS_RAY)
    # Long enough for the child to be at it; Ray itself would wait for two minutes.
    monkeypatch.setattr(ray_runner, "CONNECT_SECONDS", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(MachineError, match=f"no Ray cluster answers at {address}"):
            RayRunner(address=address).run(SPECS, tmp_path, Ear())


@pytest.fixture
def token(tmp_path, monkeypatch):
    """Where Ray looks for the token of this user, who has none yet."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".ray" / "auth_token"
    path.parent.mkdir()
    return path


def test_a_token_that_is_there_is_used(token, monkeypatch):
    """Ray itself uses it for `auto`, not for an address."""
    assert "RAY_AUTH_MODE" not in ray_runner.environment("host:6379")
    token.write_text("0" * 64)
    assert ray_runner.environment("host:6379")["RAY_AUTH_MODE"] == "token"
    assert ray_runner.environment("auto")["RAY_AUTH_MODE"] == "token"
    assert "RAY_AUTH_MODE" not in ray_runner.environment("local")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert "RAY_AUTH_MODE" not in ray_runner.environment("auto")
    monkeypatch.delenv("RAY_AUTH_MODE")
    token.unlink()
    with monkeypatch.context() as homeless:
        homeless.setattr(Path, "home", Mock(side_effect=RuntimeError))
        assert "RAY_AUTH_MODE" not in ray_runner.environment("auto")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    assert ray_runner.environment("auto")["RAY_AUTH_MODE"] == "token"


# A small guard: the test above.
@pytest.mark.slow
def test_a_cluster_that_asks_for_a_token(token, tmp_path):
    pytest.importorskip("ray", reason=NEEDS_RAY)
    from scenarios.ray_cluster import ray_nodes

    with ray_nodes(num_nodes=1, cpus_per_node=2) as cluster:
        # As after `ray get-auth-token --generate`: a file, and no variable.
        token.write_text(os.environ.pop("RAY_AUTH_TOKEN"))
        del os.environ["RAY_AUTH_MODE"]
        ear = Ear()
        RayRunner(address=cluster.address, device="cpu").run(SPECS[:1], tmp_path / "results", ear)
        assert list(ear.ends().values()) == ["finished"]
        token.unlink()
        with pytest.raises(MachineError, match=r"have its token, in ~/\.ray/auth_token"):
            RayRunner(address=cluster.address).run(SPECS, tmp_path / "results", Ear())


@pytest.mark.parametrize(
    "values",
    [
        {"gpus_per_trial": 2},
        {"gpus_per_trial": -0.5},
        {"gpus_per_trial": float("nan")},
        {"jobs": 0},
        {"threads": 0},
        {"device": "cuda"},
        {"device": "cpu", "gpus_per_trial": 0.5},
        {"device": "cuda:1", "gpus_per_trial": 1},
    ],
)
def test_what_cannot_be_meant_is_refused(values):
    with pytest.raises(ConfigError):
        RayRunner(**values)


@pytest.fixture
def child():
    """The module of the processes that talk to Ray, which imports it."""
    return pytest.importorskip("pernn.lab.runners.ray_child", reason=NEEDS_RAY)


WHERE = {"device": "cpu", "threads": 1, "expired": {}}


def test_a_machine_sends_back_what_was_mended_and_how_the_trial_ended(child, tmp_path):
    execute(SPEC, tmp_path, device="cpu", on_update=lambda update: update != 12)
    run = RunDirectory(tmp_path, SPEC.fingerprint())
    (run.path / "checkpoints" / "update-000000012" / "manifest.json").write_text("{}")
    (tmp_path / "mark").touch()
    request = make_request(SPEC, tmp_path, **WHERE)
    mended, end = child.task(str(tmp_path / "mark"), describe_code(), request)
    assert mended["message"].startswith("damaged checkpoint")
    assert (end["state"], end["update"]) == ("finished", 30)
    request["spec"]["core"]["kind"] = "one of another package"
    (end,) = child.task(str(tmp_path / "mark"), describe_code(), request)
    assert (end["state"], end["error"][-11:]) == ("failed", "ConfigError")
    assert (tmp_path / "workers.log").exists()


def test_a_trial_gets_its_share_of_a_gpu_or_says_that_there_is_none(tmp_path):
    request = make_request(SPEC, tmp_path, gpu_share=0.25, **WHERE | {"device": "cuda:99"})
    end = run_request(request, Ear(), lambda: True)
    assert (end.state, end.error) == ("failed", "MachineError")
    assert "no device 'cuda:99' here" in end.message


def test_a_machine_that_shares_nothing_or_has_other_code_is_told(child, tmp_path, monkeypatch):
    monkeypatch.setattr(child, "WAIT_SECONDS", 0)
    child.require_same(tmp_path, describe_code())
    with pytest.raises(MachineError, match=r"does not see .* all machines of the cluster share"):
        child.require_same(tmp_path / "elsewhere", describe_code())
    with pytest.raises(MachineError, match=r"has pernn .* where the driver has 9\.9"):
        child.require_same(tmp_path, {**describe_code(), "pernn": "9.9"})


PACKAGES = {"local": "pernn", "ray": "ray"}


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    root = tmp_path_factory.mktemp("inline")
    InlineRunner(device="cpu").run(SPECS, root, lambda event: None)
    return contents(root / "runs")


def make(name, request):
    if name == "local":
        return LocalRunner(jobs=2, device="cpu")
    address = request.getfixturevalue("nodes").address
    return RayRunner(address=address, jobs=2, device="cpu")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_byte_is_the_same_and_an_interrupt_checkpoints_what_runs(
    name, inline, tmp_path, request
):
    """In one go: of a runner's time most goes by until its processes have started."""
    package = PACKAGES[name]
    pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[{name}]'")
    ear, short = Ear(), {spec.fingerprint(): "finished" for spec in SPECS}
    asked: list[int] = []  # when to leave: the last trial is at work, and all others are done

    def on_event(event):
        ear(event)
        is_long = event.run == LONG.fingerprint() and event.update
        if is_long and not asked and all(is_done(tmp_path, run) for run in short):
            asked.append(event.update)
            signal.raise_signal(signal.SIGINT)

    runner = make(name, request)
    assert isinstance(runner, Runner)
    assert runner.describe()
    with pytest.raises(KeyboardInterrupt):
        runner.run([*SPECS, LONG], tmp_path, on_event)
    assert ear[-1].state == "stopped"
    assert ear.ends() == {**short, LONG.fingerprint(): "stopped"}
    run = RunDirectory(tmp_path, LONG.fingerprint())
    last = run.read_journal()[-1]
    assert last["event"] == "stopped"
    assert run.checkpoints.updates()[-1] == last["update"] >= asked[0]
    drivers = tmp_path / "drivers"
    assert not drivers.exists() or not list(drivers.iterdir())
    found = contents(tmp_path / "runs")
    found = {path: text for path, text in found.items() if LONG.fingerprint() not in path}
    # Of each trial: spec, metrics, result, and two checkpoints of three files.
    assert len(found) == len(SPECS) * 9
    assert found == inline
