"""Generated parts of pages: effects, verdicts, counts, cost and machines."""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pernn.lab.config import flatten
from pernn.lab.experiments import CATALOGUE, find_experiment, names_of
from pernn.lab.trials import count_machines, unroll

from .claims import Verdict
from .records import number, paired_differences
from .registered import judge_experiment
from .report import Report
from .rules import Outcome
from .statistics import ROUNDING, student_interval
from .texts import Labels, escape_markdown, markdown_table

COMMON = (
    "core.kind",
    "core.hidden_size",
    "training.iterations",
    "training.batch_size",
    "training.learning_rate",
)
"""Settings that every table has."""

PARTS = ("task.", "analysis.")
"""Of their settings it has those that differ."""

MOST = 8
"""So many values are listed one by one."""

Trial = Mapping[str, Any]


@cache
def scale_table(name: str) -> str:
    """Return scales as columns and settings as rows, in Markdown.

    Values that differ by core are led by the core's name.
    """
    experiment = find_experiment(name)
    label = Labels(experiment.labels)
    scales = [[flatten(spec.dump()) for spec in make()] for make in experiment.scales.values()]
    trials = [trial for scale in scales for trial in scale]
    rows = []
    for path in dict.fromkeys(path for trial in trials for path in trial):
        values = {str(trial[path]) for trial in trials if path in trial}
        if path in COMMON or (path.startswith(PARTS) and len(values) > 1):
            rows.append([label(path), *(_by_core(scale, path, label) for scale in scales)])
    rows.append(["Seeds", *(str(len({trial["seed"] for trial in scale})) for scale in scales)])
    rows.append(["Trials", *(f"{len(scale):,}" for scale in scales)])
    return markdown_table(
        ["", *experiment.scales], [[escape_markdown(cell) for cell in row] for row in rows]
    )


def _by_core(scale: Sequence[Trial], path: str, label: Labels) -> str:
    cores = dict.fromkeys(trial["core.kind"] for trial in scale)
    shown = {
        core: _listed(
            (trial[path] for trial in scale if trial["core.kind"] == core and path in trial), label
        )
        for core in cores
    }
    if path == "core.kind" or len(set(shown.values())) == 1:
        return _listed((trial[path] for trial in scale if path in trial), label)
    return "; ".join(f"{label(core)} {values}" for core, values in shown.items())


def _listed(values: Iterable[Any], label: Labels) -> str:
    shown = [label(value) for value in dict.fromkeys(map(_hashable, values)) if value is not None]
    return ", ".join(shown if len(shown) <= MOST else [shown[0], f"{shown[1]} … {shown[-1]}"])


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


SCALES = ("paper", "small", "demo")
"""An experiment's claims are judged by its whole grid at the first of these scales that is there.

What is overridden (other widths, other vocabularies) checks robustness or shows a trend, and a
further scale repeats it: they stand apart, and count in no total.
"""
NOT_ASKED = "not asked here"
"""Of a claim that the trials of a sweep that stands apart are not about."""


@dataclass(frozen=True)
class Counted:
    """A claim of the paper with the verdict that counts.

    Attributes:
        experiment: Whose claim it is.
        verdict: Of the planned sweep; "not run" if none is there.
        sweep: The planned sweep.
        same_as: An earlier claim whose numbers are the very same, so that this one is not counted
            again; empty if there is none.
    """

    experiment: str
    verdict: Verdict
    sweep: Report | None
    same_as: str

    @property
    def outcome(self) -> str:
        """The verdict, or that it is counted elsewhere."""
        return "same numbers" if self.same_as else self.verdict.verdict


def planned_sweeps(sweeps: Iterable[Report]) -> dict[str, Report]:
    """Return for each experiment the sweep by which its claims are judged.

    That is one with the settings of its scale, whatever its seeds; a registered one before others.
    """

    def is_registered(one: Report) -> bool:
        return any(verdict.registration == "registered" for verdict in one.verdicts)

    found: dict[str, Report] = {}
    whole = [one for one in sweeps if one.scale in SCALES and not one.is_restricted]
    for one in sorted(whole, key=lambda one: (SCALES.index(one.scale), not is_registered(one))):
        found.setdefault(one.experiment.name, one)
    return found


