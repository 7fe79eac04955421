"""`pernn query`."""

import csv
import json
import math
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from pernn.errors import ConfigError
from pernn.reports import clean
from pernn.store import Answer, describe_index, query, rebuild

from .options import RESULTS, Json, Results
from .terminal import print_rows


def ask(
    statement: Annotated[
        str | None, typer.Argument(metavar="SQL", help="One SELECT statement of SQLite.")
    ] = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for scripts.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="List the tables and their columns.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--rebuild", help="Make the index anew from the run directories first.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0, help="Stop the query after this time.")] = 60.0,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Refuse an answer with more rows.")
    ] = 1_000_000,
    results: Results = RESULTS,
) -> None:
    """Ask the results a question in SQL; it only reads.

    Table `records` has one row per finished trial, its settings by dotted path (in double quotes)
    beside its metrics; docs/query.md has the others and more examples.

    Example: pernn query 'SELECT "core.kind", avg(token_accuracy) FROM records GROUP BY 1'
    """
    if as_json and as_csv:
        raise ConfigError("--json and --csv exclude each other")
    if statement is None and not schema and not anew:
        raise ConfigError("expected a SELECT statement, --schema or --rebuild")
    if anew:
        number = rebuild(results)
        typer.echo(f"index of {number:,} runs made anew in {results}", err=True)
    if schema:
        _print_schema(describe_index(results), as_json=as_json)
    if statement is not None:
        answer = query(results, statement, seconds=seconds, max_rows=max_rows)
        _print(answer, as_json=as_json, as_csv=as_csv)


def _print(answer: Answer, *, as_json: bool, as_csv: bool) -> None:
    rows = [[_shown(value) for value in row] for row in answer.rows]
    if as_json:
        if len(set(answer.columns)) < len(answer.columns):
            raise ConfigError("two columns have one name: tell them apart with AS, or use --csv")
        # ASCII only: other control characters than those that JSON escapes exist, too.
        values = [dict(zip(answer.columns, row, strict=True)) for row in rows]
        typer.echo(json.dumps(values, indent=1))
    elif as_csv:
        safe = sys.stdout.isatty()
        writer = csv.writer(sys.stdout, lineterminator="\n")
        for row in (answer.columns, *rows):
            writer.writerow([clean(v) if safe and isinstance(v, str) else v for v in row])
    else:
        print_rows(answer.columns, rows, Console())


def _shown(value: Any) -> Any:
    """Give bytes in hexadecimal, and what is beyond JSON's numbers as text."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _print_schema(tables: dict[str, tuple[str, list[str]]], *, as_json: bool) -> None:
    if as_json:
        described = {name: {"rows": said, "columns": all_} for name, (said, all_) in tables.items()}
        typer.echo(json.dumps(described, indent=2))
        return
    rows = [(name, said, ", ".join(columns)) for name, (said, columns) in tables.items()]
    print_rows(("Table", "A row is", "Columns"), rows, Console())
