"""The page of a whole study: the sweeps of a results directory, and those that are published."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pernn.errors import PernnError
from pernn.reports import Chapter, draw_curves, write_study
from pernn.store import (
    Published,
    RunDirectory,
    describe_machines,
    describe_publication,
    describe_published,
    find_published,
    gc_paused,
    list_publications,
    list_sweeps,
)
from pernn.sweeps import Plan, plan_again, read_curves, read_finished, read_plan, repeat_command


def make_study(
    root: Path, path: Path, complain: Callable[[str], None], folder: Path | None = None
) -> int:
    """Write one page of all sweeps: those of a results directory, then those only published.

    Args:
        root: Results directory; it need not exist.
        path: Where the page goes.
        complain: Told of each damaged run and each sweep of an unknown experiment; left out.
        folder: Published trials, which count as finished; `None` to count none.

    Returns:
        The number of sweeps on the page.

    Raises:
        StoreError: If the page cannot be written.
    """
    with gc_paused():
        plans = list(_plans(root, folder, complain))
        write_study([_chapter(root, plan, complain) for plan in plans], path)
    return len(plans)


def _plans(root: Path, folder: Path | None, complain: Callable[[str], None]) -> Iterable[Plan]:
    """Read every sweep once, with its published trials."""
    found = {name: partial(read_plan, root, name) for name in list_sweeps(root)}
    published = find_published(folder, None, complain)
    for file in list_publications(folder) if folder and published else []:
        found.setdefault(file.stem, partial(_plan_published, file))
    for name, read in found.items():
        try:
            plan = read()
        except PernnError as error:
            complain(f"sweep {name}: {error}")
            continue
        own = {run: published[run] for run in plan.specs if run in published}
        yield replace(plan, published=own)


def _plan_published(file: Path) -> Plan:
    return plan_again(describe_publication(file))


def _chapter(root: Path, plan: Plan, complain: Callable[[str], None]) -> Chapter:
    sweep, experiment = plan.sweep, plan.experiment
    records, taken = read_finished(root, sweep.runs, plan.published, complain)
    here = [record["run"] for record in records[: len(records) - len(taken)]]
    drawn = draw_curves(experiment, read_curves(root, records, taken), sweep.scale, ("svg",))
    environments = [RunDirectory(root, run).read_environment() or {} for run in here]
    return Chapter(
        experiment,
        sweep.scale,
        records,
        list(plan.specs.values()),
        repeat_command(sweep),
        [
            *describe_machines(root, here),
            *describe_published(taken),
            *_describe_time(root, here, taken),
        ],
        _versions([*environments, *(one.environment for one in taken)]),
        changed=bool(sweep.overrides),
        curves=drawn.drawn["svg"].decode() if drawn.drawn else "",
    )


def _versions(environments: Sequence[Mapping[str, Any]]) -> str:
    """Return with what versions and commits trials were made, each once."""
    found: dict[str, None] = {}
    for about in environments:
        packages, commit = about.get("packages"), about.get("commit")
        version = packages.get("pernn") if isinstance(packages, dict) else None
        found[f"{version or 'unknown'}{f' ({str(commit)[:10]})' if commit else ''}"] = None
    return ", ".join(found)


def _describe_time(root: Path, here: Sequence[str], taken: Sequence[Published]) -> list[str]:
    """Return how long trials took that ran here, and how long the published ones did."""
    events = [event for run in here for event in RunDirectory(root, run).read_journal()]
    seconds = [event.get("seconds") for event in events]
    own = sum(one for one in seconds if isinstance(one, int | float))
    theirs: dict[str, float] = {}
    for one in taken:
        theirs |= one.core_seconds
    lines = [f"They computed for {own / 3600:,.2f} hours in all, one after another."]
    other = f"The published ones took {sum(theirs.values()) / 3600:,.1f} core-hours."
    return [*(lines if here else []), *([other] if taken else [])]
