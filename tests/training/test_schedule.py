"""The learning rate against the formula, written out once more by hand."""

import math

import numpy as np
import pytest

from pernn.errors import ConfigError
from pernn.kernels import whole_updates
from pernn.lab.runs import RunSpec, execute, load_model
from pernn.lab.store import RunDirectory
from pernn.lab.training import TrainingConfig, advance, encoding_strength, evaluate, learning_rate
from training.test_loop import CPU, SPEC, start

PAPER = TrainingConfig()


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (1, 0.0),
        (2, 1e-6),
        (1_000, 0.999e-3),
        (1_001, 1e-3),
        (151_000, 0.5e-3 * (1 + math.cos(math.pi * 149_999 / 300_000))),
        (300_000, 0.5e-3 * (1 + math.cos(math.pi * 298_999 / 300_000))),
    ],
)
def test_published_values(update: int, expected: float) -> None:
    assert learning_rate(update, PAPER) == pytest.approx(expected, rel=1e-12, abs=1e-18)


def test_middle_and_end_in_plain_numbers() -> None:
    # s = 151,000 is the middle of the cosine; s = 300,000 gives the residue that the spec names.
    assert learning_rate(151_001, PAPER) == pytest.approx(0.5e-3, rel=1e-12)
    assert learning_rate(300_001, PAPER) == pytest.approx(2.74e-8, rel=1e-3)


def test_no_warmup_starts_at_the_peak() -> None:
    assert learning_rate(1, TrainingConfig(warmup_updates=0, iterations=10)) == 1e-3


@pytest.mark.parametrize(
    ("update", "expected"),
    [(1, 0.0), (2, 1e-4), (100, 0.0099), (101, 0.01), (102, 0.01), (8_000, 0.01)],
)
def test_a_constant_rate_stays_at_the_peak(update: int, expected: float) -> None:
    config = TrainingConfig(
        warmup_updates=100, learning_rate=0.01, iterations=8_000, schedule="constant"
    )
    assert learning_rate(update, config) == pytest.approx(expected, rel=1e-12)


def test_the_usual_schedule_is_no_part_of_a_spec() -> None:
    spec = RunSpec().override({"training.schedule": "cosine"})
    assert "schedule" not in spec.dump()["training"]
    assert spec.fingerprint() == RunSpec().fingerprint()
    constant = RunSpec().override({"training.schedule": "constant"})
    assert constant.dump()["training"]["schedule"] == "constant"
    assert RunSpec.load(constant.dump()) == constant
    assert constant.fingerprint() != RunSpec().fingerprint()


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("always", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("early", [1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0]),
        ("late", [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        ("withdrawn", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
    ],
)
def test_the_encoding_is_there_when_its_schedule_says(when: str, expected: list[float]) -> None:
    config = TrainingConfig(iterations=800, encoding_schedule=when)
    found = [encoding_strength(update, config) for update in (1, 200, 300, 400, 401, 799, 800)]
    assert found == expected


@pytest.mark.parametrize("when", ["early", "late", "withdrawn"])
@pytest.mark.parametrize("engine", ["whole", "autograd"])
def test_a_run_with_a_schedule_goes_on_with_the_same_bits(when, engine, tmp_path) -> None:
    spec = SPEC.override({"training.encoding_schedule": when})
    with whole_updates(enabled=engine == "whole"):
        expected = execute(spec, tmp_path / "whole", device="cpu").result
        for cut in (3, 4, 7, 11):
            parts = tmp_path / str(cut)
            execute(spec, parts, device="cpu", on_update=lambda update, cut=cut: update < cut)
            assert execute(spec, parts, device="cpu").result == expected
        always = execute(SPEC, tmp_path / "always", device="cpu").result
    assert expected["weights_sha256"] != always["weights_sha256"]


@pytest.mark.parametrize("when", ["early", "late", "withdrawn"])
def test_whole_updates_know_the_encodings_strength(when) -> None:
    spec, found = SPEC.override({"training.encoding_schedule": when}), []
    for whole in (True, False):
        trial, state = start(spec)
        with whole_updates(enabled=whole):
            list(advance(state, trial.stream, spec.training, trial.preset, CPU))
        found.append(state.weights())
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], atol=1e-5)


def test_what_is_measured_and_loaded_has_the_strength_of_its_update(tmp_path) -> None:
    spec = SPEC.override({"training.encoding_schedule": "withdrawn"})
    result = execute(spec, tmp_path, device="cpu").result
    path = RunDirectory(tmp_path, spec.fingerprint()).path
    trial, _ = start(spec)
    losses = {}
    for strength in (0.0, 1.0):
        model = load_model(path)
        assert model.encoding.strength == 0
        model.encoding.strength = strength
        losses[strength] = evaluate(model, trial.stream, CPU, "fp32").metrics["loss"]
    assert losses[0.0] == result["metrics"]["loss"] != losses[1.0]
    assert load_model(path, update=8).encoding.strength == 1


def test_what_has_no_clock_has_no_schedule_of_it() -> None:
    assert "encoding_schedule" not in RunSpec().dump()["training"]
    with pytest.raises(ConfigError, match="encoding_schedule=late needs a positional encoding"):
        RunSpec().override({"encoding.kind": "none", "training.encoding_schedule": "late"})
