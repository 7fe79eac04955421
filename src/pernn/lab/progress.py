"""Progress of sweeps, for `pernn status`."""

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from pathlib import Path

from pernn.errors import MachineError, PernnError
from pernn.lab.config import own_parts_off
from pernn.lab.experiments import SINGLE
from pernn.lab.runs import RunSpec
from pernn.lab.store import RunDirectory, RunStatus, list_sweeps, read_statuses
from pernn.lab.sweeps import list_single_runs, read_plan, read_sweep, read_sweeps


def look_at_sweeps(
    root: Path,
    names: Sequence[str] | None,
    published: Set[str],
    seen: dict[str, RunStatus],
    complain: Callable[[str], None],
) -> dict[str, list[RunStatus]]:
    """Return how the trials of each sweep stand.

    Args:
        root: Results directory.
        names: Which sweeps; all if absent, and the trials of none.
        published: Runs that count as finished if they were not begun here.
        seen: What was found at the last look, which this one brings up to date.
        complain: Told of each sweep whose list of runs is damaged, which is then left out.

    Raises:
        StoreError: If the list of a sweep that was named is damaged.
    """
    if names is None:
        names = [*list_sweeps(root), *([SINGLE] if list_single_runs(root) else [])]
        found = read_sweeps(root, names, complain)
    else:
        found = {name: read_sweep(root, name) for name in names}
    sweeps = {name: one.runs for name, one in found.items()}
    every = dict.fromkeys(run for runs in sweeps.values() for run in runs)
    seen.update(read_statuses(root, list(every), seen))
    for run in published & seen.keys():
        if seen[run].state == "waiting":
            seen[run] = RunStatus(run, "finished", event="published")
    return {name: [seen[run] for run in runs] for name, runs in sweeps.items()}


def label_trials(root: Path, name: str, complain: Callable[[str], None]) -> dict[str, str]:
    """Return a label of each run of a sweep.

    Args:
        root: Results directory.
        name: The sweep's.
        complain: Told of a part that is not loaded.
    """
    try:
        return {run: spec.label for run, spec in read_plan(root, name).specs.items()}
    except MachineError as error:
        complain(f"trials have no names: {error}")
    except PernnError:
        pass
    return {}


@own_parts_off()
def label_run(root: Path, run: str) -> str:
    """Return the label of a run that has begun."""
    with suppress(PernnError):
        if values := RunDirectory(root, run).read_spec():
            return RunSpec.load(values).label
    return run


def name_run(root: Path, run: str) -> str:
    """Return a run's label and fingerprint."""
    label = label_run(root, run)
    return run if label == run else f"{label} ({run})"
