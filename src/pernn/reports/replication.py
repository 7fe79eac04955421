"""The generated parts of a replication report: verdicts, what is open, cost and machines."""

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pernn.experiments import CATALOGUE, find_experiment
from pernn.store import Published, Sweep, count_machines

from .claims import Verdict
from .escaping import escape_markdown, markdown_table
from .rules import Outcome

DECIDED: tuple[Outcome, ...] = ("supported", "contradicted", "inconclusive", "too few seeds")
MARK = "<!-- {} -->"


@dataclass(frozen=True)
class Study:
    """A sweep of published trials, judged.

    Attributes:
        sweep: Which.
        num_planned: Trials that its grid has.
        trials: Those that are published.
        verdicts: One per claim of its experiment.
    """

    sweep: Sweep
    num_planned: int
    trials: Sequence[Published]
    verdicts: Sequence[Verdict]


def replication_parts(studies: Sequence[Study], pages: str = ".") -> dict[str, str]:
    """Return the generated parts of the report as Markdown, by the name of their mark.

    Args:
        studies: All published sweeps.
        pages: Folder of the sweeps' pages, as seen from the page that is filled.
    """
    return {
        "scorecard": _scorecard(studies, pages),
        "verdicts": "\n\n".join(filter(None, (_judged(studies, kind) for kind in DECIDED))),
        "not run": _not_run(studies),
        "cost": _cost(studies),
        "machines": _machines(studies),
    }


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Put generated parts into a page, each between its mark and the mark that ends it.

    A page without a mark has no such part; what stands outside of marks is left alone.

    Raises:
        ValueError: If a mark has no end.
    """
    for name, text in parts.items():
        begin, end = MARK.format(name), MARK.format(f"/{name}")
        if begin in page:
            head, _, rest = page.partition(begin)
            _, found, tail = rest.partition(end)
            if not found:
                raise ValueError(f"{begin} is never ended by {end}")
            page = f"{head}{begin}\n\n{text or 'None.'}\n\n{end}{tail}"
    return page


def _scorecard(studies: Sequence[Study], pages: str) -> str:
    kinds = (*DECIDED, "not run")
    rows = []
    for study in studies:
        count = Counter(one.verdict for one in study.verdicts)
        place = posixpath.normpath(f"{pages}/{study.sweep.name}/report.md")
        page = f"[{escape_markdown(study.sweep.title)}]({place})"
        seeds = sorted({one.num_seeds for one in study.verdicts if one.interval is not None})
        num_seeds = " to ".join(map(str, dict.fromkeys([*seeds[:1], *seeds[-1:]])))
        done = f"{len(study.trials):,} of {study.num_planned:,}"
        rows.append((page, done, num_seeds, *(str(count[kind]) for kind in kinds)))
    return _table(("sweep", "trials", "n", *kinds), rows)


def _judged(studies: Sequence[Study], kind: Outcome) -> str:
    rows = [
        (
            escape_markdown(one.claim.statement),
            escape_markdown(one.claim.cited),
            escape_markdown(study.sweep.title),
            escape_markdown(one.quantity),
            one.interval.shown,
            escape_markdown(one.interval.bounds),
            "" if one.detectable is None else one.interval.show(one.detectable),
            str(one.num_seeds),
            "" if one.claim.paper_value is None else escape_markdown(str(one.claim.paper_value)),
            escape_markdown(one.remark),
        )
        for study in studies
        for one in study.verdicts
        if one.verdict == kind and one.interval is not None
    ]
    head = (
        "claim",
        "place",
        "sweep",
        "effect",
        "estimate",
        "95 %",
        "seen (80 %)",
        "n",
        "printed",
        "remark",
    )
    return f"### {kind.capitalize()} ({len(rows)})\n\n{_table(head, rows)}" if rows else ""


def _not_run(studies: Sequence[Study]) -> str:
    """List the claims that no sweep judges, each with the reason at the largest sweep."""
    judged = {
        (study.sweep.experiment, one.claim.name)
        for study in studies
        for one in study.verdicts
        if one.verdict != "not run"
    }
    by_size = sorted(studies, key=lambda one: (not one.sweep.overrides, len(one.trials)))
    reasons = {
        (study.sweep.experiment, one.claim.name): f"{study.sweep.title}: {one.detail}"
        for study in by_size  # the last one stays
        for one in study.verdicts
    }
    rows = [
        (
            name,
            escape_markdown(claim.statement),
            escape_markdown(claim.cited),
            escape_markdown(reasons.get((name, claim.name), "no trial is published")),
        )
        for name in CATALOGUE
        for claim in find_experiment(name).claims
        if (name, claim.name) not in judged
    ]
    return _table(("experiment", "claim", "place", "why not"), rows)


def _cost(studies: Sequence[Study]) -> str:
    """Return what the trials took; what several sweeps share counts once in the sum."""
    every: dict[str, float] = {}
    rows = []
    for study in studies:
        own = {run: cost for one in study.trials for run, cost in one.core_seconds.items()}
        every |= own
        rows.append(
            (escape_markdown(study.sweep.title), f"{len(study.trials):,}", _hours(own.values()))
        )
    rows.append(("all, each run once", f"{len(every):,} runs", _hours(every.values())))
    return _table(("sweep", "trials", "core-hours"), rows)


def _machines(studies: Sequence[Study]) -> str:
    once = {one.run: dict(one.environment) for study in studies for one in study.trials}
    found = [
        (str(n), escape_markdown(text)) for text, n in count_machines([*once.values()]).items()
    ]
    return _table(("trials", "ran on"), found)


def _hours(seconds: Iterable[float]) -> str:
    return f"{sum(seconds) / 3600:,.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(head, rows) if rows else ""
