"""Tables on a terminal, without markup or control characters of files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, compress
from typing import Any

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from pernn.errors import counted
from pernn.lab.reports import Verdict, clean

MAX_FRAMED = 200
"""Longer tables are aligned lines: a frame around 10,000 rows takes seconds to lay out."""

MIN_WIDTH = 20
"""A column is made no narrower than this, unless its longest cell is."""

STYLES = {"supported": "green", "contradicted": "red", "inconclusive": "yellow"}


def plain(value: Any) -> Text:
    """Return a value of a file as text without control characters."""
    return Text(clean("" if value is None else str(value)), overflow="fold")


def without_blanks(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Leave out the columns that no row has an entry in."""
    kept = [any(cells) for cells in zip(*rows, strict=True)]
    return [*compress(columns, kept)], [[*compress(row, kept)] for row in rows]


def framed(columns: Sequence[str], rows: Iterable[Sequence[Any]], least: int = 1) -> Table:
    """Return a table with a frame.

    Columns whose cells are as long are not narrower than `least`.
    """
    table, lines = Table(), [[plain(value) for value in row] for row in (columns, *rows)]
    for name, *cells in zip(*lines, strict=True):
        width = min(least, max(cell.cell_len for cell in (name, *cells)))
        table.add_column(name, overflow="fold", min_width=width)
    for line in lines[1:]:
        table.add_row(*line)
    return table


def tracked(what: str) -> Callable[[Iterable[Any], int], Iterable[Any]]:
    """Return what shows a loop's progress on standard error."""
    return lambda items, count: track(items, what, count, console=Console(stderr=True))


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print the columns of a table that fit.

    Many rows are lines without a frame.
    """
    console = Console()
    lines = [[plain(value).plain for value in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    ends = accumulate((min(width, MIN_WIDTH) + 3 for width in widths), initial=1)
    num_shown = max(1, sum(end <= console.width for end in ends) - 1)
    if len(rows) <= MAX_FRAMED:
        rows = [row[:num_shown] for row in rows]
        console.print(framed(columns[:num_shown], rows, MIN_WIDTH))
    else:
        for line in lines:
            cells = map(set_cell_size, line, widths[:num_shown])
            typer.echo("  ".join(cells).rstrip())
    if hidden := lines[0][num_shown:]:
        typer.echo(
            f"{counted(len(hidden), 'column')} beyond the {console.width} characters of a line: "
            f"{', '.join(hidden)}; widen the terminal, ask for fewer, or print all with --json",
            err=True,
        )


def print_verdicts(verdicts: Sequence[Verdict], *, brief: bool) -> None:
    """Print a table of claims and what became of them."""
    shown = [verdict for verdict in verdicts if not brief or verdict.verdict != "not run"]
    table = Table("Verdict", "Claim", show_lines=True)
    table.add_column("Estimate, 95 % intervals", no_wrap=True)
    for one in shown:
        details = "; ".join(filter(None, [one.quantity, one.divided, one.detail, one.remark]))
        table.add_row(
            Text(one.verdict, STYLES.get(one.verdict, "dim")),
            Text.assemble(f"{one.claim.statement}\n", (details, "dim")),
            "\n".join(_estimates(one)),
        )
    if shown:
        Console().print(table)
    if len(shown) < len(verdicts):
        typer.echo(f"{len(verdicts) - len(shown)} claims not testable with these runs.")


def _estimates(verdict: Verdict) -> Iterator[str]:
    if verdict.interval is not None:
        yield f"{verdict.interval.shown}, n = {verdict.num_seeds}"
    for interval in (verdict.interval, verdict.bootstrap):
        if interval is not None and interval.bounded:
            yield f"{interval.method.removesuffix(' 0.95')} {interval.bounds}"
    if verdict.sensitivity:
        yield verdict.sensitivity.replace("smallest ", "").replace(" seen with", ",")
