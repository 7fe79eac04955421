"""Best values of a setting, chosen by validation seeds.

Which trials are run follows from those that are finished: several values with validation seeds,
further ones where the best lies at an end, then the other seeds at the chosen values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pernn.errors import ConfigError
from pernn.lab.config import flatten, grouped
from pernn.lab.runs import RunSpec

from .expansion import ADDED
from .experiment import Columns, Experiment, FigureLayout, names_of
from .grids import RATE, VALIDATION_SEEDS
from .predicates import Choice, Claim, qualified

TUNED = "~"
"""Begins the path of a setting that is tuned."""
TUNED_CLAIM = "_tuned"
"""Ends the name of a claim about conditions at their own best values."""
MAX_EXTENSIONS = 4
"""Values that are tried beyond the grid."""
DIGITS = 4
"""Significant digits of a value of the grid."""

Score = Callable[[RunSpec], float | None]


@dataclass(frozen=True)
class Tuning:
    """A tuned setting and its trials."""

    column: str
    values: tuple[float, ...]  # those that are tried first, ascending
    metric: str  # its mean over the validation seeds is highest at the best value
    base: tuple[RunSpec, ...]  # trials with the asked seeds, whatever their value of the setting

    def trials(self, score: Score) -> tuple[list[RunSpec], dict[RunSpec, float]]:
        """Return the trials that are needed, and the chosen values.

        `score` returns the metric of a trial, `None` if it is not finished. The trials are in an
        order to run them; each condition that has a value is named by a trial of it.
        """
        tried: list[RunSpec] = []
        judged: list[RunSpec] = []
        chosen: dict[RunSpec, float] = {}
        for first, own in self._conditions().items():
            made, best = self._try(first, score)
            tried += made
            if best is not None:
                chosen[own[0]] = best
                judged += [one.override({self.column: best}) for one in own]
        tuned = {*self._tuned()}
        return [*tried, *judged, *(one for one in self.base if one not in tuned)], chosen

    def num_to_come(self, chosen: int) -> int:
        """Return the least number of trials still to be judged."""
        num_conditions = len(self._conditions())
        return len(self._tuned()) * (num_conditions - chosen) // num_conditions

    def _conditions(self) -> dict[RunSpec, list[RunSpec]]:
        """Return the trials of each condition, by the first one that helps to choose."""
        start = {"seed": VALIDATION_SEEDS[0], self.column: self.values[0]}
        return grouped((one.override(start), one) for one in self._tuned())

    def _tuned(self) -> list[RunSpec]:
        """Return the trials that have the setting: others stay as they are."""
        # Where none has it the first one says why not.
        return [one for one in self.base if one.has(self.column)] or [*self.base]

    def _try(self, first: RunSpec, score: Score) -> tuple[list[RunSpec], float | None]:
        """Return the validation trials of a condition, and its best value once that is known."""
        means: dict[float, float] = {}
        made: list[RunSpec] = []
        waiting = list(self.values)
        while waiting:
            for value in waiting:
                own = [first.override({"seed": s, self.column: value}) for s in VALIDATION_SEEDS]
                made += own
                scores = [found for found in map(score, own) if found is not None]
                means[value] = math.fsum(scores) if len(scores) == len(own) else math.nan
            if any(map(math.isnan, means.values())):
                return made, None
            # Of equal ones the smallest.
            best = max(sorted(means), key=means.__getitem__)
            waiting = self._beyond(best, sorted(means), first)
        return made, best

    def _beyond(self, best: float, tried: Sequence[float], first: RunSpec) -> list[float]:
        """Return the next value beyond an end, if the best lies there and one may be tried."""
        ends = {tried[0]: tried[1], tried[-1]: tried[-2]}
        if best not in ends or len(tried) == len(self.values) + MAX_EXTENSIONS:
            return []
        value = _rounded(best**2 / ends[best])
        try:
            first.override({self.column: value})
        except ConfigError:
            return []
        return [value]


def read_grid(text: str) -> tuple[float, ...]:
    """Read LOW:HIGH:N as N values, each a fixed factor above the last."""
    try:
        first, last, number = text.split(":")
        low, high, count = float(first), float(last), int(number)
    except ValueError:
        low = high = count = 0
    found: tuple[float, ...] = ()
    if 0 < low < high < math.inf and 1 < count <= 10**DIGITS:
        found = tuple(_rounded(low * (high / low) ** (n / (count - 1))) for n in range(count))
    if not found or len({*found}) < count:
        raise ConfigError(
            f"--tune is invalid: expected LOW:HIGH:N such as 0.001:0.014:9, N values that differ "
            f"in their first {DIGITS} digits, got {text[:40]!r}"
        )
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def tune(
    experiment: Experiment, base: Sequence[RunSpec], changes: Mapping[str, Any]
) -> tuple[Experiment, Tuning | None]:
    """Return an experiment judged at the best values, and the tuning.

    Its first metric must be an accuracy, and its claims may choose nothing yet. Of the changes
    `~path` → LOW:HIGH:N tunes a setting.
    """
    found = {path: value for path, value in changes.items() if path.startswith(TUNED)}
    if not found:
        return experiment, None
    if len(found) > 1:
        raise ConfigError("--tune takes one setting")
    ((path, text),) = found.items()
    column, metric = path.removeprefix(TUNED), experiment.figure.metrics[0]
    if {column, f"{ADDED}{column}"} & changes.keys():
        raise ConfigError(
            f"--tune {column} is incompatible with --set or --add of the same: give one of them"
        )
    if "accuracy" not in metric:
        raise ConfigError(f"{experiment.name} cannot be tuned: its first metric is {metric}")
    if any(claim.choice for claim in experiment.claims):
        raise ConfigError(f"{experiment.name} cannot be tuned: its claims choose a setting already")
    if both := {spec.seed for spec in base}.intersection(VALIDATION_SEEDS):
        raise ConfigError(f"seed is invalid: {min(both)} chooses settings and is not judged")
    layout = experiment.figure
    # The former axis tells panels apart, where trials differ in it.
    planned = [flatten(spec.dump()) for spec in base]
    axis = [one for one in names_of(layout.x) if len({str(spec.get(one)) for spec in planned}) > 1]
    told = (*names_of(layout.panels), *(one for one in axis if one != column))
    panels = tuple(dict.fromkeys(told))
    made = replace(
        experiment,
        claims=tuple(judged_at_best(one, column, metric) for one in experiment.claims),
        figure=over_values(layout, column, panels, layout.rows),
        more_figures={},
    )
    if not all(spec.has(column) for spec in base):  # a place on the axis for what lacks it
        made = replace(made, figure=replace(made.figure, x_base=None, contrast=None))
    return made, Tuning(column, read_grid(str(text)), metric, tuple(base))


def judged_at_best(claim: Claim, column: str, metric: str) -> Claim:
    """Return a claim about conditions at their own best values."""
    name = "peak rate" if column == RATE else column
    choice = Choice(column, metric, VALIDATION_SEEDS)
    words = f", each network at its own best {name} (our check)"
    return qualified(claim, TUNED_CLAIM, words, choice=choice)


def over_values(
    layout: FigureLayout, column: str, panels: Columns, rows: Columns | None = None
) -> FigureLayout:
    """Return a layout of the first metric over a setting's values."""
    return FigureLayout(
        x=column,
        panels=panels,
        lines=layout.lines,
        rows=rows,
        metrics=layout.metrics[:1],
        contrast=layout.contrast,
        x_base=10,
    )
