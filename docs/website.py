"""The documentation as a site, built by Zensical: `make site` writes build/site/html.

Pages are those of the repository, at the places that they have there, so that links hold in both;
the API reference is made from docstrings, the gallery of each task's first training sequence and of
the sweeps' figures. A broken link or anchor, or a missing picture, makes it fail.
"""

import colorsys
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from html import escape
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from claims import claim_list
from pernn.lab.experiments import CATALOGUE
from pernn.lab.tasks import TASKS, draw_pictures

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
LEFT_OUT = ("*.html", "*.py", "__pycache__", "*.csv", "*.lock.json", "claims.json")
"""Programs, and tables for programs: on the site only if a page links to them."""
FOR_REFERENCE = {"claims.md", "pace.md", "plan.md", "predicted.md", "CHANGELOG.md"}
"""Long pages that the search leaves out, as it does those of sweeps and plans."""
MAX_BYTES = 15_000_000
PARTS = {"cores", "encodings", "models"}
"""Packages whose classes have a page each, with the equation and the source of their module."""
INHERITED = "    options:\n      inherited_members: true\n"
PACKAGES = {
    "": "Start here",
    "cores": "Recurrent cores",
    "encodings": "Encodings",
    "models": "Models",
    "analysis": "Gradient analysis",
    "lab": "The laboratory",
    "lab.tasks": "Tasks",
    "lab.corpora": "Text",
    "lab.metrics": "Metrics",
    "lab.training": "Training",
    "lab.experiments": "Experiments and claims",
    "lab.runs": "Runs",
    "lab.runners": "Runners",
    "lab.reports": "Reports",
}
NAVIGATION = {
    "Gallery": ["gallery/*.md"],
    "Notebooks": ["notebooks/*.md"],
    "Use it": [
        "docs/quickstart.md",
        "docs/pytorch.md",
        "docs/commands.md",
        "docs/extend.md",
        "docs/sweeps.md",
        "docs/analysis.md",
        "docs/faq.md",
    ],
    "What is found": [
        "docs/article/*.md",
        "docs/evidence/*.md",
        "docs/claims.md",
        "docs/reproduce/*.md",
    ],
    "Trust it": ["docs/statistics.md", "docs/reliability.md", "docs/performance.md"],
    "API": ["api/*.md"],
    "Reference": ["docs/run_directory.md", "docs/glossary.md", "CHANGELOG.md", "docs/roadmap.md"],
    "Inside": ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions/*.md"],
}
STYLE = re.compile(r' style="([^"]*)"')
LINK = re.compile(r'(?:href="|url\()#([\w-]+)')
LINE = re.compile(r'<span id="__span[^>]*><a [^>]*></a>')
LOCAL = re.compile(r'(?:src|href)="(?!\w+:|//)([^"#?]+)')
LINKED = re.compile(r"\]\(([\w./-]+)\)")
DRAWN = re.compile(r"^!\[([^]]*)\]\(([\w./-]*?([\w-]+\.svg))\)$", re.MULTILINE)
SETTINGS = """\
[project]
site_name = "pernn"
site_description = "Position-encoded recurrent networks, and the study that found that they help"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = {nav}
[project.validation]
invalid_links = true
invalid_link_anchors = true
[project.theme]
font = false
features = ["navigation.top", "content.code.copy", "toc.follow", "navigation.prune"]
palette = [
  {{ media = "(prefers-color-scheme: light)", scheme = "default" }},
  {{ media = "(prefers-color-scheme: dark)", scheme = "slate" }},
]
[project.plugins.mkdocstrings.handlers.python]
paths = [{source}]
[project.plugins.mkdocstrings.handlers.python.options]
docstring_style = "google"
heading_level = 2
show_root_heading = true
show_root_full_path = false
show_signature_annotations = true
separate_signature = true
show_source = false
merge_init_into_class = true
"""

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


def public_names(module: ModuleType) -> list[str]:
    """Return a package's public names, or a module's own functions and classes."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and isinstance(value, type | FunctionType)
    ]
    names = getattr(module, "__all__", own)
    return sorted((name for name in names if not name.startswith("_")), key=str.lower)


def write_api(folder: Path) -> None:
    """Write a page per package or class, which the generator fills from docstrings."""
    folder.mkdir()
    for place, (package, title) in enumerate(PACKAGES.items()):
        module = import_module(f"pernn.{package}".rstrip("."))
        found = {name: getattr(module, name) for name in public_names(module)}
        parts = [f"# {title}: `{module.__name__}`"]
        classes = {
            name: (getdoc(sys.modules[one.__module__]), getdoc(one) or "")
            for name, one in found.items()
            if package in PARTS and isinstance(one, type)
        }
        if classes:
            parts.append("| class | |\n|---|---|")
        for name, (around, own) in classes.items():
            file = f"{place:02}-{module.__name__}.{name}.md"
            parts[-1] += f"\n| [{name}]({file}) | {own.splitlines()[0]} |"
            text = f"# {name}\n\n{around}\n\n::: {module.__name__}.{name}\n{INHERITED}"
            (folder / file).write_text(text, encoding="utf-8")
        parts += [f"::: {module.__name__}.{name}" for name in found if name not in classes]
        text = "\n\n".join(parts)
        (folder / f"{place:02}-{module.__name__}.md").write_text(text + "\n", encoding="utf-8")


def shrink(drawing: str) -> str:
    """Return an SVG of Matplotlib with one decimal, short names, and each style once.

    Groups that say nothing are left out.
    """
    # Without what precedes the root: its document type, which nothing needs.
    drawing = re.sub(r"\s*\n\s*", "\n", drawing[drawing.index("<svg") :]).replace('\n"', '"')
    drawing = re.sub(r"(?<!scale\()(\d\.\d)\d{3,}", r"\1", drawing)
    drawing = re.sub(r"(\d\d\.\d)\d+", r"\1", drawing)
    drawing = re.sub(r"\s?\b([LMQCz])\b\s?(?=[-\d\"LMQCz])", r"\1", drawing)
    drawing = re.sub(r"<!-- .*? -->\n", "", drawing.replace("xlink:href", "href"))
    names = {name: f"i{i}" for i, name in enumerate(dict.fromkeys(LINK.findall(drawing)))}
    drawing = re.sub(
        r' id="([^"]+)"',
        lambda found: f' id="{names[found[1]]}"' if found[1] in names else "",
        LINK.sub(lambda found: found[0].replace(found[1], names[found[1]]), drawing),
    )
    styles = {style: f"s{i}" for i, style in enumerate(dict.fromkeys(STYLE.findall(drawing)))}
    drawing = STYLE.sub(lambda found: f' class="{styles[found[1]]}"', drawing)
    parts, bare = re.split(r"(</?g\b(?:[^>]*[^>/])?>\n?)", drawing), []
    for i in range(1, len(parts), 2):
        if not parts[i].startswith("</"):
            bare.append(parts[i].strip() == "<g>")
            parts[i] *= not bare[-1]
        elif bare.pop():
            parts[i] = ""
    drawing = "".join(parts)
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    drawing = drawing.replace(">", f"><style>{rules}</style>", 1)
    ET.fromstring(drawing)  # noqa: S314 - ours; no browser shows one that is not well-formed.
    return drawing


def write_notebooks(folder: Path) -> None:
    """Write a page per notebook, with the outputs that it holds; nothing is executed."""
    from nbconvert import MarkdownExporter

    folder.mkdir()
    shutil.copy(ROOT / "notebooks" / "README.md", folder)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        pictures = {"output_files_dir": f"{path.stem}_files", "unique_key": path.stem}
        text, found = MarkdownExporter().from_filename(str(path), resources=pictures)
        (folder / f"{path.stem}.md").write_text(text, encoding="utf-8")
        for name, content in found["outputs"].items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)


def write_helps(page: Path) -> None:
    """Append to a page what `--help` says of every verb."""
    from typer.testing import CliRunner

    from pernn.lab.cli.app import VERBS, app, register

    register([])
    with page.open("a", encoding="utf-8") as file:
        for verb in VERBS:
            said = CliRunner().invoke(app, [verb, "--help"], prog_name="pernn", terminal_width=80)
            file.write(f"\n## pernn {verb}\n\n```text\n{said.stdout}```\n")


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
    return (getdoc(type(config)) or kind).splitlines()[0], drawing


def write_gallery(pages: Path) -> None:
    """Write the gallery's page into a folder that has `docs` already."""
    folder = pages / "gallery"
    folder.mkdir()
    parts = ["# Gallery", "## Tasks", "At most six tokens; `?` asks for the next answer."]
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


def pages_of(pattern: str, pages: Path) -> list[str]:
    """Return the pages that match, an introduction first."""
    found = sorted(pages.glob(pattern), key=lambda path: (path.name != "README.md", path.stem))
    if not found:
        raise SystemExit(f"no page matches {pattern}")
    return [str(path.relative_to(pages)) for path in found]


def finish(html: Path) -> int:
    """Take blanks and the anchors of code's lines out of the pages; return all files' bytes.

    Raises:
        SystemExit: If a page shows or links to a file that is not there.
    """
    # Pages that are opened from disk ask for it, and have no search.
    (html / "search.js").write_text('var __index = {"config": {}, "items": []}\n')
    missing = []
    for page in html.rglob("*.html"):
        text = LINE.sub("<span>", page.read_text(encoding="utf-8"))
        parts = re.split(r"(<pre.*?</pre>)", text, flags=re.DOTALL)
        parts[::2] = [re.sub(r"\s*\n\s*", "\n", part) for part in parts[::2]]
        page.write_text("".join(parts), encoding="utf-8")
        for target in dict.fromkeys(map(unquote, LOCAL.findall(text))):
            # The page of what is not found names others from the root.
            there = html / target[1:] if target.startswith("/") else page.parent / target
            if not there.exists():
                missing.append(f"{page.relative_to(html)}: {target}")
    if missing:
        raise SystemExit("\n".join(["pages lead to files that the site lacks:", *missing]))
    return sum(path.stat().st_size for path in html.rglob("*") if path.is_file())


def drawing(folder: Path, found: re.Match[str]) -> str:
    """Return a drawing as the page of a folder shows it, or where it is if the site lacks it."""
    if (folder / found[2]).exists():
        # Narrow screens shrink it beyond reading.
        return f"[{found[0]}]({found[2]})"
    return f"{found[1]}: `{found[3]}` in the repository."


def main() -> int:
    """Put the pages together and build the site; return Zensical's exit status."""
    shutil.rmtree(SITE, ignore_errors=True)
    pages = SITE / "pages"
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=shutil.ignore_patterns(*LEFT_OUT))
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE"):
        shutil.copy(page, pages)
    write_helps(pages / "docs" / "commands.md")
    (pages / "docs" / "claims.md").write_text(claim_list(), encoding="utf-8")
    write_api(pages / "api")
    write_notebooks(pages / "notebooks")
    shown = {
        (page.parent / target).resolve()
        for page in pages.rglob("*.md")
        if page.name != "report.md"
        for target in LINKED.findall(page.read_text(encoding="utf-8"))
    }
    for path in (pages / "docs" / "evidence").glob("*/*.svg"):
        # Others that only a sweep's own page shows are many and large: in the repository alone.
        main_one = path.name == "figure.svg" and path.parent.name.count("-") == 1
        if not main_one and path.resolve() not in shown:
            path.unlink()
    write_gallery(pages)
    for path in (pages / "docs").rglob("*.svg"):
        path.write_text(shrink(path.read_text(encoding="utf-8")), encoding="utf-8")
    for page in pages.rglob("*.md"):
        # In the repository a link leads to the notebook itself, or to the program.
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"(\]\([\w./]+)\.ipynb\)", r"\1.md)", text)
        text = re.sub(r"(\]\([\w./]*claims)\.py\)", r"\1.md)", text)
        text = DRAWN.sub(partial(drawing, page.parent), text)
        for target in LINKED.findall(text):
            origin, there = ROOT / page.relative_to(pages).parent / target, page.parent / target
            if origin.is_file() and not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(origin, there)
        # Sweeps' pages and plans among them.
        if page.parent.parent.name == "evidence" or page.name in FOR_REFERENCE:
            text = f"---\nsearch:\n  exclude: true\n---\n{text}"
        page.write_text(text, encoding="utf-8")
    sections = [
        f"{{ {json.dumps(title)} = "
        f"{json.dumps([page for pattern in patterns for page in pages_of(pattern, pages)])} }}"
        for title, patterns in NAVIGATION.items()
    ]
    nav = f'["README.md", {", ".join(sections)}]'
    settings = SETTINGS.format(nav=nav, source=json.dumps(str(ROOT / "src")))
    (SITE / "zensical.toml").write_text(settings, encoding="utf-8")
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    status = subprocess.run(words, cwd=SITE, check=False).returncode
    # Another look of the theme, which no page asks for.
    shutil.rmtree(SITE / "html" / "assets" / "stylesheets" / "classic", ignore_errors=True)
    size = finish(SITE / "html")
    if size > MAX_BYTES:
        raise SystemExit(
            f"the site has {size / 1e6:.1f} MB; at most {MAX_BYTES / 1e6:.0f} are allowed"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
