"""The list of experiments: names and questions, without importing any of them."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

GROUP = "pernn.experiments"
"""Entry point group in which other packages register an `Experiment` object."""


@dataclass(frozen=True)
class Entry:
    """Where an experiment is and what it asks.

    Attributes:
        module: Module whose `EXPERIMENT` it is.
        question: One sentence.
        source: Where the paper asks it: text (000 … 003) and figure or section.
    """

    module: str
    question: str
    source: str


CATALOGUE = {
    "vocabulary_size": Entry(
        "pernn.experiments.vocabulary_size",
        "How large a vocabulary can a recurrent network reverse, with and without a code?",
        "000 Fig. 2, 001 Fig. 2",
    ),
    "input_length": Entry(
        "pernn.experiments.input_length",
        "Does the code help with longer inputs, as it does with larger vocabularies?",
        "001 Fig. 3",
    ),
}


def registered() -> dict[str, EntryPoint]:
    """Find the experiments of other packages; none takes the place of a built-in one."""
    points = entry_points(group=GROUP)
    return {point.name: point for point in points if point.name not in CATALOGUE}


def experiment_names() -> list[str]:
    """List every experiment that can be named here, those of other packages included."""
    return [*CATALOGUE, *registered()]
