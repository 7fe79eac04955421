"""Rebuild all figures, tables, verdicts and pages from published trials, without training.

python docs/rebuild.py
"""

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pernn.errors import ConfigError, PernnError
from pernn.lab.cli.terminal import tracked
from pernn.lab.config import flatten, grouped
from pernn.lab.evidence import Watch, drawn, read_reports
from pernn.lab.experiments import (
    CATALOGUE,
    LEVELS,
    TUNED_CLAIM,
    find_experiment,
    names_of,
    pace_column,
)
from pernn.lab.reports import (
    NOT_ASKED,
    Counted,
    Outcome,
    Report,
    Side,
    Verdict,
    compare_pace,
    count_claims,
    draw,
    outcome_apart,
    paired_differences,
    planned_sweeps,
    render,
    student_interval,
    write_study,
)
from pernn.lab.reports.comparing import Compared
from pernn.lab.reports.records import Record
from pernn.lab.reports.texts import Labels, escape_markdown, markdown_table
from pernn.lab.runners import num_cores
from pernn.lab.store import FOLDER, gc_paused, read_registrations, storing, write_atomically
from pernn.lab.trials import Trial, count_machines, unroll
from predicted import link_to, predicted_and_found

ROOT = Path(__file__).parents[1]
EVIDENCE, PAGES = ROOT / FOLDER, ROOT / "docs" / "evidence"
FILLED = [
    ROOT / "README.md",
    ROOT / "docs" / "article" / "article.md",
    PAGES / "mechanism.md",
    *sorted((ROOT / "docs" / "reproduce").glob("*.md")),
]
"""Further pages with marks, such as `<!-- scorecard --> … <!-- /scorecard -->`."""
STUDY = "study.html"
"""One page of every claim and every published sweep; see `pernn report --all`."""
PAGE = "report.md"
"""The replication report, written by hand but for what stands between marks."""
EXPECTATIONS, PREDICTED = "expectations.json", "predicted.md"
"""What the first plan expected, and the page of that and of all registered plans."""
PACE = "pace.md"
"""The page on how many updates trainings took, likewise."""


def rebuild(
    folder: Path,
    target: Path,
    complain: Callable[[str], None],
    pages: Sequence[Path] = (),
    *,
    jobs: int = 1,
    watch: Watch = lambda reports, _: reports,
) -> list[Path]:
    """Write the reports of published sweeps, and the pages about all.

    Equal trials give equal bytes, with the same versions of NumPy, SciPy and matplotlib. In the
    target is a folder per sweep; its `report.md` and `pace.md` are filled if they are there, like
    the further pages, and `predicted.md` is made of its `expectations.json`. `watch` is given the
    reports and their number, and hands each on before it is written.
    """
    own = [target / PAGE] if (target / PAGE).exists() else []
    filled = [*own, *pages]
    for page in filled:
        _read(page)  # before minutes of drawing
    reports = read_reports(folder, complain)
    with gc_paused():
        for report in watch(drawn(reports, folder, folder, jobs), len(reports)):
            report.write(target / report.name)
        write_study(reports, target / STUDY)
    written = [target / report.name / PAGE for report in reports]
    folders = {page.parent for page in filled}
    parts = {one: replication_parts(reports, os.path.relpath(target, one)) for one in folders}
    for page in filled:
        _fill(page, parts[page.parent])
    if (target / EXPECTATIONS).exists():
        expected = _read(target / EXPECTATIONS)
        predicted = predicted_and_found(expected, reports, read_registrations())
        write_atomically(target / PREDICTED, predicted.encode())
        own.append(target / PREDICTED)
    return [*written, target / STUDY, *own, *write_pace(reports, target), *pages]


def write_pace(reports: Sequence[Report], target: Path) -> list[Path]:
    """Fill the page on pace, if there, and draw its figure."""
    page = target / PACE
    if not page.exists():
        return []
    _fill(page, pace_parts(reports))
    if figure := pace_figure(reports):
        write_atomically(page.with_suffix(".svg"), figure)
    return [page]


def _fill(path: Path, parts: Mapping[str, str]) -> None:
    write_atomically(path, fill(_read(path), parts).encode())


def _read(path: Path) -> str:
    with storing(path):
        return path.read_text(encoding="utf-8")


COMMON = (
    "task.length",
    "core.kind",
    "core.hidden_size",
    "training.iterations",
    "training.batch_size",
    "training.learning_rate",
    "training.schedule",
)
"""Settings that every table has."""

PARTS = ("task.", "analysis.")
"""Of their settings it has those that differ."""

