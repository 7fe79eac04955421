"""`pernn prune`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pernn.errors import ConfigError, one_line
from pernn.experiments import find_experiment, trials
from pernn.runs import Leftovers, RunSpec, delete_leftovers, find_leftovers, with_stages
from pernn.store import is_done, list_runs, list_sweeps, load_sweep

from .options import RESULTS, Json, Results

SINGLE = "(in no sweep)"


def prune(
    sweep: Annotated[
        str | None, typer.Argument(help="A sweep's name, see `pernn status`; all runs if absent.")
    ] = None,
    all_checkpoints: Annotated[
        bool,
        typer.Option(
            "--all-checkpoints",
            help="Also the last checkpoint and those of training.keep_interval.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Delete checkpoints that finished trials no longer need.

    What an unfinished trial still needs stays, and so does all of unfinished trials. By default the
    last checkpoint of each trial and those of training.keep_interval stay too.

    Example: pernn prune vocabulary_size-demo --dry-run
    """
    names = [sweep] if sweep else list_sweeps(results)
    owners = _owners(results, names)
    runs = list(owners) if sweep else list_runs(results)
    waiting = _waiting(results)
    found = list(find_leftovers(results, runs, waiting, all_checkpoints=all_checkpoints))
    if not dry_run and any(one.folders for one in found) and not yes:
        if as_json or not sys.stdin.isatty():
            raise ConfigError("prune deletes checkpoints: say --yes to do it, --dry-run to look")
        _print(found, owners, results)
        typer.confirm("Delete them?", abort=True)
    skipped = {one.run: one.skipped for one in found if one.skipped}
    gone = [one for one in found if one.folders]
    if not dry_run:
        refused = {one.run: delete_leftovers(results, one) for one in gone}
        skipped |= {run: reason for run, reason in refused.items() if reason}
        gone = [one for one in gone if one.run not in skipped]
    if as_json:
        typer.echo(json.dumps(_summary(gone, owners, skipped, dry_run=dry_run), indent=2))
    else:
        _print(gone, owners, results)
        typer.echo("Nothing was deleted (--dry-run)." if dry_run else "Deleted.")
    for run, reason in skipped.items():
        typer.echo(f"pernn: {run} left alone: {reason}", err=True)
    return 1 if skipped else 0


def _owners(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the sweep to which each run counts, earlier stages included."""
    owners: dict[str, str] = {}
    for name in names:
        for run in with_stages(root, load_sweep(root, name).runs):
            owners.setdefault(run, name)
    return owners


def _waiting(root: Path) -> list[RunSpec]:
    """Return the specs of all planned trials that have no result; they may need earlier stages."""
    waiting: list[RunSpec] = []
    for sweep in (load_sweep(root, name) for name in list_sweeps(root)):
        if all(is_done(root, run) for run in sweep.runs):
            continue
        specs = trials(find_experiment(sweep.experiment), sweep.scale, dict(sweep.overrides))
        waiting += (spec for spec in specs if not is_done(root, spec.fingerprint()))
    return waiting


def _by_sweep(found: Sequence[Leftovers], owners: dict[str, str]) -> dict[str, dict[str, int]]:
    """Add up folders and bytes per sweep."""
    sums: dict[str, dict[str, int]] = {}
    for one in found:
        own = sums.setdefault(owners.get(one.run, SINGLE), {"num_checkpoints": 0, "num_bytes": 0})
        own["num_checkpoints"] += len(one.folders)
        own["num_bytes"] += one.num_bytes
    return sums


def _summary(
    found: Sequence[Leftovers], owners: dict[str, str], skipped: dict[str, str], *, dry_run: bool
) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "sweeps": _by_sweep(found, owners),
        "num_bytes": sum(one.num_bytes for one in found),
        "skipped": skipped,
    }


def _print(found: Sequence[Leftovers], owners: dict[str, str], root: Path) -> None:
    table = Table("Sweep", "Checkpoints", "MB")
    for name, own in _by_sweep(found, owners).items():
        table.add_row(name, f"{own['num_checkpoints']:,}", f"{own['num_bytes'] / 1e6:,.1f}")
    if table.row_count:
        Console().print(table)
    else:
        typer.echo(one_line(f"No checkpoints in {root} that are no longer needed."))
