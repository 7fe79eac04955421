"""docs/query.md: its tables are those of the index, and its statements run."""

import random
import re
from pathlib import Path

import pytest

from pernn.reports import export_records
from pernn.store import Sweep, describe_index, query, read_records, save_sweep
from store.finished import begin, finish, spec

PAGE = (Path(__file__).parents[2] / "docs" / "query.md").read_text(encoding="utf-8")
STATEMENTS = re.findall(r"^```sql\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
STATEMENTS += re.findall(r"^pernn query '(.*)'$", PAGE, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("results")
    noise = random.Random(1)
    specs = [spec(seed, core) for seed in (1, 2) for core in ("gru", "lstm")]
    specs += [one.override({"encoding.kind": "none"}) for one in specs]
    runs = [finish(root, one, noise).fingerprint for one in specs]
    begin(root, spec(3)).note("failed", update=5, reason="the loss became nan")
    save_sweep(root, Sweep("vocabulary_size-demo", "vocabulary_size", "demo", {}, runs))
    return root


def test_the_tables_are_those_of_the_page(results):
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert dict(rows) == {name: said for name, (said, _) in describe_index(results).items()}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_answers_something(results, statement):
    assert query(results, statement).rows


def test_the_example_of_duckdb_reads_what_was_exported(results, tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    sql = 'SELECT "core.kind", avg(token_accuracy) FROM records GROUP BY 1 ORDER BY 1'
    runs = [path.name for path in (results / "runs").iterdir()]
    export_records(read_records(results, runs), tmp_path / "records.parquet")
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    exec(example, {})  # noqa: S102
    found = eval(capsys.readouterr().out)  # noqa: S307 printed by the example above
    expected = query(results, sql).rows
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [mean for _, mean in found] == pytest.approx([mean for _, mean in expected])
