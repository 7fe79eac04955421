"""Tables of finished trials and their curves, local or published."""

import fcntl
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pernn.errors import ConfigError, CorruptError, MachineError, StoreError
from pernn.lab.config import flatten, grouped, suggestion
from pernn.lab.experiments import LEVELS, pace_column
from pernn.lab.runs import RunSpec, with_stages
from pernn.lab.store import (
    ENDING,
    IDENTITY,
    RunDirectory,
    Sweep,
    describe_publication,
    gc_paused,
    is_done,
    list_publications,
    list_sweeps,
    load_pyarrow,
    load_sweep,
    naming_damage,
    read_publication,
    storing,
    write_publication,
)

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
"""One finished trial, or a row of its table: its spec by dotted path beside its metrics."""
OnWarning = Callable[[str], None]
Fate = Literal["published", "identical", "kept the first"]

MAX_POINTS = 60
"""Points of a thinned learning curve."""
DIGITS = 6
"""Significant digits of its numbers."""
MEASURED = ("loss", "gradient_norm", "token_accuracy")
"""Its columns, beside the update."""
CENSORED = "_censored"
"""End of the column that says whether a level of accuracy was never reached."""
NAMING = frozenset({"run", "num_parameters", "tables", "kind", "diverged"})
"""Columns that are neither set nor measured."""
CHUNK = 50_000
"""Lines of a log that are in memory as dictionaries at once."""
LINES = ("train", "test")
"""The kinds of lines in learning curves."""


