"""Claims as data: statement, place, and condition on the records.

A predicate names columns of flat records: the run's spec by dotted path (`task.vocab_size`,
`seed`) beside its measured metrics. `pernn.lab.reports.judge_all` decides it. Updates to a
level (`updates_to_0.9`) are compared by their log2, within the updates that all trials of the claim
have. Names of classes and fields are in the digests of registered claims: never rename one.

A new kind of claim takes a class here, a test in `TESTS` of `pernn.lab.reports.findings`, and its
words in docs/claims.py, which the type checker asks for.
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from pernn.errors import ConfigError

Where = Mapping[str, Any]
"""Column → value, or a tuple of allowed values; a record must match all of them.

`None` matches records that do not have the column.
"""

PLANNED: Literal["planned"] = "planned"
"""Required are all cells of the sweep's own grid, so one claim fits every scale."""

Cells = tuple[Any, ...] | Literal["planned"]
"""Values of a column that must all be there with enough seeds, or `PLANNED`.

With `PLANNED` they are the values that the sweep's list of trials has under `where`; of a column of
a table, the values that any finished trial's table has there.
"""


LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Training accuracies of which records say how many updates they took."""


def pace_column(level: float | str) -> str:
    """Return the column of the updates to a training accuracy."""
    return f"updates_to_{level}"


def is_pace(column: str) -> bool:
    """Return whether a column is of updates to a level."""
    return column.startswith(pace_column(""))


@dataclass(frozen=True)
class Contrast:
    """Two values of a column, whose difference is `treated − baseline`.

    Trials are paired by seed and by the columns that the comparison names, so the two may differ
    in further columns. In the rows of a table both may belong to one trial.

    Attributes:
        column: What tells them apart: a setting, or a column of the table.
        treated: Its value in the one: a word, a number, or `None` where the column is absent.
        baseline: Its value in the other.
        treated_where: What else the one must match, where a predicate's `where` cannot say it
            because it holds of one side only (`feedback` of an autoregressive network).
        baseline_where: What else the other must match.
    """

    column: str
    treated: str | int | float | None
    baseline: str | int | float | None
    treated_where: Where = field(default_factory=dict)
    baseline_where: Where = field(default_factory=dict)

    @property
    def columns(self) -> set[str]:
        """Columns that tell the two apart."""
        return {self.column, *self.treated_where, *self.baseline_where}


class _Kind:
    """What is known of a kind of claim beside its test."""

    # Whether its values are differences or slopes, and updates to a level their log2.
    compares: ClassVar[bool] = False
    # Of accuracies, what the factor is by which errors are divided; `None` if there is no such
    # factor.
    times: ClassVar[str | None] = None
    # Whether its values should lie near a bound, on either side.
    of_equality: ClassVar[bool] = False
    of_trials: ClassVar[bool] = False  # whether single trials decide, and not their mean
    fewest: ClassVar[int] = 1  # cells without which it cannot be tested

    @property
    def column(self) -> str:
        """The column whose values are its cells."""
        found: str = vars(self).get("along") or vars(self)["cells"]
        return found

    @property
    def contrasts(self) -> dict[str, Contrast]:
        """The contrasts that it has, by field."""
        own = vars(self)
        return {name: own[name] for name in ("contrast", "between") if own.get(name)}


@dataclass(frozen=True)
class _OfMetric(_Kind):
    metric: str
    where: Where


@dataclass(frozen=True)
class _Bounded(_OfMetric):
    cells: str
    required: Cells
    threshold: float
    threshold_origin: str


class AtLeast(_Bounded):
    """In every cell, the mean over seeds reaches a threshold.

    Supported if every cell is shown to reach it, contradicted if some cell is shown to fail.

    Attributes:
        metric: Column that is compared.
        where: Records that take part.
        cells: Column whose values make the cells, each of which must reach the threshold.
        required: Cells that must all be there for the claim to have been run.
        threshold: In the metric's unit.
        threshold_origin: Whose number it is, in one phrase: the text's, or ours and why.
    """


class AtMost(_Bounded):
    """Mean over seeds at or below a threshold in every cell.

    Else it is as `AtLeast`.
    """


@dataclass(frozen=True)
class Differs(_OfMetric):
    """Sign of the paired difference, averaged over cells within a seed.

    Each cell is shown beside the average, and the verdict says if cells disagree in sign.

    Attributes:
        sign: +1 if the treated condition should measure more, −1 if less.
        cells: Column over whose values the difference is averaged within a seed.
        required: Cells that must all be there.
        margin: What `sign · difference` must exceed, in the metric's unit. With −1 and a negative
            margin the claim is that there is no gain to speak of, which a loss fulfils too.
        margin_origin: Whose number the margin is, in one phrase; needed unless it is 0.
    """

    compares, times = True, ""

    contrast: Contrast
    cells: str
    required: Cells = PLANNED
    sign: Literal[1, -1] = 1
    margin: float = 0.0
    margin_origin: str = ""


@dataclass(frozen=True)
class Equivalent(_OfMetric):
    """In every cell, the paired difference lies within ± a margin ("ties", "marginal").

    Two one-sided tests per cell; no average is taken, in which opposite signs could cancel.
    Contradicted if some cell is shown to lie outside. If a loss of any size would fulfil the
    statement, `Differs` with sign −1 and a negative margin is meant instead.

    Attributes:
        margin: Largest difference that still counts as none, in the metric's unit.
        margin_origin: Whose number it is, in one phrase.
        between: If given, it is two differences that are alike, as `DiffersMore` compares them.
    """

    compares = of_equality = True

    contrast: Contrast
    cells: str
    required: Cells
    margin: float
    margin_origin: str
    between: Contrast | None = None


@dataclass(frozen=True)
class DiffersMore(_OfMetric):
    """Larger contrast on one side of `between` than on the other.

    Per seed and cell it is (treated − baseline) where `between` is treated, less (treated −
    baseline) where it is baseline; averaged over the cells within a seed as by `Differs`. The four
    trials share seed and cell only: other settings may differ between the sides, and what must
    hold on one side alone stands in `treated_where` and `baseline_where` of either contrast.

    Attributes:
        contrast: The difference of interest, for example encoding against none.
        between: Where it should be larger (treated), and than where (baseline).
        sign: +1 if it should be larger, −1 if smaller.
    """

    compares, times = True, " times as much"

    contrast: Contrast
    between: Contrast
    cells: str
    required: Cells = PLANNED
    sign: Literal[1, -1] = 1
    margin: float = 0.0
    margin_origin: str = ""


@dataclass(frozen=True)
class Grows(_OfMetric):
    """Sign of a metric's least-squares slope per doubling of a column.

    At least two distinct values of `along` are needed, else the claim was not run.

    Attributes:
        contrast: If given, it is this paired difference that grows, not the metric itself.
        along: Column with positive numbers.
        required: Its values that must all be there.
        sign: +1 if it should grow, −1 if it should fall.
    """

    compares, times, fewest = True, " times as much per doubling", 2

    contrast: Contrast | None
    along: str
    required: Cells = PLANNED
    sign: Literal[1, -1] = 1


@dataclass(frozen=True)
class LimitNear(_OfMetric):
    """Limit of `along` for a threshold, near a number.

    The limit is the largest value up to which the threshold always holds.

    Near means within a factor of two either way; per seed, 0 if already the smallest value fails.

    Attributes:
        required: Values of `along` that must all be there for the claim to have been run.
        threshold: In the metric's unit.
        near: Where the limit should lie, in the unit of `along`.
        threshold_origin: Whose number the threshold is, in one phrase.
    """

    of_equality, fewest = True, 2

    along: str
    required: Cells
    threshold: float
    near: float
    threshold_origin: str


@dataclass(frozen=True)
class EveryTrial(_OfMetric):
    """Every trial at one of a few values: perfect or at chance.

    This is no statement about a mean, so no interval decides it. One counterexample refutes a
    statement about all trials, provided that it is none by measurement error: a trial further than
    twice the tolerance from every value contradicts. If all lie within the tolerance the claim is
    supported as far as it was tried; the verdict shows how large a share of violating trials that
    leaves possible. Anything between is inconclusive.

    Attributes:
        values: Allowed values, in the metric's unit.
        tolerance: How far from one of them a trial may lie; well above the error of measuring one
            trial on its test set.
        tolerance_origin: Whose number it is, in one phrase.
    """

    of_trials = True

    cells: str
    required: Cells
    values: tuple[float, ...]
    tolerance: float
    tolerance_origin: str


@dataclass(frozen=True)
class Sooner(_Kind):
    """The treated condition's training accuracy reaches a level in fewer updates.

    Per pair of trials it is log2 of the factor, the baseline's updates over the treated's, averaged
    over the cells within a seed as by `Differs`. A trial that never reaches the level counts as if
    it did at the last update that all trials of the claim have. A crossing lies between two of a
    curve's at most 60 points.

    Attributes:
        level: Share of right tokens in fresh batches, one of `LEVELS`.
        sign: +1 if the treated condition should be sooner, −1 if later.
        factor: What the factor must exceed; with −1, what its inverse must.
        factor_origin: Whose number it is, in one phrase; needed unless it is 1.
    """

    level: float
    where: Where
    contrast: Contrast
    cells: str
    required: Cells = PLANNED
    sign: Literal[1, -1] = 1
    factor: float = 1.0
    factor_origin: str = ""

    @property
    def metric(self) -> str:
        """The column that is compared."""
        return pace_column(self.level)


Predicate = (
    AtLeast | AtMost | Differs | Equivalent | DiffersMore | Grows | LimitNear | EveryTrial | Sooner
)


@dataclass(frozen=True)
class Choice:
    """Choice of a setting's value: each condition's best, or one.

    Conditions are told apart by all their settings but the seed and this one.

    Attributes:
        column: The setting, for example `training.learning_rate`.
        metric: Column whose mean over the choosing seeds is highest at the best value.
        seeds: Seeds whose trials choose, and take part in no comparison.
        value: If given, this value stands for all conditions, and nothing is chosen.
    """

    column: str
    metric: str
    seeds: tuple[int, ...]
    value: float | None = None


@dataclass(frozen=True)
class Place:
    """Place in a text, printed as "v3, Fig. 2".

    Attributes:
        version: arXiv version of the study, `v1` … `v5`; of another text, its author and year.
        where: Section, figure or table.
    """

    version: str
    where: str

    def __str__(self) -> str:
        return f"{self.version}, {self.where}"


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that records can support or contradict.

    Attributes:
        name: Short, unique in the experiment.
        statement: The claim in our words.
        source: Where the text says so, in one place or in several.
        predicate: What must hold of the records.
        table: If given, each trial stands for the rows of this table of its, whose columns the
            predicate may name too; trials without that table stand for themselves.
        paper_value: What the paper itself measured, where it prints a number: shown beside ours.
        choice: If given, only trials at the chosen value of a setting take part.
        primary: Whether the experiment is registered for it: under the rule "2026-12" primary
            claims are corrected for their own number only.
    """

    name: str
    statement: str
    source: Place | tuple[Place, ...]
    predicate: Predicate
    table: str | None = None
    paper_value: float | str | None = None
    choice: Choice | None = None
    primary: bool = False

    @property
    def columns(self) -> set[str]:
        """Columns that select its trials and tell them apart."""
        about, choice = self.predicate, {self.choice.column} if self.choice else set()
        told_apart = (one.columns for one in about.contrasts.values())
        return choice.union({about.column}, about.where, *told_apart)

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place in which the text says so."""
        return self.source if isinstance(self.source, tuple) else (self.source,)

    @property
    def cited(self) -> str:
        """The places in one line, such as "v3, Fig. 2"."""
        return "; ".join(map(str, self.places))


def with_primary(claims: Iterable[Claim], *names: str) -> tuple[Claim, ...]:
    """Return claims of which some are named as primary.

    A name may be a pattern such as `noise_*`.
    """
    claims = tuple(claims)
    chosen = {name: fnmatch.filter((one.name for one in claims), name) for name in names}
    if unknown := [name for name, found in chosen.items() if not found]:
        raise ConfigError(f"primary claims that are none of the claims: {', '.join(unknown)}")
    primary = {one for found in chosen.values() for one in found}
    return tuple(replace(one, primary=one.name in primary) for one in claims)


def qualified(claim: Claim, suffix: str, words: str, **changes: Any) -> Claim:
    """Return a claim of fewer trials, told apart by name and statement."""
    statement = f"{claim.statement.rstrip('.')}{words}."
    return replace(claim, name=f"{claim.name}{suffix}", statement=statement, **changes)
