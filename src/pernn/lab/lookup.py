"""Sweeps of a results directory, found by name, and how they stand."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pernn.errors import ConfigError, PernnError, StoreError
from pernn.lab.config import own_parts_off, suggestion
from pernn.lab.experiments import SINGLE, Experiment, FigureLayout, experiment_names
from pernn.lab.runs import RunSpec, tell_apart, with_stages
from pernn.lab.store import (
    RunDirectory,
    RunStatus,
    Sweep,
    describe_publication,
    gc_paused,
    is_done,
    list_publications,
    list_runs,
    list_sweeps,
    load_sweep,
    naming_damage,
    read_status,
    where_published,
)
from pernn.lab.sweeps import Plan, name_sweep, plan_again, plan_sweep
from pernn.lab.trials import Trial, beside, frame_of, gather, read_published, settings_of, to_frame

if TYPE_CHECKING:
    import pandas as pd


def read_sweep(root: Path, name: str) -> Sweep:
    """Read a sweep's list of runs, or those of no sweep (`train`)."""
    runs = list_single_runs(root) if name == SINGLE else []
    if runs:
        return Sweep(SINGLE, SINGLE, "", {}, runs)
    return load_sweep(root, name)


def read_sweeps(
    root: Path, names: Iterable[str], complain: Callable[[str], None]
) -> dict[str, Sweep]:
    """Read sweeps' lists of runs, without damaged ones."""
    found: dict[str, Sweep] = {}
    for name in names:
        with naming_damage(complain):
            found[name] = read_sweep(root, name)
    return found


def list_single_runs(root: Path) -> list[str]:
    """List the runs that belong to no sweep and no run.

    None where a sweep's list is damaged, as nobody knows then.
    """
    damage: list[str] = []
    sweeps = read_sweeps(root, list_sweeps(root), damage.append)
    if damage:
        return []
    planned = {run for one in sweeps.values() for run in one.runs}
    alone = [run for run in list_runs(root) if run not in planned]
    if not alone:
        return []
    stages = {*with_stages(root, planned)}
    stages |= {one for run in alone for one in with_stages(root, [run]) if one != run}
    return [run for run in alone if run not in stages]


@own_parts_off()
def read_plan(root: Path, name: str, complain: Callable[[str], None]) -> Plan:
    """Read a sweep as it was run, with its present specs.

    A trial of no sweep whose parts are not found is left out, unless all are like that.
    """
    return _plan_of(root, read_sweep(root, name), complain)


def _plan_of(root: Path, stored: Sweep, complain: Callable[[str], None]) -> Plan:
    if stored.experiment != SINGLE:
        plan = plan_again(stored)
        return replace(plan, sweep=stored) if plan.tuning is None else plan.grown(root)
    found: dict[str, RunSpec] = {}
    lost: dict[str, str] = {}
    damage: list[str] = []
    for run in stored.runs:
        try:
            values = RunDirectory(root, run).read_spec()
            found |= {} if values is None else {run: RunSpec.load(values)}
        except ConfigError as error:
            lost[run] = f"trial {run} cannot be read: {error}"
        except StoreError as error:
            # Of damage what reads the result tells, too.
            damage.append(str(error))
    if not found and (reasons := [*lost.values(), *damage]):
        raise (StoreError if damage else ConfigError)("; ".join(reasons))
    for reason in lost.values():
        complain(reason)
    sweep = replace(stored, runs=[run for run in stored.runs if run not in lost])
    return Plan(sweep, single_trials(found), found)


def single_trials(specs: Mapping[str, RunSpec]) -> Experiment:
    """Return trials of no sweep, by run, as an experiment without claims."""
    return Experiment(
        name=SINGLE,
        question="How did the trials that belong to no sweep end?",
        source="pernn train",
        scales={"": lambda: tuple(specs.values())},
        claims=(),
        figure=FigureLayout(
            x="seed", panels="task.kind", lines="run", metrics=("token_accuracy", "loss")
        ),
        labels=tell_apart(specs),
    )


def reload_plan(root: Path, name: str, complain: Callable[[str], None]) -> Plan:
    """Expand a sweep's grid to go on, importing parts it names."""
    stored = read_sweep(root, name)
    own = stored.experiment, stored.scale, stored.overrides
    return _plan_of(root, stored, complain) if name == SINGLE else plan_sweep(*own).grown(root)


def find_sweep(
    root: Path, name: str, scale: str, published: Path | None, complain: Callable[[str], None]
) -> Sweep:
    """Return a sweep, of published trials if it never ran here."""
    full = name_sweep(name, scale, {}) if name in experiment_names() else name
    if full in list_sweeps(root):
        return read_sweep(root, full)
    files = {path.stem: path for path in list_publications(published)}
    if full != name:
        plan = plan_sweep(name, scale, {})
    elif name in files:
        plan = plan_again(describe_publication(files[name]))
    else:
        try:
            return read_sweep(root, name)
        except ConfigError as error:
            hint = suggestion(name, [*list_sweeps(root), *files])
            raise ConfigError(f"{error}{hint or f'; {where_published(published)}'}") from None
    plan = plan.with_published(published, complain, root)
    if plan.published:
        if there := ", ".join(one for one in list_sweeps(root) if one.startswith(f"{full}-")):
            complain(f"{full} is that of published trials; here are {there}")
        return plan.sweep
    raise ConfigError(
        f"no sweep {full!r} in {root.absolute()} (there: {', '.join(list_sweeps(root)) or 'none'})"
        f"; {where_published(published)}"
    )


