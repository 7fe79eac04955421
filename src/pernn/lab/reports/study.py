"""The page of a whole study: scorecard, then each sweep."""

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.lab.experiments import CATALOGUE, experiment_names, find_experiment
from pernn.lab.store import write_atomically
from pernn.lab.trials import describe_time, describe_versions

from .claims import Verdict, judge_experiment
from .report import MARKS, Report
from .statistics import ROUNDING, Outcome
from .texts import fill_template, resource, shorten

SMALLER, CHANGED = "smaller than the paper", "settings of its own"
HEADLINE = "tuned_vocabulary_size"
"""The experiment whose claims are the first that README names."""
LONGEST = 400
"""Characters of a text on the page; what is longer is cut, as nobody reads it."""


SCALES = ("paper", "small", "demo")
"""An experiment's claims are judged by its whole grid at the first of these scales that is there.

What is overridden (other widths, other vocabularies) checks robustness or shows a trend, and a
further scale repeats it: they stand apart, and count in no total.
"""
NOT_ASKED = "not asked here"
"""Of a claim that the trials of a sweep that stands apart are not about."""


@dataclass(frozen=True)
class Counted:
    """A claim with the verdict that counts."""

    experiment: str
    verdict: Verdict  # of the planned sweep; "not run" if none is there
    sweep: Report | None
    # An earlier claim whose numbers are the very same, so that this one is not counted again; empty
    # if there is none.
    same_as: str

    @property
    def whose(self) -> str:
        """Whose question it is about."""
        return "our own" if CATALOGUE[self.experiment].source.startswith("ours") else "the paper"

    @property
    def outcome(self) -> str:
        """The verdict, or that it is counted elsewhere."""
        return "same numbers" if self.same_as else self.verdict.verdict


def planned_sweeps(sweeps: Iterable[Report]) -> dict[str, Report]:
    """Return for each experiment the sweep by which its claims are judged.

    That is one with the settings of its scale, whatever its seeds; a registered one before others.
    """

    def place(one: Report) -> tuple[int, bool]:
        is_registered = any(verdict.registration == "registered" for verdict in one.verdicts)
        return SCALES.index(one.scale), not is_registered

    whole = [one for one in sweeps if one.scale in SCALES and not one.is_restricted]
    return {one.experiment.name: one for one in sorted(whole, key=place)[::-1]}


def count_claims(sweeps: Iterable[Report], experiments: Sequence[str]) -> list[Counted]:
    """Return every claim once, in the order of the experiments.

    Of claims that end in a scale, as `iterations_2x_gru_small`, those of the sweep's are counted;
    what no planned sweep judges is not run.
    """
    planned = planned_sweeps(sweeps)
    seen: dict[tuple[float, ...], str] = {}
    found = []
    for name in experiments:
        sweep = planned.get(name)
        verdicts = sweep.verdicts if sweep else judge_experiment(find_experiment(name), "", [])
        scale = sweep.scale if sweep else SCALES[0]
        elsewhere = tuple(f"_{other}" for other in SCALES if other != scale)
        for verdict in verdicts:
            # One sentence of the paper is a claim at each scale.
            if verdict.claim.name.endswith(elsewhere):
                continue
            title = f"{name}: {verdict.claim.name}"
            numbers = _numbers(verdict)
            first = seen.setdefault(numbers, title) if numbers else title
            found.append(Counted(name, verdict, sweep, "" if first == title else first))
    return found


def outcome_apart(sweep: Report, verdict: Verdict) -> Outcome | str:
    """Return the verdict of a sweep apart, if it asks for one."""
    return NOT_ASKED if sweep.is_finished and verdict.verdict == "not run" else verdict.verdict


def _numbers(verdict: Verdict) -> tuple[float, ...]:
    """Return what two verdicts on the same numbers have in common, whatever the sign asked for."""
    interval = verdict.interval
    # Without a spread, of shares of trials, or where two arms stand at the last update, numbers of
    # other trials may be the same.
    if interval is None or verdict.is_cut or verdict.claim.predicate.of_trials:
        return ()
    if not interval.high - interval.low > 2 * ROUNDING:
        return ()
    values = (abs(interval.estimate), interval.high - interval.low, verdict.num_seeds)
    return tuple(float(f"{value:.9g}") for value in values)


