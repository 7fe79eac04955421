"""Reports of sweeps: figures, tables, verdicts and one page."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pernn.errors import ConfigError
from pernn.lab.config import grouped
from pernn.lab.cores import CORES
from pernn.lab.encodings import ENCODINGS
from pernn.lab.experiments import Experiment, is_pace, names_of
from pernn.lab.runs import RunSpec
from pernn.lab.store import to_json, write_atomically
from pernn.lab.trials import NAMING, Trial, describe, is_setting, unroll

from .claims import Registered, Verdict, judge_experiment
from .comparing import Comparison, Side, compare
from .drawings import FORMATS, Drawing, draw_curves, draw_extra_figures
from .figures import Format
from .records import Record, Records, at_own_best, condition_of, lacking, number, sort_key
from .statistics import Outcome
from .tables import Row, summarise, to_csv, to_markdown
from .texts import Labels, clean, escape_markdown, fill_template, preset_of

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
"""First metrics of `table.csv`: trials and their published records have them in unlike orders."""

MAX_LISTED = 1_000
"""Trials that a page lists; 20,000 would be a quarter of its 13 MB."""
LONG = 60
"""Tables with more rows are folded on the page."""


@dataclass(eq=False, repr=False)
class Report:
    """Tables, verdicts and figures of a sweep, made when asked for.

    Args:
        experiment: What was asked.
        scale: Its scale.
        records: Finished trials, as `Trial.row` has them.
        planned: All trials of the sweep, finished or not.
        command: What repeats the sweep.
        notes: Sentences for the end of the page.
        trials: The same finished trials: machines, time, versions and curves are told of these.
        name: The sweep's.
        changes: Settings that differ from the experiment's own, as text.
        is_restricted: Whether these are more than its seeds.
        registered: What a plan registered of the sweep; `None` without one.
        formats: Those of the figures' files; the last one is shown in Markdown.

    Raises:
        ConfigError: Here or later, if two trials compete for one place in a figure, a table or a
            claim.
    """

    experiment: Experiment
    scale: str
    records: Records
    planned: Sequence[RunSpec]
    command: str
    notes: Sequence[str] = ()
    _: KW_ONLY
    trials: Sequence[Trial] = ()
    name: str = ""
    changes: str = ""
    is_restricted: bool = False
    registered: Registered | None = None
    formats: Sequence[Format] = FORMATS
    paths: tuple[Path, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        layout = self.experiment.figure
        place = (*layout.shown, "seed", "run")
        self.records = sorted(
            self.records, key=lambda record: [sort_key(record.get(name)) for name in place]
        )
        self.command = clean(self.command)
        self.label = Labels(self.experiment.labels)
        # Both axes of a scatter plot are measured.
        measured = names_of(layout.x) if layout.form == "scatter" else ()
        self.by = tuple(name for name in layout.shown if name not in measured)
        self.metrics = (*layout.metrics, *measured)
        table = layout.table
        having = [{**one, **one.get("tables", {}).get(table, {})} for one in self.records]
        self.lacking = lacking(self.metrics, having)
        notes = (*self.notes, *self.lacking, *describe(self.trials))
        self.notes = [clean(note) for note in notes]
        self.preset = preset_of(self.records, self.label)
        self.progress = f"{len(self.records):,} of {len(self.planned):,} trials finished"
        if lost := sum("diverged" in record for record in self.records):
            self.progress += f", {lost:,} of them diverged and counted as the worst"

    @property
    def is_finished(self) -> bool:
        """True if it has all of its trials."""
        return len(self.records) == len(self.planned)

    @property
    def title(self) -> str:
        """Its experiment, its scale and its overrides, for people."""
        return " · ".join(filter(None, (f"{self.experiment.name}-{self.scale}", self.changes)))

    @property
    def page(self) -> Path:
        """The page to open, once it is written."""
        return self.paths[0]

    @cached_property
    def all_metrics(self) -> tuple[str, ...]:
        """The metrics of `table.csv`: the figure's, then others with numbers.

        These are sought in the layout's table if there is one, else in whole trials.
        """
        table = self.experiment.figure.table
        rows, columns = unroll(self.records, table), self.records
        if table is not None:
            columns = [one.get("tables", {}).get(table, {}) for one in self.records]
        names = [
            name
            for name in dict.fromkeys(column for some in columns for column in some)
            if name not in NAMING and not is_setting(name) and not is_pace(name)
        ]
        numbers = [name for name in names if any(number(row, name) is not None for row in rows)]
        first = [metric for metric in METRICS if metric in numbers]
        others = (name for name in (*first, *numbers) if name not in self.by)
        return tuple(dict.fromkeys([*self.metrics, *others]))

    @cached_property
    def rows(self) -> list[Row]:
        """The means over seeds, a row per condition of the figure."""
        found = unroll(self.judged, self.experiment.figure.table)
        return summarise(found, self.by, self.all_metrics)

    @cached_property
    def judged(self) -> list[Record]:
        """The records without seeds that choose, where there are others."""
        choosing = self.experiment.choosing
        if not choosing:
            return [*self.records]
        seeds = grouped((condition_of(one), one["seed"]) for one in self.records)
        return [
            one
            for one in self.records
            if one["seed"] not in choosing or choosing.issuperset(seeds[condition_of(one)])
        ]

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on all claims, in the experiment's order."""
        return judge_experiment(
            self.experiment, self.scale, self.records, self.planned, self.registered
        )

    @cached_property
    def own(self) -> list[tuple[str, Comparison]]:
        """Differences that the encoding makes to parts of one's own.

        No claim is about these, so their differences, paired by seed, stand by themselves.
        """
        core, encoding = "core.kind", "encoding.kind"
        judged, best = at_own_best(self.experiment, self.records)
        having = (one for one in judged if {core, encoding} <= one.keys())
        arms = grouped(((one[core], one[encoding]), one) for one in having)
        found = []
        for own, kind in arms:
            if kind == "none" or (own in CORES.builtin and kind in ENCODINGS.builtin):
                continue
            first, second = (
                Side(
                    self.label(name),
                    arms.get((own, name), []),
                    {core: own, encoding: name, **dict.fromkeys(best, name)},
                )
                for name in (kind, "none")
            )
            # Nothing is told without the other arm, or of one seed, which makes no pairs.
            with suppress(ConfigError):
                name = f"{self.label(own)}: {first.name} − {second.name}"
                found.append((name, compare(first, second, self.metrics[0])))
        return found

    @cached_property
    def figure(self) -> Drawing:
        """The main figure."""
        return Drawing.of("figure", self.experiment, self.records, self.scale, self.formats)

    @cached_property
    def further(self) -> list[Drawing]:
        """The figures below the main one, that of the learning curves last."""
        found = draw_extra_figures(self.experiment, self.records, self.scale, self.formats)
        if learnt := [one for one in self.trials if one.has_lines]:
            found.append(draw_curves(self.experiment, learnt, self.scale, self.formats))
        return found

    def write(self, directory: Path) -> "Report":
        """Write page, table, verdicts and figures, and return the report.

        Equal trials give equal bytes.
        """
        contents = {
            "index.html": self.html().encode(),
            "report.md": self.markdown(self.formats[-1]).encode(),
            **self.figure.contents,
            **{name: content for one in self.further for name, content in one.contents.items()},
            "table.csv": to_csv(self.rows, self.all_metrics).encode(),
            "claims.json": to_json(self.dump()),
        }
        for name, content in contents.items():
            write_atomically(directory / name, content)
        self.paths = tuple(directory / name for name in contents)
        return self

    def listed(self) -> tuple[list[str], list[str]]:
        """Choose the columns and the metrics that whole trials have."""
        columns, metrics = (
            [name for name in names if any(name in record for record in self.records)]
            for names in (self.by, self.metrics)
        )
        return columns, metrics

    def listed_records(self) -> list[Record]:
        """Return the first trials' listed columns, empty where one has none."""
        columns, metrics = self.listed()
        names = [*columns, *metrics, "run", "seed", "num_parameters"]
        shown = self.records[:MAX_LISTED]
        return [{name: record.get(name) for name in names} for record in shown]

    @property
    def trials_listed(self) -> str:
        """Title of the list of trials."""
        count = len(self.records)
        if count <= MAX_LISTED:
            return f"Every trial ({count})"
        return f"The first {MAX_LISTED:,} of {count:,} trials; pernn export gives all"

    def html(self) -> str:
        """Fill the page's template, escaping all but the figures."""
        return fill_template(
            "page.html.jinja",
            sum=self,
            marks=MARKS,
            long=LONG,
            # Figures are our own, and matplotlib escapes the texts in them.
            figures=[(one, Markup(one.inline())) for one in (self.figure, *self.further)],  # noqa: S704
            records=self.listed_records(),
        )

    def dump(self) -> dict[str, Any]:
        """Return the verdicts as plain JSON values."""
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "num_finished": len(self.records),
            "num_planned": len(self.planned),
            "claims": [verdict.dump() for verdict in self.verdicts],
        }

    def markdown(self, form: Format) -> str:
        """Return the page's content in Markdown, with figures in a format."""
        return fill_template(
            "report.md.jinja",
            sum=self,
            marks=MARKS,
            judged_first=sorted(self.verdicts, key=lambda one: one.verdict == "not run"),
            form=form,
        )

    def table(self) -> str:
        """Return the means in Markdown, with a caption."""
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
        shared = frozenset.intersection(*map(condition_of, self.records))
        return [(clean(column), clean(str(value))) for column, value in sorted(shared)]
