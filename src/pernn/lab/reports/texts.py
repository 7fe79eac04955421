"""Names of columns and values, texts made safe, and templates."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from pernn.lab.config import grouped
from pernn.lab.experiments import LABELS, Columns, Experiment, FigureLayout, names_of

from .records import Record, Records, is_censored, sort_key

FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""Beginnings of a text that a spreadsheet runs as a formula, some of them after trimming it."""


def csv_cell(value: Any) -> Any:
    """Return a value for CSV, with an apostrophe before possible formulas."""
    if not isinstance(value, str):
        return value
    # The csv module does not quote a carriage return on its own.
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{value}" if value.startswith(FORMULA) else value


def clean(text: str) -> str:
    """Replace control, format and line-break characters by spaces."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def shorten(text: str, length: int) -> str:
    """Return a text on one line, cut at a length."""
    text = clean(text)
    return text if len(text) <= length else f"{text[:length]}…"


def escape_markdown(text: str) -> str:
    """Make text safe in a Markdown cell: no line break, no markup."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = "".join(f"\\{sign}" if sign in "\\`*[]|~" else sign for sign in text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\_", text)  # within a word it is no markup


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, escape: bool = False
) -> str:
    """Return a Markdown table of cells in Markdown, or to escape."""
    lines = [head, *rows]
    if escape:
        lines = [[escape_markdown(cell) for cell in line] for line in lines]
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def resource(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return files("pernn.lab.reports").joinpath(name).read_text(encoding="utf-8")


def fill_template(
    name: str, filters: Mapping[str, Callable[[Any], str]] | None = None, /, **values: Any
) -> str:
    """Return a page made from a template, every value of HTML escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"markdown": escape_markdown, **(filters or {})}
    style = Markup(resource("page.css"))  # noqa: S704
    return environment.from_string(resource(name)).render(style=style, **values)


SETTINGS = (
    ("training.precision", "precision {}"),
    ("task.vocab_size", "K = {}"),
    ("task.length", "L = {}"),
    ("task.rare_share", "r = {}"),
    ("core.hidden_size", "hidden size {}"),
    ("training.learning_rate", "learning rate {}"),
    ("training.iterations", "{} updates"),
)
"""Columns of the footer."""

LONGEST = 100
"""Characters of a value, which a figure has to find room for."""

FEW = 4
"""So many values are listed one by one."""

SEPARATOR = " · "
PLACE = re.compile(r"[A-Za-z_][\w.]*:([A-Za-z_]\w*?)(?:Config)?")
"""The kind of a part of one's own, `module:ClassConfig`, which is called by its class."""


def value_of(record: Record, columns: Columns | None) -> Any:
    """Return a record's value of a column, or all of several."""
    if columns is None or isinstance(columns, str):
        return record.get(columns) if columns else None
    return tuple(record.get(column) for column in columns)


def _key(value: Any) -> str:
    """Return what a value is called among names; values that count together have one name."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class Labels:
    """Display names of columns and values, an experiment's own first."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = {**names, **LABELS, **names}
        self.places = {name: place for place, name in enumerate(self.names)}

    def __call__(self, value: Any) -> str:
        """Return a display name; numbers have thousands separated, absent values are a dash."""
        if (key := _key(value)) in self.names:
            return clean(self.names[key])
        if isinstance(value, tuple):
            return clean(", ".join(map(self, value)))
        if isinstance(value, str) and (place := PLACE.fullmatch(value)):
            return clean(place[1])
        if value is None:
            return "–"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return shorten(str(value), LONGEST)
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"

    def condition(self, columns: Columns, value: Any, separator: str = ", ") -> str:
        """Name a condition so that it can be understood without its column.

        Words speak for themselves; other values are led by the name of their column unless they
        have a name of their own. So are all values that count together, but for named kinds, such
        as a core, and conditions that are told in words.
        """
        if isinstance(value, str) or _key(value) in self.names:
            return self(value)
        if isinstance(value, tuple):
            pairs = list(zip(names_of(columns), value, strict=True))
            # A setting that some conditions do not have says nothing of these.
            told = [(column, part) for column, part in pairs if part is not None] or pairs
            return separator.join(self._part(column, part) for column, part in told)
        return f"{self(columns)}: {self(value)}"

    def _part(self, column: str, value: Any) -> str:
        named = column.endswith(".kind") and value in self.names
        plain = named or (column == "condition" and isinstance(value, str))
        return self(value) if plain else f"{self(column)}: {self(value)}"

    def order(self, values: Iterable[Any]) -> list[Any]:
        """Return distinct values, named ones first, then by size or alphabet."""
        return sorted(set(values), key=self._place)

    def _place(self, value: Any) -> list[Any]:
        is_whole = not isinstance(value, tuple) or _key(value) in self.places
        last, parts = len(self.places), (value,) if is_whole else value
        return [(self.places.get(_key(part), last), sort_key(part)) for part in parts]


def sizes(counts: Iterable[int]) -> str:
    """Return how many values there are of each point."""
    found = sorted({*counts}) or [0]
    return f"n = {found[0]}–{found[-1]}" if found[2:] else f"n = {' or '.join(map(str, found))}"


def preset_of(records: Records, label: Labels) -> str:
    """Return the trials' preset in words, or nothing."""
    found = sorted({str(record["preset"]) for record in records if "preset" in record})
    if len(found) < 2:
        return f"preset {label(found[0])}" if found else ""
    return f"mixed presets: {', '.join(label(value) for value in found)}"


def footer(experiment: Experiment, records: Records, scale: str = "") -> str:
    """Return the trials' settings and the figure's signs in one line."""
    return SEPARATOR.join(footer_items(experiment, records, scale))


def footer_items(experiment: Experiment, records: Records, scale: str = "") -> list[str]:
    """Return the parts of the footer."""
    label, layout = Labels(experiment.labels), experiment.figure
    shown = {name for some in (layout.x, layout.panels, layout.rows) for name in names_of(some)}
    words = [f"scale {shorten(scale, LONGEST)}"] if scale else []
    words += [preset] if (preset := preset_of(records, label)) else []
    for column, text in SETTINGS:
        values = sorted({one[column] for one in records if one.get(column)}, key=sort_key)
        if values and column not in shown:
            few = values if len(values) <= FEW else [values[0], "…", values[-1]]
            listed = (", " if len(values) <= FEW else " ").join(map(label, few))
            words.append(text.format(listed))
    # The points of a scatter plot are what is measured, not places with seeds each.
    names = () if layout.form == "scatter" else layout.shown
    places = grouped((value_of(one, names), one["seed"]) for one in records)
    counts = [len({*seeds} - experiment.choosing or {*seeds}) for seeds in places.values()]
    words.append(f"{sizes(counts)} seed{'s' * (max(counts, default=0) != 1)}")
    signs = _signs(layout)
    if any(one["seed"] in experiment.choosing for one in records):
        choosing = ", ".join(map(str, sorted(experiment.choosing)))
        signs.append(f"seeds {choosing} choose, and are shown only where there are no others")
    if layout.form == "points" and any(
        is_censored(one, metric) for one in records for metric in layout.metrics
    ):
        signs.append("hollow △, ≥ in tables: some trials never arrive, so at least that")
    return words + signs


def _signs(layout: FigureLayout) -> list[str]:
    """Explain the signs of a form."""
    if layout.form == "heat":
        return ["colours: means over seeds", "hatched: no trial"]
    if layout.form == "factors":
        return ["error bars: 95 % by Student’s t over seeds", "hollow: some trials never arrive"]
    if layout.form == "scatter":
        rows = " × rows of their tables" if layout.table else ""
        ranked = "ρ: Spearman’s rank correlation, 95 % percentile bootstrap over seeds"
        return [f"points: trials{rows}", ranked]
    bars, trials = "error bars", "small dots: trials, beside their mean"
    if layout.form == "bands":
        bars, trials = "bands or error bars", "thin lines or dots: trials"
    return [f"{bars}: 95 % by Student's t over seeds", trials]
