"""The report of a sweep: figure, tables, verdicts, and one page that shows them all."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pernn.experiments import Experiment
from pernn.store import storing, to_json, write_atomically

from .claims import Outcome, Verdict, judge
from .figures import Format, draw, render
from .labels import Labels, footer
from .statistics import Record, rank
from .tables import Row, clean, escape_markdown, summarise, to_csv, to_markdown

MARKS: dict[Outcome, str] = {
    "supported": "✔",
    "contradicted": "✘",
    "inconclusive": "≈",
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
"""Metrics that `table.csv` has beside those of the figure, where they were measured."""

RESULTS = {*METRICS, "num_parameters", "run", "seed"}
"""Columns that are no setting."""


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
    num_planned: int,
    directory: Path,
    command: str,
    notes: Sequence[str] = (),
) -> Report:
    """Write the report of a sweep, finished or not; equal records give equal bytes.

    Args:
        experiment: What was asked.
        scale: Its scale.
        records: Finished trials.
        num_planned: Trials of the whole sweep.
        directory: Where the files go; made if it is missing.
        command: What repeats the sweep.
        notes: Sentences for the end of the page, for example on which machines it ran.

    Returns:
        The files and the verdicts.

    Raises:
        ConfigError: If two trials compete for one place in the figure, a table or a claim.
        StoreError: If a file cannot be written.
    """
    records = sorted(records, key=_place(experiment))
    summary = Summary(experiment, scale, records, num_planned, command, notes)
    figure = draw(experiment, records)
    drawn: dict[Format, bytes] = {form: render(figure, form) for form in ("svg", "pdf", "png")}
    contents = {
        "index.html": summary.html(drawn["svg"].decode()).encode(),
        "report.md": summary.markdown().encode(),
        **{f"figure.{form}": content for form, content in drawn.items()},
        "table.csv": to_csv(summary.rows, summary.all_metrics).encode(),
        "table.md": summary.table().encode(),
        "claims.json": to_json(
            {
                "experiment": experiment.name,
                "scale": scale,
                "num_finished": len(records),
                "num_planned": num_planned,
                "claims": [verdict.dump() for verdict in summary.verdicts],
            }
        ),
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
        experiment: What was asked.
        scale: Its scale.
        records: Finished trials, in the order of the tables.
        num_planned: Trials of the whole sweep.
        command: What repeats the sweep.
        notes: Sentences for the end.
    """

    def __init__(
        self,
        experiment: Experiment,
        scale: str,
        records: Sequence[Record],
        num_planned: int,
        command: str,
        notes: Sequence[str],
    ) -> None:
        self.experiment, self.scale, self.records = experiment, scale, records
        self.command, self.notes = clean(command), [clean(note) for note in notes]
        layout = experiment.figure
        self.label = Labels(experiment.labels)
        self.by = tuple(dict.fromkeys([layout.panels, layout.lines, layout.x]))
        self.metrics = layout.metrics
        measured = {metric for metric in METRICS for record in records if metric in record}
        others = [metric for metric in METRICS if metric in measured]
        self.all_metrics = tuple(dict.fromkeys([*layout.metrics, *others]))
        self.rows: list[Row] = summarise(records, self.by, self.all_metrics)
        self.verdicts = tuple(judge(claim, records) for claim in experiment.claims)
        self.progress = f"{len(records):,} of {num_planned:,} trials finished"
        if len(records) < num_planned:
            self.progress += ": this report is incomplete"

    def html(self, figure: str) -> str:
        """Fill the page's template; everything but the figure is escaped."""
        source = files("pernn.reports").joinpath("page.html.jinja").read_text(encoding="utf-8")
        environment = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        return environment.from_string(source).render(
            name=self.experiment.name,
            scale=self.scale,
            source=self.experiment.source,
            question=self.experiment.question,
            progress=self.progress,
            verdicts=self.verdicts,
            marks=MARKS,
            # The figure is our own, and matplotlib escapes the texts in it.
            figure=Markup(figure[figure.index("<svg") :]),  # noqa: S704
            footer=footer(self.experiment, self.records),
            by=self.by,
            metrics=self.metrics,
            label=self.label,
            rows=self.rows,
            records=[
                {**dict.fromkeys([*self.by, *self.metrics, "run"]), **r} for r in self.records
            ],
            command=self.command,
            settings=self.settings(),
            notes=self.notes,
        )

    def _judged_first(self) -> list[Verdict]:
        return sorted(self.verdicts, key=lambda verdict: verdict.verdict == "not run")

    def markdown(self) -> str:
        """Say the same as the page in Markdown."""
        safe = escape_markdown
        lines = [
            f"# {safe(self.experiment.question)}",
            f"{safe(self.experiment.name)} · {safe(self.scale)} · {safe(self.experiment.source)}",
            f"**{self.progress}**",
            "## Claims",
            "\n".join(_bullet(verdict) for verdict in self._judged_first()) or "None.",
            "## Means over trials",
            "Mean \\[95 % bootstrap interval\\] over seeds.",
            self.table().rstrip(),
            "![The figure of the same values](figure.png)",
            "## How to repeat this",
            f"    {self.command}",
            safe(footer(self.experiment, self.records)),
            *(safe(note) for note in self.notes),
        ]
        return "\n\n".join(lines) + "\n"

    def table(self) -> str:
        """Give the means in Markdown."""
        return to_markdown(self.rows, self.metrics, self.label)

    def settings(self) -> list[tuple[str, str]]:
        """List the columns of the specs in which all trials agree."""
        if not self.records:
            return []
        first, *others = self.records
        return [
            (clean(column), clean(str(value)))
            for column, value in sorted(first.items())
            if column not in RESULTS
            and not isinstance(value, dict)
            and all(column in other and other[column] == value for other in others)
        ]


def _bullet(verdict: Verdict) -> str:
    text = f"- {MARKS[verdict.verdict]} **{verdict.verdict}**: "
    text += escape_markdown(f"{verdict.claim.statement} ({verdict.claim.source})")
    found = escape_markdown(f"{verdict.quantity}: {verdict.interval}, n = {verdict.num_seeds}; ")
    text += f"\n  {found if verdict.interval else ''}{escape_markdown(verdict.detail)}"
    return text + (f"; {escape_markdown(verdict.remark)}" if verdict.remark else "")


def _place(experiment: Experiment) -> Any:
    layout = experiment.figure
    columns = (layout.panels, layout.lines, layout.x, "seed", "run")
    return lambda record: [rank(record.get(column)) for column in columns]
