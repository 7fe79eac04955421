"""`pernn compare`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pernn.comparisons import compare_trials
from pernn.errors import one_line
from pernn.reports import Comparison
from pernn.store import require_writable, write_atomically

from .options import (
    RESULTS,
    IgnorePublished,
    Json,
    Results,
    Scale,
    print_json,
    published_folder,
    warn,
)
from .statuses import left_out
from .terminal import print_rows


def compare_sides(
    first: Annotated[str, typer.Argument(metavar="A", help="Conditions, a sweep or a folder.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Likewise; the difference is A − B.")],
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", help="Apply the conditions to this sweep or experiment only."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", "-m", help="The default is the experiment's own.")
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            "--until",
            metavar="LEVEL",
            help="Compare by the updates until the training accuracy first reached this level.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page.")
    ] = None,
    scale: Scale = "demo",
    results: Results = RESULTS,
    ignore_published: IgnorePublished = False,
    as_json: Json = False,
) -> int:
    """Compare two settings in pairs of trials that agree in their seed and all other settings.

    A and B are conditions on settings (separated by commas), two sweeps or experiments, or two
    folders of results or of published trials. Conditions select from all trials finished here, or
    from those of --sweep, which include published ones; two folders that have trials in common are
    compared by these. For each cell, and for all together with the seed as the unit, the table has
    mean difference, Student's t interval, exact permutation test and effect size. With --until the
    table has how many times as many updates B takes as A, and how many trials never get there.

    Examples: pernn compare encoding.kind=sinusoidal encoding.kind=none --sweep vocabulary_size;
    pernn compare core.kind=gru,task.length=32 core.kind=lstm,task.length=32 --metric loss;
    pernn compare training.precision=bf16 training.precision=fp32 --html precision.html;
    pernn compare encoding.kind=sinusoidal encoding.kind=none --sweep sorting --until 0.9;
    pernn compare evidence other-machine/results
    """
    if html is not None:
        require_writable(html)
    damage: list[str] = []
    found = compare_trials(
        first,
        second,
        results,
        sweep=sweep,
        metric=metric,
        until=until,
        scale=scale,
        published=published_folder(ignore=ignore_published),
        complain=warn,
        left_out=damage.append,
    )
    if html is not None:
        write_atomically(html, found.html(shlex.join(["pernn", *sys.argv[1:]])).encode())
    if as_json:
        print_json(found.dump())
    else:
        _print(found, html)
    return left_out(damage)


def _print(found: Comparison, page: Path | None) -> None:
    console = Console()
    console.print(one_line(found.title), markup=False, soft_wrap=True)
    print_rows(found.columns, found.rows, console)
    for note in found.notes:
        console.print(note, markup=False, soft_wrap=True)
    if page is not None:
        console.print(one_line(f"Page: {page}"), markup=False, soft_wrap=True)
