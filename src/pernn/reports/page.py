"""The report of a sweep: figure, tables, verdicts, and one page that shows them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.experiments import Experiment, names_of
from pernn.runs import RunSpec
from pernn.store import storing, to_json, write_atomically

from .claims import Verdict
from .curves import draw_curves
from .escaping import clean, escape_markdown
from .figures import Format, draw, render
from .labels import Labels, footer, preset_of
from .more_figures import FORMATS, ExtraFigure, draw_extra_figures
from .pace import is_pace
from .records import Record, sort_key
from .registered import Registered, judge_experiment
from .rules import Outcome
from .tables import Row, summarise, to_csv, to_markdown
from .templates import fill_template
from .unrolled import NAMING, is_setting, table_columns, unroll

MARKS: dict[Outcome, str] = {
    "supported": "✔",
    "contradicted": "✘",
    "inconclusive": "≈",
    "too few seeds": "…",
    "not run": "–",
}
"""Signs beside the words, so that no verdict is told by colour alone."""

METRICS = (
    "token_accuracy",
    "sequence_accuracy",
    "damerau_levenshtein",
    "damerau_levenshtein_share",
    "loss",
)
"""Metrics in the order in which `table.csv` has them beside those of the figure."""

LONG = 60
"""Tables with more rows are folded on the page."""


@dataclass(frozen=True)
class Chapter:
    """One sweep, as pages show it.

    Attributes:
        experiment: What was asked.
        scale: Its scale.
        records: Finished trials.
        planned: All trials of the sweep, finished or not.
        command: What repeats it.
        notes: What ran where, and for how long.
        origin: Versions and commits that the trials ran with.
        changes: Settings that differ from the experiment's own, as text.
        is_restricted: Whether these are more than its seeds.
        curves: Figure of training and test curves as SVG; empty if there is none.
        registered: What a plan registered of it; `None` without one.
    """

    experiment: Experiment
    scale: str
    records: Sequence[Record]
    planned: Sequence[RunSpec]
    command: str
    notes: Sequence[str] = ()
    origin: str = ""
    changes: str = ""
    is_restricted: bool = False
    curves: str = ""
    registered: Registered | None = None


@dataclass(frozen=True)
class Report:
    """What was written.

    Attributes:
        page: The page to open.
        paths: All files, the page first.
        verdicts: One per claim, in the experiment's order.
    """

    page: Path
    paths: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]


def write_report(
    experiment: Experiment,
    scale: str,
    records: list[Record],
    planned: Sequence[RunSpec],
    directory: Path,
    command: str,
    notes: Sequence[str] = (),
    curves: Sequence[Record] = (),
    formats: Sequence[Format] = FORMATS,
    registered: Registered | None = None,
) -> Report:
    """Write the report of a sweep, finished or not; equal records give equal bytes.

    Args:
        experiment: What was asked.
        scale: Its scale.
        records: Finished trials.
        planned: All trials of the sweep, finished or not.
        directory: Where the files go; made if it is missing.
        command: What repeats the sweep.
        notes: Sentences for the end of the page, for example on which machines it ran.
        curves: Thinned lines of the trials' metrics, from `curve_rows`; no figure of them if empty.
        formats: Those of the figures, `svg` first; the last one is shown in Markdown.
        registered: What a plan registered of the sweep.

    Returns:
        The files and the verdicts.

    Raises:
        ConfigError: If two trials compete for one place in the figure, a table or a claim.
        StoreError: If a file cannot be written.
    """
    records = sorted(records, key=_place(experiment))
    further = draw_extra_figures(experiment, records, scale, formats)
    if curves:
        further.append(draw_curves(experiment, curves, scale, formats))
    chapter = Chapter(experiment, scale, records, planned, command, notes, registered=registered)
    summary = Summary(chapter, further)
    figure = draw(experiment, records, scale)
    drawn: dict[Format, bytes] = {form: render(figure, form) for form in formats}
    contents = {
        "index.html": summary.html(drawn["svg"].decode()).encode(),
        "report.md": summary.markdown(formats[-1]).encode(),
        **{f"figure.{form}": content for form, content in drawn.items()},
        **{name: content for one in further for name, content in one.contents.items()},
        "table.csv": to_csv(summary.rows, summary.all_metrics).encode(),
        "table.md": summary.table().encode(),
        "claims.json": to_json(summary.dump()),
    }
    with storing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(directory / name, content)
    paths = tuple(directory / name for name in contents)
    return Report(paths[0], paths, summary.verdicts)


class Summary:
    """Everything that the page and its Markdown twin say.

    Args:
        chapter: What is reported, its records in the order of the tables.
        further: Figures below the main one.
    """

    def __init__(self, chapter: Chapter, further: Sequence[ExtraFigure] = ()) -> None:
        experiment, records, planned = chapter.experiment, chapter.records, chapter.planned
        self.experiment, self.scale, self.records = experiment, chapter.scale, records
        self.num_planned, self.further = len(planned), further
        self.command = clean(chapter.command)
        self.notes = [clean(note) for note in chapter.notes]
        layout = experiment.figure
        self.label = Labels(experiment.labels)
        # Both axes of a scatter plot are measured.
        both = layout.form == "scatter"
        named = (layout.rows, layout.panels, layout.lines, None if both else layout.x)
        self.by = tuple(dict.fromkeys(name for columns in named for name in names_of(columns)))
        self.metrics = (*layout.metrics, *names_of(layout.x)) if both else layout.metrics
        found = unroll(records, layout.table)
        others = [metric for metric in self._measured() if metric not in self.by]
        self.all_metrics = tuple(dict.fromkeys([*self.metrics, *others]))
        self.rows: list[Row] = summarise(found, self.by, self.all_metrics)
        self.preset = preset_of(records, self.label)
        self.verdicts = judge_experiment(
            experiment, self.scale, records, planned, chapter.registered
        )
        self.progress = f"{len(records):,} of {len(planned):,} trials finished"
        lost = sum("diverged" in record for record in records)
        if lost:
            self.progress += f", {lost:,} of them diverged and counted as the worst"
        if len(records) < len(planned):
            self.progress += ": this report is incomplete"

    def _measured(self) -> list[str]:
        """List what has numbers: in the layout's table if there is one, else of whole trials."""
        table = self.experiment.figure.table
        if table is None:
            columns = dict.fromkeys(column for record in self.records for column in record)
            names = [
                name
                for name in columns
                if name not in NAMING and not is_setting(name) and not is_pace(name)
            ]
            numbers = [name for name in names if any(_is_number(r.get(name)) for r in self.records)]
        else:
            names = table_columns(self.records, table)
            tables = [record.get("tables", {}).get(table, {}) for record in self.records]
            numbers = [
                name
                for name in names
                if any(_is_number(value) for found in tables for value in found.get(name, ()))
            ]
        first = [metric for metric in METRICS if metric in numbers]
        return [*first, *(name for name in numbers if name not in first)]

    def listed(self) -> tuple[list[str], list[str]]:
        """Choose the columns and the metrics that whole trials have."""
        columns, metrics = (
            [name for name in names if any(name in record for record in self.records)]
            for names in (self.by, self.metrics)
        )
        return columns, metrics

    def listed_records(self) -> list[Record]:
        """Return the trials with an empty place for each listed column that one does not have."""
        columns, metrics = self.listed()
        blank = dict.fromkeys([*columns, *metrics, "run", "num_parameters"])
        return [{**blank, **record} for record in self.records]

    def html(self, figure: str) -> str:
        """Fill the page's template; everything but the figure is escaped."""
        return fill_template(
            "page.html.jinja",
            sum=self,
            marks=MARKS,
            long=LONG,
            # The figure is our own, and matplotlib escapes the texts in it.
            figure=Markup(figure[figure.index("<svg") :]),  # noqa: S704
            footer=footer(self.experiment, self.records, self.scale),
            further=[(one, Markup(one.inline()) if one.drawn else "") for one in self.further],  # noqa: S704
            records=self.listed_records(),
        )

    def dump(self) -> dict[str, Any]:
        """Return the verdicts as plain JSON values."""
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "num_finished": len(self.records),
            "num_planned": self.num_planned,
            "claims": [verdict.dump() for verdict in self.verdicts],
        }

    def markdown(self, form: Format) -> str:
        """Return the page's content in Markdown, with figures in a format."""
        safe = escape_markdown
        judged_first = sorted(self.verdicts, key=lambda verdict: verdict.verdict == "not run")
        lines = [
            f"# {safe(self.experiment.question)}",
            " · ".join(safe(part) for part in self.about()),
            f"**{self.progress}**",
            "## Claims",
            "\n".join(map(_bullet, judged_first)) or "None.",
            "## Means over trials",
            self.table().rstrip(),
            f"![The figure of the same values](figure.{form})",
            *(one.markdown(form) for one in self.further),
            "## How to repeat this",
            f"    {self.command}",
            safe(footer(self.experiment, self.records, self.scale)),
            *(safe(note) for note in self.notes),
        ]
        return "\n\n".join(lines) + "\n"

    def table(self) -> str:
        """Return the means in Markdown, with a line on what they are of."""
        table = to_markdown(self.rows, self.metrics, self.label)
        if not self.rows:
            return table
        caption = "Mean \\[95 % interval by Student's t\\] over seeds"
        caption += f"; {escape_markdown(self.preset)}" if self.preset else ""
        return f"{caption}.\n\n{table}"

    def about(self) -> list[str]:
        """Name the experiment, its scale, source and preset."""
        parts = (self.experiment.name, self.scale, self.experiment.source, self.preset)
        return [part for part in parts if part]

    def settings(self) -> list[tuple[str, str]]:
        """List the columns of the specs in which all trials agree."""
        if not self.records:
            return []
        first, *others = self.records
        return [
            (clean(column), clean(str(value)))
            for column, value in sorted(first.items())
            if is_setting(column)
            and column != "seed"
            and all(column in other and other[column] == value for other in others)
        ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bullet(verdict: Verdict) -> str:
    text = f"- {MARKS[verdict.verdict]} **{verdict.verdict}**: "
    text += escape_markdown(f"{verdict.claim.statement} ({verdict.claim.cited})")
    found = [verdict.sensitivity, verdict.detail, verdict.remark]
    if verdict.interval is not None:
        estimate = f"{verdict.quantity}: {verdict.interval.shown}"
        found.insert(0, estimate + verdict.intervals)
    if verdict.claim.paper_value is not None:
        found.append(f"the paper's own: {verdict.claim.paper_value}")
    text += f"\n  {escape_markdown('; '.join(filter(None, found)))}"
    cells = verdict.cells if len(verdict.cells) > 1 else ()
    for cell in cells:
        line = f"{cell.name}: {cell.interval}"
        if cell.interval.bounded:
            line += f", bootstrap {cell.bootstrap.bounds}, n = {cell.num_seeds}"
        text += f"\n    - {escape_markdown(line)}"
    return text


def _place(experiment: Experiment) -> Any:
    layout = experiment.figure
    named = (layout.rows, layout.panels, layout.lines, layout.x, "seed", "run")
    columns = [name for some in named for name in names_of(some)]
    return lambda record: [sort_key(record.get(column)) for column in columns]
