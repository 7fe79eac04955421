"""Flat records of finished trials: selected, paired and chosen."""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pernn.errors import ConfigError, counted
from pernn.lab.config import grouped, is_kind, nested, suggestion
from pernn.lab.experiments import Cells, Choice, Claim, Contrast, Experiment, Predicate, Where
from pernn.lab.trials import CENSORED, is_setting, unroll

Record = dict[str, Any]
"""One finished trial, or a row of its table: its spec by dotted path beside its metrics."""
Records = Sequence[Record]

NO_CONDITION: Where = {}

Arm = tuple[int, Where]
"""Records that take part in a difference, and how often each counts: +1 or −1."""


def matches(record: Record, where: Where) -> bool:
    """Return whether a record has an allowed value in every column."""
    return all(
        record.get(column) in (allowed if isinstance(allowed, tuple) else (allowed,))
        for column, allowed in where.items()
    )


def lacking(columns: Sequence[str], records: Records) -> list[str]:
    """Return which columns no record has, a line each."""
    known = {name for record in records for name in record} if records else {*columns}
    return [
        f"no trial has a column {name!r}{suggestion(name, known)}"
        for name in columns
        if name not in known
    ]


def settings_of(claim: Claim) -> Where:
    """Return the settings that a claim's trials must match."""
    return {k: v for k, v in claim.predicate.where.items() if is_setting(k)}


def sides(contrast: Contrast) -> list[Arm]:
    """Return the two arms of a contrast, the treated one first."""
    return [
        (1, {contrast.column: contrast.treated, **contrast.treated_where}),
        (-1, {contrast.column: contrast.baseline, **contrast.baseline_where}),
    ]


def combine(
    records: Iterable[Record], metric: str, arms: Sequence[Arm], columns: Sequence[str]
) -> dict[tuple[Any, ...], float]:
    """Sum a metric over arms wherever all of them are there.

    Keys are the values of the columns in which a sum's records agree, sorted.
    """
    having = [one for one in records if number(one, metric) is not None]
    found = [(sign, placed(having, columns, where)) for sign, where in arms]
    keys = set.intersection(*(set(one) for _, one in found))
    return {
        key: math.fsum(sign * one[key][metric] for sign, one in found)
        for key in sorted(keys, key=lambda key: [*map(sort_key, key)])
    }


def paired_differences(
    records: Records, metric: str, contrast: Contrast, match_columns: Sequence[str] = ()
) -> dict[tuple[Any, ...], float]:
    """Subtract the baseline from the treated condition wherever both are there.

    Keys are (seed, *values of match_columns), sorted. `None` in the contrast stands for records
    without that column.
    """
    return combine(records, metric, sides(contrast), ("seed", *match_columns))


def placed(
    records: Iterable[Record], columns: Sequence[str], where: Where = NO_CONDITION
) -> dict[tuple[Any, ...], Record]:
    """Map values of columns to the one record that has them.

    Two records for one place are refused, as nothing then says which one to take.
    """
    found: dict[tuple[Any, ...], Record] = {}
    for record in records:
        if not matches(record, where):
            continue
        key = tuple(map(record.get, columns))
        if key in found:
            pairs = [*where.items(), *zip(columns, key, strict=True)]
            at = ", ".join(f"{name} = {part}" for name, part in pairs)
            apart = [k for k in record if is_setting(k) and record[k] != found[key].get(k)]
            how = f"they differ in {', '.join(sorted(apart))}: name it" if apart else "name one"
            raise ConfigError(f"two trials at {at}; {how}, or select fewer trials")
        found[key] = record
    return found


