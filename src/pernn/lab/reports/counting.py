"""Each claim of the paper counted once, by the sweep that was planned for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pernn.lab.experiments import find_experiment

from .claims import Verdict
from .registered import judge_experiment
from .report import Report
from .rules import Outcome
from .statistics import ROUNDING

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
    """Return the verdict of a sweep that stands apart, or that it does not ask for one."""
    return NOT_ASKED if sweep.is_finished and verdict.verdict == "not run" else verdict.verdict


def _numbers(verdict: Verdict) -> tuple[float, ...]:
    """Return what two verdicts on the same numbers have in common, whatever the sign asked for."""
    interval = verdict.interval
    if interval is None or not interval.high - interval.low > ROUNDING:
        return ()
    values = (abs(interval.estimate), interval.high - interval.low, verdict.num_seeds)
    return tuple(float(f"{value:.9g}") for value in values)
