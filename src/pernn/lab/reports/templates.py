"""Templates and scripts that lie beside these files."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def resource(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return files("pernn.lab.reports").joinpath(name).read_text(encoding="utf-8")


def fill_template(
    name: str, filters: Mapping[str, Callable[[Any], str]] | None = None, /, **values: Any
) -> str:
    """Return a page made from a template that lies beside this file; every value is escaped.

    Args:
        name: The template's file.
        filters: Functions of text that it calls, by name.
        values: What it asks for beside `style`.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= filters or {}
    style = Markup(resource("page.css"))  # noqa: S704
    return environment.from_string(resource(name)).render(style=style, **values)
