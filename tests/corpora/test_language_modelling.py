"""The task and its stream: order, filling up, and what is measured."""

import numpy as np
import pytest

from corpora.conftest import SMALL
from pernn.errors import ConfigError
from pernn.lab.corpora import (
    GrammarConfig,
    LanguageModelling,
    LanguageModellingConfig,
    WikitextConfig,
)
from pernn.lab.interfaces import UNSCORED, BatchStream, Predictions, Task
from pernn.lab.runs import RunSpec
from pernn.lab.tasks import TASKS


@pytest.fixture
def task(corpus):
    return LanguageModelling(
        name=SMALL.name, vocab_size=320, length=SMALL.length, open_corpus=lambda: corpus
    )


def rows(batch):
    return [tuple(row[row != UNSCORED].tolist()) for row in batch.targets]


def test_it_is_a_task_whose_spec_says_nothing_about_this_machine(corpus, monkeypatch):
    task = TASKS.find("language_modelling").load(SMALL.dump()).build()
    assert isinstance(task, Task)
    assert isinstance(task.stream(0), BatchStream)
    assert (task.num_steps, task.num_scored, task.num_queries) == (48, 48, 0)
    assert task.extra_rows == ("BOS",)
    assert task.stream(0).digest == corpus.digest
    fingerprints = set()
    for folder in ("/nowhere", "/elsewhere"):
        monkeypatch.setenv("PERNN_DATA", folder)
        fingerprints.add(LanguageModellingConfig().fingerprint())
    assert len(fingerprints) == 1
    assert "/" not in str(LanguageModellingConfig().dump())
    assert LanguageModellingConfig.load(SMALL.dump()) == SMALL


def test_inputs_are_the_targets_one_step_late(task):
    for batch in (task.stream(3).train(0, 16), task.stream(3).test()):
        scored = batch.targets != UNSCORED
        assert batch.num_queries == 0
        assert scored[:, 0].all()
        assert (np.diff(scored.astype(int), axis=1) <= 0).all()
        assert (batch.tokens[:, 0] == 320).all()
        assert (batch.tokens[:, 1:][scored[:, 1:]] == batch.targets[:, :-1][scored[:, 1:]]).all()
        assert (batch.tokens[~scored] == 320).all()
        assert scored.sum(axis=1).max() == batch.targets.shape[1] <= 48
        assert ((batch.targets[scored] >= 0) & (batch.targets[scored] < 320)).all()


def test_as_run_the_first_and_unknown_pieces_are_not_asked_for(as_run, monkeypatch):
    assert (as_run.num_steps, as_run.num_scored, as_run.extra_rows) == (47, 47, ())
    corpus = as_run.corpus
    for index in range(corpus.num_paragraphs("test")):
        batch = as_run.batch("test", np.array([index]))
        ids = corpus.ids("test", index, 48).astype(np.int64)
        assert batch.tokens.tolist() == [ids[:-1].tolist()]
        assert batch.targets.tolist() == [np.where(ids[1:] == 0, UNSCORED, ids[1:]).tolist()]
    filled = as_run.stream(0).train(0, 16)
    assert filled.tokens.shape == filled.targets.shape
    assert ((filled.tokens >= 0) & (filled.tokens < 320)).all()
    assert as_run.name.endswith("corpus=grammar rules=as-run")
    rows = {0: [7, 0, 9, 8], 1: [0, 6]}
    monkeypatch.setattr(
        type(as_run.corpus), "ids", lambda self, split, index, length: np.array(rows[index])
    )
    batch = as_run.batch("test", np.array([0, 1]))
    assert batch.tokens.tolist() == [[7, 0, 9], [0, 0, 0]]
    assert batch.targets.tolist() == [[UNSCORED, 9, 8], [6, UNSCORED, UNSCORED]]


def test_the_preset_fills_in_the_rules_that_are_left_open():
    tasks = {
        (preset, rules): RunSpec.load(
            {"task": {**SMALL.dump(), "rules": rules}, "preset": preset}
        ).build_task()
        for preset in ("as-run", "as-written")
        for rules in (None, "as-run", "as-written")
    }
    assert {key: task.rules for key, task in tasks.items()} == {
        (preset, rules): rules or preset for preset, rules in tasks
    }


def test_a_batch_is_a_function_of_its_step_and_may_belong_to_two_epochs(task):
    forward = [task.stream(7).train(step, 64) for step in range(12)]
    stream = task.stream(7)
    for step in [11, 0, 5, 9, 5, 1]:
        batch = stream.train(step, 64)
        assert np.array_equal(batch.tokens, forward[step].tokens)
        assert np.array_equal(batch.targets, forward[step].targets)
    assert not np.array_equal(task.stream(8).train(0, 64).tokens[:, :9], forward[0].tokens[:, :9])
    stream = task.stream(1)
    single = [rows(stream.train(step, 1))[0] for step in range(290, 310)]
    assert rows(stream.train(29, 10)) + rows(stream.train(30, 10)) == single


@pytest.mark.parametrize("batch_size", [7, 43, 301, 700])
def test_every_epoch_shows_each_paragraph_once(task, corpus, batch_size):
    # 301 = 7 · 43 paragraphs: with 700 a batch holds more than two epochs.
    stream = task.stream(1)
    shown = [
        row for step in range(-(-602 // batch_size)) for row in rows(stream.train(step, batch_size))
    ]
    every = sorted(rows(task.batch("train", np.arange(301))))
    assert sorted(shown[:301]) == sorted(shown[301:602]) == every
    assert shown[:301] != shown[301:602]


def test_all_test_paragraphs_come_by_length_and_long_ones_are_cut(task, corpus):
    shown = rows(task.stream(0).test())
    assert [len(row) for row in shown] == sorted(len(row) for row in shown)
    assert sorted(shown) == sorted(rows(task.batch("test", np.arange(40))))
    assert not set(shown) & set(rows(task.batch("train", np.arange(301))))
    index = int(np.argmax(corpus.lengths("train")))
    (row,) = rows(task.batch("train", np.array([index])))
    assert row == tuple(corpus.ids("train", index).tolist()[:48])


def test_perplexity_is_that_of_the_mean_over_tokens(task):
    stream = task.stream(0)
    batch = stream.test()
    scored = batch.targets != UNSCORED
    losses = np.where(scored, np.random.default_rng(1).random(scored.shape), np.nan)
    found = stream.measure(Predictions(batch.targets, losses))
    mean = losses[scored].mean()
    assert found.metrics == {"perplexity": pytest.approx(np.exp(mean)), "token_accuracy": 1.0}
    table = found.tables["by_position"]
    assert table["position"] == [1, 2, 4, 8, 16, 32]
    for start, end, value, number in zip(
        table["position"], [2, 4, 8, 16, 32, 99], table["perplexity"], table["num_tokens"],
        strict=True,
    ):  # fmt: skip
        part = losses[:, start - 1 : end - 1][scored[:, start - 1 : end - 1]]
        assert (value, number) == (pytest.approx(np.exp(part.mean())), part.size)


def test_parameters_of_other_tasks_are_refused():
    with pytest.raises(ConfigError, match="num_held_out: unknown key"):
        LanguageModellingConfig(num_held_out=5)
    # As-run the first token is not predicted.
    with pytest.raises(ConfigError, match=r"length: .* greater than or equal to 2"):
        LanguageModellingConfig(length=1)
    with pytest.raises(ConfigError, match="num_words"):
        GrammarConfig(num_words=1)
    with pytest.raises(ConfigError, match="name"):
        WikitextConfig(name="../up")
