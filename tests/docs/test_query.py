"""docs/query.md: every recipe gives the right answer where other experiments lie beside it."""

import random
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from pernn.errors import ConfigError
from pernn.store import (
    RunDirectory,
    Sweep,
    load_sweep,
    publish,
    query,
    read_records,
    save_sweep,
)
from store.finished import begin, finish, spec

pytest.importorskip("duckdb")

PAGE = (Path(__file__).parents[2] / "docs" / "query.md").read_text(encoding="utf-8")
(WHICH, GAIN, CURVE, TABLE, STANDS, WRONG, LONGEST) = re.findall(
    r"^```sql\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE
)
COMMANDS = re.findall(r"^pernn query (\S+) '(.*)'$", PAGE, flags=re.MULTILINE)
SWEEP = "vocabulary_size-demo"
LONG = spec(2).fingerprint()
CONDITION = ("task.kind", "core.kind", "encoding.kind")


def conditions(change=None):
    """Two seeds of two cores, with the encoding and without."""
    both = [spec(seed, core).override(change or {}) for seed in (1, 2) for core in ("gru", "lstm")]
    return [*both, *(one.override({"encoding.kind": "none"}) for one in both)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sweep, and beside it others that differ from it in one setting, and a run of no sweep."""
    root = tmp_path_factory.mktemp("results")
    noise = random.Random(1)
    own = conditions()
    other = conditions(
        {"task": {"kind": "sorting", "vocab_size": 4, "length": 5, "num_held_out": 9}}
    )
    wide = conditions({"core.hidden_size": 16})
    for one in (*own, *other, *wide, spec(8)):
        run = finish(root, one, noise)
        for update in (1, 2):
            run.append_metrics({"update": update, "kind": "test", "loss": noise.random()})
        run.append_metrics({"update": 2, "kind": "train", "loss": 100.0})
    journal = RunDirectory(root, LONG).path / "journal.jsonl"
    journal.write_text(
        '{"time": "2026-01-01T23:00:00.000+00:00", "event": "started", "update": 0}\n'
        '{"time": "2026-01-02T01:30:00.000+01:00", "event": "finished", "update": 9}\n'
    )
    failed = begin(root, spec(3))
    failed.note("failed", update=5, reason="the loss became nan")
    for name, specs, more in (
        (SWEEP, own, [failed.fingerprint, "e" * 16]),
        ("sorting-demo", other, []),
        ("wide-demo", [*own, *wide], []),
    ):
        runs = [one.fingerprint() for one in specs]
        save_sweep(root, Sweep(name, name[:-5], "demo", {}, [*runs, *more]))
    return root


@pytest.fixture(scope="module")
def records(results):
    return read_records(results, [one.fingerprint() for one in conditions()])


def ask(results, statement, sweep=SWEEP, published=None):
    chunks = query(results, statement, sweep=sweep, published=published)
    _, *rows = [row for rows in chunks for row in rows]
    return [tuple(row) for row in rows]


def grouped(rows, *keys):
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return sorted(found.items())


def test_which_condition_is_how_good(results, records):
    expected = [
        (*key, 4, 2, mean(found), min(found))
        for key, rows in grouped(records, *CONDITION)
        for found in [[row["token_accuracy"] for row in rows]]
    ]
    assert ask(results, WHICH) == expected


def test_the_gain_seed_by_seed(results, records):
    pairs = grouped(records, "seed", "task.kind", "core.kind", "task.vocab_size")
    expected = []
    for key, rows in pairs:
        by = {row["encoding.kind"]: row["token_accuracy"] for row in rows}
        expected.append((*key, by["sinusoidal"] - by["none"]))
    assert len(expected) == 4
    assert ask(results, GAIN) == expected


def test_a_gain_that_would_mix_trials_is_an_error(results):
    with pytest.raises(ValueError, match="More than one row"):
        ask(results, GAIN, "wide-demo")


def test_how_the_loss_fell(results, records):
    lines = [
        {**record, **line}
        for record in records
        for line in RunDirectory(results, record["run"]).read_metrics()
        if line["kind"] == "test"
    ]
    expected = [
        (*key, mean(row["loss"] for row in rows))
        for key, rows in grouped(lines, *CONDITION, "update")
    ]
    assert len(expected) == 8
    assert ask(results, CURVE) == expected
    last = [
        (*key, 300_000, mean(row["loss"] for row in rows))
        for key, rows in grouped(records, *CONDITION)
    ]
    assert ask(results, TABLE) == last


def test_how_the_sweep_stands(results):
    assert ask(results, STANDS) == [("failed", 1), ("finished", 8), ("waiting", 1)]
    assert ask(results, WRONG) == [(spec(3).fingerprint(), "the loss became nan")]


def test_what_took_longest(results, records):
    runs = sorted(row["run"] for row in records)
    runs.remove(LONG)
    longest, *others = [(run, hours) for run, _, hours in ask(results, LONGEST)]
    assert longest == (LONG, 1.5)
    # A run that ends in the next second has taken one.
    assert sorted(run for run, _ in others) == runs
    assert others == sorted(others, key=lambda one: (-one[1], one[0]))
    assert all(0 <= hours < 0.1 for _, hours in others)


def test_published_trials_answer_alike(results, tmp_path):
    pytest.importorskip("pyarrow")
    here, folder = tmp_path / "results", tmp_path / "evidence"
    publish(results, load_sweep(results, SWEEP), folder, lambda run: [run])

    def ask_published(statement, sweep=SWEEP):
        return ask(here, statement, sweep, folder)

    for statement in (WHICH, GAIN, TABLE):
        assert ask_published(statement) == ask(results, statement)
    # Of the tests, a published curve has what the table has.
    assert ask_published(CURVE) == ask(results, TABLE)
    assert ask_published(STANDS) == [("finished", 8)]
    assert {hours for _, _, hours in ask_published(LONGEST)} == {None}
    assert ask_published(COMMANDS[1][1], None) == [(SWEEP, "finished", 8)]
    with pytest.raises(ConfigError, match="no sweep 'wide-demo'"):
        ask_published(STANDS, "wide-demo")
    with pytest.raises(ConfigError, match=r"no results in .*: start with `pernn run`"):
        ask(here, STANDS, None)

    # Of a sweep that is here, what is missing is taken, and a run keeps its own result.
    own, *others = (one.fingerprint() for one in conditions())
    finish(here, conditions()[0], random.Random(2))
    save_sweep(here, Sweep(SWEEP, SWEEP[:-5], "demo", {}, [own, *others, "e" * 16]))
    assert ask_published(STANDS) == [("finished", 8), ("waiting", 1)]
    loss = "SELECT loss FROM trials WHERE NOT published"
    assert ask_published(loss) == [(read_records(here, [own])[0]["loss"],)]
    assert ask(here, STANDS) == [("finished", 1), ("waiting", 8)]


def test_the_commands(results, records):
    assert [sweep for sweep, _ in COMMANDS] == ["vocabulary_size", "--all"]
    by_core = {
        core: mean(row["token_accuracy"] for row in rows)
        for (core,), rows in grouped(records, "core.kind")
    }
    assert dict(ask(results, COMMANDS[0][1])) == pytest.approx(by_core)
    assert ask(results, COMMANDS[1][1], sweep=None) == [
        ("sorting-demo", "finished", 8),
        (SWEEP, "failed", 1),
        (SWEEP, "finished", 8),
        (SWEEP, "waiting", 1),
        ("wide-demo", "finished", 16),
        (None, "finished", 1),
    ]


def test_the_tables_are_those_of_the_page(results):
    rows = re.findall(r"^\| `(\w+)`(?:, …)? \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(name, said) for name, said, _ in ask(results, None)]
