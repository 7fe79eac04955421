"""The notebooks: each runs, at a small size, and shows what its own code gave."""

import importlib.util
import json
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
import torch

from pernn.lab.runners import InlineRunner

ROOT = Path(__file__).parents[2]
SIZES = {
    "own_text": {"num_updates": 3, "batch_size": 2, "length": 16, "hidden_size": 8},
    "oscillators": {
        "num_updates": 2,
        "vocab_size": 4,
        "hidden_size": 8,
        "seeds": [111],
        "runner": InlineRunner(),
    },
    "states": {
        "num_updates": 2,
        "vocab_size": 8,
        "length": 4,
        "hidden_size": 4,
        "num_pairs": 4,
        "num_sequences": 2,
    },
}
"""What takes the place of the values of each notebook's cell of parameters."""


def cells_of(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_every_notebook_is_here():
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_it_runs(name, tmp_path, monkeypatch, capsys, one_format):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names, shown = {}, []
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: shown.append(True))
    with mpl.rc_context({"backend": "agg"}), torch.random.fork_rng(), warnings.catch_warnings():
        # Two updates measure nothing that intervals could be made of.
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        for place, cell in enumerate(cells_of(name)):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}:{place}", "exec"), names)  # noqa: S102
            if "parameters" in cell["metadata"].get("tags", ()):
                assert SIZES[name].keys() <= names.keys()
                names.update(SIZES[name])
        names["plt"].close("all")
    said = capsys.readouterr().out
    code = [cell for cell in cells_of(name) if cell["cell_type"] == "code"]
    assert len(shown) == sum("plt.show()" in "".join(cell["source"]) for cell in code)
    assert said.strip()


@pytest.mark.parametrize("name", SIZES)
def test_what_it_shows_came_from_its_code(name):
    path = ROOT / "notebooks" / f"{name}.ipynb"
    assert path.stat().st_size < 1_000_000
    book = json.loads(path.read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said = f"outputs are of other code: make notebooks, or docs/notebooks.py {path.name}"
    assert book["metadata"]["pernn"]["code_sha256"] == module.digest(book["cells"]), said
    for cell in book["cells"]:
        source = "".join(cell["source"])
        kinds = [one["output_type"] for one in cell.get("outputs", ())]
        assert ("print(" in source and "def " not in source) <= ("stream" in kinds)
        assert ("plt.show()" in source) == ("display_data" in kinds)
        assert "error" not in kinds
