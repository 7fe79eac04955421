"""`pernn show` of a task: what it asks for, with real numbers."""

import json
import os
import subprocess
import sys

import pytest

from pernn.tasks import TASKS


def show(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pernn", "show", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "500"},
    )


SMALL = ("--set", "vocab_size=16", "--set", "length=4", "--set", "num_held_out=64")


@pytest.mark.parametrize("kind", TASKS.names())
def test_a_task_is_shown_by_samples(kind: str) -> None:
    done = show(kind, "--sample", 2, *SMALL)
    assert done.returncode == 0, done.stderr
    summary, name, *pictures = done.stdout.splitlines()
    config = TASKS.find(kind)(vocab_size=16, length=4, num_held_out=64)
    assert type(config).__doc__.startswith(summary)
    assert name == config.name
    assert len(pictures) == 8
    batch = config.build().stream(111).train(0, 2)
    for sample in range(2):
        gap, steps, shown, expected = (row.split() for row in pictures[4 * sample :][:4])
        assert not gap
        assert steps == ["step", *map(str, range(1, config.build().num_steps + 1))]
        tokens = batch.tokens[sample].tolist()
        query = "EMIT" if kind == "copying_memory" else "?"
        words = ["HOLD" if token == 17 else str(token) for token in tokens]
        assert shown == ["input", *words, *[query] * batch.num_queries]
        targets = list(map(str, batch.targets[sample].tolist()))
        assert expected == ["target", *["."] * (len(steps) - 1 - len(targets)), *targets]


def test_json_has_the_same_for_scripts() -> None:
    shown = json.loads(show("copying_memory", "--set", "hold_time=2", "--json").stdout)
    assert shown["task"]["hold_time"] == 2
    assert (shown["num_steps"], shown["num_scored"], shown["num_extra_rows"]) == (22, 10, 2)
    (sample,) = shown["samples"]
    assert sample["input"][10:] == ["HOLD"] * 2 + ["EMIT"] * 10
    assert sample["target"] == [None] * 12 + sample["input"][:10]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vocabulary_size", "--sample", 2], "vocabulary_size is an experiment"),
        (["sorting", "--scale", "paper"], "sorting is a task: it takes --sample, --set and --json"),
        (["sorting", "--set", "hold_time=2"], "hold_time: unknown key"),
        (["sortin"], "no experiment"),
    ],
)
def test_what_cannot_be_shown_is_refused(words: list[object], said: str) -> None:
    done = show(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
