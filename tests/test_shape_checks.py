"""Wrong types and wrong shapes are noticed wherever pernn is called, in tests."""

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import TypeCheckError

from pernn.errors import one_line
from pernn.lab.metrics import token_accuracy
from pernn.lab.store import RunStatus


def test_wrong_types_and_shapes_are_noticed_in_functions_and_dataclasses() -> None:
    with pytest.raises(BeartypeCallHintViolation, match="int"):
        one_line(3)
    with pytest.raises(TypeCheckError, match="update"):
        RunStatus("0" * 16, "finished", update="5")
    one, other = np.zeros((2, 3), dtype=np.int64), np.zeros((2, 4), dtype=np.int64)
    with pytest.raises(TypeCheckError, match="the parameters"):
        token_accuracy(one, other)
