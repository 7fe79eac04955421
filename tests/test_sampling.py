"""Text from a run of language modelling."""

import json

import numpy as np
import pytest
import torch

import pernn.lab
from command_line import call, succeed
from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec, load_model
from pernn.lab.sampling import sample
from tiny import tiny


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("sampling")


@pytest.fixture(params=["as-written", "as-run"])
def run(request, root, monkeypatch):
    monkeypatch.setenv("PERNN_DATA", str(root / "data"))
    made = tiny("language_modelling", length=16, rules=request.param, training={"iterations": 2})
    pernn.lab.execute(made, root, device="cpu")
    return root / "runs" / made.fingerprint()


def test_the_text_is_that_of_the_likeliest_tokens(run):
    made, model = RunSpec.read(run / "spec.json"), load_model(run)
    task = made.build_task()
    pieces = task.corpus.pieces
    words = pieces.decode(task.corpus.ids("test", 0).astype(np.int64))[:20]
    begun = [task.vocab_size] * len(task.extra_rows) + pieces.encode([words])[0].tolist()
    ids = list(begun)
    for _ in range(9):
        # From the beginning each time, by what a training step computes.
        states = model.states(torch.tensor([ids]))
        ids.append(int(model.output_layer(states)[0, -1].argmax()))
    expected = torch.tensor(ids[len(task.extra_rows) :]).numpy()
    assert sample(run, words, num_tokens=9, temperature=0) == pieces.decode(expected)


def test_the_verb_repeats_by_its_seed_and_begins_where_a_beginning_is_known(run):
    def text(seed):
        done = succeed("sample", run, "--prompt", "a", "--tokens", 30, "--seed", seed, "--json")
        return json.loads(done.stdout)["text"]

    assert text(1) == text(1) == sample(run, "a", num_tokens=30, seed=1)
    assert text(1) != text(2)
    done = call("sample", run, "--tokens", 5)
    if RunSpec.read(run / "spec.json").task.rules == "as-written":
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    else:
        assert done.returncode == 2
        assert "--prompt is missing" in done.stderr


def test_a_run_of_another_task_is_refused(tmp_path):
    (tmp_path / "spec.json").write_text(json.dumps(RunSpec().dump()))
    with pytest.raises(ConfigError, match="expected a run of the task language_modelling"):
        sample(tmp_path)
