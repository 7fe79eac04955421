"""Verdicts on claims, with all that decided, and departures from registered plans.

Student's t on the values of each seed decides, at five seeds or more, corrected by Holm's procedure
for the number of claims of the experiment. The reasons are in docs/statistics.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any

from pydantic_core import to_jsonable_python

from pernn.errors import counted
from pernn.lab.config import fingerprint, flatten
from pernn.lab.experiments import TUNED, Claim, Experiment, Rule
from pernn.lab.runs import RunSpec
from pernn.lab.store import RegisteredSweep, Registration, Sweep, read_registrations

from .findings import Cell, Finding, find
from .records import Label, NotRunError, Records, choose, matches, settings_of, show
from .statistics import (
    ALPHA,
    MIN_SEEDS,
    ROUNDING,
    Interval,
    Outcome,
    bootstrap_interval,
    correct,
    decide,
    detectable,
    student_interval,
)
from .texts import Labels


@dataclass(frozen=True)
class Verdict:
    """The records' verdict on one claim.

    Attributes:
        claim: What was judged.
        verdict: After correction for the number of claims that were judged together. `not run` if
            something that it needs is not there at all, or a plan was registered and not all of
            its trials are finished; `too few seeds` below five.
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
        detectable: Smallest effect that had a chance of 80 % to decide, by the observed spread and
            the number of claims: a distance from the bound in the quantity's unit; of claims of
            equality the smallest margin. `None` without a spread, where single trials decide, or
            where differences are 0 because neither side arrives.
        registration: `registered` if a plan was registered that says so of this very claim and of
            its trials, `exploratory` if they depart from it, as the remark says; empty without one.
        errors: Of a claim that compares accuracies, by what errors (1 − accuracy) are divided: the
            geometric mean of seeds and cells; empty if a trial makes none.
        is_cut: Whether it is of updates to a level that half of both sides or more never reach in
            some cell.
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
    detectable: float | None = None
    registration: str = ""
    errors: str = ""
    is_cut: bool = False

    @property
    def intervals(self) -> str:
        """Everything behind the estimate, with a comma before it.

        It is empty if the claim was not run.
        """
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

    @property
    def divided(self) -> str:
        """By what errors are divided, in words, or nothing."""
        return f"errors divided by {self.errors}" if self.errors else ""

    @property
    def sensitivity(self) -> str:
        """The smallest effect that could be seen, in words, or nothing."""
        if self.detectable is None or self.interval is None:
            return ""
        what = "margin" if self.claim.predicate.of_equality else "effect"
        return f"smallest {what} seen with 80 % power: {self.interval.show(self.detectable)}"

    def dump(self) -> dict[str, Any]:
        """Return plain JSON values, with null for NaN."""
        values = to_jsonable_python(self, exclude={"claim"}, inf_nan_mode="null")
        for some in (values, *values["cells"]):
            for name in ("registration", "errors", "is_cut"):
                if not some.get(name, True):
                    del some[name]
        about = self.claim
        return {
            "claim": about.name,
            "statement": about.statement,
            "source": about.cited,
            "paper_value": about.paper_value,
            **values,
        }


def judge_all(
    claims: Sequence[Claim],
    records: Records,
    planned: Sequence[RunSpec] | None = None,
    label: Label = show,
    *,
    rule: Rule = "2026-11",
) -> tuple[Verdict, ...]:
    """Decide claims together.

    Each claim is tested twice, for and against; the chance of any wrong verdict among those that
    are corrected together stays at 5 %. Without `planned` nothing is said to be missing, and cells
    that are required as planned are those that are there.
    """
    plan = [{"run": spec.fingerprint(), **flatten(spec.dump())} for spec in planned or ()]
    found = [_judge(claim, records, plan, label) for claim in claims]
    places = [place for place, one in enumerate(found) if one.num_seeds >= MIN_SEEDS]
    tested = [found[place] for place in places]
    p_values = [(one.p_supports or 0.0, one.p_contradicts or 0.0) for one in tested]
    # The older rule knows one family.
    families = [rule != "2026-11" and one.claim.primary for one in tested]
    outcomes = correct(p_values, families, rule)
    for place, family, outcome in zip(places, families, outcomes, strict=True):
        found[place] = _corrected(found[place], outcome, families.count(family))
    return tuple(found)


