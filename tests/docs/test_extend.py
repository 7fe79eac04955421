"""The recipes of docs/extend.md: pasted, tried against the laws, trained, installed."""

import csv
import json
import os
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from command_line import call, succeed
from cores import test_laws as core_laws
from docs.test_readme import blocks
from oracle import PlainRNN
from pernn.analysis import jacobian
from pernn.encodings import Sinusoidal
from pernn.errors import ConfigError
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.experiments import find_experiment
from pernn.lab.interfaces import BatchStream
from pernn.lab.reports import Report
from pernn.lab.reports.texts import Labels
from pernn.lab.runners import InlineRunner
from pernn.lab.runs import load_model
from pernn.lab.sweeps import run
from pernn.lab.tasks import TASKS, Rule
from pernn.models import AutoregressiveRNN, PositionEncodedRNN
from test_installation import install

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"
FILES = {
    "core": "mingru",
    "gates": "minimal_gated",
    "encoding": "triangle",
    "task": "copying",
    "figure": "own_parts",
    "experiment": "binary_length",
}
"""Sections of the page, in order, and what their files are called."""


pytestmark = pytest.mark.usefixtures("one_format")


def recipe(part):
    """The first and the last Python block of a section: the module, and what runs it."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)[1 + list(FILES).index(part)]
    found = blocks("python", section)
    assert found[0].startswith(f'"""{FILES[part]}.py: ')
    return found[0], found[-1]


@pytest.fixture
def pasted(monkeypatch):
    """Pastes a recipe's module, as a file of its name would be imported."""

    def paste(part):
        name = FILES[part]
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(recipe(part)[0], f"{PAGE.name}: {part}", "exec"), vars(module))  # noqa: S102
        return module

    return paste


@pytest.fixture
def minimal_gated(pasted, monkeypatch):
    pasted("gates")
    monkeypatch.setitem(CORES.builtin, "minimal_gated", "minimal_gated:MinimalGatedConfig")
    return "minimal_gated"


LAWS = [
    (core_laws.test_forward_equals_folded_single_steps, [3]),
    (core_laws.test_forward_is_project_then_recur, []),
    (core_laws.test_batch_rows_are_independent, []),
    (core_laws.test_initial_weights_are_distributed_as_pytorchs, []),
    (core_laws.test_the_generator_alone_decides_the_weights, []),
    (core_laws.test_gradcheck, [2]),
    (core_laws.test_project_is_additive_over_column_parts, [True]),
    (core_laws.test_no_sequence_gives_no_output, []),
    (core_laws.test_a_state_of_another_shape_is_refused, []),
    (core_laws.test_autocast_keeps_states_and_gradients_in_float32, []),
]
"""Those that the equations of a core can break; the others are of its base class."""


