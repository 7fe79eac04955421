"""Sources of a run or an experiment, as BibTeX."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from pernn.errors import ConfigError
from pernn.lab.config import Config, Part, own_parts_off
from pernn.lab.experiments import experiment_names
from pernn.lab.runs import RunSpec
from pernn.lab.sweeps import plan_sweep

STATISTICS = ("student1908", "efron1979", "holm1979", "shaffer1980")
"""Sources of what every verdict has: its intervals, and the correction for many claims."""


@own_parts_off()
def cite(name: str, scale: str = "demo") -> dict[str, tuple[str, ...]]:
    """Return the keys to cite for each part, beginning with pernn.

    `name` is a run's directory, or an experiment, whose statistics count too.
    """
    path = Path(name) / "spec.json"
    found = {"pernn": ("pernn", "morita2024")}
    if path.is_file():
        return found | dict(_parts([RunSpec.read(path)]))
    if name not in experiment_names():
        raise ConfigError(
            f"{name!r} is neither a run's directory (with a spec.json) nor an experiment (see "
            "`pernn list`)"
        )
    specs = plan_sweep(name, scale, {}).specs.values()
    return found | dict(_parts(specs)) | {"statistics": STATISTICS}


def _parts(configs: Iterable[Config]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Go through all parts, those inside of parts included."""
    for config in configs:
        if isinstance(config, Part):
            yield config.kind, config.references
        values = (getattr(config, name) for name in type(config).model_fields)
        yield from _parts(value for value in values if isinstance(value, Config))


@cache
def entries() -> dict[str, str]:
    """Return the BibTeX entry of every key."""
    text = files("pernn.lab").joinpath("references.bib").read_text(encoding="utf-8")
    blocks = re.split(r"\n\n(?=@)", text.strip())
    return {block.partition("{")[2].partition(",")[0]: block for block in blocks}
