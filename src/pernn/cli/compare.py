"""`pernn compare`."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from pernn.errors import ConfigError, one_line
from pernn.experiments import experiment_names, find_experiment
from pernn.reports import COMPARED, Comparison, Side, compare, select
from pernn.store import (
    describe_publication,
    list_publications,
    list_runs,
    list_sweeps,
    load_sweep,
    read_published,
    read_records,
    write_atomically,
)
from pernn.sweeps import find_plan, read_finished

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
    mean difference, Student's t interval, exact permutation test and effect size.

    Examples: pernn compare encoding.kind=sinusoidal encoding.kind=none --sweep vocabulary_size;
    pernn compare core.kind=gru,task.length=32 core.kind=lstm,task.length=32 --metric loss;
    pernn compare training.precision=bf16 training.precision=fp32 --html precision.html;
    pernn compare evidence other-machine/results
    """
    published = published_folder(ignore=ignore_published)
    damage: list[str] = []
    pool = _Pool(results, scale, published, damage)
    conditions = ["=" in text for text in (first, second)]
    if conditions == [True, True]:
        records = pool.read_sweep(sweep) if sweep else pool.read_all(results)
        sides = [select(text, records, results) for text in (first, second)]
    elif True in conditions or sweep:
        raise ConfigError(
            "expected two conditions such as core.kind=gru, two sweeps or two folders"
        )
    else:
        sides = [pool.read_side(text) for text in (first, second)]
    found = compare(
        sides[0], sides[1], metric or pool.metric([*sides[0].records, *sides[1].records])
    )
    if html is not None:
        write_atomically(html, found.html(shlex.join(["pernn", *sys.argv[1:]])).encode())
    if as_json:
        print_json(found.dump())
    else:
        _print(found, html)
    return left_out(damage)


class _Pool:
    """Where trials come from, and which metric their experiments are about."""

    def __init__(
        self, results: Path, scale: str, published: Path | None, damage: list[str]
    ) -> None:
        self.results, self.scale, self.published = results, scale, published
        self.damage = damage
        self.metrics: list[set[str]] = []

    def read_sweep(self, name: str) -> list[dict[str, Any]]:
        """Return a sweep's finished trials; of an experiment that was not run, published ones."""
        plan = find_plan(self.results, name, self.scale, self.published, warn)
        self._read(plan.experiment.name)
        runs, complain = plan.sweep.runs, self.damage.append
        records, _ = read_finished(self.results, runs, plan.published, complain)
        return records

    def read_all(self, folder: Path) -> list[dict[str, Any]]:
        """Return all finished trials of a folder."""
        self._read(*(load_sweep(folder, one).experiment for one in list_sweeps(folder)))
        return read_records(folder, list_runs(folder), self.damage.append)

    def read_publications(self, folder: Path) -> list[dict[str, Any]]:
        """Return all published trials of a folder."""
        self._read(*(describe_publication(one).experiment for one in list_publications(folder)))
        return [one.record() for one in read_published(folder)]

    def read_side(self, text: str) -> Side:
        """Return the trials of a folder, of results or of published ones, else of a sweep."""
        folder = Path(text)
        if (folder / "runs").is_dir():
            return Side(text, self.read_all(folder), place=folder.resolve())
        if list_publications(folder):
            return Side(text, self.read_publications(folder), place=folder.resolve())
        return Side(text, self.read_sweep(text), place=self.results.resolve())

    def metric(self, records: Sequence[dict[str, Any]]) -> str:
        """Return the metric that the experiments of both sides are about, if it is one."""
        shared = set.intersection(*self.metrics)
        if len(shared) == 1:
            return shared.pop()
        if records and all("token_accuracy" in one for one in records):
            return "token_accuracy"
        known = ", ".join(sorted(set.union(*self.metrics))) or "token_accuracy, loss, perplexity …"
        raise ConfigError(f"--metric is missing: expected one of {known}")

    def _read(self, *experiments: str) -> None:
        known = {name for name in experiments if name in experiment_names()}
        self.metrics.append({find_experiment(name).figure.metrics[0] for name in known})


def _print(found: Comparison, page: Path | None) -> None:
    console = Console()
    console.print(one_line(found.title), markup=False, soft_wrap=True)
    print_rows(COMPARED, found.rows, console)
    for note in found.notes:
        console.print(note, markup=False, soft_wrap=True)
    if page is not None:
        console.print(one_line(f"Page: {page}"), markup=False, soft_wrap=True)