def number(record: Record, column: str) -> float | None:
    """Return a record's finite number, or `None`."""
    value = record.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def sort_key(value: Any) -> tuple[bool, float, str]:
    """Return a sort key: numbers by size, then texts."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (False, float(value), "")
    return (True, 0.0, str(value))


def restrict_together(records: Iterable[Record], column: str) -> list[Record]:
    """Return records that have a pace, within the updates of all.

    A trial that went on for longer than another, and reached the level after that one had ended,
    is censored there: otherwise the longer training would count as the slower one.
    """
    having = [one for one in records if number(one, column) is not None]
    cap = min((float(one["training.iterations"]) for one in having), default=math.inf)
    return [
        {
            **one,
            column: min(one[column], cap),
            f"{column}{CENSORED}": is_censored(one, column) or one[column] > cap,
        }
        for one in having
    ]


def is_censored(record: Record, column: str) -> bool:
    """Return whether a column is a pace that the trial never reached."""
    return bool(record.get(f"{column}{CENSORED}"))


Label = Callable[[Any], str]
"""Column or value → how it is displayed."""

Columns = dict[Any, dict[Any, float]]
"""Seed → cell → value."""


class NotRunError(Exception):
    """Some trials that the claim needs are missing, as the message says."""


@dataclass(frozen=True)
class Sample:
    """Everything that a claim's predicate is about."""

    columns: Columns  # seed → cell → value; a difference if the predicate compares
    cells: tuple[Any, ...]  # those that are needed, in order; every one has a seed
    column: str  # what makes the cells
    num_diverged: int  # trials among them that diverged, and count as the worst
    num_missing: int  # planned trials that are not finished
    label: Label  # column or value → how it is displayed

    def complete(self) -> tuple[list[list[float]], str]:
        """Choose the seeds that have every cell.

        Their values are a row per seed and a column per cell; the note is on what was left out.
        """
        found = [one for one in self.columns.values() if one.keys() >= {*self.cells}]
        if not found:
            raise NotRunError(f"no seed has all of {self.name} = {self.all_cells}")
        left_out = len(self.columns) - len(found)
        note = f"; {counted(left_out, 'incomplete seed')} left out" if left_out else ""
        return [[one[cell] for cell in self.cells] for one in found], note

    @property
    def name(self) -> str:
        """The column that makes the cells, as it is displayed."""
        return self.label(self.column)

    @property
    def all_cells(self) -> str:
        """The cells as a list in words."""
        return show_all(self.cells, self.label)

    def name_of(self, cell: Any) -> str:
        """Return a cell's column and value, as they are displayed."""
        return f"{self.name} = {self.label(cell)}"

    def at(self, cell: Any) -> tuple[float, ...]:
        """Return the values of all seeds that have a cell."""
        return tuple(column[cell] for column in self.columns.values() if cell in column)


def arms(predicate: Predicate) -> list[Arm]:
    """Return the records whose signed sum a predicate is about.

    One contrast is a difference, two are a difference of differences, none is the metric itself.
    """
    found: list[Arm] = [(1, {})]
    for contrast in predicate.contrasts.values():
        found = [
            (sign * own, {**where, **also})
            for own, also in sides(contrast)
            for sign, where in found
        ]
    return found


def rows_about(claim: Claim, records: Records) -> list[Record]:
    """Return the rows of a claim's table, and trials that have none."""
    rows = unroll(records, claim.table)
    if records and not rows:
        raise NotRunError(f"no finished trial has a table {claim.table!r}")
    if claim.table is not None:
        rows += [one for one in records if claim.table not in one.get("tables", {})]
    return rows


