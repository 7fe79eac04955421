"""Trials of no sweep, as of `pernn train`, as an experiment."""

from collections.abc import Mapping

from pernn.lab.runs import RunSpec

from .comparisons import LABELS
from .experiment import Experiment, FigureLayout

SINGLE = "train"
"""What such trials are called where a sweep is named."""


def single_trials(specs: Mapping[str, RunSpec]) -> Experiment:
    """Return an experiment without claims, each trial a point.

    Args:
        specs: Run → its spec.
    """
    in_ids = not any(
        kind in spec.task.kind
        for spec in specs.values()
        for kind in ("infinite_vocabulary", "language_modelling")
    )
    return Experiment(
        name=SINGLE,
        question="How did the trials that belong to no sweep end?",
        source="pernn train",
        scales={"": lambda: tuple(specs.values())},
        claims=(),
        figure=FigureLayout(
            x="seed",
            panels="task.kind",
            lines="run",
            metrics=("token_accuracy", "loss") if in_ids else ("loss",),
        ),
        labels={**LABELS, **{run: spec.label for run, spec in specs.items()}},
    )
