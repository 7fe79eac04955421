"""Parts of other packages: repeatable whatever they draw from, and known by their source."""

import importlib
import math
import random
import sys

import numpy as np
import pytest
import torch
from torch import nn

from pernn.cores import Linear
from pernn.errors import ConfigError
from pernn.lab.cores import CORES, GRUConfig
from pernn.lab.runs import RunSpec, build, building, changed_parts, execute
from pernn.lab.store import RunDirectory
from tiny import tiny

CPU = torch.device("cpu")
SOURCE = """
import random
import numpy as np
import torch
from torch import nn

from pernn.lab.cores import CoreConfig


class Plain(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.into = nn.Linear(input_size, hidden_size)
        self.back = nn.Linear(hidden_size, hidden_size)
        self.drawn = np.random.rand(), random.random()

    def project(self, inputs, *, offset=0, bias=True):
        weight = self.into.weight[:, offset : offset + inputs.shape[-1]]
        return nn.functional.linear(inputs, weight, self.into.bias if bias else None)

    def recur(self, gates, state=None):
        state = gates.new_zeros(len(gates), self.hidden_size) if state is None else state
        outputs = []
        for gate in gates.unbind(1):
            state = torch.tanh(gate + self.back(state))
            outputs.append(state)
        return torch.stack(outputs, 1), state


class PlainConfig(CoreConfig):
    def build(self, input_size, generator=None):
        return Plain(input_size, self.hidden_size)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of plain layers and returns a spec with its core, as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source=SOURCE):
        (tmp_path / "plainparts.py").write_text(source)
        sys.modules.pop("plainparts", None)
        importlib.invalidate_caches()
        return tiny().override({"core.kind": "plainparts:PlainConfig"})

    yield write
    sys.modules.pop("plainparts", None)


def test_a_part_by_place_is_spelt_out_keeps_its_place_and_loads_again(module):
    spec = module()
    assert spec.dump()["core"]["kind"] == "plainparts:PlainConfig"
    assert RunSpec.load(spec.dump()) == spec
    config = importlib.import_module("plainparts").PlainConfig
    assert spec.core == config(hidden_size=8)
    named = CORES.validate({"kind": "pernn.lab.cores:GRUConfig", "hidden_size": 3})
    assert named.dump() == {**GRUConfig(hidden_size=3).dump(), "kind": named.kind}
    assert CORES.validate(named.dump()) == named


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere_at_all:X", "ModuleNotFoundError: No module named 'nowhere_at_all'$"),
        ("pernn.lab.cores:X", "no attribute 'X'"),
        ("pernn.lab.config:Config", "must be a subclass of CoreConfig"),
        ("plainparts:PlainConfig", "cannot be imported: SyntaxError: "),
        (":", "Empty module name"),
        ("importing:X", "No module named 'torhc'$"),
        ("unbuilt:X", "'unbuilt:X' must define build$"),
    ],
)
def test_a_place_that_holds_no_part_is_refused(module, tmp_path, place, said):
    module()
    (tmp_path / "plainparts.py").write_text("def")
    (tmp_path / "importing.py").write_text("import torhc")
    (tmp_path / "unbuilt.py").write_text(
        "from pernn.lab.cores import CoreConfig\nclass X(CoreConfig): pass"
    )
    sys.modules.pop("plainparts", None)
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match=said):
        CORES.find(place)


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def draw_all():
    return np.random.rand(), torch.rand(1).item()  # noqa: NPY002


def test_a_part_that_draws_globally_is_repeatable(module):
    spec, cores = module(), []
    for seed in (1, 2):
        seed_all(seed)
        expected = draw_all()
        seed_all(seed)
        cores.append(build(spec, CPU).model.core)
        assert draw_all() == expected
    one, two = cores
    assert torch.equal(one.into.weight, two.into.weight)
    assert torch.equal(one.back.bias, two.back.bias)
    assert one.drawn == two.drawn
    other = build(spec.override({"seed": 222}), CPU).model.core
    assert not torch.equal(other.into.weight, one.into.weight)
    state = random.getstate()  # of which the checker of types takes in tests
    with building.seeded_globals(spec, "core", CPU):
        assert random.random()
    assert random.getstate() == state


NOISY = SOURCE.replace("gate + self.back", "gate + 0.1 * torch.randn_like(gate) + self.back")


def test_a_core_that_draws_in_training_is_refused(module, tmp_path):
    with pytest.raises(ConfigError, match="draws from PyTorch's global generator in training"):
        execute(module(NOISY), tmp_path, device="cpu")


DRAWN = """
import torch

