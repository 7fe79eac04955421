"""Every figure, table, verdict and page out of published trials."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pernn.errors import ConfigError, PernnError, StoreError
from pernn.lab.reports import (
    Report,
    fill,
    pace_figure,
    pace_parts,
    predicted_and_found,
    replication_parts,
    write_study,
)
from pernn.lab.store import (
    describe_publication,
    gc_paused,
    list_publications,
    read_registrations,
    require_writable,
    storing,
    where_published,
    write_atomically,
)
from pernn.lab.sweeps import plan_again, report_of, restrict
from pernn.lab.trials import read_published

STUDY = "study.html"
"""One page of every claim and every published sweep; see `pernn report --all`."""
PAGE = "report.md"
"""The replication report, written by hand but for what stands between marks."""
EXPECTATIONS, PREDICTED = "expectations.json", "predicted.md"
"""What the first plan expected, and the page of that and of all registered plans."""
PACE = "pace.md"
"""The page on how many updates trainings took, likewise."""


def rebuild(
    folder: Path, target: Path, complain: Callable[[str], None], pages: Sequence[Path] = ()
) -> list[Path]:
    """Write the reports of published sweeps, and the pages about all.

    Equal trials give equal bytes, with the same versions of NumPy, SciPy and matplotlib.

    Args:
        folder: Published trials.
        target: Where the pages go, a folder per sweep; its `report.md` and `pace.md` are filled if
            they are there, and `predicted.md` made of its `expectations.json`.
        complain: Told of a sweep that cannot be reported, and of trials that its grid lacks.
        pages: Further pages whose marks are filled, as the replication report's are.

    Returns:
        The page of each sweep, the page of all, the replication report, the expectations and the
        further pages.

    Raises:
        ConfigError: If nothing is published there, or the expectations are malformed.
        CorruptError: If a file is damaged.
        MachineError: If pyarrow is missing.
        StoreError: If a file cannot be written.
    """
    own = [target / PAGE] if (target / PAGE).exists() else []
    for page in (*own, *pages):
        _read(page)
    for page in (target / STUDY, *own, *pages):
        require_writable(page)
    reports = read_reports(folder, complain)
    with gc_paused():
        for report in reports:
            report.write(target / report.name)
        write_study(reports, target / STUDY)
    written = [target / report.name / PAGE for report in reports]
    folders = {page.parent for page in (*own, *pages)}
    parts = {one: replication_parts(reports, os.path.relpath(target, one)) for one in folders}
    for page in (*own, *pages):
        _fill(page, parts[page.parent])
    if (target / EXPECTATIONS).exists():
        with storing(target / EXPECTATIONS):
            expected = (target / EXPECTATIONS).read_text(encoding="utf-8")
        predicted = predicted_and_found(expected, reports, plans=read_registrations())
        write_atomically(target / PREDICTED, predicted.encode())
        own.append(target / PREDICTED)
    own += write_pace(reports, target)
    return [*written, target / STUDY, *own, *pages]


def write_pace(reports: Sequence[Report], target: Path) -> list[Path]:
    """Fill the page on pace, if there, and draw its figure.

    Args:
        reports: Those of all published sweeps.
        target: Folder of the pages.

    Raises:
        StoreError: If a file cannot be written.
    """
    page = target / PACE
    if not page.exists():
        return []
    _fill(page, pace_parts(reports))
    if figure := pace_figure(reports):
        write_atomically(page.with_suffix(".svg"), figure)
    return [page]


def read_reports(folder: Path, complain: Callable[[str], None]) -> list[Report]:
    """Return the report of every published sweep.

    Args:
        folder: Published trials.
        complain: Told of a sweep whose experiment is not here, and of trials that its grid lacks.

    Raises:
        ConfigError: If nothing is published there.
        CorruptError: If a file is damaged.
        MachineError: If pyarrow is missing.
    """
    paths = list_publications(folder)
    if not paths:
        raise ConfigError(f"no published trials: {where_published(folder)}; see `pernn publish`")
    with gc_paused():
        published = {one.run: one for one in read_published(folder)}
        reports = []
        for path in paths:
            sweep = describe_publication(path)
            try:
                plan = plan_again(sweep)
            except PernnError as error:
                complain(f"{path}: {error}")
                continue
            plan = plan.taking(partial(restrict, published), folder)
            if odd := len(set(sweep.runs) - plan.specs.keys()):
                complain(f"{path}: {odd} trials are not in the grid of {sweep.name} any more")
            # No trial lies in the folder itself: all that a report has are the published ones.
            reports.append(report_of(folder, plan, complain, ("svg",)))
    return reports


def _fill(path: Path, parts: Mapping[str, str]) -> None:
    try:
        filled = fill(_read(path), parts)
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    write_atomically(path, filled.encode())


def _read(path: Path) -> str:
    with storing(path):
        return path.read_text(encoding="utf-8")