def gather(claim: Claim, records: Records, planned: Records, label: Label) -> Sample:
    """Sort a claim's values by seed and cell."""
    predicate, taking_part = claim.predicate, arms(claim.predicate)
    metric, where = predicate.metric, predicate.where
    cells, rows = predicate.column, rows_about(claim, records)
    chosen = [row for row in rows if matches(row, where)]
    if not chosen:
        asked = ", ".join(f"{label(k)} = {_any_of(v, label)}" for k, v in where.items())
        raise NotRunError(f"no finished trial has {asked}" if asked else "no finished trials")
    with_cell = [row for row in chosen if cells in row]
    sums = combine(with_cell, metric, taking_part, ("seed", cells))
    columns: Columns = nested((*key, value) for key, value in sums.items())
    seen = {cell for column in columns.values() for cell in column}
    plan = _planned(planned, where, taking_part, is_table=claim.table is not None)
    needed = _required(cells, predicate.required, seen, plan)
    absent = [cell for cell in needed if cell not in seen]
    if absent or not needed:
        if unknown := lacking((metric, cells), rows):
            raise NotRunError("; ".join(unknown))
        named = (", ".join(map(label, arm.values())) for _, arm in taking_part)
        what = f"both {' and '.join(named)}" if len(taking_part) > 1 else label(metric)
        if not needed:
            raise NotRunError(f"nothing finished or planned has {what} at any {label(cells)}")
        raise NotRunError(f"needs {what} at {label(cells)} = {show_all(absent, label)}")
    if len(needed) < predicate.fewest:
        least, found = predicate.fewest, show_all(needed, label)
        raise NotRunError(f"needs at least {least} values of {label(cells)}, found {found}")
    lost = {
        row.get("run")
        for _, arm in taking_part
        for row in chosen
        if "diverged" in row and number(row, metric) is not None
        if matches(row, arm) and row.get(cells) in needed
    }
    expected = {
        one.get("run") for some in plan for one in some if one.get(cells, needed[0]) in needed
    }
    # A trial that diverged before it could be measured is finished, too.
    num_missing = len(expected - {one.get("run") for one in records})
    return Sample(columns, needed, cells, len(lost), num_missing, label)


def _planned(
    planned: Records, where: Where, taking_part: Sequence[Arm], *, is_table: bool
) -> list[list[Record]]:
    """Return the planned trials of each arm; what only tables tell apart is in all of them."""
    settings = {column for one in planned for column in one}

    def known(condition: Where) -> Where:
        return {k: v for k, v in condition.items() if k in settings or not is_table}

    chosen = [one for one in planned if matches(one, known(where))]
    return [[one for one in chosen if matches(one, known(arm))] for _, arm in taking_part]


def _required(
    cells: str, required: Cells, seen: Iterable[Any], plan: Sequence[Records]
) -> tuple[Any, ...]:
    if required != "planned":
        return tuple(sorted(required, key=sort_key))
    settings = [{one[cells] for one in some if cells in one} for some in plan]
    # A column of a table is in no spec, and without a plan what is there is all that is known.
    found = set.intersection(*settings) if any(settings) else set(seen)
    return tuple(sorted(found, key=sort_key))


def show(value: Any) -> str:
    """Return a value as text, thousands separated."""
    whole = isinstance(value, float) and value.is_integer()
    value = int(value) if whole else value
    plain = isinstance(value, bool) or not isinstance(value, int)
    return str(value) if plain else f"{value:,}"


def show_all(values: Sequence[Any], label: Label = show) -> str:
    """List a few values, or the ends of many."""
    words = [label(value) for value in values]
    if len(words) > 6:
        return f"{words[0]}, {words[1]} … {words[-1]} ({len(words)} values)"
    return ", ".join(words) or "none"


def _any_of(value: Any, label: Label) -> str:
    return " or ".join(map(label, value)) if isinstance(value, tuple) else label(value)


Condition = frozenset[tuple[str, Any]]
"""All settings of a trial but its seed and what is chosen."""


def condition_of(one: Record, but: Sequence[str] = ("seed",)) -> Condition:
    """Return a trial's settings, but for some."""
    return frozenset((k, v) for k, v in one.items() if is_setting(k) and k not in but)


Tried = Mapping[Condition, Mapping[Any, Mapping[int, float]]]
"""Condition → value of the setting → choosing seed → metric."""


def choose(
    claim: Claim, records: Records, planned: Records, label: Label
) -> tuple[Records, Records, str]:
    """Return a claim's trials, those planned, and what was chosen."""
    choice = claim.choice
    if choice is None:
        return records, planned, ""
    where, between = settings_of(claim), claim.predicate.contrasts.get("between")
    # Of conditions that a claim does not compare nothing is chosen, and nothing asked.
    compared = [
        {key: value for key, value in side.items() if is_setting(key)}
        for _, side in (sides(between) if between else [(1, {})])
    ]
    about = [
        one
        for one in (*planned, *records)
        if matches(one, where) and any(matches(one, side) for side in compared)
    ]
    tried = _tried(choice, about)
    best = {condition: _best(choice, found, label) for condition, found in tried.items()}
    said = _describe(choice, best, tried, label) if best and choice.value is None else ""
    return _judged(choice, best, records), _judged(choice, best, planned), said


