"""Values, cells and evidence of a predicate in finished trials."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from pernn.errors import ConfigError
from pernn.lab.experiments import (
    AtLeast,
    AtMost,
    Claim,
    Contrast,
    Differs,
    DiffersMore,
    Equivalent,
    EveryTrial,
    Grows,
    LimitNear,
    Predicate,
    Sooner,
    is_pace,
)

from .records import (
    Label,
    Record,
    Records,
    Sample,
    arms,
    gather,
    is_censored,
    matches,
    number,
    restrict_together,
    rows_about,
    show,
    show_all,
    sort_key,
)
from .statistics import (
    ROUNDING,
    Evidence,
    Interval,
    bootstrap_interval,
    exceeds,
    in_every,
    lies_within,
    share_interval,
    student_interval,
    trials_near,
)


@dataclass(frozen=True)
class Cell:
    """One of the cells that a claim is about."""

    name: str  # column and value
    num_seeds: int  # values behind it
    interval: Interval
    bootstrap: Interval  # the paper's
    errors: str = ""  # as of a `Finding`, in this cell


@dataclass(frozen=True)
class Finding:
    """The measurements for a claim."""

    quantity: str
    values: tuple[float, ...]  # one per seed: the average, or those of the cell that decides
    evidence: Evidence | None  # for and against the claim; `None` of one seed
    num_seeds: int  # of the cell that has fewest
    cells: tuple[Cell, ...]
    sample: Sample
    detail: str  # one line on what was compared
    remark: str = ""  # what a reader should know before trusting it
    # Of differences in accuracy, the factor by which errors are divided; empty if none.
    errors: str = ""
    cut: str = ""  # cells in which neither side arrives, in a sentence; empty if there are none
    # That decided, if it is not Student's t interval of the values.
    interval: Interval | None = None


def find(claim: Claim, records: Records, planned: Records, label: Label) -> Finding:
    """Test the records against a claim's predicate.

    Raises:
        NotRunError: If something that is needed is not there.
    """
    predicate = claim.predicate
    if isinstance(predicate, Sooner):
        found = find(replace(claim, predicate=_slower(predicate)), records, planned, label)
        factor = f"a factor of {student_interval(found.values).as_factor()}"
        return replace(found, detail="; ".join(filter(None, [factor, found.detail])))
    if predicate.compares and is_pace(predicate.metric):
        return _compare_paces(claim, records, planned, label)
    found = _test(claim, records, planned, label)
    # Near 1 a difference of accuracies is small whatever an encoding does; what errors are divided
    # by, where every trial makes some, is not.
    metric, shares = predicate.metric, ("token_accuracy", "sequence_accuracy")
    if not predicate.contrasts or predicate.times is None or metric not in shares:
        return found
    rows = _taking_part(claim, rows_about(claim, records))
    values = [number(row, metric) for row in rows]
    if any(one is None or one >= 1 for one in values):
        return found
    bits = [{**row, metric: -math.log2(1 - row[metric])} for row in rows]
    # The rows of a table are at hand, and in no plan.
    plan = () if claim.table else planned
    other = _test(replace(claim, table=None), bits, plan, label)
    cells = [
        replace(one, errors=str(own.interval.as_factor()))
        for one, own in zip(found.cells, other.cells, strict=True)
    ]
    divided = student_interval(other.values).as_factor()
    return replace(found, errors=f"{divided}{predicate.times}", cells=tuple(cells))


def _taking_part(claim: Claim, rows: Iterable[Record]) -> list[Record]:
    where, taken = claim.predicate.where, [arm for _, arm in arms(claim.predicate)]
    return [row for row in rows if matches(row, where) and any(matches(row, arm) for arm in taken)]


def _test(claim: Claim, records: Records, planned: Records, label: Label) -> Finding:
    return TESTS[type(claim.predicate)](claim.predicate, gather(claim, records, planned, label))


def _bounded(predicate: AtLeast | AtMost, sample: Sample) -> Finding:
    sign = 1 if isinstance(predicate, AtLeast) else -1
    weigh = partial(exceeds, bound=predicate.threshold, sign=sign, or_equal=True)
    detail = f"threshold {predicate.threshold:g} ({predicate.threshold_origin})"
    return _in_cells(sample.label(predicate.metric), sample, weigh, detail)


def _equivalent(predicate: Equivalent, sample: Sample) -> Finding:
    margin = predicate.margin
    detail = f"margin ± {margin:g} ({predicate.margin_origin})"
    quantity = _contrast(predicate, sample.label)
    return _in_cells(quantity, sample, lambda data: lies_within(data, -margin, margin), detail)


def _in_cells(
    quantity: str, sample: Sample, weigh: Callable[[Any], Evidence], detail: str
) -> Finding:
    """Test every cell by itself; the one that decides is shown first."""
    values = {cell: sample.at(cell) for cell in sample.cells}
    fewest = min(map(len, values.values()))
    if fewest < 2:
        worst, evidence = min(values, key=lambda cell: len(values[cell])), None
    else:
        found = {cell: weigh(np.array(values[cell])) for cell in values}
        evidence = in_every(list(found.values()))
        # Against the claim the clearest cell decides, for it the least clear one.
        worst = min(found, key=lambda cell: (found[cell].contradicts, -found[cell].supports))
        if evidence.contradicts > evidence.supports:
            worst = max(found, key=lambda cell: float(found[cell].supports))
    detail = f"the worst of {len(values)} cells; {detail}" if len(values) > 1 else detail
    quantity = f"{quantity} at {sample.name_of(worst)}"
    cells = _cells(sample, values.values())
    return Finding(quantity, values[worst], evidence, fewest, cells, sample, detail)


def _by_seed(
    sample: Sample,
    rows: Sequence[Sequence[float]],
    values: Sequence[float],
    weigh: Callable[[Any], Evidence],
    quantity: str,
    detail: str,
) -> Finding:
    """Test one value per seed, made of its row of `Sample.complete`."""
    evidence = weigh(np.array(values)) if len(values) > 1 else None
    cells = _cells(sample, zip(*rows, strict=True))
    return Finding(quantity, tuple(values), evidence, len(values), cells, sample, detail)


def _differs(predicate: Differs | DiffersMore, sample: Sample) -> Finding:
    rows, note = sample.complete()
    values = [math.fsum(row) / len(row) for row in rows]
    margin, at = predicate.margin, f"{sample.name} = {sample.all_cells}"
    quantity = _contrast(predicate, sample.label)
    if len(sample.cells) == 1:
        quantity, detail = f"{quantity} at {at}", note.removeprefix("; ")
    else:
        quantity, detail = f"{quantity}, mean over {sample.name}", f"over {at}{note}"
    if margin:
        against = f"against {predicate.sign * margin:g} ({predicate.margin_origin})"
        detail = "; ".join(filter(None, [detail, against]))
    weigh = partial(exceeds, bound=predicate.sign * margin, sign=predicate.sign)
    found = _by_seed(sample, rows, values, weigh, quantity, detail)
    return replace(found, remark=_disagreement(math.fsum(values), found.cells))


def _slower(predicate: Sooner) -> Differs:
    """Return the difference of log2 updates, baseline − treated: the log2 of the factor."""
    one = predicate.contrast
    swapped = Contrast(one.column, one.baseline, one.treated, one.baseline_where, one.treated_where)
    own = predicate.cells, predicate.required, predicate.sign
    margin = math.log2(predicate.factor), predicate.factor_origin
    return Differs(predicate.metric, predicate.where, swapped, *own, *margin)


def _compare_paces(claim: Claim, records: Records, planned: Records, label: Label) -> Finding:
    """Test log2 updates, each trial's within the updates that all of them have."""
    predicate = claim.predicate
    metric, sides = predicate.metric, [where for _, where in arms(predicate)]
    logged = restrict_together(_taking_part(claim, records), metric)
    logs = [{**row, metric: math.log2(row[metric])} for row in logged]
    found = _test(claim, logs, planned, label)
    sample = found.sample
    needed = [row for row in logged if row.get(sample.column) in sample.cells]
    of_sides = [[row for row in needed if matches(row, where)] for where in sides]
    words = []
    for where, own in zip(reversed(sides), reversed(of_sides), strict=True):
        if never := sum(is_censored(row, metric) for row in own):
            name = ", ".join(label(value) for value in where.values() if value is not None)
            name = name or ("the others" if where else "trials")
            words.append(f"{never} of {len(own)} {name}")
    lacking = f"never reached, and counted at the last update: {'; '.join(words)}" if words else ""
    found = replace(
        found,
        quantity=f"log2 of {found.quantity}",
        remark="; ".join(filter(None, [lacking, found.remark])),
    )
    pairs = list(zip(of_sides[::2], of_sides[1::2], strict=False))  # none without a contrast
    cut = [
        sample.name_of(cell)
        for cell in sample.cells
        if any(all(_is_cut(own, {sample.column: cell}, metric) for own in pair) for pair in pairs)
    ]
    return _without_the_cut(found, predicate, cut) if cut else found


