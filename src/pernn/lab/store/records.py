"""Checks of the values of results and published trials."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

Table = dict[str, list[str | int | float | None]]


def _equally_long(table: Table) -> Table:
    if len({len(cells) for cells in table.values()}) > 1:
        raise ValueError("columns must be equally long")
    return table


EvenTable = Annotated[Table, AfterValidator(_equally_long)]


class Diverged(BaseModel):
    """After which update a run diverged, and why."""

    model_config = ConfigDict(strict=True, extra="ignore")

    update: int
    reason: str


class Result(BaseModel):
    """The values that records are made of, among others."""

    model_config = ConfigDict(strict=True, extra="ignore")

    metrics: dict[str, float]
    tables: dict[str, EvenTable] = {}
    num_parameters: int | None = None
    weights_sha256: str | None = None
    diverged: Diverged | None = None


class TrialValues(BaseModel):
    """The values of a published trial."""

    model_config = ConfigDict(strict=True, extra="forbid")

    spec: dict[str, Any]
    result: Result
    environment: dict[str, Any]
    curves: EvenTable
    core_seconds: EvenTable


def check_values(model: type[BaseModel], values: Mapping[str, Any]) -> None:
    """Check the types of values as they were read.

    Raises:
        ValueError: If one is wrong; says which key, what was expected and what it holds.
    """
    try:
        model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        found: Any = values
        key = ""
        # The end of the place can name an alternative of the type, which is no key.
        with suppress(KeyError, IndexError, TypeError):
            for part in first["loc"]:
                found, key = found[part], f"{key}.{part}"
        raise ValueError(f"{key[1:]}: {first['msg']}, got {found!r:.40}") from None