def count_claims(sweeps: Iterable[Report], experiments: Sequence[str]) -> list[Counted]:
    """Return every claim once, in the order of the experiments.

    Args:
        sweeps: All that are there.
        experiments: Whose claims are counted; what no planned sweep judges is not run.
    """
    planned = planned_sweeps(sweeps)
    seen: dict[tuple[float, ...], str] = {}
    found = []
    for name in experiments:
        sweep = planned.get(name)
        verdicts = sweep.verdicts if sweep else judge_experiment(find_experiment(name), "", [])
        for verdict in verdicts:
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
    if interval is None or not interval.high - interval.low > ROUNDING:
        return ()
    values = (abs(interval.estimate), interval.high - interval.low, verdict.num_seeds)
    return tuple(float(f"{value:.9g}") for value in values)


HEAD = ("claim", "quantity", "found", "n", "verdict")
DECIDED: tuple[Outcome, ...] = ("supported", "contradicted", "inconclusive", "too few seeds")
COUNTED = (*DECIDED, "same numbers", "not run")
OTHER = (*DECIDED, "not run", NOT_ASKED)
APART = "Apart, and in no total: checks of robustness, trends, and the demo."
MARK = "<!-- {} -->"
OF_ONE = re.compile(
    r"<!-- ((effect|seen|verdict|findings|means|scales) \S+) -->"
    r"((?:(?!<!-- \2 ).)*?<!-- /\2 -->)?",
    re.DOTALL,
)
"""A mark of one claim or sweep, such as `<!-- effect EXPERIMENT/CLAIM --> … <!-- /effect -->`.

`EXPERIMENT/CLAIM@64` is the claim's cell whose value is 64.
"""


def replication_parts(reports: Sequence[Report], pages: str = ".") -> dict[str, str]:
    """Return the generated parts of the report by their mark.

    Args:
        reports: All published sweeps.
        pages: Folder of the sweeps' pages, as seen from the page that is filled.
    """
    claims = count_claims(reports, list(CATALOGUE))
    return {
        **_of_claims(claims),
        **_of_sweeps(reports, pages),
        **_of_experiments(reports),
        "experiments": _experiments(),
        "counts": _counts(claims),
        "scorecard": _scorecard(reports, claims, pages),
        "cost": _cost(reports),
        "spent": _spent(reports),
        "machines": _machines(reports),
    }


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Put generated parts into a page between their marks.

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


def _of_claims(claims: Sequence[Counted]) -> dict[str, str]:
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


def _of_sweeps(reports: Sequence[Report], pages: str) -> dict[str, str]:
    """Return tables and verdicts of every sweep, by the names of their marks."""
    parts: dict[str, str] = {}
    for one in reports:
        found = findings(one, _link(pages, one))
        parts[f"findings {one.name}"] = f"\n\n{found}\n\n"
        parts[f"means {one.name}"] = f"\n\n{means(one)}\n\n"
        for verdict in one.verdicts:
            parts |= _of_verdict(one.name, verdict)
    return parts


def _experiments() -> str:
    """Return a row per experiment, with a link to its page in the same folder."""
    rows = [(f"[{name}]({name}.md)", one.source, one.question) for name, one in CATALOGUE.items()]
    return _table(("experiment", "in the paper", "question"), rows)


def _of_experiments(reports: Sequence[Report]) -> dict[str, str]:
    """Return what each experiment trains at each scale, how to run it, and what it took."""
    planned, parts = planned_sweeps(reports), {}
    for name in CATALOGUE:
        took = ""
        if (one := planned.get(name)) is not None:
            hours = _hours(_core_seconds([one]).values())
            took = f"  # published; {len(one.trials):,} trials took {hours} core-hours"
        run = f"```sh\npernn run {name} --scale small{took}\n```"
        parts[f"scales {name}"] = f"\n\n{scale_table(name)}\n\n{run}\n\n"
    return parts


def _link(pages: str, report: Report) -> str:
    return posixpath.normpath(f"{pages}/{report.name}/report.md")


def _scorecard(reports: Sequence[Report], claims: Sequence[Counted], pages: str) -> str:
    """Return one row per experiment, each claim counted once; then the sweeps that stand apart."""
    planned = planned_sweeps(reports)
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
    if others := [one for one in reports if one not in planned.values()]:
        parts += [APART, _table(("sweep", "trials", "n", *OTHER), _apart(others, pages))]
    return "\n\n".join(parts)


def _same(claims: Sequence[Counted]) -> list[str]:
    pairs = [
        f"`{one.experiment}: {one.verdict.claim.name}` with `{one.same_as}`"
        for one in claims
        if one.same_as
    ]
    if not pairs:
        return []
    return [f"Claims judged by the very same numbers are counted once: {', '.join(pairs)}."]


def _apart(reports: Sequence[Report], pages: str) -> list[tuple[str, ...]]:
    rows = []
    for report in reports:
        count = Counter(outcome_apart(report, one) for one in report.verdicts)
        title = escape_markdown(report.title)
        rows.append((*_about(report, pages, title), *(str(count[kind]) for kind in OTHER)))
    return rows


