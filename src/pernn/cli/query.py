"""`pernn query`."""

import csv
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from threading import Timer
from typing import Annotated, Any

import typer
from rich.console import Console

from pernn.errors import ConfigError
from pernn.reports import clean, csv_cell
from pernn.store import MAX_MEMORY, list_sweeps, query
from pernn.sweeps import full_name

from .options import RESULTS, IgnorePublished, Json, Results, Scale, published_folder, warn
from .statuses import exit_status
from .terminal import print_rows

MAX_ROWS = 1_000
"""Rows of an answer that are shown as a table."""


def ask(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SWEEP] [SQL]",
            help="A sweep or an experiment, unless --all; one SELECT statement of DuckDB, unless "
            "--schema.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Query all sweeps together; a column tells them apart.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="List the tables and their columns.")
    ] = False,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for scripts.")] = False,
    seconds: Annotated[float, typer.Option(min=0, help="Stop the query after this time.")] = 60.0,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
) -> None:
    r"""Query the results of a sweep in SQL, read-only.

    Table `trials` has a row per finished trial: its settings by dotted path, to be written in
    double quotes, and its metrics. --schema lists the other tables. Published trials count as
    finished. Needs DuckDB: pip install 'pernn\[duckdb]'

    Example: pernn query vocabulary_size 'SELECT "core.kind", avg(token_accuracy) FROM trials
    GROUP BY 1'

    Example: pernn query --all 'SELECT sweep, state, count(*) FROM status GROUP BY ALL'
    """
    asked = list(words or [])
    if as_json and as_csv:
        raise ConfigError("--json and --csv exclude each other")
    if len(asked) != (not every) + (not schema):
        there = ", ".join(list_sweeps(results)) or "none yet: start one with `pernn run`"
        raise ConfigError(
            "expected a sweep and one SELECT statement, or --all and a statement for all sweeps "
            f"together; --schema takes no statement (sweeps here: {there})"
        )
    sweep = None if every else full_name(asked.pop(0), scale)
    published = published_folder(ignore=ignore_published)
    statement = asked[0] if asked else None
    chunks = query(results, statement, sweep=sweep, published=published, complain=warn)
    _bound_memory()
    answer = _within(seconds, chunks)
    columns = next(answer)
    if as_json:
        _print_json(columns, answer)
    elif as_csv:
        _print_csv(columns, answer)
    else:
        rows = list(islice(answer, MAX_ROWS))
        print_rows(columns, rows, Console())
        if next(answer, None) is not None:
            typer.echo(f"the first {MAX_ROWS:,} rows; --csv or --json prints all", err=True)


def _within(seconds: float, chunks: Iterator[Iterable[Any]]) -> Iterator[Any]:
    """Yield the rows of an answer; end this process if DuckDB takes longer for all of them.

    DuckDB cannot be interrupted within a function, so Ctrl-C ends the process, too.
    """

    def leave() -> None:
        warn(
            f"the query took longer than {seconds:g} s and was stopped: ask for less, or allow "
            "more with --seconds"
        )
        sys.stdout.flush()
        os._exit(exit_status(ConfigError))

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    left = seconds
    while True:
        timer, begun = Timer(max(left, 1e-3), leave), time.monotonic()
        timer.start()
        try:
            chunk = next(chunks, None)
        finally:
            timer.cancel()
        left -= time.monotonic() - begun
        if chunk is None:
            return
        yield from chunk


def _bound_memory() -> None:
    """Let this process take twice the memory of DuckDB beside what it has: not all of it counts."""
    # Not every system has this limit; DuckDB's own holds everywhere.
    with suppress(OSError, ValueError):
        # Addresses count, used or not, and libraries reserve more of them than they use.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 2 * MAX_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _print_json(columns: list[str], rows: Iterator[list[Any]]) -> None:
    if len(set(columns)) < len(columns):
        raise ConfigError("two columns have one name: tell them apart with AS, or use --csv")
    begin = "["
    for row in rows:
        # ASCII only: there are control characters that JSON does not escape.
        typer.echo(begin + json.dumps(dict(zip(columns, row, strict=True))), nl=False)
        begin = ",\n"
    typer.echo("[]" if begin == "[" else "]")


def _print_csv(columns: list[str], rows: Iterator[list[Any]]) -> None:
    safe = sys.stdout.isatty()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([columns], rows):
        shown = (clean(v) if safe and isinstance(v, str) else v for v in row)
        writer.writerow(map(csv_cell, shown))
