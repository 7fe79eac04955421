"""The examples of docs/analysis.md, and that its table names every measure."""

import re
from pathlib import Path

import torch

from pernn.analysis import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")


def test_the_examples_run_and_the_table_is_complete():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    names = {}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for block in blocks:
            exec(compile(block, "docs/analysis.md", "exec"), names)  # noqa: S102
    assert len(blocks) == 6
    described = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, flags=re.MULTILINE))
    columns = set(names["table"]) - {"condition", "target", "disturbants", "num_pairs"}
    assert described == columns
    assert set(KINDS) < columns
