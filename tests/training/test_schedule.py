"""The learning rate against the formula, written out once more by hand."""

import math

import pytest

from pernn.errors import ConfigError
from pernn.lab.runs import RunSpec, execute, load_model
from pernn.lab.store import RunDirectory
from pernn.lab.training import TrainingConfig, encoding_strength, evaluate, learning_rate
from training.test_loop import CPU, SPEC, start

PAPER = TrainingConfig()
SHORT = TrainingConfig(warmup_updates=0, iterations=10)
CONSTANT = TrainingConfig(
    warmup_updates=100, learning_rate=0.01, iterations=8_000, schedule="constant"
)


@pytest.mark.parametrize(
    ("config", "update", "expected"),
    [
        (PAPER, 1, 0.0),
        (PAPER, 2, 1e-6),
        (PAPER, 1_000, 0.999e-3),
        (PAPER, 1_001, 1e-3),
        (PAPER, 151_000, 0.5e-3 * (1 + math.cos(math.pi * 149_999 / 300_000))),
        (PAPER, 151_001, 0.5e-3),  # the middle of the cosine
        (PAPER, 300_000, 0.5e-3 * (1 + math.cos(math.pi * 298_999 / 300_000))),
        (SHORT, 1, 1e-3),
        (CONSTANT, 1, 0.0),
        (CONSTANT, 2, 1e-4),
        (CONSTANT, 100, 0.0099),
        (CONSTANT, 101, 0.01),
        (CONSTANT, 102, 0.01),
        (CONSTANT, 8_000, 0.01),
    ],
)
def test_rates(config: TrainingConfig, update: int, expected: float) -> None:
    assert learning_rate(update, config) == pytest.approx(expected, rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(
    ("option", "usual", "other"),
    [
        ("schedule", "cosine", "constant"),
        ("encoding_schedule", "always", "late"),
        ("optimizer", "adam", "sgd"),
        ("frozen_embedding", False, True),
        ("micro_batch", None, 4),
    ],
)
def test_what_is_usual_is_no_part_of_a_spec(option: str, usual: object, other: object) -> None:
    spec, changed = (SPEC.override({f"training.{option}": value}) for value in (usual, other))
    assert option not in spec.dump()["training"]
    assert spec.fingerprint() == SPEC.fingerprint() != changed.fingerprint()
    assert changed.dump()["training"][option] == other
    assert RunSpec.load(changed.dump()) == changed


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


def test_what_is_measured_and_loaded_has_the_strength_of_its_update_of_an_encoding(
    tmp_path,
) -> None:
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
    with pytest.raises(ConfigError, match="encoding_schedule=late needs a positional encoding"):
        SPEC.override({"encoding.kind": "none", "training.encoding_schedule": "late"})
