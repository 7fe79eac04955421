"""Scenarios of damage and hostility, each a function of a directory that gives its counts."""

from collections.abc import Callable

from .damage import damaged_files, damaged_results, foreign_versions, full_disk, read_only
from .fuzz import fuzz
from .hostile import hostile_names, hostile_specs, links, pickles

SCENARIOS: dict[str, Callable[..., dict[str, int | float | str]]] = {
    "damaged_files": damaged_files,
    "damaged_results": damaged_results,
    "foreign_versions": foreign_versions,
    "full_disk": full_disk,
    "fuzz": fuzz,
    "hostile_names": hostile_names,
    "hostile_specs": hostile_specs,
    "links": links,
    "pickles": pickles,
    "read_only": read_only,
}
