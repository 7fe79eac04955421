"""Grids of sweeps: specs with values replaced, varied and added.

Changes are plain values by dotted path: `core.hidden_size` → 64 replaces, `seed` → [111, 222] makes
a grid, and `+core.kind` → "mingru:MinGRUConfig" adds to the values that the experiment has. A kind
that the grid has already is chosen from it: `core.kind` → "gru" keeps the trials of the GRU alone.
"""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import product
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.config import flatten, grouped, is_kind
from pernn.lab.runs import RunSpec

from .comparisons import LABELS
from .experiment import Experiment, FigureLayout, names_of
from .grids import ENCODING
from .predicates import Claim, Predicate, Where, qualified

ADDED = "+"
"""Begins the path of values that are added."""

Changes = Mapping[str, Any]


def trials(
    experiment: Experiment, scale: str, changes: Changes | None = None
) -> tuple[RunSpec, ...]:
    """Return an experiment's specs at a scale, changed by dotted path.

    Seeds vary slowest.

    A value that only some of the specs have (the width of an encoding) is changed in those; a kind
    that some of them have leaves these alone. Specs that became equal are listed once.

    Args:
        experiment: Whose grid it is.
        scale: `demo`, `small` or `paper`.
        changes: Path → value that replaces every spec's. A list makes a grid of its values, unless
            the setting is a list itself. `+path` → a value, or a list of them, added to those of
            the grid. Seeds that choose a setting for the others stay as they are.
    """
    if scale not in experiment.scales:
        known = ", ".join(experiment.scales)
        raise ConfigError(f"{experiment.name} has no scale {scale!r} (known: {known})")
    specs = tuple(experiment.scales[scale]())
    # A kind decides what else there is.
    for kinds in (True, False):
        own = {path: value for path, value in (changes or {}).items() if is_kind(path) is kinds}
        lists = {path: _values(specs, path, value) for path, value in own.items()}
        replacing = {path: own[path] for path, some in lists.items() if not some}
        for path, value in replacing.items():
            specs = _of_kind(specs, path, value) or specs
        specs = _replaced(specs, replacing)
        for path in sorted(lists, key=lambda path: (path.startswith(ADDED), path)):
            if values := lists[path]:
                specs = _expanded(specs, path, values, experiment.choosing)
    return specs


def with_axes(experiment: Experiment, specs: Sequence[RunSpec], changes: Changes) -> Experiment:
    """Return an experiment whose figures and claims know a changed grid.

    A figure that does not name such a setting gets a block of rows for each of its values, a claim
    that does not is judged once for each. A setting that only some lines of the figure have (the
    frequencies of an encoding, beside none) tells lines apart instead, and in a claim it is that of
    the treated side: the control is the same for all.
    """
    task, grids = changes.get("task.kind"), experiment.scales.values()
    if isinstance(task, str) and all(task != one.task.kind for make in grids for one in make()):
        here = f"{experiment.question} Here with the task {LABELS.get(task, task)}."
        experiment = replace(experiment, question=here)
    flat = [flatten(spec.dump()) for spec in specs]
    axes: dict[str, list[Any]] = {}
    kinds: dict[str, set[Any]] = {}
    for path in sorted({path.removeprefix(ADDED) for path in changes} - {"seed"}):
        # What is left at its default need not stand in a spec.
        have = [one for spec, one in zip(specs, flat, strict=True) if spec.has(path)]
        values = _seen(have, path)
        if len(values) > 1 and (f"{ADDED}{path}" in changes or isinstance(changes[path], list)):
            axes[path] = values
            # The kinds of the part that has it, where only some trials do.
            if len(have) < len(flat) and _kind_of(path) in have[0]:
                kinds[path] = {one[_kind_of(path)] for one in have}
    # What went with the values of a setting, as a vocabulary with its core, no longer does.
    beside = _untold(experiment.figure, flat, axes) if changes else {}
    if not axes and not beside:
        return experiment
    claims: list[Claim] = []
    for claim in experiment.claims:
        own = _varied(claim, flat, beside) if beside else {}
        claims += _claims(claim, axes | own, kinds)
    axes |= beside
    return replace(
        experiment,
        claims=tuple(claims),
        figure=_layout(experiment.figure, axes, kinds),
        more_figures={k: _layout(one, axes, kinds) for k, one in experiment.more_figures.items()},
    )


