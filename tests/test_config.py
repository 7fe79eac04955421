import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Literal
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from command_line import python
from pernn.errors import ConfigError, MachineError
from pernn.lab.config import Config, Part, Registry, own_parts_off, parse_assignment, read_file
from pernn.lab.cores import CORES, AnyCore, GRUConfig, LSTMConfig
from pernn.lab.encodings import AnyEncoding, LearnedConfig, SinusoidalConfig


class Whole(Config):
    core: AnyCore = LSTMConfig()
    encoding: AnyEncoding = SinusoidalConfig()
    seed: int = 111
    rate: Annotated[float, Field(gt=0)] = 1e-3
    widths: tuple[int, ...] = (8, 16)
    note: str | None = None


wholes = st.builds(
    Whole,
    core=st.one_of(
        st.builds(config, hidden_size=st.integers(1, 9), num_layers=st.integers(1, 3))
        for config in (GRUConfig, LSTMConfig)
    ),
    encoding=st.one_of(
        st.builds(SinusoidalConfig, size=st.integers(1, 9).map(lambda half: 2 * half)),
        st.builds(LearnedConfig, size=st.integers(1, 9), normalize=st.booleans()),
    ),
    seed=st.integers(0, 2**63 - 1),
    rate=st.floats(min_value=1e-300, allow_nan=False, allow_infinity=False),
    widths=st.lists(st.integers(-5, 5)).map(tuple),
    note=st.none() | st.text(),
)


@given(wholes)
def test_load_undoes_dump(spec):
    assert Whole.load(spec.dump()) == spec
    assert Whole.load(json.loads(json.dumps(spec.dump()))) == spec


@given(wholes, wholes)
def test_fingerprints_agree_exactly_when_specs_do(one, other):
    assert (one.fingerprint() == other.fingerprint()) == (one.dump() == other.dump())


def test_the_fingerprint_is_the_same_in_another_process_and_forever():
    code = "from pernn.lab.cores import GRUConfig; print(GRUConfig(hidden_size=7).fingerprint())"
    done = python("-c", code)
    assert done.stdout.strip() == GRUConfig(hidden_size=7).fingerprint() == "e249e93f592c9baf"


