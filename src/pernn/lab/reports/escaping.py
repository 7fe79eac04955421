"""Texts from files made safe to show: no control characters, no markup."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories: control, format, lone surrogate, line and paragraph break."""

FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""Beginnings of a text that a spreadsheet runs as a formula, some of them after trimming it."""


def csv_cell(value: Any) -> Any:
    """Return a value as a CSV may have it: before a text that may be a formula, an apostrophe."""
    if not isinstance(value, str):
        return value
    # The csv module does not quote a carriage return on its own.
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{value}" if value.startswith(FORMULA) else value


def clean(text: str) -> str:
    """Replace control, format and line-break characters by spaces."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(sign) in UNPRINTABLE else sign for sign in text)


def shorten(text: str, length: int) -> str:
    """Return a text on one line, cut where it is longer than anybody reads."""
    text = clean(text)
    return text if len(text) <= length else f"{text[:length]}…"


def escape_markdown(text: str) -> str:
    """Make any text safe in a cell of a Markdown table: one line, no markup, no HTML."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{sign}" if sign in "\\`*[]|" else sign for sign in text)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; what its cells hold is escaped already."""
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
