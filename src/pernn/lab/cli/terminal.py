"""Tables on a terminal, without markup or control characters of files."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from pernn.errors import counted
from pernn.lab.reports import Verdict, clean

MAX_FRAMED = 200
"""Longer tables are aligned lines: a frame around 10,000 rows takes seconds to lay out."""

MIN_WIDTH = 20
"""A column is made no narrower than this, unless its longest cell is."""

MAX_NAMED = 10
"""Columns that are named where they do not fit."""


STYLES = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive": "yellow",
    "too few seeds": "dim",
    "not run": "dim",
}


def plain(value: Any) -> Text:
    """Return a value of a file as text without control characters."""
    return Text(clean("" if value is None else str(value)), overflow="fold")


def framed(columns: Sequence[str], rows: Iterable[Sequence[Any]], least: int = 1) -> Table:
    """Return a table with a frame.

    Columns whose cells are as long are not narrower than `least`.
    """
    lines = [[plain(value) for value in row] for row in (columns, *rows)]
    widths = (max(cell.cell_len for cell in column) for column in zip(*lines, strict=True))
    table = Table(
        *(
            Column(name, overflow="fold", min_width=min(width, least))
            for name, width in zip(lines[0], widths, strict=True)
        )
    )
    for line in lines[1:]:
        table.add_row(*line)
    return table


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], console: Console) -> None:
    """Print the columns of a table that fit.

    Many rows are lines without a frame.
    """
    lines = [[plain(value).plain for value in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    ends = accumulate((min(width, MIN_WIDTH) + 3 for width in widths), initial=1)
    num_shown = max(1, sum(end <= console.width for end in ends) - 1)
    if len(rows) <= MAX_FRAMED:
        rows = [row[:num_shown] for row in rows]
        console.print(framed(columns[:num_shown], rows, MIN_WIDTH))
    else:
        for line in lines:
            cells = zip(line[:num_shown], widths, strict=False)
            text = "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in cells)
            console.file.write(text.rstrip() + "\n")
    if hidden := [cells[0] for cells in zip(*lines, strict=True)][num_shown:]:
        names = ", ".join(hidden[:MAX_NAMED]) + (", …" if len(hidden) > MAX_NAMED else "")
        typer.echo(
            f"{counted(len(hidden), 'column')} beyond the {console.width} characters of a line: "
            f"{names}; widen the terminal, ask for fewer, or print all with --json",
            err=True,
        )


def print_verdicts(verdicts: Sequence[Verdict], console: Console, *, brief: bool) -> None:
    """Print a table of claims and what became of them."""
    shown = [verdict for verdict in verdicts if not brief or verdict.verdict != "not run"]
    table = Table("Verdict", "Claim", show_lines=True)
    table.add_column("Estimate, 95 % intervals", no_wrap=True)
    for one in shown:
        details = "; ".join(filter(None, [one.quantity, one.divided, one.detail, one.remark]))
        table.add_row(
            Text(one.verdict, STYLES[one.verdict]),
            Text.assemble(f"{one.claim.statement}\n", (details, "dim")),
            "\n".join(_estimates(one)),
        )
    if shown:
        console.print(table)
    if len(shown) < len(verdicts):
        console.print(f"{len(verdicts) - len(shown)} claims not testable with these runs.")


def _estimates(verdict: Verdict) -> Iterator[str]:
    if verdict.interval is not None:
        yield f"{verdict.interval.shown}, n = {verdict.num_seeds}"
    for interval in (verdict.interval, verdict.bootstrap):
        if interval is not None and interval.bounded:
            yield f"{interval.method.removesuffix(' 0.95')} {interval.bounds}"
    if verdict.sensitivity:
        yield verdict.sensitivity.replace("smallest ", "").replace(" seen with", ",")
