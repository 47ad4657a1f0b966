"""The report in a real browser: no request, no complaint, no broken layout, nothing that shuts anybody out."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from tests.report.browser import Browser, Page, installed, running
from tests.report.samples import HOSTILE, QUOTED, coverage, neighbours, ranges
from tests.report.test_front import classes_table, clusters, pairs
from weakspot.core.finding import Estimate, Finding, table_of
from weakspot.core.outputs import Outputs, share
from weakspot.core.run import Run
from weakspot.report import write_report
from weakspot.rooms import rooms

CHROMIUM = installed()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
DESKTOP, PHONE = 1280, 390


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with every kind of figure, and with names that try to break out."""
    run = Run.create(tmp_path_factory.mktemp("browser") / "run")
    run.describe(
        subject={"model": "Net" * 30, "task": "classification", "classes": ["cat", HOSTILE, "a", "b"]},
        data={"test": {"fingerprint": "c" * 64, "samples": 300}},
    )
    first = ranges()
    for finding in (first, coverage(first), neighbours(), classes_table(), clusters(), pairs(), figures()):
        run.save(finding)
    return write_report(run, run.folder / "report.html").as_uri()


def figures() -> Finding:
    """Arrays and columns that become figures of every kind."""
    draw = np.random.default_rng(0)
    size = 12
    columns = {
        "id": [QUOTED, *map(str, range(size - 1))], "weak": draw.random(size) > 0.5,
        "neighbour_accuracy": draw.random(size),
        "looks_used": [3] * size, "x": draw.random(size), "y": draw.random(size), "method": [HOSTILE] * size,
        "f1": draw.random(size), "f1_low": draw.random(size) / 2, "f1_high": [1.0] * size,
        "surprise": draw.random(size), "max_softmax": draw.random(size), "correct": draw.random(size) > 0.5,
    }  # fmt: skip
    arrays = {
        "classes": np.arange(4), "tree_order": np.array([2, 0, 1, 3]), "distance": draw.random((4, 4)),
        "tree": np.array([[0, 1, 0.5, 2], [2, 4, 1.0, 3], [3, 5, 2.0, 4]], float),
        "inspected": np.arange(1, 9), **{f"found_{i}": np.linspace(0, 1, 8) for i in range(8)},
    }  # fmt: skip
    summary = {f"number_{i}": Estimate(0.5, 0.25, 0.75, 0.95, "share " + "of a long sentence " * 4) for i in range(12)}
    table = table_of({name: np.array(column) for name, column in columns.items()})
    drawn = [figure for room in rooms().values() for one in room.findings.values() for figure in one.figures]
    outputs = Outputs(summary={"number_*": share("")}, figures=drawn)
    return Finding("robustness.figures", summary=summary, table=table, arrays=arrays, outputs=outputs)


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM is not None
    with running(CHROMIUM) as opened:
        yield opened


@pytest.fixture(scope="module", params=[(DESKTOP, "light"), (PHONE, "light"), (PHONE, "dark")], ids=str)
def page(request: pytest.FixtureRequest, browser: Browser, report: str) -> Page:
    width, scheme = request.param
    return browser.open(report, width=width, scheme=scheme)


