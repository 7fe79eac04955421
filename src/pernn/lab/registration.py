"""Registration of a plan: trials, claims and expectations, with a date."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pernn.errors import ConfigError
from pernn.lab.config import Config, flatten, read_file, suggestion
from pernn.lab.experiments import Claim, first_seeds
from pernn.lab.reports import (
    MIN_SEEDS,
    Interval,
    claim_digest,
    matches,
    rule_of,
    settings_of,
    smallest_effect,
)
from pernn.lab.runs import describe_commit, describe_versions
from pernn.lab.store import RegisteredClaim, RegisteredSweep, Registration, write_atomically
from pernn.lab.sweeps import Plan, plan_sweep

Seeds = int | tuple[int, ...]


class _Term(Config):
    weight: float
    where: dict[str, Any]


class _Expectation(Config):
    """As in docs/evidence/expectations.json, of claims and terms of the experiment it stands in."""

    text: str
    expected: Literal[
        "supported", "contradicted", "not supported", "open", "above", "below", "at least"
    ]
    claims: tuple[str, ...] = ()
    failure: bool = False
    bound: float | None = None
    metric: str | None = None
    table: str | None = None
    terms: tuple[_Term, ...] = ()

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "_Expectation":
        of_numbers = self.expected in ("above", "below", "at least")
        whole = (self.metric is None) == (not self.terms) and of_numbers <= (self.bound is not None)
        if bool(self.claims) == bool(self.terms) or of_numbers > bool(self.terms) or not whole:
            raise ValueError(
                "expected either `claims` that are supported, contradicted, not supported or open, "
                "or `terms` and `metric` of a number that is above, below or at least a `bound`, "
                "or open"
            )
        return self


class _Experiment(Config):
    name: str
    scale: str
    set: dict[str, Any] = Field(default_factory=dict)
    seeds: Seeds | None = None
    primary: tuple[str, ...] = ()
    expectations: tuple[_Expectation, ...] = ()


class _PlanFile(Config):
    title: str
    seeds: Seeds | None = None
    pilots: tuple[int, ...] = ()
    experiments: Annotated[tuple[_Experiment, ...], Field(min_length=1)]


def register(path: Path) -> tuple[Path, Sequence[tuple[Plan, RegisteredSweep]]]:
    """Write the lock file of a plan beside it.

    docs/sweeps.md says what a plan holds. Returns the lock file, and what was registered of each
    experiment.
    """
    target = path.with_suffix(".lock.json")
    if target.exists():
        raise ConfigError(
            f"{target}: this plan is registered; a changed one needs another name, and this file "
            "stays as it is"
        )
    content = _PlanFile.load(read_file(path))
    found = [_register(one, content) for one in content.experiments]
    expected = [
        _named(each, own.name)
        for one, (_, own) in zip(content.experiments, found, strict=True)
        for each in one.expectations
    ]
    registration = Registration(
        title=content.title,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=describe_versions(("pernn",))["pernn"],
        commit=describe_commit(),
        pilots=content.pilots,
        sweeps=tuple(own for _, own in found),
        expectations=tuple({"number": str(n), **one} for n, one in enumerate(expected, 1)),
    )
    write_atomically(target, registration.to_json())
    return target, found


def _register(one: _Experiment, content: _PlanFile) -> tuple[Plan, RegisteredSweep]:
    seeds = content.seeds if one.seeds is None else one.seeds
    chosen = first_seeds(seeds) if isinstance(seeds, int) else seeds
    plan = plan_sweep(
        one.name, one.scale, one.set | ({} if chosen is None else {"seed": [*chosen]})
    )
    claims, rule = plan.experiment.claims, rule_of(plan.experiment, one.scale)
    # The older rule knows one family.
    primary = {claim.name: claim.primary and rule != "2026-11" for claim in claims}
    for name in (*one.primary, *(name for each in one.expectations for name in each.claims)):
        if name not in primary:
            raise ConfigError(f"{one.name} has no claim {name!r}{suggestion(name, primary)}")
    flat = [flatten(spec.dump()) for spec in plan.specs.values()]
    tested = {c.name: any(matches(trial, settings_of(c)) for trial in flat) for c in claims}
    judged = {name for name in primary if primary[name] and tested[name]}
    if judged != {*one.primary}:
        known = ", ".join(sorted(judged)) or "none"
        raise ConfigError(
            f"{one.name}: primary claims that its trials are about, by its rule {rule} at scale "
            f"{one.scale}: {known}; the plan must name the same"
        )
    choosing = {seed for claim in claims if claim.choice for seed in claim.choice.seeds}
    # Of a tuned setting the trials that judge come once it is chosen, by a rule that is fixed.
    own = {spec.seed for spec in (plan.tuning.base if plan.tuning else plan.specs.values())}
    if both := own.intersection(content.pilots):
        raise ConfigError(f"{one.name}: seed {min(both)} is one of the pilots'")
    count = len(own - choosing)
    if count < MIN_SEEDS:
        raise ConfigError(f"{one.name}: a verdict needs {MIN_SEEDS} seeds, the plan has {count}")
    families = [primary[name] for name in primary if tested[name]]
    registered = {
        claim.name: RegisteredClaim(
            digest=claim_digest(claim),
            statement=claim.statement,
            measure=claim.predicate.metric,
            primary=(family := primary[claim.name]),
            seen=_seen(claim, count, families.count(family)) if tested[claim.name] else None,
        )
        for claim in claims
    }
    more = {"runs": tuple(plan.sweep.runs), "rule": rule, "claims": registered}
    return plan, RegisteredSweep(**asdict(plan.sweep) | more)


def _seen(claim: Claim, count: int, num_judged: int) -> float | None:
    """Return the smallest effect seen with 80 % power if the values' spread is 1."""
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, 0.975)) / math.sqrt(count)
    found = smallest_effect(claim, Interval(0.0, -half, half, "spread 1"), count, num_judged)
    return None if found is None else round(found, 3)


def _named(one: _Expectation, sweep: str) -> Mapping[str, Any]:
    """Return an expectation as pages take it: with the sweep that each part is of."""
    values = {key: value for key, value in one.dump().items() if value not in (None, [], False)}
    if one.claims:
        return values | {"claims": [f"{sweep}: {name}" for name in one.claims]}
    return values | {"terms": [{"sweep": sweep, **term} for term in values["terms"]]}