def _about(report: Report, pages: str, name: str) -> tuple[str, str, str]:
    """Return a link to a sweep's page, its trials, and the number of seeds."""
    seeds = sorted({one.num_seeds for one in report.verdicts if one.interval is not None})
    num_seeds = " to ".join(map(str, dict.fromkeys([*seeds[:1], *seeds[-1:]])))
    done = f"{len(report.trials):,} of {len(report.planned):,}"
    return f"[{name}]({_link(pages, report)})", done, num_seeds


def _counts(claims: Sequence[Counted]) -> str:
    """Return the totals in one sentence, for a page that has no room for the table."""
    count = Counter(one.outcome for one in claims)
    words = {"same numbers": "judged by the numbers of another", "not run": "not run"}
    found = [f"{count[kind]} {words.get(kind, kind)}" for kind in COUNTED if count[kind]]
    return f"Of the {len(claims)} claims, our own checks of them among them: {', '.join(found)}."


def _cost(reports: Sequence[Report]) -> str:
    """Return what the trials took; what several sweeps share counts once in the sum."""
    rows = [
        (
            escape_markdown(report.title),
            f"{len(report.trials):,}",
            _hours(_core_seconds([report]).values()),
        )
        for report in reports
    ]
    every = _core_seconds(reports)
    rows.append(("all, each run once", f"{len(every):,} runs", _hours(every.values())))
    return _table(("sweep", "trials", "core-hours"), rows)


def _spent(reports: Sequence[Report]) -> str:
    every = _core_seconds(reports)
    return f"{len(every):,} runs took {_hours(every.values())} core-hours of CPUs."


def _core_seconds(reports: Sequence[Report]) -> dict[str, float]:
    """Return what each run took, those that several sweeps share once."""
    trials = [one for report in reports for one in report.trials]
    return {run: cost for one in trials for run, cost in one.core_seconds.items()}


def _machines(reports: Sequence[Report]) -> str:
    once = {one.run: dict(one.environment) for report in reports for one in report.trials}
    found = [(str(n), escape_markdown(text)) for text, n in count_machines(once.values()).items()]
    return _table(("trials", "ran on"), found)


def _hours(seconds: Iterable[float]) -> str:
    return f"{sum(seconds) / 3600:,.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown_table(head, rows) if rows else ""


def findings(report: Report, page: str) -> str:
    """Return a sweep's judged claims as Markdown, linked to its report."""
    rows = [
        (
            escape_markdown(one.claim.statement),
            escape_markdown(one.quantity),
            escape_markdown(str(one.interval)),
            str(one.num_seeds),
            one.verdict,
        )
        for one in report.verdicts
        if one.interval is not None
    ]
    link = f"Every cell and remark: [{escape_markdown(report.title)}]({page})."
    return f"{markdown_table(HEAD, rows)}\n\n{link}"


def means(report: Report) -> str:
    """Return a row per cell of an experiment's figure, as Markdown.

    Columns are the means of the figure's lines, by its first metric, and its paired difference with
    a 95 % interval by Student's t if it shows one.
    """
    layout, label = report.experiment.figure, report.label
    metric, contrast = layout.metrics[0], layout.contrast
    lines = names_of(contrast.column if contrast else layout.lines)
    axes = (layout.rows, layout.panels, layout.lines, layout.x)
    named = [name for axis in axes for name in names_of(axis)]
    by = [name for name in dict.fromkeys(named) if name not in lines]
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[float]]] = defaultdict(dict)
    records = unroll(report.records, layout.table)
    for one in records:
        if (value := number(one, metric)) is not None:
            cell, line = (tuple(map(one.get, names)) for names in (by, lines))
            found[cell].setdefault(line, []).append(value)
    columns = label.order(line for some in found.values() for line in some)
    head = [*map(label, by), *map(label, columns)]
    differences: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    if contrast:
        head.append(f"{label(contrast.treated)} − {label(contrast.baseline)}")
        for key, value in paired_differences(records, metric, contrast, by).items():
            differences[key[1:]].append(value)
    rows = []
    for cell in label.order(found):
        values = (found[cell].get(line) for line in columns)
        shown = (student_interval(some).shown if some else "–" for some in values)
        row = [*map(label, cell), *shown]
        if contrast:
            row.append(str(student_interval(pairs)) if (pairs := differences[cell]) else "–")
        rows.append([escape_markdown(text) for text in row])
    return f"{label(metric)}:\n\n{markdown_table([*map(escape_markdown, head)], rows)}"
