"""What an experiment is: specs per scale, claims as data, and the figure's layout as data.

Records are flat: the run's spec by dotted path (`task.vocab_size`, `core.kind`, `seed`) beside its
measured metrics (`token_accuracy`). Everything below selects and names columns of such records.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from pernn.config import is_kind, suggestion
from pernn.errors import ConfigError
from pernn.runs import RunSpec

from .catalogue import CATALOGUE, GROUP, experiment_names, registered

Where = Mapping[str, Any]
"""Column → value, or a tuple of allowed values; a record must match all of them.

`None` matches records that do not have the column.
"""

Columns = str | tuple[str, ...]
"""A column, or several whose values count together."""


@dataclass(frozen=True)
class Contrast:
    """Two conditions, told apart by one column; the difference is `treated − baseline`.

    Trials are paired by seed and by the columns that the comparison names, so the two may differ
    in further columns. In the rows of a table both may belong to one trial.

    Attributes:
        column: What tells them apart: a setting, or a column of the table.
        treated: Its value in the one: a word, a number, or `None` where the column is absent.
        baseline: Its value in the other.
    """

    column: str
    treated: str | int | float | None
    baseline: str | int | float | None


@dataclass(frozen=True)
class AtLeast:
    """In every cell, the mean over seeds reaches a threshold.

    Attributes:
        metric: Column that is compared.
        where: Records that take part.
        cells: Column whose values make the cells, each of which must reach the threshold.
        required: Values of `cells` that must all be there for the claim to have been run.
        threshold: In the metric's unit.
    """

    metric: str
    where: Where
    cells: str
    required: tuple[Any, ...]
    threshold: float


@dataclass(frozen=True)
class AtMost:
    """In every cell, the mean over seeds stays at or below a threshold; else as `AtLeast`."""

    metric: str
    where: Where
    cells: str
    required: tuple[Any, ...]
    threshold: float


@dataclass(frozen=True)
class Differs:
    """The paired difference, averaged over the cells, has a sign (over seeds).

    Attributes:
        sign: +1 if the treated condition should measure more, −1 if less.
        cells: Column over whose values the difference is averaged within a seed.
        margin: What `sign · difference` must exceed, in the metric's unit. With −1 and a negative
            margin the claim is that there is no gain to speak of.
    """

    metric: str
    where: Where
    contrast: Contrast
    cells: str
    sign: Literal[1, -1] = 1
    margin: float = 0.0


@dataclass(frozen=True)
class Grows:
    """A metric grows with a column: its least-squares slope per doubling has a sign (over seeds).

    At least two distinct values of `along` are needed, else the claim was not run.

    Attributes:
        contrast: If given, it is this paired difference that grows, not the metric itself.
        sign: +1 if it should grow, −1 if it should fall.
    """

    metric: str
    where: Where
    contrast: Contrast | None
    along: str
    sign: Literal[1, -1] = 1


@dataclass(frozen=True)
class LimitNear:
    """The largest value of `along` up to which the threshold always holds lies near a number.

    Near means within a factor of two either way; per seed, 0 if already the smallest value fails.

    Attributes:
        required: Values of `along` that must all be there for the claim to have been run.
    """

    metric: str
    where: Where
    along: str
    required: tuple[float, ...]
    threshold: float
    near: float


Predicate = AtLeast | AtMost | Differs | Grows | LimitNear


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that records can support or contradict.

    Attributes:
        name: Short, unique in the experiment.
        statement: The claim in our words.
        source: Text and figure it stands in.
        predicate: What must hold of the records.
        table: If given, each trial stands for the rows of this table of its, whose columns the
            predicate may name too.
    """

    name: str
    statement: str
    source: str
    predicate: Predicate
    table: str | None = None


Form = Literal["points", "bands", "violins", "heat", "scatter"]

REPORT_FILES = frozenset({"claims", "figure", "index", "report", "sweep", "table"})
"""What the other files of a sweep are called, up to their ending."""


