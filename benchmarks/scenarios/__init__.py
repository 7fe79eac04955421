"""Scenarios of damage and hostility, each a function of a directory that gives its counts."""

from collections.abc import Callable

from .damage import damaged_files, damaged_results, foreign_versions, full_disk, read_only

SCENARIOS: dict[str, Callable[..., dict[str, int | float | str]]] = {
    "damaged_files": damaged_files,
    "damaged_results": damaged_results,
    "foreign_versions": foreign_versions,
    "full_disk": full_disk,
    "read_only": read_only,
}
