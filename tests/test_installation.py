"""What is installed: the library alone, extras by their names, trials in a wheel."""

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from command_line import python
from pernn.errors import install_command
from pernn.lab.cli import main

ROOT = Path(__file__).parents[1]
PIP = f"{sys.executable} -m pip"


def test_an_extra_is_added_to_the_clone_or_to_what_a_wheel_installed(monkeypatch, tmp_path):
    assert install_command("ray") == f"{PIP} install -e '.[ray]'"
    monkeypatch.chdir(tmp_path)
    assert install_command("ray") == f"{PIP} install -e '{ROOT}[ray]'"
    monkeypatch.setattr("pernn.errors.__file__", str(tmp_path / "site" / "pernn" / "errors.py"))
    assert install_command("parquet") == f"{PIP} install 'pyarrow>=18'"
    assert install_command("pdf") == f"{PIP} install 'pypandoc-binary>=1.15' 'typst>=0.13'"


def test_no_text_installs_pernn_from_an_index():
    """There is none that has it."""
    texts = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    found = [one for one in texts if re.search(r"pip install\s'?pernn\b", one.read_text())]
    assert [one.name for one in found] == []


LAB = [
    re.split(r"[<>=\[; ]", line)[0].replace("-", "_")
    for line in metadata.requires("pernn") or []
    if "extra ==" in line
]
BLOCK = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(LAB) - {"pernn", "pytest", "hypothesis", "beartype"}}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""
USE = """
import pernn, torch
for name in pernn.__all__:
    getattr(pernn, name)
from pernn import analysis, cores, encodings, kernels, models
for package in (analysis, cores, encodings, kernels, models):
    for name in package.__all__:
        getattr(package, name)
from pernn.cross_entropy import linear_cross_entropy
for core in ("elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"):
    for encoding in ("none", "sinusoidal", "learned", "random", "constant", "repeated_embedding"):
        network = pernn.PositionEncodedRNN(5, core, encoding, hidden_size=4)
        out = network(torch.randint(0, 5, (2, 3)), num_queries=3)
        assert out.shape == (2, 3, 5)
        linear_cross_entropy(out.flatten(0, 1), torch.eye(5), None, torch.zeros(6).long())
assert not [name for name in sys.modules if name.startswith("pernn.lab")]
"""


def test_the_library_needs_no_package_of_the_laboratory_whose_command_says_what_to_install():
    assert {"pydantic", "typer", "scipy", "matplotlib"} <= set(LAB)
    done = python("-c", BLOCK + USE)
    assert done.returncode == 0, done.stderr
    done = python("-c", f"{BLOCK}\nfrom pernn.lab.cli import main\nmain()")
    assert done.returncode == 1
    assert re.fullmatch(r"pernn: this needs \w+: .*pip install .*\n", done.stderr), done.stderr


def test_the_command_needs_posix(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err == "pernn: pernn.lab needs Linux or macOS\n"


def install(source, wheels, site):
    """Install a package from a wheel that is built of its sources; nothing is fetched."""
    run = (sys.executable, "-m")
    building = ("build", "-q", "--wheel", "--no-isolation", "-o", wheels, source)
    subprocess.run([*run, *building], check=True)
    (wheel,) = wheels.glob("*.whl")
    installing = ("pip", "install", "-q", "--no-deps", "--no-index", "--target", site, wheel)
    subprocess.run([*run, *installing], check=True)
    return wheel


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("pyarrow")
    wheels, folder = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("site")
    assert install(ROOT, wheels, folder).stat().st_size < 16_000_000
    return folder


def call(site, folder, *words):
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PERNN_")}
    env = {**usual, "PYTHONPATH": str(site), "COLUMNS": "200"}
    return python("-m", "pernn", *words, cwd=folder, env=env)


def test_commands_that_look_answer_in_an_empty_folder(site, tmp_path):
    (part,) = re.findall(
        r"^## Check it$(.*?)^## ", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    commands = re.findall(r"^\.venv/bin/pernn (.*)$", part, re.MULTILINE)
    assert len(commands) == 2
    pace = "compare encoding.kind=sinusoidal encoding.kind=none --sweep vocabulary_size-small"
    for command in (*commands, f"{pace} --until 0.9"):
        done = call(site, tmp_path, *shlex.split(command))
        assert not done.returncode, done.stderr
        assert not done.stderr
        assert len(done.stdout.splitlines()) > 10
    told = call(site, tmp_path, "report", "temperature-small-62215508", "--claims")
    assert "registered (plan" in told.stdout
    assert not [*tmp_path.iterdir()]


def test_trials_published_here_stand_beside_those_of_the_wheel(site, tmp_path):
    (tmp_path / "evidence").mkdir()
    told = call(site, tmp_path, "report", "sorting-small", "--claims")
    assert told.returncode == 0, told.stderr
    told = call(site, tmp_path, "report", "no_such_sweep")
    assert told.returncode == 2
    shipped = site / "pernn" / "lab" / "published"
    there = len([*shipped.glob("*.parquet")])
    where = f"looked for in {tmp_path / 'evidence'} and {shipped} (there: {there} published sweeps)"
    assert where in told.stderr
