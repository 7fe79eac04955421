"""What a query may do: read, within bounds, and be told in one line what was wrong."""

import json
import random
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pernn.errors import ConfigError, MachineError
from pernn.store import Sweep, queries, query, save_sweep, tables
from store.finished import begin, finish, spec

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    runs = [finish(root, spec(seed), random.Random(seed)) for seed in range(3)]
    save_sweep(root, Sweep("one-demo", "one", "demo", {}, [run.fingerprint for run in runs]))
    return root


@pytest.fixture(scope="module")
def filled(results: Path) -> Iterator[Any]:
    with closing(queries.connect()) as connection:
        queries.fill(connection, tables.read_tables(results, "one-demo", None, print), None)
        yield connection


def answer(connection: Any, statement: str) -> list[Any]:
    return [row for rows in queries.answer(connection, statement, ["trials"]) for row in rows]


REFUSED = [
    "INSERT INTO status BY NAME SELECT 1 AS seed",
    "UPDATE status SET state = 'finished'",
    "DELETE FROM status",
    "DROP TABLE status",
    "CREATE TABLE x (y INT)",
    "WITH x AS (SELECT 1) DELETE FROM status",
    "ATTACH '{outside}' AS x",
    "COPY trials TO '{outside}'",
    "EXPORT DATABASE '{outside}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "BEGIN",
    "SELECT 1; SELECT 2",
    "",
    "-- nothing",
    "SELECT * FROM read_text('{inside}')",
    "SELECT * FROM read_csv('{inside}')",
    "SELECT * FROM read_blob('{inside}')",
    "SELECT * FROM '{inside}'",
    "SELECT * FROM 'https://example.org/x.csv'",
    "SELECT * FROM read_csv('https://example.org/x.csv')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM connection",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_whatever_does_more_than_read_is_refused(
    filled: Any, tmp_path: Path, statement: str
) -> None:
    inside = tmp_path / "inside.csv"
    inside.write_text("hush\n")
    before = answer(filled, "SELECT * FROM status")
    with pytest.raises(ConfigError) as said:
        answer(filled, statement.format(inside=inside, outside=tmp_path / "outside"))
    assert "\n" not in str(said.value)
    assert "hush" not in str(said.value)
    assert list(tmp_path.iterdir()) == [inside]
    assert answer(filled, "SELECT * FROM status") == before


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM trails", r'Did you mean "trials".*\(there: trials\)'),
        ("SELECT token_acuracy FROM trials", '"token_accuracy"'),
        ("SELECT core.kind FROM trials", 'in double quotes: "core.kind"'),
        ("SELEC 1", "syntax error"),
        ("SELECT list(range) FROM range(1000000000)", "more than 1 GiB of memory"),
    ],
)
def test_a_mistake_is_answered_in_one_line(filled: Any, statement: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        answer(filled, statement)
    assert "\n" not in str(error.value)


def test_values_come_as_json_has_them(filled: Any) -> None:
    values = r"1.5, 2::HUGEINT * 2::HUGEINT**0, 'nan'::DOUBLE, '\x61'::BLOB, [1, NULL], {'a': true}"
    (row,) = answer(filled, f"SELECT {values}, DATE '2026-01-02'")[1:]
    assert row == [1.5, 2, "nan", "61", [1, None], {"a": True}, "2026-01-02"]
    assert json.loads(json.dumps(row)) == row


def test_columns_take_whatever_the_files_hold(tmp_path: Path) -> None:
    metrics = [
        {
            "loss": 1,
            "mixed": 1,
            "flag": True,
            "huge": 2**70,
            'a "name"': 0.5,
            "LOSS": 7,
            "late": None,
        },
        {"loss": 0.25, "mixed": "two", "flag": None, "huge": 1, "half": "\ud800", "late": 2},
    ]
    rows = [{"run": str(n), **metrics[n > 0]} for n in range(queries.NUM_ROWS + 2)]
    with closing(queries.connect()) as connection:
        names = queries._load(connection, "status", rows)
        (first, *_, last) = answer(connection, "SELECT * FROM status ORDER BY run::INT")[1:]
    assert names == ["run", "loss", "mixed", "flag", "huge", 'a "name"', "LOSS_2", "late", "half"]
    assert first == ["0", 1.0, "1", True, str(2**70), 0.5, 7, None, None]
    assert last == [str(len(rows) - 1), 0.25, "two", None, "1", None, None, 2, "?"]


def test_what_is_not_finished_or_damaged_is_not_among_the_trials(tmp_path: Path) -> None:
    done, damaged = (finish(tmp_path, spec(seed), random.Random(seed)) for seed in (1, 2))
    text = (damaged.path / "result.json").read_text()
    (damaged.path / "result.json").write_text(text.replace("0.", "1.", 1))
    runs = [done.fingerprint, damaged.fingerprint, begin(tmp_path, spec(3)).fingerprint, "e" * 16]
    save_sweep(tmp_path, Sweep("one-demo", "one", "demo", {}, runs))
    with closing(queries.connect()) as connection:
        found = tables.read_tables(tmp_path, "one-demo", None, print)
        queries.fill(connection, found, "status")
        assert answer(connection, "SELECT run FROM trials")[1:] == [[done.fingerprint]]
        sql = 'SELECT state, seed, loss IS NULL FROM status ORDER BY "position"'
        assert answer(connection, sql)[1:] == [
            ["finished", 1, False],
            ["damaged", 2, True],
            ["stopped", 3, True],
            ["waiting", None, True],
        ]


def test_rows_come_without_end(results: Path) -> None:
    wide = ", ".join(["random()"] * 400)
    chunks = query(results, f"SELECT {wide} FROM range(1000000000)", sweep="one-demo")  # noqa: S608
    names, *some = [row for _ in range(20) for row in next(chunks)]
    assert len(some) > 500
    assert {len(row) for row in (names, *some)} == {400}


def test_text_that_is_no_utf8_is_refused(results: Path) -> None:
    with pytest.raises(ConfigError, match="UTF-8"):
        list(query(results, "SELECT '\ud800'", sweep="one-demo"))


def test_what_is_missing_is_named(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"no sweep 'two-demo'.*one-demo"):
        query(results, "SELECT 1", sweep="two-demo")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MachineError, match=r"pip install 'pernn\[duckdb\]'"):
        query(results, "SELECT 1", sweep="one-demo")