MOST = 8
"""So many values are listed one by one."""


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
    return markdown_table(["", *experiment.scales], rows, escape=True)


def _by_core(scale: Sequence[Mapping[str, Any]], path: str, label: Labels) -> str:
    cores: dict[str, dict[Any, None]] = {}
    for trial in scale:
        own = cores.setdefault(trial["core.kind"], {})
        own |= {trial[path]: None} if trial.get(path) is not None else {}
    if path == "core.kind":
        return _listed(cores, label)
    shown = {core: _listed(own, label) for core, own in cores.items()}
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return "; ".join(f"{label(core)} {values}" for core, values in shown.items())


def _listed(values: Iterable[Any], label: Labels) -> str:
    shown = [label(value) for value in values]
    return ", ".join(shown if len(shown) <= MOST else [shown[0], f"{shown[1]} … {shown[-1]}"])


HEAD = ("claim", "quantity", "found", "n", "verdict")
DECIDED: tuple[Outcome, ...] = ("supported", "contradicted", "inconclusive", "too few seeds")
COUNTED = (*DECIDED, "same numbers", "not run")
OTHER = (*DECIDED, "not run", NOT_ASKED)
APART = "Apart, and in no total: checks of robustness, trends, and the demo."
IN_LINE = ("effect", "errors", "seen", "verdict")
OF_ONE = (*IN_LINE, "findings", "means", "scales")
"""Marks of one claim or sweep, such as `<!-- effect EXPERIMENT/CLAIM --> … <!-- /effect -->`.

`EXPERIMENT/CLAIM@64` is the claim's cell whose value is 64. Parts that stand within a line have no
lines of their own.
"""
MARKED = re.compile(
    r"<!-- ((\w+)(?: \S+)?) -->(?:(?:(?!<!-- \2 ).)*?<!-- /\2 -->)?",
    re.DOTALL,
)


def replication_parts(reports: Sequence[Report], pages: str = ".") -> dict[str, str]:
    """Return the generated parts of a page by their mark."""
    held = {one.run: one for report in reports for one in report.trials}
    claims, every = count_claims(reports, list(CATALOGUE)), _core_seconds(held.values())
    environments = {run: one.environment for run, one in held.items()}
    ran_on = count_machines(environments.values()).items()
    machines = [(str(count), machine) for machine, count in ran_on]
    parts = {
        # The pages of the experiments are in the folder of their list.
        "experiments": markdown_table(
            ("experiment", "in the paper", "question"),
            [(f"[{name}]({name}.md)", one.source, one.question) for name, one in CATALOGUE.items()],
        ),
        "counts": _counts(reports, claims),
        "scorecard": _scorecard(reports, claims, pages),
        "spent": f"{len(every):,} runs took {_hours(every)} core-hours of CPUs.",
        "machines": markdown_table(("trials", "ran on"), machines, escape=True) if machines else "",
    }
    for claim in claims:
        parts |= _of_verdict(claim.experiment, claim.verdict)
    for report in reports:
        parts[f"findings {report.name}"] = findings(report, link_to(report, pages))
        parts[f"means {report.name}"] = means(report)
        for verdict in report.verdicts:
            parts |= _of_verdict(report.name, verdict)
    for name in CATALOGUE:
        grid = [spec.fingerprint() for spec in find_experiment(name).scales["small"]()]
        took = ""
        if found := [held[run] for run in grid if run in held]:
            whole = "" if len(found) == len(grid) else f"{len(found):,} of "
            hours = _hours(_core_seconds(found))
            took = f"  # {whole}{len(grid):,} trials published; took {hours} core-hours"
        run = f"```sh\npernn run {name} --scale small{took}\n```"
        parts[f"scales {name}"] = f"{scale_table(name)}\n\n{run}"
    return parts


def fill(page: str, parts: Mapping[str, str]) -> str:
    """Put generated parts into a page between their marks.

    A page without a mark has no such part; what stands outside of marks is left alone.
    """

    def one(found: re.Match[str]) -> str:
        name, kind = found.groups()
        if name not in parts:
            if kind in OF_ONE:
                raise ConfigError(f"<!-- {name} -->: no such claim or sweep")
            return found[0]
        text = parts[name] if kind in IN_LINE else f"\n\n{parts[name] or 'None.'}\n\n"
        return f"<!-- {name} -->{text}<!-- /{kind} -->"

    return MARKED.sub(one, page)


