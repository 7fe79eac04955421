"""Ray: a real cluster of separate raylets on this machine; every runner gives the same bytes."""

import signal

import pytest
from scenarios.trials import contents

from pernn.errors import ConfigError, MachineError
from pernn.lab.runners import InlineRunner, LocalRunner, RayRunner, Runner
from pernn.lab.runners import ray as ray_runner
from pernn.lab.runners.ray import describe_code
from pernn.lab.runners.schedule import make_request, run_request
from pernn.lab.runners.worker import LOG
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
    monkeypatch.setattr(ray_runner, "describe_code", lambda: "pernn 9.9")
    ear = Ear()
    with pytest.raises(MachineError, match=r"has pernn .* where the driver has pernn 9\.9"):
        RayRunner(address=nodes.address, device="cpu").run(SPECS, tmp_path, ear)
    assert not ear


def test_a_cluster_that_lacks_what_a_trial_needs_or_is_not_there_is_told(tmp_path):
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with pytest.raises(MachineError, match="no node has 1 CPU and 1 GPU for a trial"):
        RayRunner(address="local", gpus_per_trial=1).run(SPECS, tmp_path, Ear())
    with pytest.raises(MachineError, match=r"Ray \(somewhere\): ValueError: Invalid address"):
        RayRunner(address="somewhere").run(SPECS, tmp_path, Ear())
    assert [path.name for path in tmp_path.iterdir()] == [LOG]


# A small guard: the test above.
@pytest.mark.slow
def test_an_address_where_nothing_answers_is_told(tmp_path):
    pytest.importorskip("ray", reason=NEEDS_RAY)
    with pytest.raises(MachineError, match=r"Ray \(127\.0\.0\.1:9\): no cluster answers"):
        RayRunner(address="127.0.0.1:9").run(SPECS, tmp_path, Ear())


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
    assert (tmp_path / LOG).exists()


def test_a_trial_gets_its_share_of_a_gpu_or_says_that_there_is_none(tmp_path):
    request = make_request(SPEC, tmp_path, gpu_share=0.25, **WHERE | {"device": "cuda:99"})
    end = run_request(request, Ear(), lambda: True)
    assert (end.state, end.error) == ("failed", "MachineError")
    assert "no device 'cuda:99' here" in end.message


def test_a_machine_that_shares_nothing_or_has_other_code_is_told(child, tmp_path):
    child.require_same(tmp_path, describe_code())
    with pytest.raises(MachineError, match=r"does not see .* all machines of the cluster share"):
        child.require_same(tmp_path / "elsewhere", describe_code())
    with pytest.raises(MachineError, match=r"has pernn .* where the driver has pernn 9\.9"):
        child.require_same(tmp_path, "pernn 9.9")


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
    assert {path.name for path in tmp_path.iterdir()} == {"runs", LOG}
    found = contents(tmp_path / "runs")
    found = {path: text for path, text in found.items() if LONG.fingerprint() not in path}
    # Of each trial: spec, metrics, result, and two checkpoints of three files.
    assert len(found) == len(SPECS) * 9
    assert found == inline