@dataclass(frozen=True)
class FigureLayout:
    """How records become panels: columns of panels × rows of metrics, one line per condition.

    Attributes:
        x: Column on the horizontal axis; of `scatter` one that is measured.
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
            interval, for long axes; `violins`: in the first metric's row the distribution that the
            quantile columns `q0` … `q100` describe, averaged over trials, with quartiles; `heat`:
            the metric's mean over seeds as a colour, one scale for all panels; `scatter`: a point
            for each trial or row of the table, and how its two numbers are correlated in rank.
        y_base: Base of the metrics' logarithmic axis, which shares and differences are left out
            of, or of the vertical axis of `heat`; linear, and from 0 where nothing is negative,
            if absent.

    Raises:
        ConfigError: If the form cannot show what is asked for.
    """

    x: str
    panels: Columns
    lines: Columns
    metrics: tuple[str, ...]
    contrast: Contrast | None = None
    x_base: int | None = None
    rows: Columns | None = None
    table: str | None = None
    form: Form = "points"
    y_base: int | None = None

    def __post_init__(self) -> None:
        for base in (self.x_base, self.y_base):
            if base is not None and base < 2:
                raise ConfigError(f"the base of an axis must be at least 2, got {base}")
        if self.form in ("heat", "scatter") and self.contrast:
            raise ConfigError(f"a figure of the form {self.form!r} shows no contrast")
        if self.form == "heat" and len(self.metrics) != 1:
            raise ConfigError(f"a heat map shows one metric, got {', '.join(self.metrics)}")


@dataclass(frozen=True)
class Experiment:
    """One question of the paper and all that answers it.

    Attributes:
        name: The question's short name, as on the command line.
        question: One sentence.
        source: Where the paper asks it.
        scales: `demo`, `small`, `paper` → the specs of all trials, paired by seed.
        claims: What the paper says the answer is.
        figure: The figure's layout; of its columns the table of means is made, so those of a
            `scatter` but x must tell the trials of a seed apart.
        labels: Display names of columns and values (`token_accuracy` → "Token accuracy"), also of
            numbers (`600000` → "Twice as long") and of values that count together
            (`rare, frequent` → "Rare among Frequent"); those of further figures are their captions.
        more_figures: File name without its ending → the layout of a further figure.

    Raises:
        ConfigError: If a further figure's name is none for a file, or that of another file.
    """

    name: str
    question: str
    source: str
    scales: Mapping[str, Callable[[], tuple[RunSpec, ...]]]
    claims: tuple[Claim, ...]
    figure: FigureLayout
    labels: Mapping[str, str] = field(default_factory=dict)
    more_figures: Mapping[str, FigureLayout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stem in self.more_figures:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", stem):
                raise ConfigError(
                    f"{self.name}: a further figure's name consists of a-z, 0-9 and _, got {stem!r}"
                )
            if stem in REPORT_FILES:
                raise ConfigError(f"{self.name}: a report has another file called {stem!r}")


def find_experiment(name: str) -> Experiment:
    """Import an experiment by name: a built-in one, or another package's by its entry point.

    Raises:
        ConfigError: If there is none of that name, it cannot be imported, or what was registered
            is no experiment of that name.
    """
    if name in CATALOGUE:
        experiment: Experiment = import_module(CATALOGUE[name].module).EXPERIMENT
        return experiment
    point = registered().get(name)
    if point is None:
        known = experiment_names()
        hint = suggestion(name, known)
        raise ConfigError(f"no experiment {name!r}{hint} (known: {', '.join(known)})")
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{GROUP}: {name!r} cannot be imported: {error}") from error
    if not isinstance(found, Experiment):
        raise ConfigError(f"{GROUP}: {name!r} must be an Experiment, got {found!r}")
    if found.name != name:
        raise ConfigError(
            f"{GROUP}: {point.value} calls itself {found.name!r}, but is registered as {name!r}: "
            "make the names equal"
        )
    return found


def trials(
    experiment: Experiment, scale: str, overrides: Mapping[str, Any] | None = None
) -> tuple[RunSpec, ...]:
    """Give the specs of an experiment at a scale, with values overridden by dotted path.

    A value that only some of the specs have (the width of a code) is overridden in those. Specs
    that the overrides made equal are listed once.

    Raises:
        ConfigError: If there is no such scale, or an override fits no spec.
    """
    if scale not in experiment.scales:
        known = ", ".join(experiment.scales)
        raise ConfigError(f"{experiment.name} has no scale {scale!r} (known: {known})")
    specs = experiment.scales[scale]()
    if not overrides:
        return specs
    # A kind decides what else there is.
    kinds = {path: value for path, value in overrides.items() if is_kind(path)}
    specs = tuple(spec.override(kinds) for spec in specs)
    rest = {path: value for path, value in overrides.items() if path not in kinds}
    possible = {path for path in rest if any(spec.has(path) for spec in specs)}
    chosen = (
        {path: value for path, value in rest.items() if path not in possible or spec.has(path)}
        for spec in specs
    )
    return tuple(dict.fromkeys(spec.override(own) for spec, own in zip(specs, chosen, strict=True)))
