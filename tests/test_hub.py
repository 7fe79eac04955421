"""Networks as folders of the hub, on this machine alone."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import pernn.lab
from pernn.errors import ConfigError, CorruptError, install_command
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.runs import RunSpec, load_model
from pernn.models import AutoregressiveRNN
from tiny import TINY, tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of four updates; its directory."""
    root = tmp_path_factory.mktemp("hub")
    spec = RunSpec().override({"core.kind": "lstm", "encoding.kind": "sinusoidal", **TINY})
    pernn.lab.execute(spec, root, device="cpu")
    return root / "runs" / spec.fingerprint()


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    return pernn.lab.save_pretrained(run, tmp_path_factory.mktemp("folder") / "net")


def test_a_network_comes_back_from_its_folder_alone(run, folder, tmp_path):
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    network = pernn.lab.from_pretrained(moved)
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
    assert 'pernn.lab.from_pretrained("net")' in card
    assert json.loads((folder / "config.json").read_text())["update"] == 4


def test_another_checkpoint_has_no_metrics_of_the_end(run, tmp_path):
    folder = pernn.lab.save_pretrained(run, tmp_path / "early", update=2)
    assert "token_accuracy" not in (folder / "README.md").read_text()
    with pytest.raises(ConfigError, match="no checkpoint of update 3"):
        pernn.lab.save_pretrained(run, tmp_path / "none", update=3)


@pytest.mark.parametrize("encoding", ENCODINGS.builtin)
@pytest.mark.parametrize("core", CORES.builtin)
def test_a_model_comes_back_from_its_folder(core, encoding, tmp_path, generator):
    sizes = {"embedding_size": 6, "hidden_size": 8, "num_positions": 9, "generator": generator}
    network = pernn.PositionEncodedRNN(5, core, encoding, num_layers=2, **sizes)
    folder = pernn.lab.save_pretrained(network, tmp_path / "net")
    found = pernn.lab.from_pretrained(folder)
    tokens = torch.randint(5, (3, 4), generator=generator)
    assert torch.equal(found(tokens, num_queries=4), network(tokens, num_queries=4))
    assert "core " + core in (folder / "README.md").read_text()
    (folder / "README.md").write_text("mine")
    pernn.lab.save_pretrained(network.double(), folder)
    assert (folder / "README.md").read_text() == "mine"
    weights = pernn.lab.from_pretrained(folder).state_dict()
    assert all(torch.equal(one, weights[name]) for name, one in network.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("autoregressive", "AutoregressiveRNN"),
        ("coded_reversal", "CodedRNN"),
        ("infinite_vocabulary", "VectorRNN"),
    ],
)
def test_networks_of_other_classes_come_back_from_their_runs(kind, name, tmp_path):
    spec = tiny(kind)
    pernn.lab.execute(spec, tmp_path, device="cpu")
    run = tmp_path / "runs" / spec.fingerprint()
    found = pernn.lab.from_pretrained(pernn.lab.save_pretrained(run, tmp_path / "net"))
    expected = load_model(run)
    assert type(found).__name__ == type(expected).__name__ == name
    assert found.state_dict().keys() == expected.state_dict().keys()
    weights = expected.state_dict()
    assert all(torch.equal(one, weights[key]) for key, one in found.state_dict().items())
    batch = spec.build_task().stream(1).test()
    tokens, steps = torch.from_numpy(batch.tokens), batch.targets.shape[1]
    options = {"num_queries": batch.num_queries, "num_scored": steps}
    assert torch.equal(found.states(tokens, **options), expected.states(tokens, **options))