def _of_verdict(place: str, verdict: Verdict) -> dict[str, str]:
    """Return effect and verdict of a claim and its cells, by the names of their marks."""
    name, found = f"{place}/{verdict.claim.name}", verdict.interval
    parts = {f"verdict {name}": verdict.verdict, f"effect {name}": str(found or "–")}
    seen = verdict.detectable
    parts[f"seen {name}"] = found.show(seen) if found and seen is not None else "–"
    parts[f"errors {name}"] = verdict.errors or "–"
    for cell in verdict.cells:
        place = f"{name}@{cell.name.rpartition(' = ')[2]}"
        parts |= {f"effect {place}": str(cell.interval), f"errors {place}": cell.errors or "–"}
    return parts


def _scorecard(reports: Sequence[Report], claims: Sequence[Counted], pages: str) -> str:
    """Return one row per experiment, each claim counted once; then the sweeps that stand apart."""
    planned = planned_sweeps(reports)
    rows = []
    for name in CATALOGUE:
        sweep = planned.get(name)
        about = (name, "–", "") if sweep is None else _about(sweep, pages, name)
        rows.append((*about, *_counted(one for one in claims if one.experiment == name)))
    for whose, own in grouped((one.whose, one) for one in claims).items():
        rows.append((f"**of {whose}**", "", "", *(f"**{text}**" for text in _counted(own))))
    parts = [markdown_table(("experiment", "trials", "n", "claims", *COUNTED), rows)]
    same = [
        f"`{one.experiment}: {one.verdict.claim.name}` with `{one.same_as}`"
        for one in claims
        if one.same_as
    ]
    if same:
        parts.append(f"Claims judged by the very same numbers are counted once: {', '.join(same)}.")
    apart = []
    for report in reports:
        if report not in planned.values():
            count = Counter(outcome_apart(report, one) for one in report.verdicts)
            about = _about(report, pages, escape_markdown(report.title))
            apart.append((*about, *(str(count[kind]) for kind in OTHER)))
    if apart:
        parts += [APART, markdown_table(("sweep", "trials", "n", *OTHER), apart)]
    return "\n\n".join(parts)


def _counted(claims: Iterable[Counted]) -> list[str]:
    count = Counter(one.outcome for one in claims)
    return [str(count.total()), *(str(count[kind]) for kind in COUNTED)]


def _about(report: Report, pages: str, name: str) -> tuple[str, str, str]:
    """Return a link to a sweep's page, its trials, and the number of seeds."""
    seeds = sorted({one.num_seeds for one in report.verdicts if one.interval is not None})
    num_seeds = " to ".join(map(str, dict.fromkeys([*seeds[:1], *seeds[-1:]])))
    done = f"{len(report.trials):,} of {len(report.planned):,}"
    return f"[{name}]({link_to(report, pages)})", done, num_seeds


def _counts(reports: Sequence[Report], claims: Sequence[Counted]) -> str:
    """Return the totals in two sentences, for a page that has no room for the table."""
    apart = {
        (report.experiment.name, verdict.claim.name.removesuffix(TUNED_CLAIM))
        for report in reports
        if report.scale != "demo"
        for verdict in report.verdicts
        if verdict.verdict in DECIDED
    }
    words = {
        "same numbers": "judged by the numbers of another",
        "apart": "in other settings",
    }
    order = (*DECIDED, "same numbers", "apart", "not run")
    sentences = []
    for whose, own in grouped((one.whose, one) for one in claims).items():
        count = Counter(
            "apart"
            if one.outcome == "not run" and (one.experiment, one.verdict.claim.name) in apart
            else one.outcome
            for one in own
        )
        found = [f"{count[kind]} {words.get(kind, kind)}" for kind in order if count[kind]]
        sentences.append(f"Of {len(own)} claims of {whose}: {', '.join(found)}.")
    return " ".join(sentences)


def _core_seconds(trials: Iterable[Trial]) -> dict[str, float]:
    """Return what each run took, those that several sweeps share once."""
    return {run: cost for one in trials for run, cost in one.core_seconds.items()}


def _hours(seconds: Mapping[str, float]) -> str:
    return f"{sum(seconds.values()) / 3600:,.1f}"


def findings(report: Report, page: str) -> str:
    """Return a sweep's judged claims as Markdown, linked to its report."""
    rows = [
        (one.claim.statement, one.quantity, str(one.interval), str(one.num_seeds), one.verdict)
        for one in report.verdicts
        if one.interval is not None
    ]
    link = f"Every cell and remark: [{escape_markdown(report.title)}]({page})."
    # A registered sweep that is not finished has no verdicts.
    return f"{markdown_table(HEAD, rows, escape=True)}\n\n{link}" if rows else link