def _corrected(verdict: Verdict, outcome: Outcome, num_judged: int) -> Verdict:
    if not verdict.is_cut:
        seen = smallest_effect(verdict.claim, verdict.interval, verdict.num_seeds, num_judged)
        verdict = replace(verdict, detectable=seen)
    if outcome == verdict.uncorrected:
        return verdict
    words = f"{verdict.uncorrected} if it were the only claim, not as one of {num_judged}"
    remark = "; ".join(filter(None, [words, verdict.remark]))
    return replace(verdict, verdict=outcome, remark=remark)


def smallest_effect(
    claim: Claim, interval: Interval | None, num_seeds: int, num_judged: int
) -> float | None:
    """Return the smallest effect seen with 80 % power.

    It is that of Holm's first step, where it is hardest; see `Verdict.detectable`.
    """
    if interval is None or claim.predicate.of_trials:
        return None
    equality = claim.predicate.of_equality
    return detectable(interval, num_seeds, ALPHA / num_judged, both_sides=equality)


def _judge(claim: Claim, records: Records, plan: Records, label: Label) -> Verdict:
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
        errors=found.errors,
        is_cut=bool(found.cut),
    )


def _remarks(found: Finding) -> list[str]:
    sample, values, count = found.sample, found.values, found.num_seeds
    lost, missing = sample.num_diverged, sample.num_missing
    constant = not found.interval and len(values) > 1 and max(values) - min(values) <= ROUNDING
    words = {
        f"{count} of the {MIN_SEEDS} seeds that a verdict needs": count < MIN_SEEDS,
        found.remark: bool(found.remark),
        found.cut: bool(found.cut),
        f"all {len(values)} values are equal, so their spread is unknown": constant,
        f"{counted(lost, 'trial')} diverged and count{'s' * (lost == 1)} as the worst": lost,
        f"{counted(missing, 'trial')} not finished": missing,
    }
    return [text for text, holds in words.items() if holds]


Environments = Mapping[str, Mapping[str, Any]]
"""Run → content of its `environment.json`."""


@dataclass(frozen=True)
class Registered:
    """A plan's part on a sweep, and the sweep's machines."""

    name: str
    plan: Registration
    sweep: RegisteredSweep
    environments: Environments  # of the sweep's trials
    # Whether these are the registered grid of a tuned setting (`pernn run --tune`), and what
    # follows from it.
    is_tuned: bool


def find_registered(
    sweep: Sweep,
    experiment: Experiment,
    specs: Mapping[str, RunSpec],
    environments: Environments,
) -> Registered | None:
    """Return the registration of a sweep with most of its trials.

    Sweeps that differ in their seeds only are one here: another choice of seeds is a departure.
    But a plan that came after all trials, and judges others, is of another sweep. Trials older than
    registration have no date; a sweep of such trials alone has no plan.
    """
    judged = {run for run, spec in specs.items() if spec.seed not in experiment.choosing}
    last = max((str(one.get("date", "")) for one in environments.values()), default="")

    def about(one: Sweep | RegisteredSweep) -> tuple[Any, ...]:
        settings = {path: value for path, value in one.overrides.items() if path != "seed"}
        return one.experiment, one.scale, settings

    found = [
        (name, plan, one)
        for name, plan in read_registrations().items()
        for one in plan.sweeps
        if about(one) == about(sweep)
        and (
            last >= plan.date
            or judged.intersection(one.runs)
            # The trials that judge a tuned setting are in no plan.
            or one.overrides == sweep.overrides
        )
    ]
    if not found or not last:
        return None
    # Plans of tuned sweeps that judge other seeds share the trials that choose.
    name, plan, own = max(
        found,
        key=lambda one: (len(specs.keys() & {*one[2].runs}), one[2].overrides == sweep.overrides),
    )
    tuned = any(path.startswith(TUNED) for path in own.overrides)
    return Registered(name, plan, own, environments, tuned and own.overrides == sweep.overrides)


