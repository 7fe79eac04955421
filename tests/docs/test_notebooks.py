"""The notebooks: each runs, at a small size, and shows what its own code gave."""

import json
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
import torch

from notebooks import digest
from pernn.lab.runners import InlineRunner

ROOT = Path(__file__).parents[2]
SMALL = {"num_updates": 2, "vocab_size": 8, "hidden_size": 4}
SIZES = {
    "own_text": {"num_updates": 3, "batch_size": 2, "length": 16, "hidden_size": 8},
    "oscillators": {**SMALL, "seeds": [111], "runner": InlineRunner()},
    "states": {**SMALL, "length": 4, "num_pairs": 4, "num_sequences": 2},
}
"""What takes the place of the values of each notebook's cell of parameters."""


def book_of(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))


def test_every_notebook_is_here():
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_it_runs(name, tmp_path, monkeypatch, capsys, one_format):
    monkeypatch.chdir(tmp_path)
    names, shown, cells = {}, [], book_of(name)["cells"]
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: shown.append(True))
    with mpl.rc_context({"backend": "agg"}), torch.random.fork_rng(), warnings.catch_warnings():
        # Two updates measure nothing that intervals could be made of.
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        for place, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}:{place}", "exec"), names)  # noqa: S102
            if "parameters" in cell["metadata"].get("tags", ()):
                assert SIZES[name].keys() <= names.keys()
                names.update(SIZES[name])
        names["plt"].close("all")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(shown) == sum("plt.show()" in "".join(cell["source"]) for cell in code)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", SIZES)
def test_what_it_shows_came_from_its_code(name):
    assert (ROOT / "notebooks" / f"{name}.ipynb").stat().st_size < 1_000_000
    book = book_of(name)
    said = f"outputs are of other code: make notebooks, or docs/notebooks.py {name}.ipynb"
    assert book["metadata"]["pernn"]["code_sha256"] == digest(book["cells"]), said
    for cell in book["cells"]:
        source = "".join(cell["source"])
        kinds = [one["output_type"] for one in cell.get("outputs", ())]
        assert ("print(" in source and "def " not in source) <= ("stream" in kinds)
        assert ("plt.show()" in source) == ("display_data" in kinds)
        assert "error" not in kinds