def means(report: Report) -> str:
    """Return a row per cell of an experiment's figure, as Markdown.

    Columns are the means of the figure's lines, by its first metric, and its paired difference with
    a 95 % interval by Student's t if it shows one.
    """
    layout, label = report.experiment.figure, report.label
    metric, contrast = layout.metrics[0], layout.contrast
    lines = names_of(contrast.column if contrast else layout.lines)
    by = [name for name in report.by if name not in lines]
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], str]] = defaultdict(dict)
    for one in report.rows:
        if (measured := one.metrics.get(metric)) is not None:
            cell, line = (tuple(map(one.condition.get, names)) for names in (by, lines))
            found[cell][line] = measured.student.shown
    columns = label.order(line for some in found.values() for line in some)
    head = [*map(label, by), *map(label, columns)]
    if contrast:
        head.append(f"{label(contrast.treated)} − {label(contrast.baseline)}")
        pairs = paired_differences(unroll(report.judged, layout.table), metric, contrast, by)
        differences = grouped((key[1:], value) for key, value in pairs.items())
    rows = []
    for cell in label.order(found):
        row = [*map(label, cell), *(found[cell].get(line, "–") for line in columns)]
        if contrast:
            row.append(str(student_interval(differences[cell])) if cell in differences else "–")
        rows.append(row)
    return f"{label(metric)}:\n\n{markdown_table(head, rows, escape=True)}"


PACE_FIGURE = "vocabulary_size-small"
"""The sweep that the figure shows."""
QUESTION = "How many times as many updates do networks without the encoding need?"


def pace_parts(reports: Sequence[Report]) -> dict[str, str]:
    """Return the parts of the page on pace by their mark."""
    tables, without = [], []
    for report in reports:
        found = _pace_tables(report)
        tables += found
        without += [] if found else [escape_markdown(report.title)]
    return {
        "factors": "\n\n".join(tables),
        "without": "\n".join(f"- {title}" for title in without),
    }


def pace_figure(reports: Sequence[Report]) -> bytes | None:
    """Return the page's figure as SVG, if its sweep is published."""
    for report in reports:
        if report.name == PACE_FIGURE:
            experiment = report.experiment
            metrics = tuple(map(pace_column, LEVELS))
            layout = replace(experiment.figure, metrics=metrics, form="factors")
            about = replace(experiment, question=QUESTION, figure=layout)
            return render(draw(about, report.records, report.scale), "svg")
    return None


def _pace_tables(report: Report) -> list[str]:
    """Return a table for each encoding of a sweep that has networks without one."""
    by_kind = grouped((_arm(report, record), record) for record in report.judged)
    baseline, tables = by_kind.pop("none", []), []
    for kind, treated in sorted(by_kind.items()):
        # Other tasks have settings of their own, which nothing here is paired by.
        tasks = {one["task.kind"] for one in treated}
        alike = [one for one in baseline if one["task.kind"] in tasks]
        first, second = (
            Side(name, some, {"encoding.kind": name})
            for name, some in ((treated[0]["encoding.kind"], treated), ("none", alike))
        )
        found = []
        with suppress(ConfigError):  # no curves of accuracies, or no two pairs
            found = [compare_pace(first, second, level).cells for level in LEVELS]
        rows = [
            (at[0].name, str(len(at[0].differences)), *map(_factor, at))
            for at in zip(*found, strict=True)
            if not all(one.nothing for one in at)
        ]
        if rows:
            title = f"### {escape_markdown(report.title)}: {escape_markdown(kind)}"
            table = markdown_table(("cell", "n", *map(str, LEVELS)), rows, escape=True)
            tables.append(f"{title}\n\n{table}")
    return tables


def _arm(report: Report, record: Record) -> str:
    """Return a trial's encoding, with what else tells it from others of its kind."""
    own = ("encoding.masked", "encoding.frequencies", "encoding.phases", "encoding.base")
    more = [report.label(record[name]) for name in own if record.get(name) is not None]
    return ", ".join([record["encoding.kind"], *more])


def _factor(one: Compared) -> str:
    if one.nothing:
        return one.nothing
    treated, baseline = one.num_never or (0, 0)
    never = f" ({baseline}, {treated})" if treated or baseline else ""
    return f"{one.factor} {one.interval.as_factor().bounds}{never}"


def main() -> int:
    """Rebuild this repository's pages; return 1 if trials were left out."""
    lost: list[str] = []
    watch = tracked("Drawing sweeps")
    try:
        for path in rebuild(EVIDENCE, PAGES, lost.append, FILLED, jobs=num_cores(), watch=watch):
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    except PernnError as error:
        lost.append(str(error))
    for one in lost:
        sys.stderr.write(f"{one}\n")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
