"""Results and learning curves as data frames, for notebooks; pandas is loaded on use."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pernn.errors import MachineError
from pernn.store import RunDirectory, flatten, list_runs, list_sweeps, load_sweep, read_records

from .unrolled import require_table, unroll

if TYPE_CHECKING:
    import pandas as pd


def load_results(
    results: str | Path = "results", sweep: str | None = None, *, table: str | None = None
) -> "pd.DataFrame":
    """Return the finished trials, one row each: spec by dotted path beside metrics.

    Trials of different experiments do not compare: name a sweep, or select by the column `sweeps`.

    Args:
        results: Results directory.
        sweep: Only its trials; see `pernn status` for the names. All if absent.
        table: If given, one row per row of this table of each trial, such as `by_update`.

    Returns:
        Columns `run`, `sweeps` (names, separated by commas), those of the spec, and the metrics.

    Raises:
        ConfigError: If there is no such sweep, or no trial has the table.
        MachineError: If pandas is missing.
    """
    frames, root = _pandas(), Path(results)
    records = read_records(root, _runs(root, sweep))
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
        results: Results directory.
        sweep: Only its trials; all if absent.

    Returns:
        Columns `run`, the values of the specs that differ between trials, `update`, `kind` (`train`
        or `test`) and the metrics; a row per line.

    Raises:
        ConfigError: If there is no such sweep.
        MachineError: If pandas is missing.
    """
    frames, root = _pandas(), Path(results)
    directories = [RunDirectory(root, run) for run in _runs(root, sweep)]
    specs = {one.fingerprint: flatten(one.read_spec() or {}) for one in directories}
    keys = dict.fromkeys(key for spec in specs.values() for key in spec)
    varying = [key for key in keys if len({spec.get(key) for spec in specs.values()}) > 1]
    # A trial at a time: columns of numbers are far shorter than the lines that they come from.
    curves = []
    for one in directories:
        if lines := one.read_metrics():
            curves.append(frames.DataFrame(lines))
            curves[-1].insert(0, "run", one.fingerprint)
    frame = frames.concat(curves, ignore_index=True) if curves else frames.DataFrame()
    for place, key in enumerate(varying, 1) if curves else ():
        values = {run: spec.get(key) for run, spec in specs.items()}
        frame.insert(place, key, frame["run"].map(values))
    return frame


def _runs(root: Path, sweep: str | None) -> Sequence[str]:
    return list_runs(root) if sweep is None else load_sweep(root, sweep).runs


def _sweeps_of(root: Path) -> dict[str, list[str]]:
    """Return the names of the sweeps that each run belongs to."""
    found: dict[str, list[str]] = {}
    for name in list_sweeps(root):
        for run in load_sweep(root, name).runs:
            found.setdefault(run, []).append(name)
    return found


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MachineError("data frames need pandas: pip install 'pernn[pandas]'") from None
    return pd
