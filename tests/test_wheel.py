"""README's commands answer from the trials that a wheel brings with it, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder into which pernn is installed from a wheel."""
    wheels, folder = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("site")
    run = (sys.executable, "-m")
    subprocess.run(
        [*run, "build", "-q", "--wheel", "--no-isolation", "-o", wheels, ROOT], check=True
    )
    (wheel,) = wheels.glob("pernn-*.whl")
    assert wheel.stat().st_size < 16_000_000
    installing = ("pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel)
    subprocess.run([*run, *installing], check=True)
    return folder


def call(site, folder, *words):
    return subprocess.run(
        [sys.executable, "-m", "pernn", *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PERNN_")}
        | {"PYTHONPATH": str(site), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_three_commands_answer_in_an_empty_folder(site, tmp_path):
    (part,) = re.findall(
        r"^## Check it$(.*?)^## ", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    commands = re.findall(r"^\.venv/bin/pernn (.*)$", part, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = call(site, tmp_path, *shlex.split(command))
        assert not done.returncode, done.stderr
        assert not done.stderr
        assert len(done.stdout.splitlines()) > 10
    told = call(site, tmp_path, "report", "temperature-small-62215508", "--claims")
    assert "registered (plan" in told.stdout
    assert not [*tmp_path.iterdir()]


def test_trials_published_here_come_first(site, tmp_path):
    (tmp_path / "evidence").mkdir()
    told = call(site, tmp_path, "report", "sorting-small")
    assert told.returncode == 2
    assert "no sweep 'sorting-small'" in told.stderr
