"""The index under several processes, some of them killed."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pernn.store import indexed, query, read_status, read_statuses
from store.finished import expected, finish, indexed_values, spec

WRITER = """
import random, sys
from pathlib import Path
from pernn.store import register
from store.finished import finish, spec
root, first, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
missed = 0
for seed in range(first, first + number):
    run = finish(root, spec(seed), random.Random(seed))
    missed += not register(root, run.fingerprint)
print(missed)
"""
READER = """
import sys, time
from pathlib import Path
from pernn.store import query, read_statuses
root, number, seen = Path(sys.argv[1]), int(sys.argv[2]), 0
while seen < number:
    done = sum((root / "runs" / path.name / "result.json").exists()
               for path in (root / "runs").glob("*"))
    rows = query(root, "SELECT run, loss, seed FROM records").rows
    assert all(None not in row for row in rows), rows
    # Whatever was finished before the question is in the answer.
    assert len(rows) >= max(done, seen), (len(rows), done, seen)
    seen = len(rows)
    statuses = read_statuses(root, [row[0] for row in rows])
    assert {one.standing for one in statuses} <= {"done"}
    time.sleep(0.02)
"""


def start(script: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_writers_and_readers_at_once(tmp_path: Path) -> None:
    finish(tmp_path, spec(10**6), random.Random(0))
    writers = [start(WRITER, tmp_path, 100 * number, 30) for number in range(3)]
    readers = [start(READER, tmp_path, 91) for _ in range(3)]
    for process in [*writers, *readers]:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    with indexed(tmp_path) as connection:
        assert indexed_values(connection) == expected(tmp_path)


@pytest.mark.slow
def test_killed_at_any_moment_it_comes_right(tmp_path: Path) -> None:
    """Writers that are killed, often within a commit, or between a result and its registration."""
    (tmp_path / "runs").mkdir()
    noise = random.Random(0)
    script = WRITER.replace("print(missed)", "").replace("for seed", "print(flush=True)\nfor seed")
    for attempt in range(12):
        process = start(script, tmp_path, 1000 * attempt, 1000)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(noise.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        with indexed(tmp_path) as connection:
            assert indexed_values(connection) == expected(tmp_path)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not (tmp_path / "index.damaged.sqlite").exists()


@pytest.mark.slow
def test_a_rebuild_that_is_killed_is_made_again(tmp_path: Path) -> None:
    runs = [finish(tmp_path, spec(seed), random.Random(seed)).fingerprint for seed in range(40)]
    script = "from pathlib import Path; import sys; from pernn.store import rebuild\n"
    script += "print(flush=True)\nwhile True: rebuild(Path(sys.argv[1]))"
    for delay in (0.0, 0.01, 0.02, 0.05):
        process = start(script, tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        assert len(query(tmp_path, "SELECT run FROM records").rows) == 40
    assert read_statuses(tmp_path, runs) == [read_status(tmp_path, run) for run in runs]