from pernn.encodings import Encoding
from pernn.lab.encodings import PositionalEncodingConfig


class Noise(Encoding):
    def vectors(self, num_steps):
        return VECTORS


class NoiseConfig(PositionalEncodingConfig):
    def build(self, num_positions, layout, generator=None):
        return Noise(self.size)
"""


@pytest.mark.parametrize(
    "vectors",
    [
        "torch.randn(num_steps, self.size)",
        "(torch.arange(num_steps) / num_steps).unsqueeze(1).expand(-1, self.size)",
    ],
)
def test_an_encoding_whose_vectors_are_not_of_the_steps_alone_is_refused(module, vectors):
    module(SOURCE + DRAWN.replace("VECTORS", vectors))
    spec = tiny().override({"encoding.kind": "plainparts:NoiseConfig"})
    with pytest.raises(ConfigError, match="the same at every call"):
        build(spec, CPU)


def test_a_changed_source_is_said_of_what_is_done_and_of_what_goes_on(module, tmp_path):
    root, lines = tmp_path / "results", []
    spec, other = module(), module().override({"seed": 222})
    execute(spec, root, device="cpu", on_warning=lines.append)
    execute(other, root, device="cpu", on_warning=lines.append, on_update=lambda update: update < 3)
    run = spec.fingerprint()
    digest = RunDirectory(root, run).read_environment()["parts"]["core"]
    assert len(digest) == 64
    lines.clear()
    assert execute(spec, root, device="cpu", on_warning=lines.append).is_new is False
    assert lines == []
    changed = module(SOURCE.replace("torch.tanh", "torch.sigmoid"))
    assert changed.fingerprint() == run
    assert execute(changed, root, device="cpu", on_warning=lines.append).is_new is False
    (line,) = lines
    assert line.startswith("core 'plainparts:PlainConfig' was changed since 1 run began: ")
    assert f"delete in {root / 'runs'}: {run};" in line
    both = {one.fingerprint(): one for one in (changed, changed.override({"seed": 222}))}
    (line,) = changed_parts(both, root)
    assert "since 2 runs began: what is there is the old code's; to run it anew" in line
    assert f": {', '.join(both)};" in line
    lines.clear()
    execute(changed.override({"seed": 222}), root, device="cpu", on_warning=lines.append)
    assert "was changed since 1 run" in lines[0]


def test_a_run_that_failed_before_its_first_checkpoint_is_the_mended_sources(module, tmp_path):
    wrong = module(SOURCE.replace("torch.tanh", "torch.no_such"))
    with pytest.raises(AttributeError):
        execute(wrong, tmp_path, device="cpu")
    directory = RunDirectory(tmp_path, wrong.fingerprint())
    old = directory.read_environment()
    directory.write_environment({**old, "date": "2026-01-01"})
    mended = module()
    assert mended.fingerprint() == directory.fingerprint
    lines = []
    for is_new in (True, False):
        outcome = execute(mended, tmp_path, device="cpu", on_warning=lines.append)
        assert outcome.is_new is is_new
        assert lines == []
    new = directory.read_environment()
    assert new["parts"] != old["parts"]
    # Else a plan that was registered in between would count as older.
    assert new["date"] == "2026-01-01"


def test_a_source_in_no_file_is_unknown(module, tmp_path):
    (tmp_path / "results").mkdir()
    spec = module()
    module_of_it = sys.modules["plainparts"]
    module_of_it.__file__ = None
    run = execute(spec, tmp_path / "results", device="cpu", on_warning=lambda line: None)
    assert run.state == "finished"
    environment = RunDirectory(tmp_path / "results", spec.fingerprint()).read_environment()
    assert environment["parts"] == {"core": "unknown"}


def test_a_linear_map_that_nobody_draws_is_drawn_as_pytorchs_own():
    torch.manual_seed(1)
    expected = nn.Linear(3, 5)
    torch.manual_seed(1)
    found = Linear(3, 5)
    assert torch.equal(found.weight, expected.weight)
    assert found.bias.abs().max() <= 1 / math.sqrt(3)
