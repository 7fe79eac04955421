"""Verdicts: what finished trials say about a claim, with the interval that decided."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, assert_never

from pernn.errors import ConfigError
from pernn.experiments import (
    AtLeast,
    Claim,
    Contrast,
    Differs,
    Grows,
    LimitNear,
    Predicate,
)

from .statistics import (
    Interval,
    Record,
    bootstrap_interval,
    number,
    paired_differences,
    rank,
    student_interval,
)

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
        return {"claim": about.name, "statement": about.statement, "source": about.source, **rest}


@dataclass(frozen=True)
class _Sample:
    """One value per seed, and the rule that turns their interval into an outcome."""

    quantity: str
    values: tuple[float, ...]
    decide: Callable[[Interval], Outcome]
    detail: str

    def outcome(self, make: Callable[[Sequence[float]], Interval]) -> Outcome:
        return self.decide(make(self.values))

    def badness(self) -> tuple[int, float]:
        interval = bootstrap_interval(self.values)
        return SEVERITY[self.decide(interval)], interval.low


class _NotRunError(Exception):
    """Some trials that the claim needs are not there; the message says which."""


def judge(claim: Claim, records: Sequence[Record]) -> Verdict:
    """Decide a claim by its predicate.

    The bootstrap interval over seeds decides, as in the paper; the remark says so where Student's
    t would decide otherwise.

    Args:
        claim: What is claimed.
        records: All finished trials of the experiment; the predicate selects among them.

    Returns:
        The verdict; `not run` if a condition it needs has fewer than two seeds.

    Raises:
        ConfigError: If two trials compete for one place in the comparison.
    """
    try:
        samples = _samples(claim.predicate, records)
    except _NotRunError as reason:
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


def _samples(predicate: Predicate, records: Sequence[Record]) -> list[_Sample]:
    chosen = [record for record in records if matches(record, predicate.where)]
    if not chosen:
        asked = ", ".join(f"{name} = {_any_of(value)}" for name, value in predicate.where.items())
        raise _NotRunError(f"no finished trial has {asked}" if asked else "no finished trials")
    match predicate:
        case AtLeast():
            return _at_least(predicate, chosen)
        case Differs():
            return [_differs(predicate, chosen)]
        case Grows():
            return [_grows(predicate, chosen)]
        case LimitNear():
            return [_limit_near(predicate, chosen)]
        case _:
            assert_never(predicate)


def _at_least(predicate: AtLeast, records: list[Record]) -> list[_Sample]:
    columns = _by_seed(records, predicate.metric, predicate.cells)
    threshold = predicate.threshold

    def decide(interval: Interval) -> Outcome:
        if interval.low >= threshold:
            return "supported"
        return "contradicted" if interval.high < threshold else "inconclusive"

    samples = []
    missing = []
    for cell in predicate.required:
        values = tuple(columns[seed][cell] for seed in columns if cell in columns[seed])
        if len(values) < 2:
            missing.append(cell)
        quantity = f"{predicate.metric} at {predicate.cells} = {_show(cell)}"
        detail = f"the worst of {len(predicate.required)} cells; threshold {threshold:g}"
        samples.append(_Sample(quantity, values, decide, detail))
    if missing or not samples:
        raise _NotRunError(f"needs at least 2 seeds at {predicate.cells} = {_list(missing)}")
    return samples


def _differs(predicate: Differs, records: list[Record]) -> _Sample:
    columns = _differences(records, predicate.metric, predicate.contrast, predicate.cells)
    seeds, cells, note = _complete(columns, predicate.cells)
    values = tuple(math.fsum(columns[seed][cell] for cell in cells) / len(cells) for seed in seeds)

    def decide(interval: Interval) -> Outcome:
        return _sign(interval, predicate.sign, predicate.margin)

    quantity = f"{_contrast(predicate)}, mean over {predicate.cells}"
    bound = f"; against {predicate.sign * predicate.margin:g}" if predicate.margin else ""
    detail = f"over {predicate.cells} = {_list(cells)}{bound}{note}"
    return _Sample(quantity, values, decide, detail)


def _grows(predicate: Grows, records: list[Record]) -> _Sample:
    columns = (
        _differences(records, predicate.metric, predicate.contrast, predicate.along)
        if predicate.contrast
        else _by_seed(records, predicate.metric, predicate.along)
    )
    if len(columns) < 2:
        raise _NotRunError(f"needs at least 2 seeds, found {len(columns)}")
    seeds, cells, note = _complete(columns, predicate.along)
    if len(cells) < 2:
        raise _NotRunError(f"needs at least 2 values of {predicate.along}, found {_list(cells)}")
    x = [_log2(cell, predicate.along) for cell in cells]
    values = tuple(_slope(x, [columns[seed][cell] for cell in cells]) for seed in seeds)

    def decide(interval: Interval) -> Outcome:
        return _sign(interval, predicate.sign)

    quantity = f"{_contrast(predicate)}, change per doubling of {predicate.along}"
    return _Sample(quantity, values, decide, f"over {predicate.along} = {_list(cells)}{note}")


def _limit_near(predicate: LimitNear, records: list[Record]) -> _Sample:
    columns = _by_seed(records, predicate.metric, predicate.along)
    required = set(predicate.required)
    ready = {seed: column for seed, column in columns.items() if required <= column.keys()}
    if len(ready) < 2:
        raise _NotRunError(
            f"needs at least 2 seeds with all of {predicate.along} = {_list(predicate.required)}, "
            f"found {len(ready)}"
        )
    seeds, cells, note = _complete(ready, predicate.along)
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

    detail = f"limits {', '.join(map(_show, limits))} by seed; near {_show(predicate.near)} is "
    detail += f"{target - 1:.4g} … {target + 1:.4g} on this scale{note}"
    if 0 in limits:
        detail += f"; a limit of 0 counts as half of {_show(cells[0])}"
    if never_failed:
        detail += f"; {never_failed} of {len(limits)} seeds never fail, so their limit is unknown"
    return _Sample(f"log2 of the limit in {predicate.along}", values, decide, detail)


def matches(record: Record, where: Any) -> bool:
    """Whether a record has an allowed value in every column.

    Args:
        record: One trial.
        where: Column → value, or a tuple of allowed values.
    """
    return all(
        column in record
        and record[column] in (allowed if isinstance(allowed, tuple) else (allowed,))
        for column, allowed in where.items()
    )


Columns = dict[Any, dict[Any, float]]
"""Seed → cell → value."""


def _by_seed(records: list[Record], metric: str, cells: str) -> Columns:
    columns: Columns = {}
    for record in sorted(records, key=lambda record: rank(record["seed"])):
        value = number(record, metric)
        if value is None or cells not in record:
            continue
        column = columns.setdefault(record["seed"], {})
        if record[cells] in column:
            raise ConfigError(
                f"two trials of seed {record['seed']} at {cells} = {record[cells]}: "
                "the claim's `where` must select one"
            )
        column[record[cells]] = value
    return columns


def _differences(records: list[Record], metric: str, contrast: Contrast, cells: str) -> Columns:
    columns: Columns = {}
    for (seed, cell), value in paired_differences(records, metric, contrast, [cells]).items():
        columns.setdefault(seed, {})[cell] = value
    if len(columns) < 2:
        raise _NotRunError(
            f"needs at least 2 seeds with both {contrast.treated} and {contrast.baseline}, "
            f"found {len(columns)}"
        )
    return columns


def _complete(columns: Columns, name: str) -> tuple[list[Any], list[Any], str]:
    """Choose seeds that share their cells, so that each seed's value is of the same thing.

    A sweep runs seed by seed: those that have every cell, if two do; else all, with the cells that
    they share.
    """
    every = {cell for column in columns.values() for cell in column}
    seeds = [seed for seed, column in columns.items() if column.keys() == every]
    if len(seeds) < 2:
        seeds = list(columns)
        every = {cell for cell in every if all(cell in column for column in columns.values())}
    if not every:
        raise _NotRunError(f"no value of {name} has all {len(seeds)} seeds")
    left_out = len(columns) - len(seeds)
    note = f"; {left_out} unfinished seed{'s' * (left_out > 1)} left out" if left_out else ""
    return seeds, sorted(every, key=rank), note


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
    return f"{predicate.metric}, {contrast.treated} − {contrast.baseline}"


def _show(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    value = int(value) if whole else value
    return f"{value:,}" if isinstance(value, int) else str(value)


def _list(values: Sequence[Any]) -> str:
    if len(values) > 6:
        return (
            f"{_show(values[0])}, {_show(values[1])} … {_show(values[-1])} ({len(values)} values)"
        )
    return ", ".join(_show(value) for value in values) or "none"


def _any_of(value: Any) -> str:
    return " or ".join(map(_show, value)) if isinstance(value, tuple) else _show(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
