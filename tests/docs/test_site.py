"""The site: every page has a place in it, and the reference has every public name."""

import importlib
import re
from functools import partial
from pathlib import Path

import pytest

import website
from pernn.lab.tasks import draw_pictures

ROOT = Path(__file__).parents[2]


def test_every_page_has_a_place():
    patterns = [one for some in website.NAVIGATION.values() for one in some if "api" not in one]
    patterns.remove("notebooks/*.md")
    patterns.remove("gallery/*.md")
    patterns.remove("docs/claims.md")
    listed = [page for pattern in patterns for page in website.pages_of(pattern, ROOT)]
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("**/*.md")}
    # Notebooks, the gallery and the claims become pages when the site is built.
    pages |= {path.name for path in ROOT.glob("*.md")} - {"README.md"}
    # A sweep's page belongs to the scorecard that links to it.
    sweeps = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/evidence/*/*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages - sweeps
    with pytest.raises(SystemExit, match="no page matches"):
        website.pages_of("docs/nothing.md", ROOT)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "api"
    website.write_api(folder)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_reference_has_every_public_name(api):
    said = "".join(api.values())
    for package in website.PACKAGES:
        module = importlib.import_module(f"pernn.{package}".rstrip("."))
        names = website.public_names(module)
        assert {*names} >= {*getattr(module, "__all__", ())} - {"__version__"}
        assert names
        assert [name for name in names if f"::: {module.__name__}.{name}\n" not in said] == []


def test_a_class_has_a_page_with_its_equation(api):
    page = api["01-pernn.cores.GRU.md"]
    assert page.startswith("# GRU\n\nGated recurrent unit.\n\nh_t = ")
    assert "Source: Cho et al. (2014)" in page
    table = api["01-pernn.cores.md"]
    assert "| [GRU](01-pernn.cores.GRU.md) | GRU, interchangeable with `torch.nn.GRU`. |" in table
    assert "::: pernn.cores.map_state\n" in table
    assert "::: pernn.cores.GRU\n" not in table


def test_a_drawing_is_shorter_and_drawn_the_same():
    drawing = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"\n  "http://d.dtd">\n'
        '<svg xmlns:xlink="http://x" width="9pt">\n <g id="line2d_1">\n  <!-- one -->\n'
        '  <path id="DejaVuSans-31" d="M 1.23456 2.34567 \nL 3 4.56789 \nz\n" style="fill: red"/>\n'
        '  <use xlink:href="#DejaVuSans-31" clip-path="url(#p5)" style="fill: red"/>\n </g>\n'
        ' <g id="patch_1"/>\n <g transform="scale(2)">\n  <g id="text_1">\n  </g>\n </g>\n'
        ' <path d="M 1 2 \n" transform="scale(0.015625)"/>\n <clipPath id="p5"/>\n</svg>\n'
    )
    assert website.shrink(drawing) == (
        '<svg xmlns:xlink="http://x" width="9pt"><style>.s0{fill: red}</style>\n'
        '<path id="i0" d="M1.2 2.3L3 4.5z" class="s0"/>\n'
        '<use href="#i0" clip-path="url(#i1)" class="s0"/>\n<g/>\n<g transform="scale(2)">\n</g>\n'
        '<path d="M1 2" transform="scale(0.015625)"/>\n<clipPath id="i1"/>\n</svg>\n'
    )


def test_blanks_go_but_for_those_of_examples_and_broken_drawings_are_refused(tmp_path):
    line = '<span id="__span-0-1"><a id="n" href="#n"></a>'
    (tmp_path / "a.html").write_text(f"<p>\n\n  one\n<pre>\n\n  {line}two\n</span></pre>\n\n")
    website.finish(tmp_path)
    assert (tmp_path / "a.html").read_text() == "<p>\none\n<pre>\n\n  <span>two\n</span></pre>\n"
    with pytest.raises(SyntaxError, match="mismatched tag"):
        website.shrink("<svg><path></svg>")


def test_what_a_page_leads_to_is_there_and_a_drawing_leads_to_itself(tmp_path):
    (tmp_path / "a b.svg").touch()
    kept = '<a href="//host/c"></a><a href="https://host/c"></a><a href="#d"></a>'
    page = f'{kept}<img src="a%20b.svg"><a href="/sub/page.html#d"></a><a href="../{{}}"></a>'
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "page.html").write_text(page.format("a b.svg").replace("a%", "../a%"))
    website.finish(tmp_path)
    (tmp_path / "sub" / "page.html").write_text(page.format("table.csv"))
    lacks = r"that the site lacks:\nsub/page.html: a b.svg\nsub/page.html: ../table.csv$"
    with pytest.raises(SystemExit, match=lacks):
        website.finish(tmp_path)
    (tmp_path / "a.svg").touch()
    text = website.DRAWN.sub(partial(website.drawing, tmp_path), "![One](a.svg)\n![Two](x/b.svg)\n")
    assert text == "[![One](a.svg)](a.svg)\nTwo: `b.svg` in the repository.\n"


def test_anchors_are_the_same_on_github_and_on_the_site():
    # GitHub keeps the dashes of "K = 16" apart, the site joins them: such a link breaks in one.
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    twofold = {str(page) for page in pages if re.search(r"\]\([^)\s]*#[^)\s]*--", page.read_text())}
    assert twofold == set()


def test_the_gallery_has_each_task_and_each_figure(tmp_path):
    drawn = [path.relative_to(ROOT) for path in ROOT.glob("docs/evidence/*/figure.svg")]
    for path in drawn:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("<svg/>")
    website.write_gallery(tmp_path)
    text = (tmp_path / "gallery" / "README.md").read_text()
    assert sorted(re.findall(r"\]\(\.\./(\S+\.svg)\)", text)) == sorted(map(str, drawn))
    tasks = {path.stem: path.read_text() for path in (tmp_path / "gallery").glob("*.svg")}
    assert tasks.keys() == {*website.drawn_kinds()} >= {"sorting", "coded_reversal"}
    for kind, drawing in tasks.items():
        assert f"]({kind}.svg)" in text
        rows = draw_pictures(website.small(kind).build())[0]
        words = [str(word) for word in (*rows.inputs, *rows.targets) if word is not None]
        shown = re.findall(r">([^<>]+)</text>", drawing)
        assert shown == ["input", "target", *words]
