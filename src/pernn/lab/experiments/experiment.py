"""An experiment: specs per scale, claims and figures as data.

Records are flat: the run's spec by dotted path (`task.vocab_size`, `core.kind`, `seed`) beside its
measured metrics (`token_accuracy`). Everything below selects and names columns of such records.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, get_args

from pernn.errors import ConfigError
from pernn.lab.config import naming_import, suggestion
from pernn.lab.runs import RunSpec

from .catalogue import CATALOGUE, GROUP, MODULES, experiment_names, registered
from .predicates import Claim, Contrast, Where

Columns = str | tuple[str, ...]
"""A column, or several whose values count together."""


def names_of(columns: Columns | None) -> tuple[str, ...]:
    """Return the columns one by one."""
    return (columns,) if isinstance(columns, str) else columns or ()


Rule = Literal["2026-11", "2026-12"]
"""How verdicts are corrected, by the month in which the rule was fixed; docs/statistics.md."""

Form = Literal["points", "bands", "difference", "heat", "scatter", "factors"]

REPORT_FILES = frozenset(
    {"claims", "figure", "index", "learning_curves", "report", "sweep", "table"}
)
"""What the other files of a sweep are called, up to their ending."""


@dataclass(frozen=True)
class FigureLayout:
    """Layout of records in columns of panels × rows of metrics.

    Each condition is a line.

    Attributes:
        x: Column on the horizontal axis; of `scatter` one that is measured. Several of them name
            conditions in words, of `points` without a contrast only.
        panels: Column whose values get a panel each, side by side.
        lines: Column whose values get a line each; of `heat` the column on the vertical axis.
        metrics: One row of panels each, from the top.
        contrast: If given, a last row shows this paired difference of the first metric; it must be
            between the lines.
        x_base: Base of the logarithmic axis; linear if absent.
        rows: Column whose values get a block of rows each: every metric, and the contrast.
        table: If given, each trial stands for the rows of this table of its, whose columns can
            be named above.
        form: `points`: means with intervals and every trial; `bands`: lines in bands of their
            interval, for long axes; `difference`: the contrast's row alone, a line for each value
            of the lines' further columns; `heat`:
            the metric's mean over seeds as a colour, one scale for all panels; `scatter`: a point
            for each trial or row of the table, and how its two numbers are correlated in rank;
            `factors`: of metrics such as `updates_to_0.9`, a line each in one row of panels, how
            many times as many updates the contrast's baseline takes as the treated condition.
        y_base: Base of the metrics' logarithmic axis, which shares and differences are left out
            of, or of the vertical axis of `heat`; linear, and from 0 where nothing is negative,
            if absent.
        where: Column → allowed value, or a tuple of them, of the trials that a further figure
            shows; it is left out where these are all trials or none.

    Raises:
        ConfigError: If there is no such form, or it cannot show what is asked for.
    """

    x: Columns
    panels: Columns
    lines: Columns
    metrics: tuple[str, ...]
    contrast: Contrast | None = None
    x_base: int | None = None
    rows: Columns | None = None
    table: str | None = None
    form: Form = "points"
    y_base: int | None = None
    where: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            known = ", ".join(get_args(Form))
            raise ConfigError(f"form is invalid: expected one of {known}, got {self.form!r}")
        if self.contrast and (self.form in ("heat", "scatter") or not isinstance(self.x, str)):
            along = f"of the form {self.form!r}" if isinstance(self.x, str) else "along words"
            raise ConfigError(f"a figure {along} shows no contrast")
        if self.form == "heat" and len(self.metrics) != 1:
            raise ConfigError(f"a heat map shows one metric, got {', '.join(self.metrics)}")
        if self.form != "points" and not isinstance(self.x, str):
            raise ConfigError(f"a figure of the form {self.form!r} has one column along its axis")
        if self.form in ("difference", "factors") and not self.contrast:
            raise ConfigError(f"a figure of the form {self.form!r} needs a contrast")

    @property
    def shown(self) -> tuple[str, ...]:
        """Columns of blocks, panels, lines and axis, in this order."""
        named = (self.rows, self.panels, self.lines, self.x)
        return tuple(dict.fromkeys(name for columns in named for name in names_of(columns)))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One question of the paper and all that answers it.

    Attributes:
        name: The question's short name, as on the command line.
        question: One sentence; of a built-in experiment the catalogue has it, so that experiments
            can be listed without being imported.
        source: Where the paper asks it, as the question.
        scales: `demo`, `small`, `paper` → the specs of all trials, paired by seed.
        claims: What the paper says the answer is.
        figure: The figure's layout; of its columns the table of means is made, so those of a
            `scatter` but x must tell the trials of a seed apart.
        labels: Display names of values (`lstm` → "LSTM"), which come in this order, and of columns
            that are not called as in most experiments (`length` → "Input length"); also of numbers
            (`600000` → "Twice as long") and of values that count together (`rare, frequent` →
            "Rare among Frequent"); those of further figures are their captions.
        more_figures: File name without its ending → the layout of a further figure.
        rules: Scale → rule by which its claims are corrected, see `pernn.lab.reports.statistics`;
            "2026-11" if absent. A new registration brings a scale of its own.

    Raises:
        ConfigError: If there is no question, the first figure leaves trials out, or a further
            figure's name is not a valid file name or that of another file.
    """

    name: str
    question: str = ""
    source: str = ""
    scales: Mapping[str, Callable[[], tuple[RunSpec, ...]]]
    claims: tuple[Claim, ...]
    figure: FigureLayout
    labels: Mapping[str, str] = field(default_factory=dict)
    more_figures: Mapping[str, FigureLayout] = field(default_factory=dict)
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name in CATALOGUE and not self.question:
            entry = CATALOGUE[self.name]
            vars(self).update(question=entry.question, source=entry.source)
        if not self.question:
            raise ConfigError(f"{self.name}: an experiment needs a question")
        if self.figure.where:
            raise ConfigError(
                f"{self.name}: `where` is for further figures; the first shows all trials"
            )
        for stem in self.more_figures:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", stem) or stem in REPORT_FILES:
                raise ConfigError(
                    f"{self.name}: a further figure's name consists of a-z, 0-9 and _, and is none "
                    f"of {', '.join(sorted(REPORT_FILES))}; got {stem!r}"
                )

    @property
    def choosing(self) -> frozenset[int]:
        """Seeds that choose a setting for the others, and are not judged."""
        return frozenset(seed for one in self.claims if one.choice for seed in one.choice.seeds)


def find_experiment(name: str) -> Experiment:
    """Import an experiment by name, built-in or by its entry point."""
    if name in CATALOGUE:
        module = import_module(f".{MODULES.get(name, name)}", __package__)
        experiment: Experiment = getattr(module, name.upper())
        return experiment
    point = registered().get(name)
    if point is None:
        known = experiment_names()
        hint = suggestion(name, known)
        raise ConfigError(
            f"no experiment {name!r}{hint} (known: {', '.join(known)}; one of your own needs an "
            "entry point, see docs/extend.md)"
        )
    with naming_import(GROUP, name):
        found = point.load()
    if not isinstance(found, Experiment) or found.name != name:
        got = repr(found.name) if isinstance(found, Experiment) else repr(found)
        raise ConfigError(
            f"{GROUP}: {point.value} must be an Experiment called {name!r}, got {got}"
        )
    return found