@pytest.mark.parametrize(
    "network",
    [
        torch.nn.LSTM(3, 4),
        pernn.PositionEncodedRNN(5, pernn.LSTM(8, 8), pernn.NoEncoding(), embedding_size=8),
        AutoregressiveRNN(5, "lstm", "none", embedding_size=4, hidden_size=4, phase_size=2),
    ],
    ids=lambda network: type(network).__name__,
)
def test_a_network_that_its_folder_could_not_tell_is_refused(network, tmp_path):
    with pytest.raises(ConfigError, match="whose core and encoding were given by kind"):
        pernn.lab.save_pretrained(network, tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_a_folder_of_an_earlier_pernn_is_read(folder, run, tmp_path):
    # Its weights were written by the hub's mixin, under the same names, with metadata.
    old = shutil.copytree(folder, tmp_path / "old")
    save_file(load_file(folder / "model.safetensors"), old / "model.safetensors", {"format": "pt"})
    config = json.dumps(json.loads((folder / "config.json").read_text()), sort_keys=True)
    (old / "config.json").write_text(config)
    tokens = torch.randint(4, (3, 5))
    network = pernn.lab.from_pretrained(old)
    assert torch.equal(network(tokens, num_queries=5), load_model(run)(tokens, num_queries=5))


def test_without_the_hubs_package_a_folder_is_read(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert pernn.lab.from_pretrained(folder)
    with pytest.raises(pernn.PernnError, match=re.escape(install_command("hub"))):
        pernn.lab.from_pretrained("owner/name")


def test_what_is_not_on_the_hub_is_said_in_one_line(tmp_path):
    pytest.importorskip("huggingface_hub")
    (tmp_path / "empty").mkdir()
    for place in ("owner/name", str(tmp_path / "gone"), str(tmp_path / "empty"), "a/b/c"):
        with pytest.raises(ConfigError, match="is no folder of save_pretrained"):
            pernn.lab.from_pretrained(place, local_files_only=True, cache_dir=tmp_path)


EVIL = "from pathlib import Path\n\nPath(__file__).with_name('executed').touch()\n"
PLACES = ("core", "encoding", "task", "pretraining.task", "network.core", "network.encoding")


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_no_module_that_a_folder_names_is_imported(folder, tmp_path, monkeypatch, place, as_table):
    hostile = shutil.copytree(folder, tmp_path / "hostile")
    (hostile / "weights_util.py").write_text(EVIL)
    monkeypatch.chdir(hostile)
    monkeypatch.syspath_prepend("")
    values = json.loads((hostile / "config.json").read_text())
    name = {"kind": "weights_util:Config"} if as_table else "weights_util:Config"
    if place.startswith("network."):
        sizes = {"embedding_size": 4, "hidden_size": 4, "num_layers": 1, "num_positions": 9}
        kinds = {"core": "lstm", "encoding": "none", place.removeprefix("network."): name}
        values = {"network": {"vocab_size": 4, "num_extra_rows": 1, **sizes, **kinds}}
    elif place == "pretraining.task":
        values["spec"]["pretraining"] = {"task": name}
    else:
        values["spec"][place] = name
    (hostile / "config.json").write_text(json.dumps(values))
    with pytest.raises(ConfigError) as refused:
        pernn.lab.from_pretrained(Path())
    assert "\n" not in str(refused.value)
    assert not (hostile / "executed").exists()
    assert "weights_util" not in sys.modules


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "zeros", "folder", "missing"])
def test_what_is_no_file_is_refused_at_once(folder, tmp_path, name, kind):
    odd = shutil.copytree(folder, tmp_path / "odd")
    (odd / name).unlink()
    if kind == "pipe":
        os.mkfifo(odd / name)
    elif kind == "zeros":
        (odd / name).symlink_to("/dev/zero")
    elif kind == "folder":
        (odd / name).mkdir()
    with pytest.raises((ConfigError, CorruptError)):
        pernn.lab.from_pretrained(odd)


def each(change):
    """Return what changes every tensor of a folder."""

    def rewrite(odd):
        weights = load_file(odd / "model.safetensors")
        made = {name: change(one) for name, one in weights.items()}
        save_file(made, odd / "model.safetensors")

    return rewrite


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (each(lambda one: one * float("nan")), "NaN or infinity"),
        (each(lambda one: one / 0), "NaN or infinity"),
        (each(lambda one: one.to(torch.int8)), "of one floating type, got int8"),
        (each(lambda one: one.half() if one.dim() == 1 else one), "got float16, fl"),
        (each(lambda one: one.repeat(2, *[1] * (one.dim() - 1))), "do not fit"),
        (lambda odd: save_file({}, odd / "model.safetensors"), "got none"),
        (lambda odd: (odd / "model.safetensors").write_bytes(b"\x08"), "do not fit"),
        *(
            (lambda odd, text=text: (odd / "config.json").write_text(text), r"config\.json|core: ")
            for text in ("[]", "7", '"word"', "null", "", "{", "{}", '{"spec": 5}',
                         '{"network": {}}', '{"network": {"vocab_size": "5"}}',
                         '{"spec": {"core": 5}}', "[" * 100_000)
        ),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused_in_one_line(folder, tmp_path, damage, said):
    odd = shutil.copytree(folder, tmp_path / "odd")
    damage(odd)
    with pytest.raises((ConfigError, CorruptError), match=said) as refused:
        pernn.lab.from_pretrained(odd)
    assert "\n" not in str(refused.value)