def _untold(
    layout: FigureLayout, flat: Sequence[Mapping[str, Any]], axes: Iterable[str]
) -> dict[str, list[Any]]:
    """Return the first settings that tell trials of one place of a figure apart, with values."""
    columns = [path for path in {*layout.shown, *axes, "seed"} if any(path in one for one in flat)]
    if layout.table:  # trials that lack its settings are in other figures
        flat = [one for one in flat if all(path in one for path in columns)]
    found: dict[str, list[Any]] = {}
    while True:
        places = grouped((tuple(one.get(path) for path in (*columns, *found)), one) for one in flat)
        some = next((some for some in places.values() if len(some) > 1), None)
        if some is None:
            return found
        first, second = some[:2]
        paths = sorted(first.keys() | second)
        path = next(path for path in paths if first.get(path) != second.get(path))
        found[path] = _seen(flat, path)


def _varied(
    claim: Claim, flat: Iterable[Mapping[str, Any]], paths: Iterable[str]
) -> dict[str, list[Any]]:
    """Return those settings that differ within the treated arm of a claim, with values."""
    first = next(iter(claim.predicate.contrasts.values()), None)
    arm = {first.column: first.treated, **first.treated_where} if first else {}
    about = [one for one in flat if _matches(one, {**claim.predicate.where, **arm})]
    return {path: seen for path in paths if len(seen := _seen(about, path)) > 1}


def _seen(flat: Iterable[Mapping[str, Any]], path: str) -> list[Any]:
    return list(dict.fromkeys(one.get(path) for one in flat))


def _matches(flat: Mapping[str, Any], where: Where) -> bool:
    """Return whether a trial has the settings, as far as it has these columns."""
    return all(
        flat[path] in (allowed if isinstance(allowed, tuple) else (allowed,))
        for path, allowed in where.items()
        if path in flat
    )


def _kind_of(path: str) -> str:
    """Return the path of the kind of the part that a setting belongs to."""
    return f"{path.rpartition('.')[0]}.kind"


def _of_kind(specs: Sequence[RunSpec], path: str, kind: Any) -> tuple[RunSpec, ...]:
    """Return the specs whose part has a kind already; none for what is no kind."""
    if not is_kind(path):
        return ()
    return tuple(one for one in specs if flatten(one.dump()).get(path) == kind)


def _replaced(specs: Sequence[RunSpec], values: Changes) -> tuple[RunSpec, ...]:
    """Return specs with values replaced in those that have them."""
    # What none has, every spec is asked for: it says why not.
    some = {path for path in values if not is_kind(path) and any(one.has(path) for one in specs)}
    made = (
        spec.override({k: v for k, v in values.items() if k not in some or spec.has(k)})
        for spec in specs
    )
    return tuple(dict.fromkeys(made)) if values else tuple(specs)


def _values(specs: Iterable[RunSpec], path: str, value: Any) -> list[Any]:
    """Return the values that a change makes a grid of or adds; none if it replaces."""
    added, name = path.startswith(ADDED), path.removeprefix(ADDED)
    several = isinstance(value, list | tuple)
    if name == "seed" and not several:  # as a list of one: those that choose stay
        return [value]
    if several and any(spec.takes_list(name) for spec in specs):
        several = bool(value) and all(isinstance(one, list | tuple) for one in value)
    if not several:
        return [value] if added else []
    if not value:
        raise ConfigError(f"{name} is invalid: expected one or more values, got none")
    return list(value)


