"""`pernn prune`."""

import sys
from typing import Annotated

import typer
from rich.filesize import decimal

from pernn.errors import ConfigError, one_line
from pernn.progress import name_run
from pernn.runs import delete_leftovers, find_leftovers, with_stages
from pernn.store import list_runs, load_sweep
from pernn.sweeps import find_waiting

from .options import RESULTS, Json, Results, print_json, warn


def prune(
    sweep: Annotated[
        str | None,
        typer.Argument(help="A sweep's name (see `pernn status`); the default is all runs."),
    ] = None,
    all_checkpoints: Annotated[
        bool,
        typer.Option(
            "--all-checkpoints",
            help="Also delete the last checkpoint and those of training.keep_interval.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
    results: Results = RESULTS,
    as_json: Json = False,
) -> int:
    """Delete checkpoints that finished trials no longer need.

    Unfinished trials, and checkpoints that they build on, stay untouched. By default, the last
    checkpoint of each trial and those of training.keep_interval stay too.

    Example: pernn prune vocabulary_size-demo --dry-run
    """
    runs = with_stages(results, load_sweep(results, sweep).runs) if sweep else list_runs(results)
    waiting = find_waiting(results)
    found = list(find_leftovers(results, runs, waiting, all_checkpoints=all_checkpoints))
    skipped = {one.run: one.skipped for one in found if one.skipped}
    gone = [one for one in found if one.folders]
    if gone and not (dry_run or yes):
        if as_json or not sys.stdin.isatty():
            raise ConfigError("prune deletes checkpoints: say --yes to do it, --dry-run to look")
        size = decimal(sum(one.num_bytes for one in gone))
        typer.confirm(f"Delete {sum(len(one.folders) for one in gone)} ({size})?", abort=True)
    if not dry_run:
        refused = {one.run: delete_leftovers(results, one) for one in gone}
        skipped |= {run: reason for run, reason in refused.items() if reason}
        gone = [one for one in gone if one.run not in skipped]
    count, num_bytes = (sum(len(one.folders) for one in gone), sum(one.num_bytes for one in gone))
    if as_json:
        content = {"dry_run": dry_run, "num_checkpoints": count, "num_bytes": num_bytes}
        print_json({**content, "skipped": skipped})
    elif not gone:
        typer.echo(one_line(f"No checkpoints in {results} that are no longer needed."))
    else:
        done = "not deleted (--dry-run)" if dry_run else "deleted"
        typer.echo(f"{count:,} checkpoints of {len(gone):,} trials, {decimal(num_bytes)}: {done}")
    for run, reason in skipped.items():
        warn(f"{name_run(results, run)} left alone: {reason}")
    return 1 if skipped else 0
