"""The documentation as a site, built by Zensical: `make site` writes build/site/html.

Pages are those of the repository, at the places that they have there, so that links hold in both;
the API reference is made from docstrings. A broken link or anchor makes it fail.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
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
    "Notebooks": ["notebooks/*.md"],
    "Use it": [
        "docs/pytorch.md",
        "docs/commands.md",
        "docs/journeys.md",
        "docs/extend.md",
        "docs/sweeps.md",
        "docs/analysis.md",
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
SETTINGS = """\
[project]
site_name = "pernn"
site_description = "Position-encoded recurrent neural networks, and the study that proposed them"
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
nav = {nav}
[project.validation]
invalid_links = true
invalid_link_anchors = true
[project.theme]
font = false
features = ["navigation.sections", "navigation.top", "content.code.copy", "toc.follow"]
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
"""


def public_names(package: Path) -> list[str]:
    """Return the names that a package's `__init__` imports as themselves."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [one.name for node in imports for one in node.names if one.asname == one.name]
    return sorted(names, key=str.lower)


def source_of(package: str) -> Path:
    """Return the folder of a package of `PACKAGES`."""
    return ROOT.joinpath("src", "pernn", *package.split("."))


def write_api(folder: Path) -> None:
    """Write a page per package, which the generator fills from docstrings."""
    folder.mkdir()
    for place, (package, title) in enumerate(PACKAGES.items()):
        module = f"pernn.{package}" if package else "pernn"
        parts = [f"::: {module}.{name}" for name in public_names(source_of(package))]
        text = "\n\n".join([f"# {title}: `{module}`", *parts])
        (folder / f"{place:02}-{module}.md").write_text(text + "\n", encoding="utf-8")


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


def pages_of(pattern: str, pages: Path) -> list[str]:
    """Return the pages that match, an introduction first."""
    found = sorted(pages.glob(pattern), key=lambda path: (path.name != "README.md", path.name))
    if not found:
        raise SystemExit(f"no page matches {pattern}")
    return [str(path.relative_to(pages)) for path in found]


def main() -> int:
    """Put the pages together and build the site; return Zensical's exit status."""
    shutil.rmtree(SITE, ignore_errors=True)
    pages = SITE / "pages"
    shutil.copytree(
        ROOT / "docs",
        pages / "docs",
        ignore=shutil.ignore_patterns("*.html", "*.py", "__pycache__"),
    )
    for page in (*ROOT.glob("*.md"), ROOT / "LICENSE"):
        shutil.copy(page, pages)
    write_api(pages / "api")
    write_notebooks(pages / "notebooks")
    for page in pages.rglob("*.md"):
        # In the repository a link leads to the notebook itself.
        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r"(\]\([\w./]+)\.ipynb\)", r"\1.md)", text), encoding="utf-8")
    sections = [
        f"{{ {json.dumps(title)} = "
        f"{json.dumps([page for pattern in patterns for page in pages_of(pattern, pages)])} }}"
        for title, patterns in NAVIGATION.items()
    ]
    nav = f'["README.md", {", ".join(sections)}]'
    settings = SETTINGS.format(nav=nav, source=json.dumps(str(ROOT / "src")))
    (SITE / "zensical.toml").write_text(settings, encoding="utf-8")
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(words, cwd=SITE, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