@dataclass(frozen=True)
class Trial:
    """A finished trial.

    Attributes:
        run: Its fingerprint.
        spec: All that decides its numbers.
        result: The content of `result.json`.
        environment: The machine; empty if it is unknown.
        curves: Columns of the thinned learning curve: `update`, and means since the line
            before: `loss`, `gradient_norm`, `token_accuracy`.
        core_seconds: Run → seconds × threads, of the trial itself and of the runs that it went on
            from; what a killed process did is not in. Of published trials only.
        root: The results directory that it ran in; `None` if it is published.
        is_damaged: Whether its log of metrics cannot be read.
    """

    run: str
    spec: Mapping[str, Any]
    result: Mapping[str, Any]
    environment: Mapping[str, Any]
    curves: Mapping[str, Sequence[float]]
    core_seconds: Mapping[str, float] = field(default_factory=dict)
    root: Path | None = None
    is_damaged: bool = False

    def values(self) -> dict[str, Any]:
        """Return what is published of the trial."""
        names = ("spec", "result", "environment", "curves", "core_seconds")
        return {name: getattr(self, name) for name in names}

    def row(self, levels: Iterable[float] = LEVELS) -> Row:
        """Return spec by dotted path, metrics, `tables`, and updates to levels.

        A metric that has the name of another column is `metric.<name>`. `diverged`, after which
        update, is there if the run did. A trial without a curve of accuracies has no columns of
        levels; what it never reached counts as reached at its last update and is said to be
        censored, and so is everything of a trial that diverged, as it counts as the worst.
        """
        result = self.result
        about = {"num_parameters": result.get("num_parameters"), "tables": result.get("tables", {})}
        if lost := result.get("diverged"):
            about["diverged"] = lost["update"]
        row = {"run": self.run, **flatten(dict(self.spec)), **about}
        metrics = result["metrics"].items()
        row |= {f"metric.{key}" if key in row else key: value for key, value in metrics}
        pairs = zip(
            self.curves.get("update", ()), self.curves.get("token_accuracy", ()), strict=False
        )
        if points := [pair for pair in pairs if None not in pair]:
            updates, accuracies = zip(*points, strict=True)
            cap = float(row.get("training.iterations") or updates[-1])
            for level in levels:
                pace = updates_to(level, updates, accuracies, cap)
                pace = Pace(cap, censored=True) if lost else pace
                name = intern(pace_column(level))
                row |= {name: pace.updates, intern(f"{name}{CENSORED}"): pace.censored}
        return row

    @property
    def has_lines(self) -> bool:
        """True if there are lines of its metrics."""
        tests = {} if self.root else self.result.get("tables", {}).get("by_update")
        return bool(self.curves or tests)

    def lines(self, *, thinned: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the log and last test, or thinned curve and tests.

        Of a published trial there are only these; a damaged log gives nothing.
        """
        tests, logged = self.result.get("tables", {}).get("by_update", {}), -1
        curves = self.curves
        if self.root is not None and not thinned:
            if self.is_damaged:
                return
            curves = {}
            for line in RunDirectory(self.root, self.run).metrics():
                logged = line["update"] if line.get("kind") == LINES[1] else logged
                yield line
        for kind, columns in zip(LINES, (curves, tests), strict=True):
            for row in zip(*columns.values(), strict=True):
                line = {"kind": kind, **dict(zip(columns, row, strict=True))}
                # The log has all tests but the one after the last update.
                if line["update"] > logged:
                    yield line


def read_trial(root: Path, run: str, on_warning: OnWarning | None = None) -> Trial | None:
    """Return a trial of a results directory, or `None` if unfinished.

    If its machine or its curve is damaged it counts as unknown, with a warning if anybody hears it.
    """
    directory = RunDirectory(root, run)
    result = directory.read_result()
    # An unfinished run is no trial, whatever became of its spec.
    spec = None if result is None else directory.read_spec()
    if result is None or spec is None:
        return None
    trial = Trial(run, spec, result, {}, {}, root=root, is_damaged=True)
    with naming_damage(on_warning):
        trial = replace(trial, environment=directory.read_environment() or {})
    with naming_damage(on_warning):
        return replace(trial, curves=_thinned(directory.metrics()), is_damaged=False)
    return trial


def gather(
    root: Path,
    runs: Iterable[str],
    published: Mapping[str, Trial] | None = None,
    on_warning: OnWarning | None = None,
) -> list[Trial]:
    """Return the finished ones of some runs, those that ran here first.

    A damaged trial is left out with a warning; if nobody hears it, it is an error.
    """
    found: dict[str, Trial] = {}
    known: dict[str, Any] = {}
    with gc_paused():
        for run in runs:
            with naming_damage(on_warning):
                if one := read_trial(root, run, on_warning):
                    found[run] = _sharing(one, known)
    more = [one for run, one in (published or {}).items() if run not in found]
    return [*found.values(), *more]


def _sharing(one: Trial, known: dict[str, Any], **more: Any) -> Trial:
    """Return a trial whose machine, task, core are in memory once, as thousands share a few."""
    machine = known.setdefault(repr(one.environment), one.environment)
    spec = {key: known.setdefault(repr(part), part) for key, part in one.spec.items()}
    return replace(one, spec=spec, environment=machine, **more)


def read_published(folder: Path | None, runs: Iterable[str] | None = None) -> list[Trial]:
    """Return published trials, each once, those of the first file first."""
    wanted = None if runs is None else set(runs)
    found: dict[str, Trial] = {}
    for path in list_publications(folder):
        if wanted is None or wanted & {*describe_publication(path).runs} - found.keys():
            for one in _of_file(path, wanted).values():
                found.setdefault(one.run, one)
    return list(found.values())


def find_published(
    folder: Path | None, runs: Iterable[str] | None, on_warning: OnWarning
) -> dict[str, Trial]:
    """Return the published ones of some runs, or none with a warning."""
    try:
        return {one.run: one for one in read_published(folder, runs)}
    except (MachineError, StoreError) as error:
        on_warning(f"published trials do not count: {error}")
        return {}


def _of_file(path: Path, wanted: set[str] | None = None) -> dict[str, Trial]:
    found = read_publication(path, wanted)
    return {run: Trial(run, **one) for one in found for run in [one["result"]["fingerprint"]]}


@dataclass(frozen=True)
class Publication:
    """Outcomes of a sweep's trials."""

    path: Path
    # Run → whether it was added, was there, or is there with another result, as of another machine:
    # the first one is kept.
    fates: Mapping[str, Fate]
    left_out: Mapping[str, str]  # run → what is damaged in it


def publish(root: Path, sweep: Sweep, folder: Path) -> Publication:
    """Add a sweep's finished trials to its file of published ones.

    The sweep need not be in the results directory, as trials are known by their specs. What another
    sweep's file has with another result is not added: each run has one published result.
    """
    path = folder / f"{sweep.name}{ENDING}"
    load_pyarrow()
    there: dict[str, Trial] = {}
    fates: dict[str, Fate] = {}
    left_out: dict[str, str] = {}
    known: dict[str, Any] = {}
    with _locked(folder), gc_paused():
        if path.exists():
            found = describe_publication(path)
            if any(getattr(found, key) != getattr(sweep, key) for key in IDENTITY):
                raise CorruptError(
                    f"{path}: holds {found.experiment} {found.scale}, not {sweep.name}"
                )
            there = _of_file(path)
        done = [run for run in sweep.runs if is_done(root, run)]
        held = {one.run: one for one in read_published(folder, {*done} - there.keys())} | there
        for run in done:
            try:
                same = run in held and held[run].result == RunDirectory(root, run).read_result()
                if run in (there if same else held):
                    fates[run] = "identical" if same else "kept the first"
                    continue
                one = read_trial(root, run)
                if one is None:
                    raise CorruptError(f"{RunDirectory(root, run).path}: its spec is missing")  # noqa: TRY301
                stages = with_stages(root, [run])
                seconds = {stage: _core_seconds(RunDirectory(root, stage)) for stage in stages}
                there[run] = _sharing(one, known, core_seconds=seconds)
                fates[run] = "published"
            except CorruptError as error:
                left_out[run] = str(error)
        if "published" in fates.values():
            write_publication(path, sweep, [there[run].values() for run in sorted(there)])
    return Publication(path, fates, left_out)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Be the only one who publishes here; where there are no locks, nobody can tell."""
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _core_seconds(directory: RunDirectory) -> float:
    """Add up the time between starts and ends in a run's journal, times its threads."""
    total, begun = 0.0, None
    for line in directory.read_journal():
        with suppress(KeyError, TypeError, ValueError):
            now = datetime.fromisoformat(line["time"]).timestamp()
            if line["event"] in ("started", "resumed"):
                begun = now
            elif line["event"] in ("stopped", "finished", "diverged") and begun is not None:
                # The calendar's clock may be set, and goes on while a machine sleeps.
                total, begun = total + line.get("seconds", max(0.0, now - begun)), None
    threads = (directory.read_environment() or {}).get("threads", 1)
    if not isinstance(threads, int):
        raise CorruptError(f"{directory.path}: environment.json does not say how many threads")
    return round(total * threads, 3)


def _thinned(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return some of the lines on the training as columns, evenly spread, both ends too."""
    updates: list[int] = []
    # A log of a million lines is tens of megabytes here; NaN is what a line does not have.
    values = array("d")
    for line in lines:
        if line.get("kind") == LINES[0]:
            updates.append(line["update"])
            found = map(line.get, MEASURED)
            values.extend([one if isinstance(one, int | float) else math.nan for one in found])
    last = len(updates) - 1
    step = -(-len(updates) // (MAX_POINTS - 1)) or 1
    kept = sorted({*range(min(1, len(updates))), *range(last % step, len(updates), step)})
    columns: dict[str, list[Any]] = {"update": [updates[place] for place in kept]} if kept else {}
    for number, name in enumerate(MEASURED):
        some = [values[place * len(MEASURED) + number] for place in kept]
        if not all(map(math.isnan, some)):
            columns[name] = [None if math.isnan(x) else float(f"{x:.{DIGITS}g}") for x in some]
    return columns


class Pace(NamedTuple):
    """When a level was reached."""

    updates: float  # at most the cap
    censored: bool  # whether the level was never reached, so that `updates` is the cap


def updates_to(
    level: float, updates: Sequence[float], accuracies: Sequence[float], cap: float
) -> Pace:
    """Return when a curve first reaches a level, in log updates.

    Training accuracy is that of fresh batches, so it is no memory of them. Nothing is smoothed: the
    first crossing counts, even where a noisy curve falls below again. What is reached by the first
    point counts as reached there; docs/decisions/0030-updates-to-a-level.md has the reasons.
    """
    points = list(zip(updates, accuracies, strict=True))
    if points and points[0][1] >= level:
        return Pace(min(float(points[0][0]), cap), censored=False)
    for (before, low), (after, high) in pairwise(points):
        if high >= level:
            share = (level - low) / (high - low)
            crossing = float(before ** (1 - share) * after**share)
            return Pace(min(crossing, cap), censored=crossing > cap)
    return Pace(cap, censored=True)


def is_setting(column: str) -> bool:
    """Return whether a column is a value of the trial's spec."""
    return column.partition(".")[0] in RunSpec.model_fields


def unroll(records: Iterable[Row], table: str | None) -> list[Row]:
    """Return a record per row of a table of each trial.

    What a row's columns do not name stays as the whole trial has it; a metric that they do name is
    the row's own.
    """
    if table is None:
        return list(records)
    rows: list[Row] = []
    for record in records:
        found = record.get("tables", {}).get(table, {})
        for column in found:
            if column in NAMING or is_setting(column):
                raise CorruptError(
                    f"run {record.get('run')}: table {table!r}: column {column!r} has the name of "
                    "one of the trial's own"
                )
        trial = {column: value for column, value in record.items() if column != "tables"}
        cells = zip(*found.values(), strict=True)
        rows += [{**trial, **dict(zip(found, row, strict=True))} for row in cells]
    return rows


def require_table(records: Sequence[Row], table: str | None) -> None:
    """Refuse a table that no trial has, if one is asked for."""
    known = sorted({name for record in records for name in record.get("tables", {})})
    if table is not None and records and table not in known:
        hint = suggestion(table, known)
        raise ConfigError(
            f"no finished trial has a table {table!r}{hint} (known: {', '.join(known) or 'none'})"
        )


def lines_of(trials: Iterable[Trial], num_points: int | None = None) -> "pd.DataFrame":
    """Return a row per line of metrics, training before tests.

    A million lines are tens of megabytes here, and ten times as much beside their settings: join
    them a few at a time. A number of points stands for at most this many lines of each kind per
    trial, of thinned curves, evenly spread, the last one among them.
    """
    lines = frame_of(
        (one.run, line)
        for one in trials
        for line in one.lines(thinned=num_points is not None)
        if line.get("kind") in LINES
    )
    if lines.empty:
        return lines
    runs = lines["run"].factorize()[0]
    is_test = lines["kind"].eq(LINES[1])
    lines = lines.iloc[(2 * runs + is_test).argsort(kind="stable")]
    if num_points is not None:
        own = lines.groupby(["run", "kind"], sort=False)["update"]
        place, count = own.cumcount(), own.transform("size")
        step = (count - 1) / (num_points - 1)
        lines = lines[(count <= num_points) | ((place / step).round() * step).round().eq(place)]
    return lines.reset_index(drop=True)


def settings_of(trials: Iterable[Trial]) -> "pd.DataFrame":
    """Return a row of settings per trial, NaN for none."""
    import pandas as pd

    settings = {one.run: flatten(dict(one.spec)) for one in trials}
    return pd.DataFrame([*settings.values()], index=[*settings], dtype=object)


def records_of(frame: "pd.DataFrame") -> list[Row]:
    """Return a frame's rows as dictionaries without empty cells."""
    names = [*frame]
    # One by one: `to_dict` would make all rows before any of these.
    rows = (zip(names, row, strict=True) for row in frame.itertuples(index=False, name=None))
    return [{key: value for key, value in row if not is_missing(value)} for row in rows]


def is_missing(value: Any) -> bool:
    """Return whether a cell is NaN, which means absent."""
    return isinstance(value, float) and math.isnan(value)


def beside(lines: "pd.DataFrame", settings: "pd.DataFrame") -> "pd.DataFrame":
    """Return lines with the settings of their runs behind the runs' names."""
    import pandas as pd

    if lines.empty:
        return lines
    more = settings.loc[lines["run"]].set_axis(lines.index)
    return pd.concat([lines[["run"]], more, lines.drop(columns="run")], axis=1)


def frame_of(lines: Iterable[tuple[str, Mapping[str, Any]]]) -> "pd.DataFrame":
    """Return lines of runs as columns, which are far shorter than dictionaries."""
    import pandas as pd

    left, chunks = iter(lines), []
    while chunk := list(islice(left, CHUNK)):
        chunks.append(pd.DataFrame([{"run": run, **line} for run, line in chunk]))
    return pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame()


def to_frame(
    trials: Sequence[Trial], root: Path, table: str | None, sweep: str | None = None
) -> "pd.DataFrame":
    """Return trials as `load_results` does, of a sweep if one is named."""
    import pandas as pd

    records, names = [one.row() for one in trials], _sweeps_of(root)
    require_table(records, table)
    own = [] if sweep is None else [sweep]
    frame = pd.DataFrame(unroll(records, table))
    if not frame.empty:
        sweeps = [", ".join(dict.fromkeys([*names.get(run, ()), *own])) for run in frame["run"]]
        frame.insert(1, "sweeps", sweeps)
    return frame.drop(columns="tables", errors="ignore")


def _sweeps_of(root: Path) -> dict[str, list[str]]:
    """Return the names of the sweeps that each run belongs to."""
    published = [*map(describe_publication, list_publications(root))]
    sweeps = published or [load_sweep(root, name) for name in list_sweeps(root)]
    return grouped((run, sweep.name) for sweep in sweeps for run in sweep.runs)


def describe(trials: Sequence[Trial]) -> list[str]:
    """Return where trials ran, a sentence per kind of machine."""
    here = count_machines(one.environment for one in trials if one.root and one.environment)
    there = count_machines(one.environment for one in trials if one.root is None)
    taken = f"{there.total()} trials were not run here but taken from the published ones."
    return [
        *(f"{number} trials ran on: {machine}." for machine, number in here.items()),
        *([taken] if there else []),
        *(f"{number} published trials ran on: {machine}." for machine, number in there.items()),
    ]


def describe_time(trials: Iterable[Trial]) -> list[str]:
    """Return how long published trials took."""
    seconds = {run: length for one in trials for run, length in one.core_seconds.items()}
    hours = sum(seconds.values()) / 3600
    return [f"The published ones took {hours:,.1f} core-hours."] if seconds else []


def describe_versions(trials: Iterable[Trial]) -> str:
    """Return with what versions and commits trials were made, each once."""
    found: dict[str, None] = {}
    for one in trials:
        packages, commit = one.environment.get("packages"), one.environment.get("commit")
        version = packages.get("pernn") if isinstance(packages, dict) else None
        found[f"{version or 'unknown'}{f' ({str(commit)[:10]})' if commit else ''}"] = None
    return ", ".join(found)


def count_machines(environments: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count environments by machine."""
    count: Counter[str] = Counter()
    for found in environments:
        device = found.get("device_name") if found.get("device") != "cpu" else "CPU"
        packages, threads = found.get("packages"), found.get("threads")
        torch = packages.get("torch") if isinstance(packages, dict) else None
        count[
            f"{device} of {found.get('processor')}, {threads} thread{'s' * (threads != 1)}, "
            f"torch {torch}, Python {found.get('python')}"
        ] += 1
    return count
