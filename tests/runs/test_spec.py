"""The spec: strict, whole, and the same after any round trip."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec

CORES = st.sampled_from(
    ["elman", "gru", "lstm", "s4d", "min_gru", "min_lstm", "lru", "gated_delta"]
)
ENCODING_KINDS = st.sampled_from(["none", "repeated_embedding", "sinusoidal", "learned", "random"])


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    code = draw(ENCODING_KINDS)
    encoding: dict[str, object] = {"kind": code}
    if code not in ("none", "repeated_embedding"):
        encoding["size"] = 2 * draw(st.integers(1, 300))
        encoding["masked"] = draw(st.sampled_from([None, "input", "output"]))
    return RunSpec.load(
        {
            "task": {
                "kind": "reverse_ordering",
                "vocab_size": draw(st.integers(2, 20_000)),
                "length": draw(st.integers(11, 600)),
            },
            "core": {"kind": draw(CORES), "hidden_size": draw(st.integers(1, 1024))},
            "encoding": encoding,
            "preset": draw(st.sampled_from(["as-run", "as-written"])),
            "training": {"learning_rate": draw(st.floats(1e-6, 1.0))},
            "seed": draw(st.integers(0, 2**63 - 1)),
        }
    )


@given(specs())
def test_load_of_dump_is_the_same(spec: RunSpec) -> None:
    assert RunSpec.load(spec.dump()) == spec
    assert RunSpec.load(json.loads(json.dumps(spec.dump()))) == spec
    assert RunSpec.load(spec.dump()).fingerprint() == spec.fingerprint()


@given(specs(), st.integers(0, 1000))
def test_what_differs_has_another_fingerprint(spec: RunSpec, seed: int) -> None:
    other = spec.override({"seed": seed})
    assert (other.fingerprint() == spec.fingerprint()) == (other == spec)


def test_defaults_are_the_papers() -> None:
    spec = RunSpec()
    assert (spec.preset, spec.seed, spec.embedding_size) == ("as-run", 111, 512)
    assert (spec.core.hidden_size, spec.training.batch_size) == (512, 512)
    assert (spec.training.iterations, spec.training.learning_rate) == (300_000, 1e-3)
    assert spec.training.precision == "fp32"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"core.hidden_siz": 3}, "core.hidden_siz: unknown key, did you mean 'hidden_size'?"),
        ({"cor.hidden_size": 3}, "has no part 'cor', did you mean 'core.hidden_size'? (known: "),
        (
            {"training.optimizer.lr": 3},
            "no part 'optimizer', did you mean 'training.learning_rate'",
        ),
        ({"training.lr": 0.1}, "training.lr: unknown key, did you mean 'learning_rate'? (known: "),
        ({"lr": 0.1}, "lr: unknown key, did you mean 'training.learning_rate'?"),
        ({"hidden_size": 4}, "hidden_size: unknown key, did you mean 'core.hidden_size'?"),
        ({"training.zzz": 4}, "training.zzz: unknown key (known: "),
        ({"training.iteratons": 3}, "iteratons: unknown key, did you mean 'iterations'?"),
        ({"speed": 3}, "speed: unknown key, did you mean 'seed'?"),
        ({"encoding.size": 33}, "size must be even"),
        ({"task.vocab_size": 1}, "task.vocab_size: expected at least 2, got 1"),
        ({"task.length": 2, "task.vocab_size": 8}, "only 64 sequences of 2 tokens exist"),
        ({"core.kind": "lstn"}, "did you mean 'lstm'?"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 10**30}, "seed"),
        ({"training.learning_rate": float("nan")}, "training.learning_rate"),
        ({"training.learning_rate": float("inf")}, "training.learning_rate"),
        ({"training.precision": "fp16"}, "training.precision"),
        ({"preset": "as-imagined"}, "preset"),
        ({"encoding.combine": "add", "encoding.size": 128}, "make them equal"),
        ({"task": "<b>"}, "no kind '<b>'"),
        ({"core": 7}, "expected a kind"),
        (
            {"task.kind": "delayed_addition", "task.length": 16, "encoding.masked": "output"},
            "needs an output phase of queries",
        ),
    ],
)
def test_bad_values_are_said_in_one_line(change: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunSpec().override(change)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_complaints_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        RunSpec.load({"seed": -1, "core": {"kind": "gru", "hiddensize": 1}, "bogus": 0})
    for word in ("seed", "core.hiddensize", "bogus"):
        assert word in str(caught.value)


def test_a_new_kind_starts_afresh() -> None:
    spec = RunSpec().override({"encoding.kind": "none"})
    assert spec.encoding.dump() == {"kind": "none"}
    spec = spec.override({"encoding.size": 64, "encoding.kind": "learned"})
    assert spec.encoding.dump()["size"] == 64


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trial.toml", 'seed = 7\n[task]\nkind = "reverse_ordering"\nvocab_size = 32\n'),
        ("trial.json", '{"seed": 7, "task": {"kind": "reverse_ordering", "vocab_size": 32}}'),
    ],
)
def test_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    spec = RunSpec.read(path)
    assert (spec.seed, spec.task.vocab_size) == (7, 32)


@pytest.mark.parametrize(
    "text",
    ["seed = ", "seed = nan", "seed = 2026-11-20", "a" * 2_000_000, "[[[", "x = " + "[" * 10_000],
)
def test_bad_files_are_said_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        RunSpec.read(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        RunSpec.read(tmp_path / "absent.toml")


def widths(spec: RunSpec) -> tuple[int, int, int | None]:
    return spec.core.hidden_size, spec.embedding_size, getattr(spec.encoding, "size", None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"core": {"kind": "gru", "hidden_size": 64}}, (64, 64, 64)),
        ({"core": {"kind": "gru", "hidden_size": 64}, "embedding_size": 32}, (64, 32, 32)),
        ({"core": {"kind": "gru", "hidden_size": 64}, "encoding": "none"}, (64, 64, None)),
        (
            {"core": {"kind": "gru", "hidden_size": 64}, "encoding": {"kind": "random", "size": 3}},
            (64, 64, 3),
        ),
    ],
)
def test_the_width_of_the_state_is_the_one_that_is_not_given(values, expected) -> None:
    for spec in (RunSpec.load(values), RunSpec(**values)):
        assert widths(spec) == expected
        assert spec.dump()["embedding_size"] == expected[1]
        assert RunSpec.load(spec.dump()) == spec


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (64, 64, 64)),
        ({"embedding_size": 16}, (64, 16, 64)),
        ({"encoding.size": 16}, (64, 64, 16)),
        ({"encoding.kind": "learned"}, (64, 64, 64)),
        ({"encoding.kind": "none"}, (64, 64, None)),
    ],
)
def test_an_overridden_width_takes_its_equals_along(changes, expected) -> None:
    assert widths(RunSpec().override({"core.hidden_size": 64, **changes})) == expected
    # A width that was another one before stays what it is.
    narrow = RunSpec().override({"embedding_size": 8, "encoding.size": 4})
    assert widths(narrow.override({"core.hidden_size": 64})) == (64, 8, 4)
