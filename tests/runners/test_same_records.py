"""The same specs give the same bytes under every runner."""

from pathlib import Path

import pytest
from scenarios.trials import contents

from pernn.runners import InlineRunner, LocalRunner, RayRunner, Runner, SlurmRunner
from runners.test_runners import SPECS, Ear

RUNNERS = {
    "local": ("pernn", lambda: LocalRunner(jobs=2, device="cpu")),
    "ray": ("ray", lambda: RayRunner(address="local", jobs=2, device="cpu")),
    "slurm": ("submitit", lambda: SlurmRunner(executor="local", jobs=1, trials_per_job=4)),
}


@pytest.fixture(scope="module")
def inline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = tmp_path_factory.mktemp("inline")
    InlineRunner(device="cpu").run(SPECS, root, lambda event: None)
    return contents(root / "runs")


@pytest.mark.parametrize("name", RUNNERS)
def test_every_byte_is_the_same(name: str, inline: dict[str, bytes], tmp_path: Path) -> None:
    package, make = RUNNERS[name]
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'pernn[{name}]'")
    runner, ear = make(), Ear()
    assert isinstance(runner, Runner)
    assert runner.describe()
    runner.run(SPECS, tmp_path, ear)
    assert ear.ends() == {spec.fingerprint(): "finished" for spec in SPECS}
    found = contents(tmp_path / "runs")
    # Of each trial: spec, metrics, result, and two checkpoints of three files.
    assert len(found) == len(SPECS) * 9
    assert found == inline
