"""Departures of verdicts from registered plans."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any

from pernn.errors import counted
from pernn.lab.config import fingerprint
from pernn.lab.experiments import TUNED, Claim, Experiment, Rule
from pernn.lab.runs import RunSpec
from pernn.lab.store import RegisteredSweep, Registration, Sweep, read_registrations

from .claims import Verdict, judge_all
from .records import Record, matches, settings_of
from .samples import choose
from .texts import Labels

Environments = Mapping[str, Mapping[str, Any]]
"""Run → content of its `environment.json`."""


@dataclass(frozen=True)
class Registered:
    """A plan's part on a sweep, and the sweep's machines.

    Attributes:
        name: The plan's.
        plan: Its lock file.
        sweep: The sweep in it.
        environments: Of the sweep's trials.
        is_tuned: Whether these are the registered grid of a tuned setting, and what follows from
            it: `pernn run --tune`.
    """

    name: str
    plan: Registration
    sweep: RegisteredSweep
    environments: Environments
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
    choosing = {seed for one in experiment.claims if one.choice for seed in one.choice.seeds}
    judged = {run for run, spec in specs.items() if spec.seed not in choosing}
    last = max((str(one.get("date", "")) for one in environments.values()), default="")

    def about(one: Sweep | RegisteredSweep) -> tuple[Any, ...]:
        settings = {path: value for path, value in one.overrides.items() if path != "seed"}
        return one.experiment, one.scale, settings

    found = [
        (name, plan, one)
        for name, plan in read_registrations().items()
        for one in plan.sweeps
        if about(one) == about(sweep) and (last >= plan.date or judged.intersection(one.runs))
    ]
    if not found or not last:
        return None
    name, plan, own = max(found, key=lambda one: len(specs.keys() & {*one[2].runs}))
    tuned = any(path.startswith(TUNED) for path in own.overrides)
    return Registered(name, plan, own, environments, tuned and own.overrides == sweep.overrides)


def judge_experiment(
    experiment: Experiment,
    scale: str,
    records: Sequence[Record],
    planned: Sequence[RunSpec] | None = None,
    registered: Registered | None = None,
) -> tuple[Verdict, ...]:
    """Decide an experiment's claims by its scale's rule.

    Args:
        experiment: Whose claims.
        scale: Which of its scales.
        records: As for `judge`.
        planned: As for `judge`.
        registered: If given, each verdict is marked as registered or, with every departure, as
            exploratory.
    """
    rule = rule_of(experiment, scale)
    found = judge_all(experiment.claims, records, planned, Labels(experiment.labels), rule=rule)
    if registered is None:
        return found
    specs = {spec.fingerprint(): spec for spec in planned or ()}
    shared = _differences(specs, rule, registered)
    return tuple(
        one if one.verdict == "not run" else _marked(one, shared, records, registered)
        for one in found
    )


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
    verdict: Verdict, shared: Sequence[str], records: Sequence[Record], found: Registered
) -> Verdict:
    claim, date = verdict.claim, found.plan.date
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
        f"{counted(verdict.num_missing, 'trial')} not finished": bool(verdict.num_missing),
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
    return fingerprint(_plain(replace(claim, source=(), paper_value=None)))


def _plain(value: Any) -> Any:
    """Return JSON values; a field at its default is left out, as if it did not exist yet."""
    if is_dataclass(value):
        found = {
            one.name: _plain(own)
            for one in fields(value)
            for own in [getattr(value, one.name)]
            if own != (one.default if one.default_factory is MISSING else one.default_factory())
        }
        return {"kind": type(value).__name__, **found}
    if isinstance(value, Mapping):
        return {key: _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list | tuple) else value
