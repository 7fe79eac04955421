"""Results and learning curves as data frames, for notebooks; pandas is loaded on use."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.config import flatten
from pernn.errors import ConfigError, MachineError, install_command
from pernn.store import (
    Published,
    RunDirectory,
    describe_publication,
    list_publications,
    list_runs,
    list_sweeps,
    load_sweep,
    read_published,
    read_records,
    thinned_curves,
)

from .pace import with_pace
from .unrolled import require_table, unroll

if TYPE_CHECKING:
    import pandas as pd


def load_results(
    results: str | Path = "results", sweep: str | None = None, *, table: str | None = None
) -> "pd.DataFrame":
    """Return the finished trials, one row each: spec by dotted path beside metrics.

    Trials of different experiments do not compare: name a sweep, or select by the column `sweeps`.

    Args:
        results: Results directory, or a folder of published trials, such as `evidence`.
        sweep: Only its trials; see `pernn status` for the names. All if absent.
        table: If given, one row per row of this table of each trial, such as `by_update`.

    Returns:
        Columns `run`, `sweeps` (names, separated by commas), those of the spec, and the metrics;
        also `updates_to_0.5` … `updates_to_0.95`, the updates until the training accuracy first
        reached a level, all of them where `updates_to_0.5_censored` … is true: it never did.

    Raises:
        ConfigError: If there is no such directory or sweep, or no trial has the table.
        MachineError: If pandas is missing, or pyarrow for published trials.
    """
    frames, root = _pandas(), Path(results)
    published = _published(root, sweep)
    records = (
        read_records(root, _runs(root, sweep))
        if published is None
        else [one.record() for one in published]
    )
    records = with_pace(records, thinned_curves(root, published or ()))
    if table is not None:
        require_table(records, table)
    names = _sweeps_of(root)
    rows = [
        {"run": row["run"], "sweeps": ", ".join(names.get(row["run"], ())), **row}
        for row in unroll(records, table)
    ]
    return frames.DataFrame([{k: v for k, v in row.items() if k != "tables"} for row in rows])


def load_curves(results: str | Path = "results", sweep: str | None = None) -> "pd.DataFrame":
    """Return the lines of all trials' `metrics.jsonl`, of unfinished ones too.

    The frame is in memory as a whole: ten million lines of ten metrics are about a gigabyte.

    Args:
        results: Results directory, or a folder of published trials, whose curves are thinned.
        sweep: Only its trials; all if absent.

    Returns:
        Columns `run`, the values of the specs that differ between trials, `update`, `kind` (`train`
        or `test`) and the metrics; a row per line.

    Raises:
        ConfigError: If there is no such directory or sweep.
        MachineError: If pandas is missing, or pyarrow for published trials.
    """
    frames, root = _pandas(), Path(results)
    published = _published(root, sweep)
    if published is None:
        trials = [RunDirectory(root, run) for run in _runs(root, sweep)]
        specs = {one.fingerprint: flatten(one.read_spec() or {}) for one in trials}
        lines = {one.fingerprint: one.read_metrics for one in trials}
    else:
        specs = {one.run: flatten(dict(one.spec)) for one in published}
        lines = {one.run: one.metric_lines for one in published}
    keys = dict.fromkeys(key for spec in specs.values() for key in spec)
    varying = [key for key in keys if len({spec.get(key) for spec in specs.values()}) > 1]
    # A trial at a time: columns of numbers are far shorter than the lines that they come from.
    curves = []
    for run, read in lines.items():
        if found := read():
            curves.append(frames.DataFrame(found))
            curves[-1].insert(0, "run", run)
    frame = frames.concat(curves, ignore_index=True) if curves else frames.DataFrame()
    for place, key in enumerate(varying, 1) if curves else ():
        values = {run: spec.get(key) for run, spec in specs.items()}
        frame.insert(place, key, frame["run"].map(values))
    return frame


def _runs(root: Path, sweep: str | None) -> Sequence[str]:
    return list_runs(root) if sweep is None else load_sweep(root, sweep).runs


def _published(folder: Path, sweep: str | None) -> list[Published] | None:
    """Return published trials, all or those of a sweep; nothing where none are published."""
    if not folder.is_dir():
        raise ConfigError(
            f"{folder} is not a directory: expected a results directory or published trials"
        )
    sweeps = _publications(folder)
    if not sweeps:
        return None
    if sweep is not None and sweep not in sweeps:
        raise ConfigError(f"{folder} has no sweep {sweep!r} (published: {', '.join(sweeps)})")
    return read_published(folder, None if sweep is None else sweeps[sweep])


def _publications(folder: Path) -> dict[str, Sequence[str]]:
    """Return the trials of each published sweep, by its name."""
    return {one.name: one.runs for one in map(describe_publication, list_publications(folder))}


def _sweeps_of(root: Path) -> dict[str, list[str]]:
    """Return the names of the sweeps that each run belongs to."""
    found: dict[str, list[str]] = {}
    sweeps = _publications(root) or {
        name: load_sweep(root, name).runs for name in list_sweeps(root)
    }
    for name, runs in sweeps.items():
        for run in runs:
            found.setdefault(run, []).append(name)
    return found


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MachineError(f"data frames need pandas: {install_command('pandas')}") from None
    return pd
