"""Wrong types and wrong shapes are noticed wherever pernn is called, in tests."""

from typing import Protocol, runtime_checkable

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError
from torch import nn

from pernn.errors import one_line
from pernn.lab.metrics import token_accuracy
from pernn.lab.store import RunStatus
from shape_checks import check, jaxtyped


def test_wrong_types_are_noticed_in_functions_and_dataclasses() -> None:
    with pytest.raises(BeartypeCallHintViolation, match="int"):
        one_line(3)
    with pytest.raises(TypeCheckError, match="update"):
        RunStatus("0" * 16, "finished", update="5")


def test_lengths_that_differ_between_arguments_are_noticed() -> None:
    one, other = np.zeros((2, 3), dtype=np.int64), np.zeros((2, 4), dtype=np.int64)
    with pytest.raises(TypeCheckError, match="the parameters"):
        token_accuracy(one, other)


class HasCore(Protocol):
    core: nn.Module


def test_a_modules_parts_count_as_its_attributes() -> None:
    network = nn.Module()
    network.core = nn.Linear(2, 2)
    protocol = runtime_checkable(HasCore)

    def width(owner: protocol) -> int:
        return len(owner.core.weight)

    decorate = jaxtyped(typechecker=check)
    assert decorate(width)(network) == 2