def _expanded(
    specs: Sequence[RunSpec], path: str, values: Sequence[Any], choosing: Set[int]
) -> tuple[RunSpec, ...]:
    """Return a grid over values of a setting, beside its own values if these are added."""
    name = path.removeprefix(ADDED)
    if name == "seed" and (both := choosing & {*values}):
        if path == name and both == {*values}:  # to choose first, and judge later
            return tuple(one for one in specs if one.seed in both)
        raise ConfigError(f"seed is invalid: {min(both)} chooses settings and is not judged")
    varied = [one for one in specs if not (name == "seed" and one.seed in choosing)]
    # Where none has it the first one says why not.
    varied = [one for one in varied if one.has(name)] or varied[:1]
    made: list[RunSpec] = []
    for value in values:
        made += _of_kind(varied, name, value) or _with_value(varied, name, value)
    if path.startswith(ADDED):
        there = {json.dumps(flatten(spec.dump()).get(name)) for spec in specs}
        if double := [one for one in values if json.dumps(one) in there]:
            known = ", ".join(sorted(there - {"null"}))
            raise ConfigError(
                f"{name} is invalid: expected a value to add, got {double[0]!r}, which the grid "
                f"has already ({known})"
            )
        made = [*varied, *made]
        if name == ENCODING.column and json.dumps(ENCODING.baseline) not in there:
            made += _with_value(varied, name, ENCODING.baseline)
    chosen = set(varied)
    kept = [one for one in specs if one not in chosen]
    if name == "seed":
        return tuple(dict.fromkeys([*made, *kept]))
    places = {seed: place for place, seed in enumerate(dict.fromkeys(one.seed for one in specs))}
    return tuple(dict.fromkeys(sorted([*kept, *made], key=lambda one: places[one.seed])))


def _with_value(specs: Sequence[RunSpec], path: str, value: Any) -> list[RunSpec]:
    """Return specs with a value in the place of their own; each cell once."""
    made = [(old, old.override({path: value})) for old in specs]
    if not is_kind(path):
        return [new for _, new in made]
    # Of specs that differ in this part alone, those with most keys in common with the new kind are
    # taken: the width of a new encoding is that of the sinusoids, not of none.
    part = path.removesuffix("kind")
    cells: dict[str, list[tuple[int, RunSpec]]] = {}
    for old, new in made:
        before, after = flatten(old.dump()), flatten(new.dump())
        common = len([key for key in before if key.startswith(part) and key in after])
        cell = json.dumps({k: v for k, v in before.items() if not k.startswith(part)})
        cells.setdefault(cell, []).append((common, new))
    most = {cell: max(common for common, _ in found) for cell, found in cells.items()}
    return [new for cell, found in cells.items() for common, new in found if common == most[cell]]


def _layout(
    layout: FigureLayout, axes: Mapping[str, Any], kinds: Mapping[str, Any]
) -> FigureLayout:
    """Return a layout with a line, or a block of rows, per value of what it does not name."""
    free = [path for path in axes if path not in layout.shown]
    lines = names_of(layout.lines)
    split = [path for path in free if path in kinds and _kind_of(path) in lines]
    rows = (*names_of(layout.rows), *(path for path in free if path not in split))
    return replace(
        layout,
        lines=(*lines, *split) if split else layout.lines,
        rows=rows[0] if len(rows) == 1 else rows or None,
    )


def _claims(
    claim: Claim, axes: Mapping[str, Sequence[Any]], kinds: Mapping[str, Set[Any]]
) -> list[Claim]:
    """Return a claim once for each combination of values of what it does not name."""
    about, named = claim.predicate, claim.columns
    named |= {path for path in kinds if about.where.get(_kind_of(path)) not in {None, *kinds[path]}}
    free = {path: values for path, values in axes.items() if path not in named}
    if not free:
        return [claim]
    found = []
    for values in product(*free.values()):
        own = dict(zip(free, values, strict=True))
        words = ", ".join(
            f"{LABELS.get(k, k)} {'by default' if v is None else LABELS.get(str(v), v)}"
            for k, v in own.items()
        )
        suffix = "@" + ",".join(f"{k}={v}" for k, v in own.items())
        predicate = _about(about, own, kinds)
        found.append(qualified(claim, suffix, f" ({words})", predicate=predicate))
    return found


def _about(predicate: Predicate, own: Where, kinds: Mapping[str, Any]) -> Predicate:
    """Return a predicate of trials with certain values; of treated ones, where others lack them."""
    changes: dict[str, Any] = {}
    for name, one in predicate.contrasts.items():
        treated = {k: v for k, v in own.items() if k in kinds and _kind_of(k) == one.column}
        own = {k: v for k, v in own.items() if k not in treated}
        changes[name] = replace(one, treated_where={**one.treated_where, **treated})
    return replace(predicate, where={**predicate.where, **own}, **changes)
