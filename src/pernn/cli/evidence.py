"""`pernn evidence`."""

from pathlib import Path
from typing import Annotated

import typer

from pernn.evidence import rebuild
from pernn.store import evidence_folder

TARGET = Path("docs/evidence")


def evidence(
    to: Annotated[Path, typer.Option("--to", help="Folder for the pages.")] = TARGET,
    fill: Annotated[
        list[Path] | None,
        typer.Option(
            help="A further page with marks such as <!-- scorecard --> … <!-- /scorecard --> "
            "that are filled; may be repeated."
        ),
    ] = None,
) -> int:
    """Rebuild all figures, tables, verdicts and pages from published trials, without training.

    The trials are those in `evidence`, or in PERNN_EVIDENCE. Equal trials give equal bytes.

    Example: pernn evidence --to docs/evidence --fill README.md
    """
    lost: list[str] = []
    for path in rebuild(evidence_folder(), to, lost.append, fill or []):
        typer.echo(str(path))
    for one in lost:
        typer.echo(f"pernn: {one}", err=True)
    return 1 if lost else 0
