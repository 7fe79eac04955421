"""Parts between marks of a page: whole parts, and single numbers within a line."""

import pytest

from pernn.reports import fill

PARTS = {"counts": "two claims", "effect a/b": "0.1 [0, 0.2]", "verdict a/b": "supported"}


def test_a_number_is_filled_within_its_line() -> None:
    row = "| x | <!-- effect a/b -->old<!-- /effect --> | <!-- verdict a/b --><!-- /verdict --> |"
    filled = fill(row, PARTS)
    assert filled == (
        "| x | <!-- effect a/b -->0.1 [0, 0.2]<!-- /effect --> "
        "| <!-- verdict a/b -->supported<!-- /verdict --> |"
    )
    assert fill(filled, PARTS) == filled


def test_a_part_has_lines_of_its_own() -> None:
    assert fill("<!-- counts --><!-- /counts -->", PARTS) == (
        "<!-- counts -->\n\ntwo claims\n\n<!-- /counts -->"
    )


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("<!-- effect a/c --><!-- /effect -->", "no such claim"),
        ("<!-- counts -->", "never ended"),
        ("<!-- effect a/b --> the end is missing", "never ended"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_refused(page: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        fill(page, PARTS)
