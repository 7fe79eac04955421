"""Published trials: sweeps into them, and every figure, table, verdict and page out of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pernn.errors import ConfigError, PernnError, StoreError
from pernn.reports import (
    Study,
    Verdict,
    fill,
    pace_figure,
    pace_parts,
    predicted_and_found,
    replication_parts,
)
from pernn.runs import with_stages
from pernn.store import (
    Publication,
    Sweep,
    describe_publication,
    gc_paused,
    list_publications,
    publish,
    read_published,
    read_registrations,
    require_writable,
    storing,
    where_published,
    write_atomically,
)
from pernn.studies import make_study
from pernn.sweeps import Plan, judge_sweep, make_report, plan_again, restrict

STUDY = "study.html"
"""One page of every claim and every published sweep; see `pernn report --all`."""
PAGE = "report.md"
"""The replication report, written by hand but for what stands between marks."""
EXPECTATIONS, PREDICTED = "expectations.json", "predicted.md"
"""What the first plan expected, and the page of that and of all registered plans."""
PACE = "pace.md"
"""The page on how many updates trainings took, likewise."""


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
    """Write the report of every published sweep, and the pages about all of them.

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

    def draw(plan: Plan) -> Sequence[Verdict]:
        written.append(target / plan.sweep.name / PAGE)
        # No trial lies in the pages' folder: all that a report has are the published ones.
        return make_report(target, plan, complain, written[-1].parent, ("svg",)).verdicts

    written: list[Path] = []
    own = [target / PAGE] if (target / PAGE).exists() else []
    for page in (*own, *pages):
        _read(page)
    for page in (target / STUDY, *own, *pages):
        require_writable(page)
    studies = judge_published(folder, complain, draw)
    make_study(target, target / STUDY, complain, folder)
    folders = {page.parent for page in (*own, *pages)}
    parts = {one: replication_parts(studies, os.path.relpath(target, one)) for one in folders}
    for page in (*own, *pages):
        _fill(page, parts[page.parent])
    if (target / EXPECTATIONS).exists():
        with storing(target / EXPECTATIONS):
            expected = (target / EXPECTATIONS).read_text(encoding="utf-8")
        predicted = predicted_and_found(expected, studies, plans=read_registrations())
        write_atomically(target / PREDICTED, predicted.encode())
        own.append(target / PREDICTED)
    own += write_pace(studies, target)
    return [*written, target / STUDY, *own, *pages]


def write_pace(studies: Sequence[Study], target: Path) -> list[Path]:
    """Fill the page on pace and draw its figure, if the page is there.

    Args:
        studies: All published sweeps.
        target: Folder of the pages.

    Raises:
        StoreError: If a file cannot be written.
    """
    page = target / PACE
    if not page.exists():
        return []
    _fill(page, pace_parts(studies))
    if figure := pace_figure(studies):
        write_atomically(page.with_suffix(".svg"), figure)
    return [page]


def judge_published(
    folder: Path,
    complain: Callable[[str], None],
    judge: Callable[[Plan], Sequence[Verdict]] | None = None,
) -> list[Study]:
    """Return every published sweep with its verdicts.

    Args:
        folder: Published trials.
        complain: Told of a sweep whose experiment is not here, and of trials that its grid lacks.
        judge: Returns the verdicts on a sweep of which only published trials are finished; by
            default nothing is written.

    Raises:
        ConfigError: If nothing is published there.
        CorruptError: If a file is damaged.
        MachineError: If pyarrow is missing.
    """
    paths = list_publications(folder)
    if not paths:
        raise ConfigError(f"no published trials: {where_published(folder)}; see `pernn publish`")
    judge = judge or (lambda plan: judge_sweep(folder, plan, complain))
    with gc_paused():
        published = {one.run: one for one in read_published(folder)}
        studies = []
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
            trials = list(plan.published.values())
            studies.append(Study(sweep, len(plan.specs), trials, judge(plan)))
    return studies


def _fill(path: Path, parts: Mapping[str, str]) -> None:
    try:
        filled = fill(_read(path), parts)
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    write_atomically(path, filled.encode())


def _read(path: Path) -> str:
    with storing(path):
        return path.read_text(encoding="utf-8")
