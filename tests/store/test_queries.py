"""What a query may do: read, within bounds, and be told in one line what was wrong."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pernn.errors import ConfigError
from pernn.store import describe_index, queries, query
from store.finished import finish, spec


def bomb(select: str) -> str:
    """A statement that has no end."""
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {select}"  # noqa: S608


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    for seed in range(3):
        for core in ("gru", "lstm"):
            finish(root, spec(seed, core), random.Random(seed))
    # What is this new may change without a later date, and would be read again.
    time.sleep(0.05)
    return root


def test_means_by_condition(results: Path) -> None:
    sql = 'SELECT "core.kind", count(*), avg(token_accuracy) FROM records GROUP BY 1 ORDER BY 1'
    answer = query(results, sql)
    assert answer.columns == ("core.kind", "count(*)", "avg(token_accuracy)")
    assert [row[:2] for row in answer.rows] == [("gru", 3), ("lstm", 3)]


REFUSED = [
    "INSERT INTO runs (run) VALUES ('x')",
    "UPDATE runs SET standing = 'done'",
    "DELETE FROM metrics",
    "DROP TABLE runs",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "CREATE VIEW x AS SELECT 1",
    "ALTER TABLE runs ADD COLUMN x",
    "REPLACE INTO runs SELECT * FROM runs",
    "WITH x AS (SELECT 1) DELETE FROM runs",
    "ATTACH DATABASE '{outside}' AS x",
    "ATTACH DATABASE ':memory:' AS x",
    "DETACH DATABASE main",
    "VACUUM",
    "VACUUM INTO '{outside}'",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = WAL",
    "PRAGMA temp_store_directory = '{outside}'",
    "SELECT * FROM pragma_user_version",
    "SELECT load_extension('{outside}')",
    "SELECT writefile('{outside}', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x', 'touch {outside}')",
    "SELECT fts3_tokenizer('simple')",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT x",
    "REINDEX",
    "ANALYZE",
    "SELECT 1; DELETE FROM runs",
    "SELECT 1\x00",
    "SELECT '\ud800'",
    "",
    "-- nothing",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_whatever_does_more_than_read_is_refused(
    results: Path, tmp_path: Path, statement: str
) -> None:
    before = query(results, "SELECT * FROM runs")
    content = (results / "index.sqlite").read_bytes()
    with pytest.raises(ConfigError) as said:
        query(results, statement.format(outside=tmp_path / "outside"))
    assert "\n" not in str(said.value)
    assert (results / "index.sqlite").read_bytes() == content
    assert query(results, "SELECT * FROM runs") == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (bomb("count(*) FROM n"), "longer than 0.3 s"),
        (bomb("i FROM n ORDER BY random()"), "longer than 0.3 s"),
        (
            "SELECT count(*) FROM settings a, settings b, settings c, settings d, settings e",
            "0.3 s",
        ),
        (bomb("i FROM n"), "more than 1,000 rows"),
        ("SELECT zeroblob(2000000000)", "too much memory"),
        ("SELECT hex(zeroblob(16000000))", "too much memory"),
    ],
)
def test_bombs_are_stopped(results: Path, statement: str, said: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=said):
        query(results, statement, seconds=0.3, max_rows=1000)
    assert time.monotonic() - begun < 10


def test_large_rows_are_counted_in_bytes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_MEMORY", 2**24)
    with pytest.raises(ConfigError, match="too much memory"):
        query(results, bomb("printf('%.*c', 1000000, 'x') FROM n"))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM recods", "did you mean 'records'.*tables: records, trials, runs"),
        ("SELECT token_acuracy FROM records", "did you mean 'token_accuracy'.*columns: records: "),
        ("SELECT core.kind FROM records", 'in double quotes, "core.kind"'),
        ("SELEC 1", "syntax error"),
        ("SELECT lower(1, 2)", "wrong number of arguments"),
    ],
)
def test_a_mistake_is_answered_with_what_there_is(results: Path, statement: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        query(results, statement)


def test_text_that_is_no_utf8_is_shown_all_the_same(results: Path) -> None:
    assert query(results, "SELECT CAST(x'61ff' AS TEXT)").rows == [("a\ufffd",)]


def test_the_schema_has_every_table_and_its_columns(results: Path) -> None:
    found = describe_index(results)
    for name, (said, columns) in found.items():
        assert said
        assert query(results, f"SELECT * FROM {name}").columns == tuple(columns)  # noqa: S608
    assert {"seed", "core.kind", "token_accuracy"} <= set(found["records"][1])


def test_ctrl_c_stops_a_query(results: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom pernn.store import query\n"
        "print(flush=True)\ntry: query(Path(sys.argv[1]), sys.argv[2])\n"
        "except KeyboardInterrupt: sys.exit(7)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, results, bomb("count(*) FROM n")],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 7
    process.stdout.close()
