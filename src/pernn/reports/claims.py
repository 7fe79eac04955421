"""Verdicts: what finished trials say about claims, with all that decided.

Student's t on the values of each seed decides, at five seeds or more, corrected by Holm's procedure
for the number of claims of the experiment. The reasons are in docs/statistics.md.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pernn.config import flatten
from pernn.errors import counted
from pernn.experiments import Claim
from pernn.runs import RunSpec

from .choosing import choose
from .findings import Cell, Finding, find
from .records import Record
from .rules import ALPHA, MIN_SEEDS, Outcome, decide, holm
from .samples import Label, NotRunError, show
from .statistics import ROUNDING, Interval, bootstrap_interval, student_interval


@dataclass(frozen=True)
class Verdict:
    """What the records say about one claim.

    Attributes:
        claim: What was judged.
        verdict: After correction for the number of claims that were judged together. `not run` if
            something that it needs is not there at all, `too few seeds` below five.
        uncorrected: What it would be if this were the only claim.
        quantity: What the intervals are of, with its unit where it has one.
        interval: 95 % interval that goes with the verdict: Student's t, of the worst cell where
            each cell is judged.
        bootstrap: The paper's percentile bootstrap interval of the same values.
        p_supports: One-sided p-value of the test that would support the claim, uncorrected.
        p_contradicts: That of the test that would contradict it.
        num_seeds: Number of values behind them.
        num_diverged: Trials that diverged; they count, with the worst value of each metric.
        num_missing: Trials that the claim is about and that are not finished.
        cells: Every cell by itself.
        detail: One line on what was compared, or why nothing was.
        remark: What a reader should know before trusting it; empty if nothing.
    """

    claim: Claim
    verdict: Outcome
    uncorrected: Outcome
    quantity: str
    interval: Interval | None = None
    bootstrap: Interval | None = None
    p_supports: float | None = None
    p_contradicts: float | None = None
    num_seeds: int = 0
    num_diverged: int = 0
    num_missing: int = 0
    cells: tuple[Cell, ...] = ()
    detail: str = ""
    remark: str = ""

    @property
    def intervals(self) -> str:
        """Everything behind the estimate in one line, with a comma before it; empty if not run."""
        if self.interval is None or self.bootstrap is None:
            return ""
        method = self.interval.method.removesuffix(" 0.95")
        if not self.interval.bounded:
            return f" {self.interval.bounds}"
        text = f", 95 % {self.interval.bounds} by {method}, {self.bootstrap.bounds} by the paper's "
        text += f"bootstrap, n = {self.num_seeds}"
        if self.p_supports is None or self.p_contradicts is None:
            return text
        return f"{text}, one-sided p {self.p_supports:.2g} for, {self.p_contradicts:.2g} against"

    def dump(self) -> dict[str, Any]:
        """Return plain JSON values; what is not a number becomes null."""
        values = {key: _plain(value) for key, value in asdict(self).items() if key != "claim"}
        about = self.claim
        return {
            "claim": about.name,
            "statement": about.statement,
            "source": about.cited,
            "paper_value": about.paper_value,
            **values,
        }


def judge(
    claim: Claim,
    records: Sequence[Record],
    planned: Sequence[RunSpec] | None = None,
    label: Label = show,
) -> Verdict:
    """Decide one claim by its predicate, as if it were the only one.

    Args:
        claim: What is claimed.
        records: All finished trials of the experiment; the predicate selects among them, or among
            the rows of the claim's table.
        planned: All trials of the sweep, finished or not; if absent, nothing is said to be missing,
            and cells that are required as planned are those that are there.
        label: Column or value → how it is displayed in the verdict's words.

    Raises:
        ConfigError: If two trials compete for one place in the comparison.
        CorruptError: If the claim's table is malformed.
    """
    return judge_all([claim], records, planned, label)[0]


def judge_all(
    claims: Sequence[Claim],
    records: Sequence[Record],
    planned: Sequence[RunSpec] | None = None,
    label: Label = show,
) -> tuple[Verdict, ...]:
    """Decide claims together; arguments and errors as for `judge`.

    Each claim is tested twice, for and against; Holm's procedure keeps the chance of any wrong
    verdict among all of them at 5 %.
    """
    plan = [{"run": spec.fingerprint(), **flatten(spec.dump())} for spec in planned or ()]
    found = [_judge(claim, records, plan, label) for claim in claims]
    tested = [one for one in found if one.num_seeds >= MIN_SEEDS]
    p_values = [p or 0.0 for one in tested for p in (one.p_supports, one.p_contradicts)]
    rejected = iter(holm(p_values))
    return tuple(
        _corrected(one, decide(next(rejected), next(rejected)), len(tested))
        if one.num_seeds >= MIN_SEEDS
        else one
        for one in found
    )


def _corrected(verdict: Verdict, outcome: Outcome, num_judged: int) -> Verdict:
    if outcome == verdict.uncorrected:
        return verdict
    words = f"{verdict.uncorrected} if it were the only claim, not as one of {num_judged}"
    remark = "; ".join(filter(None, [words, verdict.remark]))
    return replace(verdict, verdict=outcome, remark=remark)


def _judge(
    claim: Claim, records: Sequence[Record], plan: Sequence[Record], label: Label
) -> Verdict:
    try:
        records, plan, chosen = choose(claim, records, plan, label)
        found = find(claim, records, plan, label)
    except NotRunError as reason:
        metric = label(claim.predicate.metric)
        return Verdict(claim, "not run", "not run", metric, detail=str(reason))
    outcome: Outcome = "too few seeds"
    evidence = found.evidence
    if evidence is not None and found.num_seeds >= MIN_SEEDS:
        outcome = decide(bool(evidence.supports <= ALPHA), bool(evidence.contradicts <= ALPHA))
    return Verdict(
        claim,
        outcome,
        outcome,
        found.quantity,
        found.interval or student_interval(found.values),
        bootstrap_interval(found.values),
        None if evidence is None else float(evidence.supports),
        None if evidence is None else float(evidence.contradicts),
        found.num_seeds,
        found.sample.num_diverged,
        found.sample.num_missing,
        found.cells,
        "; ".join(filter(None, [found.detail, chosen])),
        "; ".join(_remarks(found)),
    )


def _remarks(found: Finding) -> list[str]:
    sample, values = found.sample, found.values
    lost, missing = sample.num_diverged, sample.num_missing
    constant = not found.interval and len(values) > 1 and max(values) - min(values) <= ROUNDING
    words = {
        f"{found.num_seeds} of the {MIN_SEEDS} seeds that a verdict needs": (
            found.num_seeds < MIN_SEEDS
        ),
        found.remark: bool(found.remark),
        f"all {len(values)} values are equal, so their spread is unknown": constant,
        f"{counted(lost, 'trial')} diverged and count{'s' * (lost == 1)} as the worst": lost,
        f"{counted(missing, 'trial')} not finished": missing,
    }
    return [text for text, holds in words.items() if holds]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
