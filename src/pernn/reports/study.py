"""The page of a whole study: every claim on one scorecard, then each sweep; one file, offline."""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.experiments import experiment_names
from pernn.store import write_atomically

from .charts import chart, chart_library, compiled
from .claims import Verdict
from .counting import NOT_ASKED, count_claims, outcome_apart, planned_sweeps
from .escaping import shorten
from .figures import draw, render
from .labels import footer
from .more_figures import LINK, draw_extra_figures
from .page import LONG, MARKS, Chapter, Summary
from .templates import fill_template, resource

SMALLER, CHANGED = "smaller than the paper", "settings of its own"
LONGEST = 400
"""Characters of a text on the page; what is longer is cut, as nobody reads it."""


Line = dict[str, Any]
"""A line of the scorecard: the verdict; its experiment; where, scale and preset; size, how the
trials compare with the paper's; note, whose numbers it shares; and the anchor of the chapter."""


def write_study(chapters: Sequence[Chapter], path: Path) -> Path:
    """Write the page of all sweeps; equal records give equal bytes.

    Args:
        chapters: One per sweep. Experiments without any are listed with claims that were not run.
        path: Where the page goes.

    Raises:
        ConfigError: If two trials compete for one place in a figure, a table or a claim.
        StoreError: If the file cannot be written.
    """
    write_atomically(path, study_page(chapters).encode("utf-8", "replace"))
    return path


def study_page(chapters: Sequence[Chapter]) -> str:
    """Return the page as HTML; arguments and errors as for `write_study`."""
    parts = [_Part(one, f"sweep-{place}") for place, one in enumerate(chapters)]
    names = experiment_names()
    missing = [name for name in names if name not in {p.experiment_name for p in parts}]
    claims = count_claims(parts, names)
    apart = [part for part in parts if part not in planned_sweeps(parts).values()]
    lines = [_line(one.verdict, one.sweep, one.experiment, one.same_as) for one in claims]
    others = [
        _line(verdict, part, part.experiment_name)
        for part in apart
        for verdict in part.verdicts
        if outcome_apart(part, verdict) != NOT_ASKED
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
        parts=parts,
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
            compiled(chart(part.summary.experiment, part.summary.rows, part.id))
            for part in parts
            if library and part.summary.rows
        ],
    )


class _Part:
    """A chapter and all that the template asks about it."""

    def __init__(self, chapter: Chapter, anchor: str) -> None:
        experiment, scale, records = chapter.experiment, chapter.scale, chapter.records
        self.chapter, self.id, self.experiment_name = chapter, anchor, experiment.name
        self.summary = Summary(chapter)
        self.scale, self.verdicts = scale, self.summary.verdicts
        self.is_restricted = chapter.is_restricted
        self.is_finished = len(records) == len(chapter.planned)
        self.figure = self._named(render(draw(experiment, records, scale), "svg").decode(), "f")
        self.further = [
            (one.sentence, self._named(one.drawn["svg"].decode(), one.stem))
            for one in draw_extra_figures(experiment, records, scale, formats=("svg",))
            if one.drawn
        ]
        self.curves = self._named(chapter.curves, "curves") if chapter.curves else ""
        self.footer = footer(experiment, records, scale)
        self.columns, self.metrics = self.summary.listed()
        self.where = " · ".join(filter(None, [scale, self.summary.preset, chapter.changes]))
        # Trials of no sweep have no scale, nor claims that they could be too small for.
        smaller = scale not in ("paper", "")
        self.size = SMALLER if smaller else CHANGED if chapter.changes else ""

    def _named(self, drawing: str, stem: str) -> Markup:
        """Return a drawing whose parts have names that no other drawing's have."""
        # The figure is our own, and matplotlib escapes the texts in it.
        return Markup(LINK.sub(rf"\g<1>{self.id}-{stem}-", drawing[drawing.index("<svg") :]))  # noqa: S704


def _line(verdict: Verdict, part: _Part | None, experiment: str, same_as: str = "") -> Line:
    return {
        "verdict": verdict,
        "experiment": experiment,
        "where": part.where if part else "",
        "size": part.size if part else "",
        "anchor": part.id if part else "",
        "note": f"the numbers of {same_as}, counted there" if same_as else "",
    }
