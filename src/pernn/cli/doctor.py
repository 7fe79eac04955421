"""`pernn doctor`."""

import json

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .checkup import examine
from .options import RESULTS, Json, Results


def doctor(results: Results = RESULTS, as_json: Json = False) -> int:
    """Show what this machine has, what is missing and how to get it.

    Example: pernn doctor
    """
    findings = examine(results)
    if as_json:
        typer.echo(json.dumps([vars(one) for one in findings], indent=2))
    else:
        table = Table("", "What", "Found", "How to get it")
        for one in findings:
            mark = "[green]ok[/green]" if one.present else "[red]missing[/red]"
            if not one.present and not one.required:
                mark = "[dim]absent[/dim]"
            table.add_row(
                mark, *map(escape, (one.what, one.found, "" if one.present else one.remedy))
            )
        Console().print(table)
    return 3 if any(one.required and not one.present for one in findings) else 0
