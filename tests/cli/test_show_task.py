"""`pernn show` of a task: what it asks for, with real numbers."""

import json

import pytest

from command_line import succeed
from pernn.lab.interfaces import UNSCORED
from pernn.lab.tasks import TASKS


def show(*words):
    return succeed("show", *words, columns=500)


SMALL = {"vocab_size": 16, "length": 4, "num_held_out": 64}
# What a kind has other than that.
OPTIONS = {
    "dual_frequency": {"vocab_size": 16, "length": 4, "num_per_cell": 3},
    "variable_length": {**SMALL, "min_length": 2},
    "longer_inputs": {**SMALL, "min_length": 2, "num_held_out": 32},
    "vocabulary_extension": {**SMALL, "num_known": 8},
}
DRAWN = [
    kind for kind in TASKS.names() if kind not in ("infinite_vocabulary", "language_modelling")
]


@pytest.mark.parametrize("kind", DRAWN)
def test_a_task_is_shown_by_samples(kind):
    options = OPTIONS.get(kind, SMALL)
    done = show(kind, "--sample", 2, *(f"--set={key}={value}" for key, value in options.items()))
    summary, name, *pictures = done.stdout.splitlines()
    config = TASKS.find(kind)(**options)
    assert type(config).__doc__.startswith(summary)
    assert name == config.name
    assert len(pictures) == 8
    batch = config.build().stream(111).train(0, 2)
    for sample in range(2):
        gap, steps, shown, expected = (row.split() for row in pictures[4 * sample :][:4])
        assert not gap
        tokens = batch.tokens[sample]
        tokens = tokens.tolist() if tokens.ndim == 1 else tokens[:, 0].astype(int).tolist()
        query = {"copying_memory": "EMIT", "autoregressive": "DUMMY"}.get(kind, "?")
        signs = {16: query, 17: "HOLD"}
        words = [*(signs.get(token, str(token)) for token in tokens), *[query] * batch.num_queries]
        targets = batch.targets[sample].tolist()
        answers = ["." if target == UNSCORED else str(target) for target in targets]
        answers = ["."] * (len(words) - len(answers)) + answers
        if kind in ("variable_length", "longer_inputs"):
            # A sequence ends with its last answer; what fills it up is not shown.
            end = 2 * words.index(query)
            assert set(answers[end:]) <= {"."}
            words, answers = words[:end], answers[:end]
        else:
            assert len(words) == config.build().num_steps
        assert steps == ["step", *map(str, range(1, len(words) + 1))]
        assert shown == ["input", *words]
        assert expected == ["target", *answers]


def test_vectors_are_shown_by_their_first_components():
    sizes = {"dimension": 8, "length": 3, "num_held_out": 4}
    kind = "infinite_vocabulary"
    done = show(kind, "--sample", 2, *(f"--set={key}={value}" for key, value in sizes.items()))
    config = TASKS.find(kind)(**sizes)
    assert config.name == "infinite_vocabulary d=8 L=3 held_out=4"
    pictures = done.stdout.splitlines()[2:]
    firsts = config.build().stream(111).train(0, 2).tokens[:, :, 0]
    for sample in range(2):
        words = [f"{first:.2f}…" for first in firsts[sample]]
        shown, expected = (row.split()[1:] for row in pictures[4 * sample + 2 :][:2])
        assert shown == [*words, "0", "0", "0"]
        assert expected == [".", ".", ".", *reversed(words)]


def test_a_corpus_is_shown_by_its_paragraphs():
    corpus = '{"kind":"grammar","num_paragraphs":301,"num_held_out":40,"num_words":400}'
    sizes = ("--set=vocab_size=320", "--set=length=6", f"--set=corpus={corpus}")
    for rules, first in (("as-written", "BOS"), ("as-run", None)):
        done = show("language_modelling", "--sample", 1, *sizes, f"--set=rules={rules}")
        shown, expected = (row.split()[1:] for row in done.stdout.splitlines()[4:6])
        assert shown == [first or shown[0], *expected[:-1]]
        assert (shown[0] == "BOS") is bool(first)


def test_json_has_the_same_for_scripts_and_a_name_of_both_is_the_experiments():
    words = ("copying_memory", "--sample", 1, "--set", "hold_time=2", "--json")
    shown = json.loads(show(*words).stdout)
    assert shown["task"]["hold_time"] == 2
    assert (shown["num_steps"], shown["num_scored"]) == (22, 10)
    assert shown["extra_rows"] == ["EMIT", "HOLD"]
    (sample,) = shown["samples"]
    assert sample["input"][10:] == ["HOLD"] * 2 + ["EMIT"] * 10
    assert sample["target"] == [None] * 12 + sample["input"][:10]
    assert "trials" in show("sorting").stdout
