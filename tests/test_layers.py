"""The library without the laboratory's packages."""

import re
import subprocess
import sys
from importlib.metadata import requires

LAB = [
    re.split(r"[<>=\[; ]", line)[0].replace("-", "_")
    for line in requires("pernn") or []
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


def run(code):
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code], capture_output=True, check=False, text=True
    )


def test_the_library_needs_no_package_of_the_laboratory():
    assert {"pydantic", "typer", "scipy", "matplotlib"} <= set(LAB)
    done = run(USE)
    assert done.returncode == 0, done.stderr


def test_the_command_without_the_laboratory_says_what_to_install():
    done = run("from pernn.lab.cli import main\nmain()")
    assert done.returncode == 1
    assert re.fullmatch(r"pernn: this needs \w+: .*pip install .*\n", done.stderr), done.stderr
