"""Tables on a terminal: what comes from files is text, never markup or control characters."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pernn.reports import clean

MAX_FRAMED = 200
"""Longer tables are aligned lines: a frame around 10,000 rows takes seconds to lay out."""


def plain(value: Any) -> Text:
    """Give a value of a file as text that does nothing but be read."""
    return Text(clean("" if value is None else str(value)), overflow="fold")


def framed(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Give a table with a frame."""
    table = Table(*(Column(plain(name), overflow="fold") for name in columns))
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], console: Console) -> None:
    """Print a table, as lines without a frame if it is long."""
    if len(rows) <= MAX_FRAMED:
        console.print(framed(columns, rows))
        return
    lines = [[plain(value).plain for value in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)
        )
        console.file.write("  ".join(cells).rstrip() + "\n")
