"""What plans expected, beside what was found; docs/evidence/predicted.md."""

import json
import math
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pernn.errors import counted
from pernn.lab.config import grouped
from pernn.lab.reports import (
    Interval,
    Report,
    Verdict,
    at_own_best,
    matches,
    student_interval,
)
from pernn.lab.reports.records import number, sort_key
from pernn.lab.reports.texts import escape_markdown, markdown_table
from pernn.lab.store import Registration
from pernn.lab.trials import unroll

Outcome = Literal["held", "missed", "not decided", "open", "not run"]
OUTCOMES: tuple[Outcome, ...] = ("held", "missed", "not decided", "not run", "open")
NOT = "not supported"
FAILURE = "by the plan a failure to replicate"
HEAD = """\
# Predicted and found

Made by `make evidence`: every numbered expectation of the [plan](plan.md), from `expectations.json`
beside this page, and of registered plans, from their lock files, and what the published trials say
of it. An expectation of a claim has *held* if the verdict is the expected one, was *missed* if it
is the opposite, and is *not decided* if the claim is inconclusive. An expectation of a number has
held or was missed if its 95 % interval (Student's t over seeds, not corrected for their number)
lies on one side of the bound; of a mean ("at least"), the mean itself decides, as in the plan.
*Open* is what the plan asked without expecting an answer. The last number of a claim is the
smallest effect seen with 80 % power.
"""


_Row = tuple[str, str, str, Outcome, bool]
"""Number, expectation, what was found, outcome, and whether the plan calls it a failure."""


def predicted_and_found(
    content: str,
    reports: Sequence[Report],
    plans: Mapping[str, Registration],
) -> str:
    """Return the page as Markdown.

    Args:
        content: JSON, a list of sections: `section`, `title` and `expectations`. Each has `number`,
            `text`, `expected` (`supported`, `contradicted`, `not supported`, `open`; of a number
            `above`, `below`, `at least` with `bound`), `failure` if anything else is one, and
            either `claims`, as "sweep: claim", or `terms` of a number: `weight`, `sweep`, `where`.
        reports: All published sweeps.
        plans: Registered plans by name, a section each.
    """
    by_name = {one.name: one for one in reports}
    # A registered name spells out the seeds; a whole grid is published under the experiment's name.
    by_runs = {frozenset(trial["run"] for trial in one.records): one for one in reports}
    for own in (sweep for plan in plans.values() for sweep in plan.sweeps):
        if found := by_runs.get(frozenset(own.runs)):
            by_name[own.name] = found
    sections = [
        {
            "section": name,
            "title": f"{plan.title} (registered {plan.date[:10]})",
            "expectations": plan.expectations,
        }
        for name, plan in plans.items()
    ]
    parts, every = [], Counter[Outcome]()
    for section in [*json.loads(content), *sections]:
        rows = [
            row
            for one in section["expectations"]
            for row in (_of_claims(one, by_name) if "claims" in one else _of_number(one, by_name))
        ]
        every += Counter(outcome for *_, outcome, _ in rows)
        lines = [
            (number, escape_markdown(text), found, f"{outcome}; {FAILURE}" if fails else outcome)
            for number, text, found, outcome, fails in rows
        ]
        table = markdown_table(("no.", "expected", "found", "outcome"), lines)
        parts.append(f"## {section['section']}. {section['title']}\n\n{table}")
    counts = ", ".join(f"{every[name]} {name}" for name in OUTCOMES if every[name])
    return "\n\n".join([HEAD.rstrip(), f"{every.total()} rows: {counts}.", *parts]) + "\n"


def _of_claims(one: Mapping[str, Any], reports: Mapping[str, Report]) -> list[_Row]:
    expected, rows = one["expected"], list[_Row]()
    text = f"{one['text']}: {expected}"
    titles = [title.partition(": ") for title in one["claims"]]
    if missing := [sweep for sweep, *_ in titles if sweep not in reports]:
        found = f"no trial is published ({counted(len(missing), 'claim')})"
        rows.append((one["number"], text, found, "not run", False))
    for sweep, _, name in titles:
        if sweep in missing:
            continue
        verdict = {one.claim.name: one for one in reports[sweep].verdicts}[name]
        outcome = _judge_claim(expected, verdict)
        wanted = "contradicted" if expected == "contradicted" else "supported"
        is_met = (verdict.verdict == wanted) is (expected != NOT)
        fails = bool(one.get("failure")) and outcome != "not run" and not is_met
        link = link_to(reports[sweep], ".")
        found = f"[`{name}`]({link}): {_told(verdict)}"
        rows.append((one["number"], text, found, outcome, fails))
    return rows


def _told(verdict: Verdict) -> str:
    if verdict.interval is None:
        return verdict.verdict
    seen = f", {verdict.interval.show(verdict.detectable)}" if verdict.detectable else ""
    kind = " (exploratory)" if verdict.registration == "exploratory" else ""
    return f"{verdict.verdict}{kind}, {escape_markdown(str(verdict.interval))}{seen}"


def _judge_claim(expected: str, verdict: Verdict) -> Outcome:
    if verdict.verdict in ("not run", "too few seeds"):
        return "not run"
    if expected == "open":
        return "open"
    if verdict.verdict == "inconclusive":
        return "not decided"
    if expected == NOT:
        return "missed" if verdict.verdict == "supported" else "held"
    return "held" if verdict.verdict == expected else "missed"


def _of_number(one: Mapping[str, Any], reports: Mapping[str, Report]) -> list[_Row]:
    expected, bound = one["expected"], one.get("bound", 0.0)
    text = one["text"] if expected == "open" else f"{one['text']}: {expected} {bound:g}"
    if any(term["sweep"] not in reports for term in one["terms"]):
        return [(one["number"], text, "no trial is published", "not run", False)]
    values = _values(one, reports)
    interval = student_interval(values)
    outcome = _judge_number(expected, bound, interval)
    found = f"{escape_markdown(str(interval))}, n = {len(values)}"
    fails = bool(one.get("failure")) and outcome != "held"
    return [(one["number"], text, found, outcome, fails)]


def _judge_number(expected: str, bound: float, found: Interval) -> Outcome:
    if expected == "open":
        return "open"
    if expected == "at least":
        return "held" if found.estimate >= bound else "missed"
    is_above, is_below = found.low > bound, found.high < bound
    if not (is_above or is_below):
        return "not decided"
    return "held" if is_above == (expected == "above") else "missed"


def _values(one: Mapping[str, Any], reports: Mapping[str, Report]) -> list[float]:
    """Return the weighted sum of the terms' means for each seed that has them all."""
    sums: list[dict[Any, float]] = []
    for term in one["terms"]:
        report = reports[term["sweep"]]
        # Of a tuned sweep each network at its own best, unless a value is named.
        best, tuned = at_own_best(report.experiment, report.records, term["where"])
        rows = unroll(best if tuned else report.judged, one.get("table"))
        found = (
            (row["seed"], number(row, one["metric"])) for row in rows if matches(row, term["where"])
        )
        by_seed = grouped((seed, value) for seed, value in found if value is not None)
        weight = term["weight"]
        sums.append({s: weight * math.fsum(some) / len(some) for s, some in by_seed.items()})
    seeds = sorted(set.intersection(*map(set, sums)), key=sort_key)
    return [math.fsum(some[seed] for some in sums) for seed in seeds]


def link_to(report: Report, pages: str) -> str:
    """Return a link to a sweep's page in the folder of pages."""
    return posixpath.normpath(f"{pages}/{report.name}/report.md")
