"""The same specs give the same bytes under every runner, and an interrupt loses nothing."""

import signal

import pytest
from scenarios.trials import contents

from pernn.lab.runners import InlineRunner, LocalRunner, RayRunner, Runner
from pernn.lab.store import RunDirectory, is_done
from runners.test_ray import nodes  # noqa: F401  # a fixture
from runners.test_runners import LONG, SPECS, Ear

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
