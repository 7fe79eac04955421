"""The generated parts of pages: effects, verdicts, counts, cost and machines."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pernn.experiments import CATALOGUE
from pernn.store import Published, Sweep, count_machines

from .claims import Verdict
from .counting import NOT_ASKED, Counted, count_claims, outcome_apart, planned_sweeps
from .escaping import escape_markdown, markdown_table
from .rules import Outcome
from .sections import findings, means

DECIDED: tuple[Outcome, ...] = ("supported", "contradicted", "inconclusive", "too few seeds")
COUNTED = (*DECIDED, "same numbers", "not run")
OTHER = (*DECIDED, "not run", NOT_ASKED)
APART = "Apart, and in no total: checks of robustness, trends, and the demo."
MARK = "<!-- {} -->"
OF_ONE = re.compile(
    r"<!-- ((effect|seen|verdict|findings|means) \S+) -->"
    r"((?:(?!<!-- \2 ).)*?<!-- /\2 -->)?",
    re.DOTALL,
)
"""A mark of one claim or sweep, such as `<!-- effect EXPERIMENT/CLAIM --> … <!-- /effect -->`.

`EXPERIMENT/CLAIM@64` is the claim's cell whose value is 64.
"""


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

    @property
    def experiment_name(self) -> str:
        """What was asked."""
        return self.sweep.experiment

    @property
    def scale(self) -> str:
        """At which of the experiment's scales."""
        return self.sweep.scale

    @property
    def is_restricted(self) -> bool:
        """Whether it has settings of its own beside its seeds."""
        return self.sweep.is_restricted

    @property
    def is_finished(self) -> bool:
        """Whether it has all of its trials."""
        return len(self.trials) == self.num_planned


def replication_parts(studies: Sequence[Study], pages: str = ".") -> dict[str, str]:
    """Return the generated parts of the report as Markdown, by the name of their mark.

    Args:
        studies: All published sweeps.
        pages: Folder of the sweeps' pages, as seen from the page that is filled.
    """
    claims = count_claims(studies, list(CATALOGUE))
    return {
        **_of_claims(claims),
        **_of_sweeps(studies, pages),
        "counts": _counts(claims),
        "scorecard": _scorecard(studies, claims, pages),
        "cost": _cost(studies),
        "machines": _machines(studies),
    }


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Put generated parts into a page, each between its mark and the mark that ends it.

    A page without a mark has no such part; what stands outside of marks is left alone.

    Raises:
        ValueError: If a mark has no end, or names a claim or a sweep that there is not.
    """

    def one(found: re.Match[str]) -> str:
        begin, end = MARK.format(found[1]), MARK.format(f"/{found[2]}")
        if found[1] not in parts:
            raise ValueError(f"{begin}: no such claim or sweep")
        if not found[3]:
            raise ValueError(f"{begin} is never ended by {end}")
        return f"{begin}{parts[found[1]]}{end}"

    page = OF_ONE.sub(one, page)
    for name, text in parts.items():
        begin, end = MARK.format(name), MARK.format(f"/{name}")
        if begin in page and not OF_ONE.match(begin):
            head, _, rest = page.partition(begin)
            _, found, tail = rest.partition(end)
            if not found:
                raise ValueError(f"{begin} is never ended by {end}")
            page = f"{head}{begin}\n\n{text or 'None.'}\n\n{end}{tail}"
    return page


def _of_claims(claims: Sequence[Counted[Study]]) -> dict[str, str]:
    """Return effect and verdict of every claim and its cells, by the names of their marks."""
    parts: dict[str, str] = {}
    for one in claims:
        parts |= _of_verdict(one.experiment, one.verdict)
    return parts


def _of_verdict(place: str, verdict: Verdict) -> dict[str, str]:
    name, found = f"{place}/{verdict.claim.name}", verdict.interval
    parts = {f"verdict {name}": verdict.verdict, f"effect {name}": str(found or "–")}
    if found and verdict.detectable is not None:
        parts[f"seen {name}"] = found.show(verdict.detectable)
    for cell in verdict.cells:
        parts[f"effect {name}@{cell.name.rpartition(' = ')[2]}"] = str(cell.interval)
    return parts


def _of_sweeps(studies: Sequence[Study], pages: str) -> dict[str, str]:
    """Return tables and verdicts of every sweep, by the names of their marks."""
    parts: dict[str, str] = {}
    for one in studies:
        found = findings(one.sweep, one.verdicts, _link(pages, one))
        parts[f"findings {one.sweep.name}"] = f"\n\n{found}\n\n"
        parts[f"means {one.sweep.name}"] = f"\n\n{means(one.sweep, one.trials)}\n\n"
        for verdict in one.verdicts:
            parts |= _of_verdict(one.sweep.name, verdict)
    return parts


def _link(pages: str, study: Study) -> str:
    return posixpath.normpath(f"{pages}/{study.sweep.name}/report.md")


def _scorecard(studies: Sequence[Study], claims: Sequence[Counted[Study]], pages: str) -> str:
    """Return one row per experiment, each claim counted once; then the sweeps that stand apart."""
    planned = planned_sweeps(studies)
    rows, total = [], Counter[str]()
    for name in CATALOGUE:
        count = Counter(one.outcome for one in claims if one.experiment == name)
        total += count
        sweep = planned.get(name)
        about = (name, "–", "") if sweep is None else _about(sweep, pages, name)
        rows.append((*about, str(count.total()), *(str(count[kind]) for kind in COUNTED)))
    counts = (str(total.total()), *(str(total[kind]) for kind in COUNTED))
    rows.append(("**all**", "", "", *(f"**{text}**" for text in counts)))
    head = ("experiment", "trials", "n", "claims", *COUNTED)
    parts = [_table(head, rows), *_same(claims)]
    if others := [one for one in studies if one not in planned.values()]:
        parts += [APART, _table(("sweep", "trials", "n", *OTHER), _apart(others, pages))]
    return "\n\n".join(parts)


def _same(claims: Sequence[Counted[Study]]) -> list[str]:
    pairs = [
        f"`{one.experiment}: {one.verdict.claim.name}` with `{one.same_as}`"
        for one in claims
        if one.same_as
    ]
    if not pairs:
        return []
    return [f"Claims judged by the very same numbers are counted once: {', '.join(pairs)}."]


def _apart(studies: Sequence[Study], pages: str) -> list[tuple[str, ...]]:
    rows = []
    for study in studies:
        count = Counter(outcome_apart(study, one) for one in study.verdicts)
        title = escape_markdown(study.sweep.title)
        rows.append((*_about(study, pages, title), *(str(count[kind]) for kind in OTHER)))
    return rows


def _about(study: Study, pages: str, name: str) -> tuple[str, str, str]:
    """Return a link to a sweep's page, its trials, and the number of seeds."""
    seeds = sorted({one.num_seeds for one in study.verdicts if one.interval is not None})
    num_seeds = " to ".join(map(str, dict.fromkeys([*seeds[:1], *seeds[-1:]])))
    done = f"{len(study.trials):,} of {study.num_planned:,}"
    return f"[{name}]({_link(pages, study)})", done, num_seeds


def _counts(claims: Sequence[Counted[Study]]) -> str:
    """Return the totals in one sentence, for a page that has no room for the table."""
    count = Counter(one.outcome for one in claims)
    words = {"same numbers": "judged by the numbers of another", "not run": "not run"}
    found = [f"{count[kind]} {words.get(kind, kind)}" for kind in COUNTED if count[kind]]
    return f"Of the {len(claims)} claims, our own checks of them among them: {', '.join(found)}."


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