def test_it_opens_from_disk_without_a_request_or_a_complaint(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
    asked = [url for url in page.requests() if not url.startswith("data:")]
    assert len(asked) == 1 and asked[0].startswith("file://")
    assert page.complaints() == []
    assert page.run("document.scripts.length") == 1, "a name became a script"
    assert page.run("window.alert.toString()").startswith("function alert() { [native"), "nothing was replaced"


def test_nothing_is_wider_than_the_screen(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
    too_wide = """[...document.querySelectorAll('body *')].filter(node => !node.closest('.box, .skip, svg')
        && node.getBoundingClientRect().right > innerWidth + 1).map(node => node.outerHTML.slice(0, 120))"""
    assert page.run(too_wide) == []
    assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_headings_figures_and_pictures_are_there_to_see(page: Page) -> None:
    sizes = (
        "[...document.querySelectorAll('{}')].map(n => n.getBoundingClientRect()).map(box => [box.width, box.height])"
    )
    for what, least, tall in (("h1, h2, h3", 40, 15), (".drawing svg", 250, 80), ("img", 20, 20), (".card", 200, 80)):
        found = page.run(sizes.format(what))
        assert found, what
        assert all(width >= least and height >= tall for width, height in found), (what, found)
    assert page.run("document.querySelectorAll('.drawing svg').length") >= 8


def test_texts_of_a_figure_are_inside_it_and_apart(page: Page) -> None:
    script = """[...document.querySelectorAll('.drawing svg')].flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter(text => {
            const box = text.getBoundingClientRect();
            return box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 2;
        }).map(text => text.textContent);
    })"""
    assert page.run(script) == []


def test_sections_follow_each_other_and_do_not_overlap(page: Page) -> None:
    script = """(() => { const tops = [...document.querySelectorAll('main > *, article')]
        .filter(node => !node.querySelector('article')).map(node => node.getBoundingClientRect());
        return tops.slice(1).filter((box, i) => box.top < tops[i].bottom - 1).length; })()"""
    assert page.run(script) == 0


def test_a_number_leads_to_how_it_was_computed(page: Page) -> None:
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = false; })")
    page.run("document.querySelector('a[href=\"#origin-coverage.sections\"]').click()")
    page.wait("""(box => box.height > 0 && box.top < innerHeight && box.bottom > 0)(
        document.getElementById('origin-coverage.sections').getBoundingClientRect())""")


def test_axe_finds_nothing_that_shuts_anybody_out(page: Page) -> None:
    pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install --no-deps axe-playwright-python")
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = true; })")
    page.run((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8") + ";0")
    tried = page.run(
        "axe.run(document, {resultTypes: ['violations']}).then(told => ({passes: told.passes.length,"
        " violations: told.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 150))])}))"
    )
    assert tried["violations"] == []
    assert tried["passes"] > 20, "axe looked at nothing"


def test_a_browser_that_ends_takes_no_other_test_with_it() -> None:
    assert CHROMIUM
    with running(CHROMIUM) as browser:
        page = browser.open("data:text/html,first", width=400)
        browser.process.kill()
        with pytest.raises((AssertionError, BrokenPipeError)):
            page.wait("false")
        assert browser.open("data:text/html,second", width=400).run("document.body.textContent") == "second"


def test_a_class_called_like_a_script_stays_text(page: Page) -> None:
    assert HOSTILE in page.run("document.body.innerText")
    names = "[...document.querySelectorAll('*')].flatMap(node => node.getAttributeNames())"
    assert page.run(f"{names}.filter(name => name.startsWith('on')).length") == 0


def test_tables_sort_when_their_head_is_pressed(page: Page) -> None:
    values = "[...document.querySelector('table.sortable').tBodies[0].rows].map(r => r.cells[1].dataset.value)"
    before = page.run(values)
    page.run("[...document.querySelector('table.sortable').tHead.rows[0].cells][1].querySelector('button').click()")
    after = page.run(values)
    assert sorted(before, key=float) == after
    page.run("[...document.querySelector('table.sortable').tHead.rows[0].cells][1].querySelector('button').click()")
    assert page.run(values) == after[::-1]


def test_a_layout_that_breaks_is_seen(browser: Browser, tmp_path: Path) -> None:
    """The checks can fail: a page that is wider than a phone, and one that asks for something."""
    broken = tmp_path / "broken.html"
    broken.write_text('<!DOCTYPE html><body><div style="width:900px">x</div><img src="missing.png">', encoding="utf-8")
    page = browser.open(broken.as_uri(), width=PHONE)
    assert page.run("document.documentElement.scrollWidth - innerWidth") > 0 or page.run("innerWidth") > PHONE
    assert len(page.requests()) == 2 and page.complaints()