def write_study(
    reports: Sequence[Report], path: Path, further: Mapping[str, str] | None = None
) -> Path:
    """Write the page of all sweeps.

    Equal trials give equal bytes. Experiments without a report are listed with claims that were not
    run; `further` has the experiment of each sweep that is not on the page.
    """
    further = further or {}
    # One's own parts and experiments first, then ours, the headline before the others.
    names = sorted(experiment_names(), key=_place)
    reports = sorted(reports, key=lambda one: (not one.own, _place(one.experiment.name)))
    parts = {one: _part(one, f"sweep-{place}") for place, one in enumerate(reports)}
    there = {*further.values(), *(one.experiment.name for one in reports)}
    missing = [name for name in names if name not in there]
    claims = count_claims(reports, names)
    planned = planned_sweeps(reports).values()
    others = [
        _line(Counted(one.experiment.name, verdict, one, ""), parts, f"-{parts[one]['id']}")
        for one in reports
        if one not in planned
        for verdict in one.verdicts
        if outcome_apart(one, verdict) != NOT_ASKED
    ]
    counts = Counter(one.outcome for one in claims)
    script = resource("study.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = fill_template(
        "study.html.jinja",
        {"short": lambda text: shorten(str(text), LONGEST), "packed": pack},
        lines=[_line(one, parts) for one in claims],
        parts=list(parts.values()),
        missing=missing,
        unshown=further,
        marks=MARKS,
        others=others,
        counts={name: counts[name] for name in (*MARKS, "same numbers") if counts[name]},
        verdicts=[name for name in MARKS if any(one.verdict.verdict == name for one in claims)],
        experiments=list(dict.fromkeys(one.experiment for one in claims)),
        # Our own script; no text of a record is in it.
        script=Markup(script),  # noqa: S704
        digest=f"'sha256-{digest}'",
    )
    write_atomically(path, page.encode("utf-8", "replace"))
    return path


def pack(text: str) -> str:
    """Return a chapter packed to a sixth of its size."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode()


def _place(name: str) -> tuple[bool, int, str]:
    """Return where an experiment stands on the page."""
    known = [HEADLINE, *(one for one in CATALOGUE if one != HEADLINE)]
    return (name in known, known.index(name) if name in known else 0, name)


def _part(report: Report, anchor: str) -> dict[str, Any]:
    """Return all that the template asks about a sweep beside its report."""
    # Figures are our own, and matplotlib escapes the texts in them.
    figure, *further = (
        (one, Markup(one.inline(f"{anchor}-")))  # noqa: S704
        for one in (report.figure, *report.further)
    )
    columns, metrics = report.listed()

    def name(record: Mapping[str, Any]) -> str:
        """Name a trial by what tells it from others, as people would."""
        told = [report.label.condition(column, record[column]) for column in columns]
        return ", ".join([*told, f"seed {record['seed']}"])

    # Trials of no sweep have no scale, nor claims that they could be too small for.
    smaller = report.scale not in ("paper", "")
    return {
        "id": anchor,
        "sum": report,
        "figure": figure[1],
        "further": further,
        "name": name,
        "metrics": metrics,
        "origin": describe_versions(report.trials),
        "notes": [*report.notes, *describe_time(report.trials)],
        "where": " · ".join(filter(None, [report.scale, report.preset, report.changes])),
        "size": SMALLER if smaller else CHANGED if report.changes else "",
    }


def _line(
    one: Counted, parts: Mapping[Report, Mapping[str, Any]], suffix: str = ""
) -> dict[str, Any]:
    """Return a line of the scorecard: where, scale and preset; size, beside the paper's."""
    part = parts[one.sweep] if one.sweep else {}
    return {
        "id": f"claim-{one.experiment}-{one.verdict.claim.name}{suffix}",
        "verdict": one.verdict,
        "experiment": one.experiment,
        "where": part.get("where", ""),
        "size": part.get("size", ""),
        "anchor": part.get("id", ""),
        "note": f"the numbers of {one.same_as}, counted there" if one.same_as else "",
    }