@pytest.mark.parametrize(("law", "rest"), LAWS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_the_core_obeys_the_laws(minimal_gated, law, rest):
    law(minimal_gated, *rest)


def test_the_encodings_steps_are_a_prefix_and_it_takes_what_every_code_takes(pasted):
    module = pasted("encoding")
    config = module.TriangleConfig(size=12)
    for dtype in (torch.float32, torch.float64):
        full = config.build(60, "halves").to(dtype)(60)
        assert (full.shape, full.dtype) == ((60, 12), dtype)
        for steps in range(60):
            assert torch.equal(config.build(60, "halves").to(dtype)(steps), full[:steps])
        assert full.abs().max() == 1
        assert len({tuple(row) for row in full.tolist()}) == 60
        # Period 4: 1, 0, −1, 0, and a quarter later.
        assert full[:5, 0].tolist() == [1, 0, -1, 0, 1]
        assert full[:5, 6].tolist() == [0, -1, 0, 1, 0]
    code = module.TriangleConfig(size=4, combine="add", masked="output").build(8, "halves")
    assert code.joined_size(4) == 4
    assert not code(8, 3)[5:].any()


def test_the_tasks_splits_are_disjoint_and_its_targets_the_rule(pasted):
    module = pasted("task")
    assert isinstance(module.Copy(), Rule)
    stream = module.CopyConfig(vocab_size=3, length=5, num_held_out=100).build().stream(111)
    assert isinstance(stream, BatchStream)
    held_out = set(map(tuple, stream.test().tokens.tolist()))
    assert len(held_out) == 100
    for batch in (stream.train(step, 64) for step in range(20)):
        assert not held_out & set(map(tuple, batch.tokens.tolist()))
        assert batch.targets.tolist() == batch.tokens.tolist()
        assert batch.num_queries == 5


@pytest.mark.parametrize("part", ["core", "encoding", "task"])
def test_a_trial_with_it_trains_from_python(pasted, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    module = pasted(part)
    exec(recipe(part)[1], vars(module))  # noqa: S102
    assert capsys.readouterr().out.startswith("finished 0.")
    assert module.outcome.result["metrics"]["token_accuracy"] > 0.25
    (run,) = (tmp_path / "results" / "runs").iterdir()
    assert run.name == module.spec.fingerprint()
    # Its parts are found again, by any command.
    load_model(run)


def test_parts_of_ones_own_stand_in_a_figure_beside_the_built_in_ones(
    pasted, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for part in ("core", "encoding", "task"):
        module, _ = recipe(part)
        assert len(module.splitlines()) < 40
        pasted(part)
    module = pasted("figure")
    exec(recipe("figure")[1], vars(module))  # noqa: S102
    assert not module.sweep.failures
    with (module.sweep.page.parent / "table.csv").open() as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    kinds = [*module.TASKS, *module.CORES, *module.ENCODINGS]
    assert [sum(kind in row for row in rows) for kind in kinds] == [8] * 6
    drawn = (module.sweep.page.parent / "figure.svg").read_text()
    label = Labels({})
    assert [kind for kind in kinds if label(kind) not in drawn] == []


def test_a_plain_module_is_a_core_in_training_decoding_and_analysis(pasted):
    config = pasted("core").MinGRUConfig(hidden_size=8)
    model = AutoregressiveRNN(5, config.build(8 + 4 + 2), Sinusoidal(4), embedding_size=8,
                              phase_size=2)  # fmt: skip
    assert model.decode(torch.tensor([[1, 2, 5], [3, 4, 5]]), 3).shape == (2, 3, 5)
    layer = config.build(12)
    model = PositionEncodedRNN(5, layer, Sinusoidal(4), embedding_size=8).double()
    calls = []
    layer.register_forward_hook(lambda *_: calls.append("layer"))
    model.core.register_forward_hook(lambda *_: calls.append("core"))
    tokens = torch.tensor([[0, 1, 2], [3, 4, 0]])
    outputs = model(tokens, 3)
    assert calls == ["layer", "core"]
    torch.testing.assert_close(outputs, PlainRNN(model)(tokens, 3))
    # h_T depends on h_1 by the product of all 1 - z.
    found = jacobian(model.core, model.project(tokens, 3), 1, 6)
    keep = 1 - torch.sigmoid(layer.gates(model.project(tokens, 3)).chunk(2, dim=2)[0])
    torch.testing.assert_close(found, torch.diag_embed(keep[:, 1:].prod(1)))
    with pytest.raises(ConfigError, match="num_layers: Input should be 1"):
        type(config)(num_layers=2)


NO_CORES = {
    "expected a module with integers input_size and hidden_size": torch.nn.Linear(12, 8),
    "build it with batch_first=True": torch.nn.GRU(12, 8),
    r"outputs \(1, 4, 8\) and a state, got \(1, 4, 16\)": torch.nn.GRU(
        12, 8, batch_first=True, bidirectional=True
    ),
}


@pytest.mark.parametrize("said", NO_CORES)
def test_a_module_that_is_no_core_is_refused_in_one_line(said):
    tokens = torch.zeros(1, 3).long()
    with pytest.raises(ConfigError, match=said) as refused:
        PositionEncodedRNN(5, NO_CORES[said], Sinusoidal(4), embedding_size=8)(tokens, 1)
    assert "\\n" not in str(refused.value)


def test_a_layer_of_pytorch_is_a_core(generator):
    encoding = Sinusoidal(4)
    model = PositionEncodedRNN(5, "lstm", encoding, embedding_size=8, hidden_size=8)
    plain = PositionEncodedRNN(5, model.core.to_torch(), encoding, embedding_size=8)
    weights = model.state_dict().items()
    plain.load_state_dict({name.replace("core.", "core.layer."): v for name, v in weights})
    tokens = torch.randint(5, (2, 6), generator=generator)
    torch.testing.assert_close(plain(tokens, 3), model(tokens, 3))


def test_the_experiment_runs_and_is_judged_from_python(pasted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    module = pasted("experiment")
    exec(recipe("experiment")[1], vars(module))  # noqa: S102
    for name, said in (("sorting", "that pernn does not use itself"), ("Two words", "letters")):
        with pytest.raises(ConfigError, match=said):
            run(replace(module.EXPERIMENT, name=name), runner=InlineRunner(device="cpu"))
    layout = replace(module.EXPERIMENT.figure, metrics=("token_acuracy",), contrast=None)
    unlike = replace(module.EXPERIMENT, figure=layout)
    found = Report(unlike, "demo", module.records, module.specs, "see above")
    assert "no trial has a column 'token_acuracy', did you mean 'token_accuracy'?" in found.notes
    assert "'too few seeds', 'too few seeds'" in capsys.readouterr().out  # of one seed
    assert len(module.records) == 8
    assert module.report.page.is_file()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The recipes' modules as a package: built into a wheel, installed by pip into a folder."""
    source = tmp_path_factory.mktemp("source")
    (source / "my_parts").mkdir()
    (source / "my_parts" / "__init__.py").write_text("")
    for part, file in FILES.items():
        (source / "my_parts" / f"{file}.py").write_text(recipe(part)[0], encoding="utf-8")
    project, trial = blocks("toml", PAGE.read_text(encoding="utf-8"))
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    site = tmp_path_factory.mktemp("site")
    install(source, source / "dist", site)
    (site / "trial.toml").write_text(trial)
    return site


def pernn(site, *arguments):
    # Before the sources under test, which are not always those that are installed.
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return call(*arguments, cwd=site, PYTHONPATH=paths, PERNN_RESULTS=str(site / "results"))


def test_what_is_installed_is_named_by_a_file_listed_and_run(installed):
    done = pernn(installed, "train", "trial.toml", "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    spec = json.loads((Path(result["directory"]) / "spec.json").read_text())["spec"]
    kinds = [spec[part]["kind"] for part in ("task", "core", "encoding")]
    assert kinds == ["copy", "minimal_gated", "triangle"]
    assert spec["training"]["iterations"] == 40
    place = {"question": "", "source": "my_parts.binary_length:EXPERIMENT"}
    rows = json.loads(pernn(installed, "list", "--json").stdout)
    assert rows[-1] == {"name": "binary_length", **place}
    settings = ("training.iterations=2", "core.hidden_size=8", "task.num_held_out=8", "seed=1")
    sets = [word for setting in settings for word in ("--set", setting)]
    done = pernn(installed, "run", "binary_length", *sets, "--runner", "inline", "--device", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    (sweep,) = (installed / "results" / "sweeps").iterdir()
    assert sweep.name.startswith("binary_length-demo-")
    assert json.loads((sweep / "claims.json").read_text())["num_finished"] == 8


def test_the_task_is_shown_by_its_place_and_the_page_claims_no_kind_that_is_built_in(tmp_path):
    (tmp_path / "copying.py").write_text(recipe("task")[0], encoding="utf-8")
    words = ("show", "copying:CopyConfig", "--sample", "3", "--set", "length=4")
    done = succeed(*words, cwd=tmp_path)
    rows = [row.split() for row in done.stdout.splitlines()]
    asked = [row[1:5] for row in rows if row[:1] == ["input"]]
    assert [row[5:] for row in rows if row[:1] == ["target"]] == asked
    assert len(asked) == 3
    refused = call("show", "copying:Nothing", cwd=tmp_path)
    assert refused.returncode == 2
    assert "module 'copying' has no attribute 'Nothing'" in refused.stderr
    project, _ = blocks("toml", PAGE.read_text(encoding="utf-8"))
    groups = tomllib.loads(project)["project"]["entry-points"]
    assert set(groups) == {CORES.group, ENCODINGS.group, TASKS.group, "pernn.experiments"}
    for kinds in (CORES, ENCODINGS, TASKS):
        assert not set(groups[kinds.group]) & set(kinds.builtin)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("inputs.astype(np.float32)", r"got float32 of shape \(8, 5\)"),
        ("inputs[:, :, None]", r"got int64 of shape \(8, 5, 1\)"),
        ("inputs[1:]", r"got int64 of shape \(7, 5\)"),
        ("inputs + 1", "got ids in 0 … 4"),
        ("inputs - 1", "got ids in -1 … 2"),
        ("None", "got NoneType"),
        ("inputs[:, :0]", r"got int64 of shape \(8, 0\)"),
    ],
)
def test_targets_that_are_no_ids_are_named_with_their_rule(pasted, made, said):
    module = pasted("task")
    vars(module)["Copy"].targets = eval(f"lambda self, inputs: {made}", vars(module))  # noqa: S307
    task = module.CopyConfig(vocab_size=4, length=5, num_held_out=8).build()
    inputs = np.arange(40).reshape(8, 5) % 4
    said = f"rule Copy is invalid: expected .* 8 rows .* 0 … 3, {said}"
    with pytest.raises(ConfigError, match=said):
        task.batch(inputs)


def test_a_registered_experiment_is_checked(pasted, monkeypatch):
    where = "pernn.lab.experiments.experiment.registered"
    experiment = pasted("experiment").EXPERIMENT

    def find(name, found):
        point = Mock(**{"load.side_effect": [found]})  # what is an error is raised
        monkeypatch.setattr(where, lambda: {name: point})
        return find_experiment(name)

    assert find("binary_length", experiment) is experiment
    gone, no_python = ImportError("no module"), SyntaxError("invalid syntax")
    for name, found, said in (
        ("binary_length", gone, "cannot be imported: ImportError: no module"),
        ("binary_length", no_python, "cannot be imported: SyntaxError: invalid syntax"),
        ("binary_length", {"name": "binary_length"}, "Experiment called 'binary_length', got {"),
        ("other", experiment, "must be an Experiment called 'other', got 'binary_length"),
    ):
        with pytest.raises(ConfigError, match=said):
            find(name, found)