@own_parts_off()
def find_plan(
    root: Path, name: str, scale: str, published: Path | None, complain: Callable[[str], None]
) -> Plan:
    """Return what `find_sweep` finds, with its specs and its published trials."""
    sweep = find_sweep(root, name, scale, published, complain)
    return _plan_of(root, sweep, complain).with_published(published, complain, root)


def find_waiting(root: Path, complain: Callable[[str], None] | None = None) -> list[RunSpec]:
    """Return all planned trials that have no result.

    A sweep of an unknown experiment is left out with a complaint; if nobody hears it, an error.
    """
    found: list[RunSpec] = []
    for sweep in (load_sweep(root, name) for name in list_sweeps(root)):
        if all(is_done(root, run) for run in sweep.runs):
            continue
        try:
            found += plan_again(sweep).grown(root).missing(root)
        except ConfigError as error:
            if complain is None:
                raise ConfigError(f"sweep {sweep.name}: {error}") from None
            complain(f"sweep {sweep.name}: {error}")
    return found


def look_at_sweeps(
    root: Path, name: str | None, published: Set[str], complain: Callable[[str], None]
) -> dict[str, list[RunStatus]]:
    """Return how the trials of each sweep stand.

    All sweeps are meant if none is named. Published trials that were not begun here count as
    finished.
    """
    if name is None:
        names = [*list_sweeps(root), *([SINGLE] if list_single_runs(root) else [])]
        found = read_sweeps(root, names, complain)
    else:
        found = {name: read_sweep(root, name)}
    sweeps = {name: one.runs for name, one in found.items()}
    with gc_paused():
        every = dict.fromkeys(run for runs in sweeps.values() for run in runs)
        seen = {run: read_status(root, run) for run in every}
    for run in published & seen.keys():
        if seen[run].state == "waiting":
            seen[run] = RunStatus(run, "finished", reason="published")
    return {name: [seen[run] for run in runs] for name, runs in sweeps.items()}


def label_trials(root: Path, name: str) -> dict[str, str]:
    """Return labels of a sweep's runs, none if it cannot be read."""
    with suppress(PernnError):
        return tell_apart(read_plan(root, name, lambda reason: None).specs)
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


def load_results(
    results: str | Path = "results", sweep: str | None = None, *, table: str | None = None
) -> "pd.DataFrame":
    """Return finished trials: spec by dotted path beside metrics.

    Trials of different experiments do not compare: name a sweep, or select by the column `sweeps`.

    Args:
        results: Results directory, or a folder of published trials, such as `evidence`.
        sweep: Only its trials; see `pernn status` for the names. All if absent.
        table: If given, one row per row of this table of each trial, such as `by_update`.

    Returns:
        Columns `run`, `sweeps` (names, separated by commas; of published trials the sweep that is
        named and those in whose files they lie), those of the spec, and the metrics;
        also `updates_to_0.5` … `updates_to_0.95`, the updates until the training accuracy first
        reached a level, all of them where `updates_to_0.5_censored` … is true: it never did.

    Raises:
        ConfigError: If there is no such directory or sweep, or no trial has the table.
        MachineError: If pyarrow is missing, for published trials.
    """
    root = Path(results)
    return to_frame(_trials_in(root, sweep, gather), root, table, sweep)


def load_curves(results: str | Path = "results", sweep: str | None = None) -> "pd.DataFrame":
    """Return the lines of all trials' `metrics.jsonl`, of unfinished ones too.

    Of finished ones also the last test, which is not in that file. The frame is in memory as a
    whole: ten million lines of ten metrics are about a gigabyte.

    Args:
        results: Results directory, or a folder of published trials, whose curves are thinned.
        sweep: Only its trials; all if absent.

    Returns:
        Columns `run`, the values of the specs that differ between trials, `update`, `kind` (`train`
        or `test`) and the metrics; a row per line.

    Raises:
        ConfigError: If there is no such directory or sweep.
        MachineError: If pyarrow is missing, for published trials.
    """
    trials = _trials_in(
        Path(results), sweep, lambda root, runs: [_begun(root, run) for run in runs]
    )
    settings = settings_of(trials)
    settings = settings.where(settings.notna())
    varying = [key for key in settings if settings[key].map(str).nunique() > 1]
    frame = frame_of((one.run, line) for one in trials for line in one.lines())
    return beside(frame, settings[varying].infer_objects())


def _begun(root: Path, run: str) -> Trial:
    """Return a trial, finished or not, whose log is not read."""
    directory, result = RunDirectory(root, run), None
    with naming_damage(warnings.warn):
        result = directory.read_result()
    return Trial(run, directory.read_spec() or {}, result or {}, {}, {}, root=root)


def _trials_in(
    folder: Path, sweep: str | None, read: Callable[[Path, Sequence[str]], list[Trial]]
) -> list[Trial]:
    """Return trials, all or those of a sweep: published ones, or what is read of runs."""
    sweeps = {path.stem: path for path in list_publications(folder)}
    if not sweeps and not folder.is_dir():
        raise ConfigError(
            f"{folder} is not a directory: expected a results directory or published trials"
        )
    if not sweeps:
        return read(folder, list_runs(folder) if sweep is None else load_sweep(folder, sweep).runs)
    if sweep is None:
        return read_published(folder)
    if sweep not in sweeps:
        raise ConfigError(f"{folder} has no sweep {sweep!r} (published: {', '.join(sweeps)})")
    own = describe_publication(sweeps[sweep])
    try:
        # Trials that sweeps share lie in the file of one of them.
        plan = plan_again(own).taking(
            lambda runs: {one.run: one for one in read_published(folder, runs)}, folder
        )
    except ConfigError as error:
        warnings.warn(f"{sweep}: only trials of its own file were found: {error}", stacklevel=3)
        return read_published(folder, own.runs)
    return list(plan.published.values())
