"""The learning rate against the formula, written out once more by hand."""

import math

import pytest

from pernn.runs import RunSpec
from pernn.training import TrainingConfig, learning_rate

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