def _is_cut(side: Records, cell: Mapping[str, Any], metric: str) -> bool:
    """Return whether half of one side's trials, or more, never reach the level in a cell."""
    own = [row for row in side if matches(row, cell)]
    return 2 * sum(is_censored(row, metric) for row in own) >= len(own)


def _without_the_cut(found: Finding, predicate: Predicate, cut: Sequence[str]) -> Finding:
    """Drop what differences of 0 would show where neither side arrives."""
    match predicate:
        case Equivalent(between=None):
            lost = ["supports"]
        case Differs():
            lost = ["supports"] * (predicate.margin < 0) + ["contradicts"] * (predicate.margin > 0)
        case _:
            lost = ["supports", "contradicts"]
    said = f"at {show_all(cut)} half or more of each side's trials never arrive, which counts as "
    said += "no difference" + " and decides nothing here" * bool(lost)
    evidence = found.evidence and found.evidence._replace(**dict.fromkeys(lost, np.ones(())))
    return replace(found, evidence=evidence, cut=said)


def _disagreement(total: float, cells: Sequence[Cell]) -> str:
    """Name the cells whose sign is not that of the average."""
    way = math.copysign(1, total)
    opposite = [cell for cell in cells if way * cell.interval.estimate < -ROUNDING]
    if not opposite:
        return ""
    shown = [one.name for one in opposite if one.interval.low * one.interval.high > 0]
    proof = f", where the 95 % interval excludes 0 at {show_all(shown)}" if shown else ""
    return (
        f"cells disagree in sign: opposite to the average at {len(opposite)} of {len(cells)}, "
        f"{show_all([cell.name for cell in opposite])}{proof}"
    )


