"""Verdicts: what finished trials say about a claim, with the interval that decided."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pernn.errors import ConfigError
from pernn.experiments import (
    AtLeast,
    AtMost,
    Claim,
    Differs,
    Grows,
    LimitNear,
    Predicate,
)

from .cells import (
    NotRunError,
    by_seed,
    complete,
    differences,
    matches,
    show,
    show_all,
)
from .statistics import Interval, Record, bootstrap_interval, rank, student_interval
from .unrolled import unroll

Outcome = Literal["supported", "contradicted", "inconclusive", "not run"]
SEVERITY: dict[Outcome, int] = {"contradicted": 0, "inconclusive": 1, "supported": 2}


@dataclass(frozen=True)
class Verdict:
    """What the records say about one claim.

    Attributes:
        claim: What was judged.
        verdict: `not run` if the trials that it needs are not all there.
        quantity: What the intervals are of, with its unit where it has one.
        interval: Bootstrap interval that decided; of the worst cell if there are several.
        student: Student's t interval of the same values.
        num_seeds: Number of values behind them.
        detail: One line on what was compared, or why nothing was.
        remark: What a reader should know before trusting it; empty if nothing.
    """

    claim: Claim
    verdict: Outcome
    quantity: str
    interval: Interval | None
    student: Interval | None
    num_seeds: int
    detail: str
    remark: str = ""

    def dump(self) -> dict[str, Any]:
        """Give plain JSON values; what is not a number becomes null."""
        rest = {key: _plain(value) for key, value in asdict(self).items() if key != "claim"}
        about = self.claim
        return {"claim": about.name, "statement": about.statement, "source": about.cited, **rest}


@dataclass(frozen=True)
class _Sample:
    """One value per seed, and the rule that turns their interval into an outcome.

    With sign −1 less is better.
    """

    quantity: str
    values: tuple[float, ...]
    decide: Callable[[Interval], Outcome]
    detail: str
    sign: int = 1

    def outcome(self, make: Callable[[Sequence[float]], Interval]) -> Outcome:
        return self.decide(make(self.values))

    def badness(self) -> tuple[int, float]:
        interval = bootstrap_interval(self.values)
        return SEVERITY[self.decide(interval)], min(
            self.sign * interval.low, self.sign * interval.high
        )


def judge(claim: Claim, records: Sequence[Record]) -> Verdict:
    """Decide a claim by its predicate.

    The bootstrap interval over seeds decides, as in the paper; the remark says so where Student's
    t would decide otherwise.

    Args:
        claim: What is claimed.
        records: All finished trials of the experiment; the predicate selects among them, or among
            the rows of the claim's table.

    Returns:
        The verdict; `not run` if a condition it needs has fewer than two seeds.

    Raises:
        ConfigError: If two trials compete for one place in the comparison.
        CorruptError: If the claim's table is none.
    """
    try:
        samples = _samples(claim.predicate, _rows(claim, records))
    except NotRunError as reason:
        return Verdict(claim, "not run", claim.predicate.metric, None, None, 0, str(reason))
    worst = min(samples, key=_Sample.badness)
    outcome = worst.outcome(bootstrap_interval)
    by_student = min(
        (sample.outcome(student_interval) for sample in samples), key=SEVERITY.__getitem__
    )
    interval, student = bootstrap_interval(worst.values), student_interval(worst.values)
    remark = f"by Student's t this would be {by_student}" if by_student != outcome else ""
    return Verdict(
        claim,
        outcome,
        worst.quantity,
        interval,
        student,
        len(worst.values),
        worst.detail,
        remark,
    )


def _rows(claim: Claim, records: Sequence[Record]) -> list[Record]:
    rows = unroll(records, claim.table)
    if records and not rows:
        raise NotRunError(f"no finished trial has a table {claim.table!r}")
    return rows


def _samples(predicate: Predicate, records: Sequence[Record]) -> list[_Sample]:
    chosen = [record for record in records if matches(record, predicate.where)]
    if not chosen:
        asked = ", ".join(f"{name} = {_any_of(value)}" for name, value in predicate.where.items())
        raise NotRunError(f"no finished trial has {asked}" if asked else "no finished trials")
    match predicate:
        case AtLeast():
            return _bounded(predicate, chosen, 1)
        case AtMost():
            return _bounded(predicate, chosen, -1)
        case Differs():
            return [_differs(predicate, chosen)]
        case Grows():
            return [_grows(predicate, chosen)]
        case LimitNear():
            return [_limit_near(predicate, chosen)]
        case _:
            raise NotRunError(f"{type(predicate).__name__} is not judged yet")


def _bounded(
    predicate: AtLeast | AtMost, records: list[Record], sign: Literal[1, -1]
) -> list[_Sample]:
    columns = by_seed(records, predicate.metric, predicate.cells)
    threshold = predicate.threshold

    def decide(interval: Interval) -> Outcome:
        low, high = sorted((sign * interval.low, sign * interval.high))
        if low >= sign * threshold:
            return "supported"
        return "contradicted" if high < sign * threshold else "inconclusive"

    samples = []
    missing = []
    for cell in predicate.required:
        values = tuple(columns[seed][cell] for seed in columns if cell in columns[seed])
        if len(values) < 2:
            missing.append(cell)
        quantity = f"{predicate.metric} at {predicate.cells} = {show(cell)}"
        detail = f"the worst of {len(predicate.required)} cells; threshold {threshold:g}"
        samples.append(_Sample(quantity, values, decide, detail, sign))
    if missing or not samples:
        raise NotRunError(f"needs at least 2 seeds at {predicate.cells} = {show_all(missing)}")
    return samples


def _differs(predicate: Differs, records: list[Record]) -> _Sample:
    columns = differences(records, predicate.metric, predicate.contrast, predicate.cells)
    seeds, cells, note = complete(columns, predicate.cells)
    values = tuple(math.fsum(columns[seed][cell] for cell in cells) / len(cells) for seed in seeds)

    def decide(interval: Interval) -> Outcome:
        return _sign(interval, predicate.sign, predicate.margin)

    quantity = f"{_contrast(predicate)}, mean over {predicate.cells}"
    bound = f"; against {predicate.sign * predicate.margin:g}" if predicate.margin else ""
    detail = f"over {predicate.cells} = {show_all(cells)}{bound}{note}"
    return _Sample(quantity, values, decide, detail)


def _grows(predicate: Grows, records: list[Record]) -> _Sample:
    columns = (
        differences(records, predicate.metric, predicate.contrast, predicate.along)
        if predicate.contrast
        else by_seed(records, predicate.metric, predicate.along)
    )
    if len(columns) < 2:
        raise NotRunError(f"needs at least 2 seeds, found {len(columns)}")
    seeds, cells, note = complete(columns, predicate.along)
    if len(cells) < 2:
        raise NotRunError(f"needs at least 2 values of {predicate.along}, found {show_all(cells)}")
    x = [_log2(cell, predicate.along) for cell in cells]
    values = tuple(_slope(x, [columns[seed][cell] for cell in cells]) for seed in seeds)

    def decide(interval: Interval) -> Outcome:
        return _sign(interval, predicate.sign)

    quantity = f"{_contrast(predicate)}, change per doubling of {predicate.along}"
    return _Sample(quantity, values, decide, f"over {predicate.along} = {show_all(cells)}{note}")


def _limit_near(predicate: LimitNear, records: list[Record]) -> _Sample:
    columns = by_seed(records, predicate.metric, predicate.along)
    required = set(predicate.required)
    ready = {seed: column for seed, column in columns.items() if required <= column.keys()}
    if len(ready) < 2:
        asked = f"{predicate.along} = {show_all(predicate.required)}"
        raise NotRunError(f"needs at least 2 seeds with all of {asked}, found {len(ready)}")
    seeds, cells, note = complete(ready, predicate.along)
    limits = [_limit([ready[seed][cell] for cell in cells], cells, predicate) for seed in seeds]
    # A limit of 0 is below all that was tried, and has no logarithm.
    floor = _log2(cells[0], predicate.along) - 1
    values = tuple(_log2(limit, predicate.along) if limit else floor for limit in limits)
    never_failed = sum(limit == cells[-1] for limit in limits)
    target = math.log2(predicate.near)

    def decide(interval: Interval) -> Outcome:
        if interval.low > target + 1:
            return "contradicted"
        if never_failed:  # those limits lie anywhere above what was tried
            return "inconclusive"
        if interval.high < target - 1:
            return "contradicted"
        inside = target - 1 <= interval.low and interval.high <= target + 1
        return "supported" if inside else "inconclusive"

    detail = f"limits {', '.join(map(show, limits))} by seed; near {show(predicate.near)} is "
    detail += f"{target - 1:.4g} … {target + 1:.4g} on this scale{note}"
    if 0 in limits:
        detail += f"; a limit of 0 counts as half of {show(cells[0])}"
    if never_failed:
        detail += f"; {never_failed} of {len(limits)} seeds never fail, so their limit is unknown"
    return _Sample(f"log2 of the limit in {predicate.along}", values, decide, detail)


def _limit(values: list[float], cells: list[Any], predicate: LimitNear) -> Any:
    limit: Any = 0
    for cell, value in zip(cells, values, strict=True):
        if value < predicate.threshold:
            break
        limit = cell
    return limit


def _sign(interval: Interval, sign: int, margin: float = 0.0) -> Outcome:
    low, high = sorted((sign * interval.low, sign * interval.high))
    if low > margin:
        return "supported"
    return "contradicted" if high < margin else "inconclusive"


def _slope(x: list[float], y: list[float]) -> float:
    centre = math.fsum(x) / len(x)
    spread = math.fsum((a - centre) ** 2 for a in x)
    return math.fsum((a - centre) * b for a, b in zip(x, y, strict=True)) / spread


def _log2(value: Any, column: str) -> float:
    if rank(value)[0] or value <= 0:
        raise ConfigError(f"{column} must be positive numbers to be doubled, got {value!r}")
    return math.log2(value)


def _contrast(predicate: Differs | Grows) -> str:
    contrast = predicate.contrast
    if contrast is None:
        return predicate.metric
    return f"{predicate.metric}, {show(contrast.treated)} − {show(contrast.baseline)}"


def _any_of(value: Any) -> str:
    return " or ".join(map(show, value)) if isinstance(value, tuple) else show(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
