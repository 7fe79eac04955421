"""The study's page in a real browser; run by `make test-browser`, with Chromium of the system."""

import shutil

import pytest

from pernn.lab.reports import Report, draw_curves, write_study
from reports.test_page import CLAIMS
from reports.test_study import chapter
from reports.trials import curves, experiment, planned, trials

pytestmark = pytest.mark.browser
playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "needs Chromium: apt install chromium"
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    lines = [{"update": u, "kind": "test", "loss": 9.0 / u} for u in range(100, 1100, 100)]
    found = chapter()
    found.further.append(draw_curves(experiment(), curves(trials(), lines), "demo", ()))
    path = tmp_path_factory.mktemp("browser") / "study.html"
    return write_study([found, chapter(scale="small")], path).as_uri()


@pytest.fixture(params=["light", "dark"])
def page(request, browser, address):
    context = browser.new_context(
        color_scheme=request.param, viewport={"width": 1280, "height": 900}
    )
    opened = context.new_page()
    opened.said, opened.asked = [], []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(address)
    yield opened
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    context.close()


def serious(page):
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_axe_finds_nothing_serious_on_the_study(page):
    for closed in page.locator("details").all():
        closed.evaluate("one => one.open = true")
    page.locator("#sweep-1 svg").first.wait_for()
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 800})
        assert serious(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_report(browser, theme, tmp_path):
    about = experiment(claims=CLAIMS)
    made = Report(about, "demo", trials(), planned(), "pernn run x", formats=("svg",))
    made.write(tmp_path)
    page = browser.new_page(color_scheme=theme)
    page.goto(made.page.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert serious(page) == []
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert serious(page) == []
    # A browser shrinks what is wider than the paper, here A4 between margins.
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    # On paper nothing is folded.
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    assert page.locator("details table").first.is_visible()
    page.close()


def test_filters_and_keyboard(page):
    lines = page.locator("#scorecard > tbody > tr")
    num_lines = lines.count()
    assert page.locator("#count").inner_text() == f"{num_lines} of {num_lines} claims"
    page.select_option("#verdict", "supported")
    assert page.locator("#scorecard > tbody > tr:visible").count() == 1
    page.select_option("#verdict", "")
    page.select_option("#experiment", "vocabulary_size")
    assert page.locator("#scorecard > tbody > tr:visible").count() == 3
    page.focus("#words")
    page.keyboard.type("masters")
    assert page.locator("#scorecard > tbody > tr:visible").count() == 1
    assert page.locator("#count").inner_text() == f"1 of {num_lines} claims"


def test_drawings_show_values_and_hide_lines(page):
    drawing = page.locator("#sweep-0 svg").first
    mark = drawing.locator("g.line1 use:has(title)").first
    mark.hover(force=True)
    assert "Position-encoded, Vocabulary size K: 4" in page.locator("#tip").inner_text()
    key = drawing.locator("g.key0[tabindex]")
    key.focus()
    page.keyboard.press("Enter")
    assert key.get_attribute("aria-pressed") == "false"
    assert drawing.locator("g.line0:visible").count() == 0
    assert drawing.locator("g.line1:visible").count() > 0
    # Closed and opened again, it is as it was left.
    for _ in range(2):
        page.locator("#sweep-0 > .chapter > summary").press("Enter")
    drawing.locator("g.line1:visible").first.wait_for()
    assert key.get_attribute("aria-pressed") == "false"
    key.click(force=True)
    assert drawing.locator("g.line0:visible").count() > 0


def test_a_chapter_opens_on_demand_by_hand_and_by_its_link(page, address):
    second = page.locator("#sweep-1 > .chapter")
    assert second.locator("svg").count() == 0
    second.locator("> summary").press("Enter")
    second.locator("svg").first.wait_for()
    page.goto("about:blank")
    page.goto(f"{address}#sweep-1")
    second.locator("svg").first.wait_for()
    # A link that was followed before opens it again; one to a hidden line shows the line.
    second.locator("> summary").press("Enter")
    page.locator("a[href='#sweep-1']").first.evaluate("one => one.click()")
    second.locator("svg").first.wait_for()
    page.fill("#words", "nothing like this")
    line = page.locator("#scorecard > tbody > tr").first
    page.evaluate("name => { location.hash = name; }", line.get_attribute("id"))
    line.wait_for()
    page.goto("about:blank")
    page.goto(f"{address}#100%")
    assert page.locator("#tip").count() == 1


def test_narrow_and_dark_and_print(page):
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    assert ink != paper
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (paper == "rgb(23, 24, 26)") == dark
    page.set_viewport_size({"width": 375, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.select_option("#verdict", "supported")
    page.emulate_media(media="print")
    lines = page.locator("#scorecard > tbody > tr")
    assert page.locator("#scorecard > tbody > tr:visible").count() == lines.count()


def test_it_opens_without_scripts(browser, address):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(address)
    assert opened.locator("#scorecard > tbody > tr:visible").count() > 100
    context.close()
