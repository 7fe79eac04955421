"""The command that a message names to add an extra works in the installation that runs."""

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import pernn
from pernn.errors import install_command

CLONE = Path(pernn.__file__).parents[2]
PIP = f"{sys.executable} -m pip"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return what puts another installation of pernn before the one that runs."""

    def install(origin):
        folder = tmp_path / "pernn-0.0.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(metadata.distribution("pernn").read_text("METADATA"))
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_a_clone_is_named_by_its_folder(installed, monkeypatch, tmp_path):
    installed({"url": "file:///srv/my%20clone", "dir_info": {"editable": True}})
    assert install_command("ray") == f"{PIP} install -e '/srv/my clone[ray]'"
    other = tmp_path / "clone"
    other.mkdir()
    monkeypatch.chdir(other)
    (tmp_path / "pernn-0.0.1.dist-info" / "direct_url.json").write_text(
        json.dumps({"url": other.as_uri(), "dir_info": {"editable": True}})
    )
    assert install_command("ray") == f"{PIP} install -e '.[ray]'"


@pytest.mark.parametrize(
    "origin", [None, {"url": "file:///gone/pernn-0.1.0-py3-none-any.whl", "archive_info": {}}]
)
def test_of_a_wheel_the_packages_themselves_are_named(installed, origin):
    installed(origin)
    assert install_command("parquet") == f"{PIP} install 'pyarrow>=18'"
    assert install_command("notebooks") == f"{PIP} install 'ipykernel>=6.29' 'nbclient>=0.10'"


def test_no_text_installs_pernn_from_an_index():
    """There is none that has it."""
    texts = [*CLONE.glob("src/**/*.py"), *CLONE.glob("docs/**/*.md"), CLONE / "README.md"]
    found = [one for one in texts if re.search(r"pip install\s'?pernn\b", one.read_text())]
    assert [one.name for one in found] == []
