"""A gallery for the site: a picture of each task, and the sweeps' figures that it has.

Tasks are drawn from their first training sequence, figures are those of `docs/evidence`.
"""

import colorsys
import inspect
from html import escape
from pathlib import Path
from typing import Any

from pernn.lab.experiments import CATALOGUE
from pernn.lab.tasks import TASKS, draw_pictures

SMALL = {
    "length": 6,
    "min_length": 3,
    "vocab_size": 16,
    "num_held_out": 16,
    "hold_time": 4,
    "num_known": 12,
}
"""Settings of the drawn sequences, where a task has them."""
CELL, ROW, LABEL = 38, 34, 60
"""Pixels: the width of a step, the height of a row, the width of the rows' names."""


def _cell(place: int, row: int, word: Any, num_ids: int) -> str:
    """Draw an id on a colour of its own; what is no id stands on grey, nothing on nothing."""
    if word is None:
        return ""
    shade = "#e4e4e4"
    if isinstance(word, int):
        parts = colorsys.hls_to_rgb(word / num_ids, 0.8, 0.7)
        shade = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
    x, y, text = LABEL + place * CELL, 6 + row * ROW, escape(str(word))
    size = 13 if len(text) < 4 else 9
    return (
        f'<rect x="{x}" y="{y}" width="{CELL - 4}" height="{ROW - 6}" rx="5" fill="{shade}"/>'
        f'<text x="{x + CELL / 2 - 2}" y="{y + 19}" text-anchor="middle" font-size="{size}">'
        f"{text}</text>"
    )


def drawn_kinds() -> list[str]:
    """List the kinds of tasks whose tokens are drawn; texts have none of their own."""
    package = "pernn.lab.tasks."
    return [kind for kind in TASKS.names() if TASKS.find(kind).__module__.startswith(package)]


def small(kind: str) -> Any:
    """Return a task's config at the settings that are drawn."""
    config = TASKS.validate({"kind": kind})
    return config.override({name: value for name, value in SMALL.items() if config.has(name)})


def draw_task(kind: str) -> tuple[str, str]:
    """Return what a task asks for, and a drawing of one of its sequences as SVG."""
    config = small(kind)
    (picture,) = draw_pictures(config.build())
    ids = [word for word in (*picture.inputs, *picture.targets) if isinstance(word, int)]
    cells = [
        _cell(place, row, word, max(ids, default=0) + 1)
        for row, words in enumerate((picture.inputs, picture.targets))
        for place, word in enumerate(words)
    ]
    width, height = LABEL + CELL * len(picture.inputs) + 6, 2 * ROW + 6
    names = (
        f'<text x="8" y="{25 + i * ROW}">{n}</text>' for i, n in enumerate(("input", "target"))
    )
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="13" fill="#222">'
        f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>{"".join([*names, *cells])}'
        "</svg>\n"
    )
    return (inspect.getdoc(type(config)) or kind).splitlines()[0], drawing


def write_gallery(pages: Path) -> None:
    """Write the gallery's page into a folder that has `docs` already."""
    folder = pages / "gallery"
    folder.mkdir()
    parts = ["# Gallery", "## Tasks", "Six tokens each; `?` asks for the next answer."]
    for kind in drawn_kinds():
        summary, drawing = draw_task(kind)
        (folder / f"{kind}.svg").write_text(drawing, encoding="utf-8")
        parts += [f"### {kind}", summary, f"![{kind}, a sequence]({kind}.svg)"]
    parts.append("## Figures")
    evidence = pages / "docs" / "evidence"
    for name, entry in CATALOGUE.items():
        places = sorted(
            place
            for place in evidence.glob(f"{name}-*")
            if place.name.removeprefix(f"{name}-").partition("-")[0] in ("small", "demo", "paper")
        )
        found = [path for place in places for path in sorted(place.glob("*.svg"))]
        if found:
            parts += [f"### {name}", entry.question]
        for path in found:
            where = path.relative_to(pages)
            page = where.with_name("report.md")
            parts.append(f"[![{where.parent.name}](../{where}){{ loading=lazy }}](../{page})")
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
