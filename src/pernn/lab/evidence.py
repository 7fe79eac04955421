"""Pages of all sweeps, published ones among them."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from pernn.errors import ConfigError, MachineError, PernnError
from pernn.lab.experiments import SINGLE
from pernn.lab.lookup import list_single_runs, read_plan, read_sweeps
from pernn.lab.reports import (
    SCALES,
    Drawing,
    Format,
    Report,
    write_study,
)
from pernn.lab.store import (
    ENDING,
    describe_publication,
    gc_paused,
    list_publications,
    list_sweeps,
    read_registrations,
    where_published,
)
from pernn.lab.sweeps import Plan, plan_again, report_of, restrict
from pernn.lab.trials import Trial, find_published, read_published

Watch = Callable[[Iterable[Report], int], Iterable[Report]]
"""What is called with reports and their number, and hands them on, to show progress."""
Readers = Mapping[str, Callable[[], Plan]]
"""Name of a sweep → what reads it."""

MOST_SHOWN = 100
"""Sweeps of which the page of all has a chapter each: one takes seconds to draw."""


def make_study(
    root: Path,
    path: Path,
    complain: Callable[[str], None],
    folder: Path | None = None,
    *,
    jobs: int = 1,
    watch: Watch = lambda reports, _: reports,
) -> int:
    """Write one page of all sweeps, local ones first, and count them.

    Of more than a hundred it shows local ones and those that judge the experiments' claims, and
    names the others.
    What is damaged or of an unknown experiment is left out with a complaint.
    """
    with gc_paused():
        published = find_published(folder, None, complain)
        folder = folder if published else None
        found = _readers(root, folder, complain)
        further = _further(root, folder, complain) if len(found) > MOST_SHOWN else {}
        readers = {name: read for name, read in found.items() if name not in further}
        reports = _reports(root, readers, published, complain, ())
        watched = watch(drawn(reports, root, folder, jobs), len(reports))
        write_study([*watched], path, further)
    return len(reports)


def _readers(root: Path, folder: Path | None, complain: Callable[[str], None]) -> Readers:
    """Return what reads each sweep, local ones first."""
    names = [*list_sweeps(root), *([SINGLE] if list_single_runs(root) else [])]
    found = {name: partial(read_plan, root, name, complain) for name in names}
    for file in list_publications(folder):
        found.setdefault(file.stem, partial(_plan_published, file))
    return found


def _plan_published(file: Path) -> Plan:
    return plan_again(describe_publication(file))


def _further(root: Path, folder: Path | None, complain: Callable[[str], None]) -> dict[str, str]:
    """Return the sweeps that have no chapter, and the experiment of each.

    These judge no experiment's claims, as `planned_sweeps` chooses, and are published, or too many.
    """
    sweeps = read_sweeps(root, list_sweeps(root), complain)
    local = {*sweeps}
    for file in list_publications(folder):
        sweeps.setdefault(file.stem, describe_publication(file))
    plans = read_registrations().values()
    registered = {frozenset(own.runs) for plan in plans for own in plan.sweeps}
    whole = [one for one in sweeps.values() if one.scale in SCALES and not one.is_restricted]
    whole.sort(key=lambda one: (SCALES.index(one.scale), frozenset(one.runs) not in registered))
    first = {one.experiment: one.name for one in reversed(whole)}
    shown = {*first.values(), *(local if len(local) <= MOST_SHOWN else ())}
    return {name: one.experiment for name, one in sweeps.items() if name not in shown}


def _reports(
    root: Path,
    readers: Readers,
    published: Mapping[str, Trial],
    complain: Callable[[str], None],
    formats: Sequence[Format],
) -> list[Report]:
    """Return the reports of the sweeps that can be read, with their published trials."""
    found = []
    for name, read in readers.items():
        try:
            plan = read().taking(partial(restrict, published), root)
            report = report_of(root, plan, complain, formats)
            _ = report.rows, report.verdicts  # of which one may not be told
        except PernnError as error:
            complain(f"sweep {name}: {error}")
        else:
            found.append(report)
    return found


def read_reports(folder: Path, complain: Callable[[str], None]) -> list[Report]:
    """Return the report of every published sweep."""
    if not list_publications(folder):
        raise ConfigError(f"no published trials: {where_published(folder)}; see `pernn publish`")
    with gc_paused():
        published = {one.run: one for one in read_published(folder)}
        # No trial lies in the folder itself: all that a report has are the published ones.
        readers = _readers(folder, folder, complain)
        reports = _reports(folder, readers, published, complain, ("svg",))
    for report in reports:
        path = folder / f"{report.name}{ENDING}"
        if odd := len({*describe_publication(path).runs} - {one.run for one in report.trials}):
            complain(f"{path}: {odd} trials are not in the grid of {report.name} any more")
    return reports


def drawn(
    reports: Sequence[Report], root: Path, folder: Path | None, jobs: int
) -> Iterator[Report]:
    """Yield the reports with their figures, which several processes draw."""
    jobs = min(jobs, len(reports))
    if jobs < 2:
        for report in reports:
            _ = report.figure, report.further
            yield report
        return
    draw = partial(_draw, root, folder, reports[0].formats)
    names = [report.name for report in reports]
    try:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _leave_with_parent) as pool:
            for report, (figure, further) in zip(reports, pool.map(draw, names), strict=True):
                report.figure, report.further = figure, further
                yield report
    except BrokenProcessPool:
        raise MachineError(
            "a process that draws was killed, perhaps as memory ran out: try --jobs 1"
        ) from None


def _leave_with_parent() -> None:
    """End at once by Ctrl-C, and when the parent is killed: pools do neither."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    Thread(target=wait, daemon=True).start()


def _draw(
    root: Path, folder: Path | None, formats: Sequence[Format], name: str
) -> tuple[Drawing, list[Drawing]]:
    """Read a sweep again, and draw its figures."""
    plan = _readers(root, folder, _ignore)[name]()
    with gc_paused():
        # In the order of the grid, as the reports that are not read again.
        plan = plan.taking(lambda runs: restrict(find_published(folder, runs, _ignore), runs), root)
        report = report_of(root, plan, _ignore, formats)
        return report.figure, report.further


def _ignore(complaint: str) -> None:
    """Drop a complaint, which was made when the sweep was first read."""
