"""Parts between marks of a page: whole parts, and single numbers within a line."""

import pytest

from pernn.errors import ConfigError
from rebuild import fill

PARTS = {
    "counts": "two claims",
    "effect a/b": "0.1 [0, 0.2]",
    "effect a/b@64": "0.3 [0.1, 0.5]",
    "verdict a/b": "supported",
    "findings a-small": "| a |",
}


def test_a_number_is_filled_within_its_line():
    row = "| x | <!-- effect a/b -->old<!-- /effect --> | <!-- verdict a/b --><!-- /verdict --> |"
    filled = fill(row, PARTS)
    assert filled == (
        "| x | <!-- effect a/b -->0.1 [0, 0.2]<!-- /effect --> "
        "| <!-- verdict a/b -->supported<!-- /verdict --> |"
    )
    assert fill(filled, PARTS) == filled


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("<!-- effect a/c --><!-- /effect -->", "no such claim"),
        ("<!-- effect a/b@65 --><!-- /effect -->", "no such claim"),
        ("<!-- findings b-small --><!-- /findings -->", "no such claim or sweep"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_refused(page, wrong):
    with pytest.raises(ConfigError, match=wrong):
        fill(page, PARTS)
