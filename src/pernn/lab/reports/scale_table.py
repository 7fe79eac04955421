"""What an experiment trains at each of its scales, as a table for its page."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pernn.lab.config import flatten
from pernn.lab.experiments import find_experiment

from .escaping import escape_markdown, markdown_table
from .labels import Labels

COMMON = (
    "core.kind",
    "core.hidden_size",
    "training.iterations",
    "training.batch_size",
    "training.learning_rate",
)
"""Settings that every table has."""

PARTS = ("task.", "analysis.")
"""Of their settings it has those that differ."""

MOST = 8
"""So many values are listed one by one."""

Trial = Mapping[str, Any]


@cache
def scale_table(name: str) -> str:
    """Return a column per scale of an experiment and a row per setting, as Markdown.

    Values that differ by core are led by the core's name.
    """
    experiment = find_experiment(name)
    label = Labels(experiment.labels)
    scales = [[flatten(spec.dump()) for spec in make()] for make in experiment.scales.values()]
    trials = [trial for scale in scales for trial in scale]
    rows = []
    for path in dict.fromkeys(path for trial in trials for path in trial):
        values = {str(trial[path]) for trial in trials if path in trial}
        if path in COMMON or (path.startswith(PARTS) and len(values) > 1):
            rows.append([label(path), *(_by_core(scale, path, label) for scale in scales)])
    rows.append(["Seeds", *(str(len({trial["seed"] for trial in scale})) for scale in scales)])
    rows.append(["Trials", *(f"{len(scale):,}" for scale in scales)])
    return markdown_table(
        ["", *experiment.scales], [[escape_markdown(cell) for cell in row] for row in rows]
    )


def _by_core(scale: Sequence[Trial], path: str, label: Labels) -> str:
    cores = dict.fromkeys(trial["core.kind"] for trial in scale)
    shown = {
        core: _listed(
            (trial[path] for trial in scale if trial["core.kind"] == core and path in trial), label
        )
        for core in cores
    }
    if path == "core.kind" or len(set(shown.values())) == 1:
        return _listed((trial[path] for trial in scale if path in trial), label)
    return "; ".join(f"{label(core)} {values}" for core, values in shown.items())


def _listed(values: Iterable[Any], label: Labels) -> str:
    shown = [label(value) for value in dict.fromkeys(map(_hashable, values)) if value is not None]
    return ", ".join(shown if len(shown) <= MOST else [shown[0], f"{shown[1]} … {shown[-1]}"])


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
