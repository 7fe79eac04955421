"""The page of a whole study: scorecard, then each sweep."""

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.lab.experiments import CATALOGUE, experiment_names
from pernn.lab.store import write_atomically
from pernn.lab.trials import describe_time, describe_versions

from .claims import Verdict
from .drawings import STEM as CURVES
from .replication import NOT_ASKED, count_claims, outcome_apart, planned_sweeps
from .report import LONG, MARKS, Report
from .texts import fill_template, resource, shorten

SMALLER, CHANGED = "smaller than the paper", "settings of its own"
HEADLINE = "tuned_vocabulary_size"
"""The experiment whose claims are the first that README names."""
LONGEST = 400
"""Characters of a text on the page; what is longer is cut, as nobody reads it."""


def write_study(reports: Sequence[Report], path: Path, further: Sequence[str] = ()) -> Path:
    """Write the page of all sweeps.

    Equal trials give equal bytes. Experiments without a report are listed with claims that were not
    run; `further` names sweeps that are not on the page.
    """
    # One's own parts and experiments first, then ours, the headline before the others.
    names = sorted(experiment_names(), key=_place)
    reports = sorted(reports, key=lambda one: (not one.own, _place(one.experiment.name)))
    parts = {id(one): _part(one, f"sweep-{place}") for place, one in enumerate(reports)}
    missing = [name for name in names if name not in {one.experiment.name for one in reports}]
    claims = count_claims(reports, names)
    planned = [id(one) for one in planned_sweeps(reports).values()]
    lines = [
        _line(one.verdict, parts.get(id(one.sweep), {}), one.experiment, one.same_as)
        for one in claims
    ]
    others = [
        _line(verdict, parts[id(one)], one.experiment.name, suffix=f"-{parts[id(one)]['id']}")
        for one in reports
        if id(one) not in planned
        for verdict in one.verdicts
        if outcome_apart(one, verdict) != NOT_ASKED
    ]
    counts = Counter(one.outcome for one in claims)
    script = resource("study.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = fill_template(
        "study.html.jinja",
        {"short": lambda text: shorten(str(text), LONGEST), "packed": pack},
        long=LONG,
        lines=lines,
        parts=list(parts.values()),
        missing=missing,
        unshown=further,
        marks=MARKS,
        others=others,
        counts={name: counts[name] for name in (*MARKS, "same numbers") if counts[name]},
        verdicts=[name for name in MARKS if any(one["verdict"].verdict == name for one in lines)],
        experiments=list(dict.fromkeys(one["experiment"] for one in lines)),
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
    drawn = {
        one.stem: (one.sentence, Markup(one.inline(f"{anchor}-")))  # noqa: S704
        for one in (report.figure, *report.further)
    }
    figure, curves = drawn.pop(report.figure.stem)[1], drawn.pop(CURVES, ("", ""))[1]
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
        "figure": figure,
        "further": list(drawn.values()),
        "curves": curves,
        "name": name,
        "metrics": metrics,
        "origin": describe_versions(report.trials),
        "notes": [*report.notes, *describe_time(report.trials)],
        "where": " · ".join(filter(None, [report.scale, report.preset, report.changes])),
        "size": SMALLER if smaller else CHANGED if report.changes else "",
    }


def _line(
    verdict: Verdict,
    part: Mapping[str, Any],
    experiment: str,
    same_as: str = "",
    suffix: str = "",
) -> dict[str, Any]:
    """Return a line of the scorecard: where, scale and preset; size, beside the paper's."""
    return {
        "id": f"claim-{experiment}-{verdict.claim.name}{suffix}",
        "verdict": verdict,
        "experiment": experiment,
        "where": part.get("where", ""),
        "size": part.get("size", ""),
        "anchor": part.get("id", ""),
        "note": f"the numbers of {same_as}, counted there" if same_as else "",
    }
