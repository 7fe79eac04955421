"""Published trials: sweeps into them, and every figure, table, verdict and page out of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pernn.errors import ConfigError, PernnError, StoreError
from pernn.reports import Study, fill, replication_parts
from pernn.runs import with_stages
from pernn.store import (
    Publication,
    Sweep,
    describe_publication,
    gc_paused,
    list_publications,
    publish,
    read_published,
    storing,
    write_atomically,
)
from pernn.studies import make_study
from pernn.sweeps import make_report, plan_again

STUDY = "study.html"
"""One page of every claim and every published sweep; see `pernn report --all`."""
PAGE = "report.md"
"""The replication report, written by hand but for what stands between marks."""


def publish_sweep(root: Path, sweep: Sweep, folder: Path) -> Publication:
    """Add the finished trials of a sweep to the published ones; see `pernn.store.publish`.

    Args:
        root: Results directory; the sweep itself need not be in it, as trials are known by specs.
        sweep: Its trials.
        folder: Where the files of all sweeps are.
    """
    return publish(root, sweep, folder, lambda run: with_stages(root, [run]))


def rebuild(
    folder: Path, target: Path, complain: Callable[[str], None], pages: Sequence[Path] = ()
) -> list[Path]:
    """Write the report of every published sweep, and fill the replication report.

    Equal trials give equal bytes, with the same versions of NumPy, SciPy and matplotlib.

    Args:
        folder: Published trials.
        target: Where the pages go, a folder per sweep; its `report.md` is filled if it is there.
        complain: Told of a sweep that cannot be reported, and of trials that its grid lacks.
        pages: Further pages whose marks are filled, as the replication report's are.

    Returns:
        The page of each sweep, the page of all, the replication report and the further pages.

    Raises:
        ConfigError: If nothing is published there.
        CorruptError: If a file is damaged.
        MachineError: If pyarrow is missing.
        StoreError: If a file cannot be written.
    """
    paths = list_publications(folder)
    if not paths:
        raise ConfigError(f"{folder}: no published trials: see `pernn publish`")
    with gc_paused():
        published = {one.run: one for one in read_published(folder)}
        studies, written = [], []
        for path in paths:
            sweep = describe_publication(path)
            try:
                plan = plan_again(sweep)
            except PernnError as error:
                complain(f"{path}: {error}")
                continue
            if odd := len(set(sweep.runs) - plan.specs.keys()):
                complain(f"{path}: {odd} trials are not in the grid of {sweep.name} any more")
            trials = [published[run] for run in plan.specs if run in published]
            plan = replace(plan, published={one.run: one for one in trials})
            # No trial lies in the pages' folder: all that a report has are the published ones.
            report = make_report(target, plan, complain, target / sweep.name, ("svg",))
            studies.append(Study(sweep, len(plan.specs), trials, report.verdicts))
            written.append(target / sweep.name / PAGE)
    make_study(target, target / STUDY, complain, folder)
    own = [target / PAGE] if (target / PAGE).exists() else []
    for page in (*own, *pages):
        _fill(page, replication_parts(studies, os.path.relpath(target, page.parent)))
    return [*written, target / STUDY, *own, *pages]


def _fill(path: Path, parts: Mapping[str, str]) -> None:
    with storing(path):
        page = path.read_text(encoding="utf-8")
    try:
        filled = fill(page, parts)
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    write_atomically(path, filled.encode())