def chosen_best(claims: Iterable[Claim], column: Any, records: Records) -> set[str]:
    """Return the runs that claims judge at each condition's best value."""
    found: set[str] = set()
    for claim in claims:
        choice = claim.choice
        if choice and choice.value is None and choice.column == column:
            with suppress(NotRunError):
                found |= {one["run"] for one in choose(claim, records, (), show)[0]}
    return found


def at_own_best(
    experiment: Experiment, records: Records, named: Container[str] = ()
) -> tuple[list[Record], Sequence[str]]:
    """Return the judged trials, and what each condition is tuned in.

    That is nothing where it is named, trials are also judged at equal values, or none is yet.
    """
    choices = {claim.choice for claim in experiment.claims if claim.choice}
    every = [one for one in records if one["seed"] not in experiment.choosing] or [*records]
    if len(choices) != 1 or (choice := choices.pop()).value is not None or choice.column in named:
        return every, ()
    best: dict[Condition, Any] = {}
    for condition, found in _tried(choice, records).items():
        with suppress(NotRunError):
            best[condition] = _best(choice, found, show)
    judged = _judged(choice, best, every)
    return (judged, (choice.column,)) if judged else (every, ())


def _judged(choice: Choice, best: Mapping[Condition, Any], records: Records) -> list[Record]:
    """Return the trials at their conditions' best values that did not choose these."""
    return [
        one
        for one in records
        if one.get("seed") not in choice.seeds
        # What lacks the setting stays as it is.
        and one.get(choice.column) == best.get(condition_of(one, ("seed", choice.column)))
    ]


def _tried(choice: Choice, about: Records) -> Tried:
    tried: dict[Condition, dict[Any, dict[int, float]]] = {}
    for one in about:
        if choice.column in one:
            values = tried.setdefault(condition_of(one, ("seed", choice.column)), {})
            scores = values.setdefault(one[choice.column], {})
            score = number(one, choice.metric)
            if one.get("seed") in choice.seeds and score is not None:
                scores[one["seed"]] = score
    return tried


def _best(choice: Choice, tried: Mapping[Any, Mapping[int, float]], label: Label) -> Any:
    """Return the value of the highest mean; of equal ones the smallest."""
    if choice.value is not None:
        return choice.value
    lacking = [value for value, scores in tried.items() if scores.keys() < {*choice.seeds}]
    if lacking:
        values = ", ".join(map(label, sorted(lacking, key=sort_key)))
        seeds = ", ".join(map(str, choice.seeds))
        raise NotRunError(f"the choice needs seeds {seeds} at {label(choice.column)} = {values}")
    return max(sorted(tried, key=sort_key), key=lambda value: math.fsum(tried[value].values()))


def _describe(choice: Choice, best: Mapping[Condition, Any], tried: Tried, label: Label) -> str:
    """Return what was chosen by kinds and other settings, and where nothing beyond was tried."""
    shared = frozenset.intersection(*best)
    groups = grouped(
        (", ".join(label(value) for path, value in sorted(one - shared) if is_kind(path)), one)
        for one in best
    )
    columns: dict[str, None] = {}
    said = []
    for kinds, some in sorted(groups.items()):
        common, words = frozenset.intersection(*some), []
        own = {one: sorted(one - common) for one in some}
        for one in sorted(some, key=lambda one: [(k, sort_key(v)) for k, v in own[one]]):
            columns |= dict.fromkeys(path for path, _ in own[one])
            value, ends = best[one], sorted(tried[one], key=sort_key)
            edge = {ends[0]: "the smallest tried", ends[-1]: "the largest tried"}.get(value, "")
            at = ", ".join(label(setting) for _, setting in own[one])
            note = "; ".join(filter(None, [at, edge]))
            words.append(f"{label(value)} ({note})" if note else label(value))
        said.append(f"{kinds} {', '.join(words)}".strip())
    by = f" by {', '.join(map(label, columns))}" if columns else ""
    return f"{label(choice.column)}{by}: {'; '.join(said)}"