def judge_experiment(
    experiment: Experiment,
    scale: str,
    records: Records,
    planned: Sequence[RunSpec] | None = None,
    registered: Registered | None = None,
) -> tuple[Verdict, ...]:
    """Decide an experiment's claims by its scale's rule.

    With a registration each verdict is marked as registered or, with every departure, as
    exploratory, and there is none before all trials of the claim are finished; claims that came
    later are corrected for all, and those of the plan for its own alone.
    """
    rule, label = rule_of(experiment, scale), Labels(experiment.labels)
    found = judge_all(experiment.claims, records, planned, label, rule=rule)
    if registered is None:
        return found
    planned_claims = [one for one in experiment.claims if one.name in registered.sweep.claims]
    if len(planned_claims) < len(found):
        ours = judge_all(planned_claims, records, planned, label, rule=rule)
        by_name = {one.claim.name: one for one in ours}
        found = tuple(by_name.get(one.claim.name, one) for one in found)
    specs = {spec.fingerprint(): spec for spec in planned or ()}
    shared = _differences(specs, rule, registered)
    return tuple(_marked(one, shared, records, registered) for one in found)


def rule_of(experiment: Experiment, scale: str) -> Rule:
    """Return the rule of correction of an experiment at a scale."""
    return experiment.rules.get(scale, "2026-11")


def _differences(specs: Mapping[str, RunSpec], rule: Rule, found: Registered) -> list[str]:
    own = found.sweep
    lacking, more = {*own.runs} - specs.keys(), specs.keys() - {*own.runs}
    if found.is_tuned:
        more = set()
    seeds = ", ".join(map(str, sorted({specs[run].seed for run in more})))
    words = {
        f"judged by the rule {rule}, registered was {own.rule}": rule != own.rule,
        f"{counted(len(lacking), 'registered trial')} not in this sweep": bool(lacking),
        f"{counted(len(more), 'trial')} not registered, of seeds {seeds}": bool(more),
    }
    return [text for text, holds in words.items() if holds]


def _marked(
    verdict: Verdict, shared: Sequence[str], records: Records, found: Registered
) -> Verdict:
    claim, date = verdict.claim, found.plan.date
    if verdict.verdict == "not run":
        return verdict
    if lost := verdict.num_missing:
        # A look before the end would be one more chance to be wrong, and tempt to stop.
        why = f"no verdict before all trials are finished (plan {found.name}); "
        why += f"{counted(lost, 'trial')} missing"
        return Verdict(claim, "not run", "not run", verdict.quantity, num_missing=lost, detail=why)
    where = settings_of(claim)
    # Of a tuned setting only the trials that are judged: the choice is not the plan's.
    judged, _, _ = choose(claim, records, (), Labels({}))
    about = [found.environments.get(one["run"], {}) for one in judged if matches(one, where)]
    early = sum(str(one.get("date", "")) < date for one in about)
    registered = found.sweep.claims.get(claim.name)
    changed = registered is not None and registered.digest != claim_digest(claim)
    words = {
        "the claim is not in the plan": registered is None,
        "the claim was changed": changed,
        f"{counted(early, 'trial')} run before it was registered": bool(early),
    }
    departures = [*shared, *(text for text, holds in words.items() if holds)]
    kind = "exploratory" if departures else "registered"
    said = f"{kind} (plan {found.name})" + (f": {'; '.join(departures)}" if departures else "")
    # The plan's own is always another, as a lock is committed after it was written.
    commits = {one.get("commit") for one in about}
    noted = f"trials ran at {len(commits)} commits" if len(commits) > 1 else ""
    remark = "; ".join(filter(None, [said, noted, verdict.remark]))
    return replace(verdict, registration=kind, remark=remark)


def claim_digest(claim: Claim) -> str:
    """Return a digest of a claim without its place in print."""
    return fingerprint(_spelled_out(replace(claim, source=(), paper_value=None)))


def _spelled_out(value: Any) -> Any:
    """Return JSON values; a field at its default is left out, as if it did not exist yet."""
    if is_dataclass(value):
        found = {
            one.name: _spelled_out(own)
            for one in fields(value)
            for own in [getattr(value, one.name)]
            if own != (one.default if one.default_factory is MISSING else one.default_factory())
        }
        return {"kind": type(value).__name__, **found}
    if isinstance(value, Mapping):
        return {key: _spelled_out(own) for key, own in value.items()}
    return [_spelled_out(own) for own in value] if isinstance(value, list | tuple) else value
