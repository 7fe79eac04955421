"""Networks as folders of the hub, with the real package, on this machine alone."""

import json
import shutil

import pytest
import torch

import pernn
from pernn.errors import ConfigError, CorruptError
from pernn.runs import RunSpec, load_model

pytest.importorskip("huggingface_hub")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of four updates; its directory."""
    root = tmp_path_factory.mktemp("hub")
    spec = RunSpec().override(
        {
            "core": {"kind": "lstm", "hidden_size": 8},
            "encoding.kind": "sinusoidal",
            "task.vocab_size": 4,
            "task.length": 5,
            "task.num_held_out": 16,
            "training.iterations": 4,
            "training.batch_size": 4,
            "training.checkpoint_interval": 2,
        }
    )
    pernn.execute(spec, root, device="cpu")
    return root / "runs" / spec.fingerprint()


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    return pernn.save_pretrained(run, tmp_path_factory.mktemp("folder") / "net")


def test_a_network_comes_back_from_its_folder_alone(run, folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    network = pernn.from_pretrained(moved)
    tokens = torch.randint(4, (3, 5))
    expected = load_model(run)
    assert torch.equal(network(tokens, num_queries=5), expected(tokens, num_queries=5))
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]


def test_the_card_tells_what_it_is(run, folder):
    card = (folder / "README.md").read_text()
    result = json.loads((run / "result.json").read_text())
    assert "library_name: pernn" in card
    assert "4 updates" in card
    assert f"| token_accuracy | {result['metrics']['token_accuracy']} |" in card
    assert 'pernn.from_pretrained("net")' in card
    assert json.loads((folder / "config.json").read_text())["update"] == 4


def test_another_checkpoint_has_no_metrics_of_the_end(run, tmp_path):
    folder = pernn.save_pretrained(run, tmp_path / "early", update=2)
    assert "token_accuracy" not in (folder / "README.md").read_text()
    with pytest.raises(ConfigError, match="no checkpoint of update 3"):
        pernn.save_pretrained(run, tmp_path / "none", update=3)


def _changed(folder, target, change):
    shutil.copytree(folder, target)
    path = target / "config.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    return target


def test_what_is_damaged_or_strange_is_refused(folder, tmp_path):
    own = _changed(
        folder, tmp_path / "own", lambda v: v["spec"]["core"].update(kind="antigravity:Config")
    )
    with pytest.raises(ConfigError, match="is no part of pernn"):
        pernn.from_pretrained(own)
    wide = _changed(folder, tmp_path / "wide", lambda v: v["spec"]["core"].update(hidden_size=16))
    with pytest.raises(CorruptError, match="do not fit"):
        pernn.from_pretrained(wide)
    cut = shutil.copytree(folder, tmp_path / "cut")
    (cut / "model.safetensors").write_bytes(b"\x08")
    with pytest.raises(CorruptError, match="do not fit"):
        pernn.from_pretrained(cut)
    (cut / "model.safetensors").rename(cut / "pytorch_model.bin")
    with pytest.raises((ConfigError, CorruptError)):
        pernn.from_pretrained(cut)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no folder of save_pretrained"):
        pernn.from_pretrained(tmp_path / "empty")