def _grows(predicate: Grows, sample: Sample) -> Finding:
    rows, note = sample.complete()
    x = np.array([_log2(cell, sample.name) for cell in sample.cells])
    x -= x.mean()
    slopes = [math.fsum(x * row) / math.fsum(x * x) for row in rows]
    quantity = f"{_contrast(predicate, sample.label)}, change per doubling of {sample.name}"
    detail = f"over {sample.name} = {sample.all_cells}{note}"
    weigh = partial(exceeds, bound=0.0, sign=predicate.sign)
    return _by_seed(sample, rows, slopes, weigh, quantity, detail)


def _limit_near(predicate: LimitNear, sample: Sample) -> Finding:
    (rows, note), cells = sample.complete(), sample.cells
    limits = [_limit(row, cells, predicate.threshold) for row in rows]
    # A limit of 0 is below all that was tried, has no logarithm, and counts as half the smallest.
    floor = _log2(cells[0], sample.name) - 1
    values = [_log2(limit, sample.name) if limit else floor for limit in limits]
    never_failed = limits.count(cells[-1])
    target = math.log2(predicate.near)

    def weigh(data: Any) -> Evidence:
        if not never_failed:
            return lies_within(data, target - 1, target + 1)
        # Those limits lie anywhere above what was tried.
        above = exceeds(data, target + 1).supports
        return Evidence(np.ones(()), np.minimum(1.0, 2 * above))

    detail = f"limits {', '.join(map(show, limits))} by seed; near {show(predicate.near)} is "
    detail += f"{target - 1:.4g} … {target + 1:.4g} on this scale{note}"
    return _by_seed(sample, rows, values, weigh, f"log2 of the limit in {sample.name}", detail)


