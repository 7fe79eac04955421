"""The site: every page has a place in it, and the reference has every public name."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs" / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_has_a_place(site):
    patterns = [one for some in site.NAVIGATION.values() for one in some if "api" not in one]
    patterns.remove("notebooks/*.md")
    listed = [page for pattern in patterns for page in site.pages_of(pattern, ROOT)]
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("**/*.md")}
    # Notebooks become pages when the site is built.
    pages |= {path.name for path in ROOT.glob("*.md")} - {"README.md"}
    # A sweep's page belongs to the scorecard that links to it.
    sweeps = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/evidence/*/*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages - sweeps
    with pytest.raises(SystemExit, match="no page matches"):
        site.pages_of("docs/nothing.md", ROOT)


def test_the_reference_has_every_public_name(site):
    for package in site.PACKAGES:
        module = importlib.import_module(f"pernn.{package}" if package else "pernn")
        names = site.public_names(site.source_of(package))
        assert set(names) == set(module.__all__) - {"__version__"}


def test_each_name_is_a_directive(site, tmp_path):
    site.write_api(tmp_path / "api")
    text = (tmp_path / "api" / "02-pernn.encodings.md").read_text()
    assert "::: pernn.encodings.Sinusoidal\n" in text
    assert len(list((tmp_path / "api").iterdir())) == len(site.PACKAGES)


def test_anchors_are_the_same_on_github_and_on_the_site():
    # GitHub keeps the dashes of "K = 16" apart, the site joins them: such a link breaks in one.
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    twofold = {str(page) for page in pages if re.search(r"\]\([^)\s]*#[^)\s]*--", page.read_text())}
    assert twofold == set()
