"""The page of a whole study: every claim on one scorecard, then each sweep; one file, offline."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.lab.experiments import experiment_names
from pernn.lab.store import write_atomically
from pernn.lab.trials import describe_time, describe_versions

from .charts import chart, chart_library, compiled
from .claims import Verdict
from .counting import NOT_ASKED, count_claims, outcome_apart, planned_sweeps
from .curves import STEM as CURVES
from .escaping import shorten
from .more_figures import LINK
from .report import LONG, MARKS, Report
from .templates import fill_template, resource

SMALLER, CHANGED = "smaller than the paper", "settings of its own"
LONGEST = 400
"""Characters of a text on the page; what is longer is cut, as nobody reads it."""


def write_study(reports: Sequence[Report], path: Path) -> Path:
    """Write the page of all sweeps; equal trials give equal bytes.

    Args:
        reports: One per sweep. Experiments without any are listed with claims that were not run.
        path: Where the page goes.

    Raises:
        ConfigError: If two trials compete for one place in a figure, a table or a claim.
        StoreError: If the file cannot be written.
    """
    write_atomically(path, study_page(reports).encode("utf-8", "replace"))
    return path


def study_page(reports: Sequence[Report]) -> str:
    """Return the page as HTML; arguments and errors as for `write_study`."""
    parts = {id(one): _part(one, f"sweep-{place}") for place, one in enumerate(reports)}
    names = experiment_names()
    missing = [name for name in names if name not in {one.experiment.name for one in reports}]
    claims = count_claims(reports, names)
    planned = [id(one) for one in planned_sweeps(reports).values()]
    lines = [
        _line(one.verdict, parts.get(id(one.sweep), {}), one.experiment, one.same_as)
        for one in claims
    ]
    others = [
        _line(verdict, parts[id(one)], one.experiment.name)
        for one in reports
        if id(one) not in planned
        for verdict in one.verdicts
        if outcome_apart(one, verdict) != NOT_ASKED
    ]
    counts = Counter(one.outcome for one in claims)
    library = chart_library()
    script = resource("study.js")
    scripts = [library, script] if library else [script]
    digests = [hashlib.sha256(one.encode()).digest() for one in scripts]
    return fill_template(
        "study.html.jinja",
        {"short": lambda text: shorten(str(text), LONGEST)},
        long=LONG,
        lines=lines,
        parts=list(parts.values()),
        missing=missing,
        marks=MARKS,
        others=others,
        counts={name: counts[name] for name in (*MARKS, "same numbers") if counts[name]},
        verdicts=[name for name in MARKS if any(one["verdict"].verdict == name for one in lines)],
        experiments=list(dict.fromkeys(one["experiment"] for one in lines)),
        # Our own scripts and a bundle of Vega's; no text of a record is among them.
        scripts=[Markup(one) for one in scripts],  # noqa: S704
        digests=" ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in digests),
        charts=[
            compiled(chart(one.experiment, one.rows, parts[id(one)]["id"]))
            for one in reports
            if library and one.rows
        ],
    )


def _part(report: Report, anchor: str) -> dict[str, Any]:
    """Return all that the template asks about a sweep beside its report."""

    def named(drawing: bytes, stem: str) -> Markup:
        """Return a drawing whose parts have names that no other drawing's have."""
        text = drawing.decode()
        # The figure is our own, and matplotlib escapes the texts in it.
        return Markup(LINK.sub(rf"\g<1>{anchor}-{stem}-", text[text.index("<svg") :]))  # noqa: S704

    drawn = {one.stem: one for one in report.further if one.drawn}
    curves = drawn.pop(CURVES, None)
    columns, metrics = report.listed()
    # Trials of no sweep have no scale, nor claims that they could be too small for.
    smaller = report.scale not in ("paper", "")
    return {
        "id": anchor,
        "sum": report,
        "figure": named(report.figure["svg"], "f"),
        "further": [(one.sentence, named(one.drawn["svg"], stem)) for stem, one in drawn.items()],
        "curves": named(curves.drawn["svg"], "curves") if curves else "",
        "columns": columns,
        "metrics": metrics,
        "origin": describe_versions(report.trials),
        "notes": [*report.notes, *(describe_time(report.trials) if report.trials else [])],
        "where": " · ".join(filter(None, [report.scale, report.preset, report.changes])),
        "size": SMALLER if smaller else CHANGED if report.changes else "",
    }


def _line(
    verdict: Verdict, part: Mapping[str, Any], experiment: str, same_as: str = ""
) -> dict[str, Any]:
    """Return a line of the scorecard: where, scale and preset; size, beside the paper's."""
    return {
        "verdict": verdict,
        "experiment": experiment,
        "where": part.get("where", ""),
        "size": part.get("size", ""),
        "anchor": part.get("id", ""),
        "note": f"the numbers of {same_as}, counted there" if same_as else "",
    }