REFUSED = [
    ({"sed": 1}, r"^sed: unknown key, did you mean 'seed'\? \(known: core, encoding"),
    ({"seed": "1"}, r"^seed: Input should be a valid integer, got '1'"),
    ({"seed": 1.0}, r"seed: Input should be a valid integer, got 1\.0"),
    ({"seed": True}, "seed: Input should be a valid integer, got True"),
    ({"rate": 0.0}, "rate: Input should be greater than 0, got 0"),
    ({"rate": float("inf")}, "rate: Input should be a finite number, got inf"),
    ({"rate": float("nan")}, "rate: "),
    ({"core": {"kind": "lstn"}}, r"core: pernn\.cores: no kind 'lstn', did you mean 'lstm'\?"),
    ({"core": {}}, "core: expected a kind: one of elman, gru, lstm"),
    ({"core": 3}, "core: expected a kind"),
    (
        {"core": {"kind": "gru", "hiden_size": 1}},
        r"^core\.hiden_size: unknown key, did you mean 'hidden_size'\?",
    ),
    ({"encoding": {"kind": "sinusoidal", "size": 3}}, "^encoding: size must be even"),
    ({"encoding": {"kind": "gru"}}, r"pernn\.encodings: no kind 'gru'"),
    ({"a\nb\x1b[31m\u202e": 1}, r"^a\\nb\\x1b\[31m\\u202e: unknown key"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=[str(v) for v, _ in REFUSED])
@pytest.mark.parametrize(
    "build", [Whole.load, lambda values: Whole(**values)], ids=["load", "init"]
)
def test_what_is_refused_and_how(build, values, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build(values)
    # The end of a line would be shown so.
    assert ("\\n" in str(caught.value)) == ("\\n" in message)


def test_every_complaint_is_listed_and_many_are_counted():
    with pytest.raises(ConfigError, match=r"seed: .*; rate: "):
        Whole.load({"seed": "x", "rate": -1.0})
    with pytest.raises(ConfigError, match="seed: "):
        Whole.load({"seed": {1, 2}})
    said = ""
    try:
        Whole.load({f"key{number}": 1 for number in range(100_000)})
    except ConfigError as error:
        said = str(error)
    # Out here, since a failure would print the chain of errors, with all of the complaints.
    assert said.endswith("100,000 complaints in all")
    assert len(said) < 2_200


def test_a_part_may_be_named_given_as_a_table_or_as_a_config_which_is_frozen():
    assert Whole(core="gru") == Whole(core={"kind": "gru"}) == Whole(core=GRUConfig())
    with pytest.raises(ConfigError, match="core: expected a kind"):
        Whole(core=SinusoidalConfig())
    with pytest.raises(ValueError, match="frozen"):
        Whole().seed = 2


class Mine(GRUConfig):
    """Named by its place."""


@pytest.mark.parametrize("kind", ["gru", "mine", "__main__:Mine", None])
def test_a_config_is_taken_if_files_could_name_its_class_again(kind):
    if kind is None:
        assert Whole.load(Whole(core=Mine()).dump()) == Whole(core=Mine())
        return
    # As `kind: Literal[…]` or a script would have it.
    namespace = {"__annotations__": {"kind": Literal[kind]}, "kind": kind, "__module__": __name__}
    given = type(GRUConfig)("Mine", (GRUConfig,), namespace)()
    with pytest.raises(ConfigError, match=f"find Mine again by its kind '{kind}'"):
        Whole(core=given)


def test_a_new_kind_keeps_what_it_shares_whatever_the_order():
    spec = Whole(core=LSTMConfig(hidden_size=7))
    changes = {"core.kind": "gru", "core.num_layers": 2}
    for assignments in (changes, dict(reversed(changes.items()))):
        assert spec.override(assignments).core == GRUConfig(hidden_size=7, num_layers=2)
    assert spec.override({"core.kind": "lstm"}) == spec


def test_a_path_to_nothing_is_refused():
    paths = ("cor.hidden_size", "core.deep.er", "seed.x", ".seed", "core.")
    several = {"core.kind": {"x": {"kind": "a"}}, "core.kind.x.kind": "gru"}
    for changes in (*({path: 1} for path in paths), several):
        with pytest.raises(ConfigError):
            Whole().override(changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed=5", ("seed", 5)),
        ("core.kind=gru", ("core.kind", "gru")),
        ("rate=1e-3", ("rate", 0.001)),
        ("note=a=b", ("note", "a=b")),
        ("note=", ("note", "")),
        ("note=null", ("note", None)),
        ("widths=[1,2]", ("widths", [1, 2])),
    ],
)
def test_assignments(text, expected):
    assert parse_assignment(text) == expected


@pytest.mark.parametrize("text", ["seed", "=5"])
def test_assignments_that_are_refused(text):
    with pytest.raises(ConfigError, match="--set"):
        parse_assignment(text)


def test_files(tmp_path):
    (tmp_path / "spec.toml").write_text('seed = 3\n[core]\nkind = "gru"\n')
    (tmp_path / "spec.json").write_text('{"seed": 3, "core": {"kind": "gru"}}')
    specs = [Whole.load(read_file(tmp_path / name)) for name in ("spec.toml", "spec.json")]
    assert specs == [Whole(seed=3, core="gru")] * 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", b"seed = ", "not valid TOML"),
        ("a.json", b"{", "not valid JSON"),
        ("a.json", b"[1]", "expected a table"),
        ("a.json", b"[" * 200_000, "not valid JSON"),
        ("a.toml", b"\xff\xfe", "not valid TOML"),
        ("a.toml", b"#" * 1_000_001, r"a\.toml: not valid TOML: larger than"),
        # Parsing it takes minutes: a key of 50,000 dots took 47 s.
        ("a.toml", b"a." * 100_000 + b"a = 1", "more than 64 dots"),
        ("a.toml", b"[" + b"a." * 100_000 + b"a]", "more than 64 dots"),
        ("none.toml", None, "cannot be read"),
        ("pipe.toml", None, "not an ordinary file"),
        ("/dev/zero", None, "not an ordinary file"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_files_that_are_refused(tmp_path, name, content, message):
    os.mkfifo(tmp_path / "pipe.toml")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_file(tmp_path / name)
    assert str(caught.value).count(name) == 1


@given(st.binary(max_size=200))
def test_no_file_breaks_the_reader(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "spec.toml"
    path.write_bytes(content)
    with suppress(ConfigError):
        assert isinstance(read_file(path), dict)


class Theirs(Part):
    """A config of another package."""

    kind: str = "theirs"


@pytest.fixture
def install(monkeypatch):
    """Register an entry point of another package, which gives or raises something."""

    def register(**loading):
        points = {"test.parts": {"theirs": Mock(**{"load." + k: v for k, v in loading.items()})}}
        monkeypatch.setattr("pernn.lab.config.installed", lambda group: points.get(group, {}))
        return Registry("test.parts", {}, Part)

    return register


def test_a_part_of_another_package_is_found_by_its_entry_point_or_named(install):
    kinds = install(return_value=Theirs)
    assert kinds.names() == ["theirs"]
    assert kinds.validate("theirs") == Theirs()
    with pytest.raises(ConfigError, match="'theirs' cannot be imported: ImportError: no wheel"):
        install(side_effect=ImportError("no wheel")).validate("theirs")
    with pytest.raises(ConfigError, match="'theirs' must be a subclass of Part"):
        install(return_value=int).validate("theirs")


def test_a_module_that_ends_the_process_is_a_part_that_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaves_at_once.py").write_text("import sys\n\nsys.exit(7)\n")
    with pytest.raises(ConfigError, match="cannot be imported: SystemExit: 7"):
        CORES.find("leaves_at_once:Config")
    with pytest.raises(ConfigError, match="no attribute 'x'"):
        CORES.find("pernn.__main__:x")


def test_while_own_parts_are_off_only_what_is_loaded_is_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    source = "from pernn.lab.cores import GRUConfig\n\n\nclass OwnConfig(GRUConfig):\n    pass\n"
    (tmp_path / "read_later.py").write_text(source)
    (tmp_path / "lazy_later.py").write_text("def __getattr__(name):\n    import read_later\n")
    place = "read_later:OwnConfig"
    import_module("lazy_later")
    for kind in (place, "lazy_later:OwnConfig", "read_later:OwnConfig.x", "gone:X"):
        with own_parts_off(), pytest.raises(MachineError, match="part that is not loaded"):
            CORES.find(kind)
        assert "read_later" not in sys.modules
    with own_parts_off():
        assert Whole.load({"core": "gru"}).core == GRUConfig()
        with pytest.raises(MachineError, match="set PERNN_PARTS=read_later"):
            Whole.load({"core": place})
    loaded = CORES.find(place)
    with own_parts_off():
        assert CORES.find(place) is loaded
    monkeypatch.delitem(sys.modules, "read_later")
    monkeypatch.setenv("PERNN_PARTS", "another")
    with own_parts_off(), pytest.raises(MachineError, match="set PERNN_PARTS=another,read_later"):
        CORES.find(place)
    monkeypatch.setenv("PERNN_PARTS", "another,read_later")
    with own_parts_off():
        assert CORES.validate({"kind": place, "hidden_size": 3}).hidden_size == 3