def _limit(values: Sequence[float], cells: Sequence[Any], threshold: float) -> Any:
    """Return the last cell before the first below the threshold, or 0."""
    held = takewhile(lambda one: one[0] >= threshold, zip(values, cells, strict=True))
    return [0, *(cell for _, cell in held)][-1]


def _every_trial(predicate: EveryTrial, sample: Sample) -> Finding:
    columns = [sample.at(cell) for cell in sample.cells]
    values = tuple(value for some in columns for value in some)
    away = [min(abs(value - one) for one in predicate.values) for value in values]
    near = sum(one <= predicate.tolerance * (1 + 1e-9) for one in away)
    allowed = " or ".join(f"{one:g}" for one in predicate.values)
    detail = f"{near} of {len(values)} trials lie within {predicate.tolerance:g} of {allowed} "
    detail += f"({predicate.tolerance_origin}); furthest away: "
    detail += f"{values[away.index(max(away))]:.4g}"
    return Finding(
        f"share of trials with {sample.label(predicate.metric)} at {allowed}",
        values,
        trials_near(np.array(values), predicate.values, predicate.tolerance),
        min(map(len, columns)),
        _cells(sample, columns),
        sample,
        detail,
        interval=share_interval(near, len(values)),
    )


TESTS: Mapping[type, Callable[[Any, Sample], Finding]] = {
    AtLeast: _bounded,
    AtMost: _bounded,
    Equivalent: _equivalent,
    Differs: _differs,
    DiffersMore: _differs,
    Grows: _grows,
    LimitNear: _limit_near,
    EveryTrial: _every_trial,
}
"""Predicate → how a sample is tested for it."""


def _cells(sample: Sample, values: Iterable[tuple[float, ...]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(sample.name_of(cell), len(some), student_interval(some), bootstrap_interval(some))
        for cell, some in zip(sample.cells, values, strict=True)
    )


def _log2(value: Any, column: str) -> float:
    if sort_key(value)[0] or value <= 0:
        raise ConfigError(f"{column} must be positive numbers to be doubled, got {value!r}")
    return math.log2(value)


def _contrast(predicate: Predicate, label: Label) -> str:
    text, own = label(predicate.metric), predicate.contrasts
    if contrast := own.get("contrast"):
        # What both sides share says what the one is that has nothing of its own.
        kind = predicate.where.get("encoding.kind")
        plain = label(kind) if isinstance(kind, str) else "without"
        text += f", {_side(contrast, contrast.treated, contrast.treated_where, label, plain)} − "
        text += _side(contrast, contrast.baseline, contrast.baseline_where, label, plain)
    if sides := own.get("between"):
        text += f", more with {label(sides.column)} {label(sides.treated)} than "
        text += label(sides.baseline)
    return text


def _side(
    contrast: Contrast, value: Any, where: Mapping[str, Any], label: Label, plain: str
) -> str:
    """Return the name of one side; a number is led by what it is a number of."""
    together = ", ".join(map(str, (value, *where.values())))
    if (name := label(together)) != together and where:
        return name
    further = ", ".join(label(one) for one in where.values() if one is not None)
    if value is None:
        return further or plain
    name = label(value)
    if not sort_key(value)[0] and name == show(value):
        name = f"{label(contrast.column)} {name}"
    return f"{name} ({further})" if further else name
