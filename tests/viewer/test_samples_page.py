"""Looking through samples with keys and mouse: moving, selecting, enlarging, filtering, exporting, going back."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from tests.report.samples import HOSTILE
from tests.viewer.driving import opened, serving, settled, violations
from tests.viewer.whole_run import FORMULA
from weakspot.core.run import Run

SELECTED = "[...document.querySelectorAll('.cell[aria-selected=true]')].map(cell => Number(cell.dataset.index))"
CURRENT = "Number(document.querySelector('.cell.current').dataset.index)"
CHOSEN = "document.querySelector('.tools strong').textContent"


@pytest.fixture(scope="module")
def address(whole_run):
    with serving(whole_run) as served:
        yield served


@pytest.fixture
def page(chromium, address):
    shown = opened(chromium, address, "/samples")
    settled(shown)
    yield shown
    assert shown.complaints() == []


@pytest.fixture(scope="module")
def known(whole_run):
    """What the Run itself says of its samples, in the order of the data."""
    table = pq.read_table(whole_run / "findings" / "causes.errors" / "table.parquet").to_pylist()
    accuracy = pq.read_table(whole_run / "findings" / "robustness.neighbour_accuracy" / "table.parquet")[
        "neighbour_accuracy"
    ].to_pylist()
    return [{**row, "accuracy": value} for row, value in zip(table, accuracy, strict=True)]


def here(page):
    page.run("new Promise(done => setTimeout(done, 200))")  # the address follows the keys a moment later
    return page.run("location.search")


def names(page):
    return page.run("[...document.querySelectorAll('.cell')].slice(0, 8).map(cell => cell.title)")


def written(page):
    """The text of the file that was offered last."""
    return page.run("window.offered")


def keep_downloads(page):
    page.run(
        "window.offered = null; const make = URL.createObjectURL; URL.createObjectURL = blob => {"
        " blob.text().then(text => { window.offered = text; }); return make(blob); }; 0"
    )


def test_arrows_move_and_the_panel_tells_all_about_the_sample(page, known):
    columns = page.run("document.querySelector('.row').children.length")
    page.press("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowDown", "ArrowUp")
    assert page.run(CURRENT) == columns
    told = page.run("document.querySelector('.panel').innerText")
    row = known[columns]
    assert (
        row["id"] in told
        and row["target"] in told
        and str(row["metadata.light"]) in told
        and row["metadata.camera"] in told
    )
    assert page.run("document.querySelector('[role=listbox]').getAttribute('aria-activedescendant')").endswith(
        f"-{columns}"
    )
    page.press("End")
    assert page.run(CURRENT) == len(known) - 1 and "sample=199" in here(page)
    page.press("Home")
    assert page.run(CURRENT) == 0


def test_space_shift_and_the_mouse_select_and_every_step_is_undone(page):
    page.press("Space", "ArrowRight", "ArrowRight", "Space")
    assert page.run(SELECTED) == [0, 2] and page.run(CHOSEN) == "2 selected"
    page.press("Shift+ArrowRight", "Shift+ArrowRight")
    assert page.run(SELECTED) == [0, 2, 3, 4]
    page.click(".cell[data-index='7']", held="Ctrl")
    page.click(".cell[data-index='9']", held="Shift")
    assert page.run(SELECTED) == [0, 2, 3, 4, 7, 8, 9] and "selected=0%2C2-4%2C7-9" in here(page)
    page.press("u", "Ctrl+z")
    assert page.run(SELECTED) == [0, 2, 3, 4]
    page.press("Ctrl+Shift+z")
    assert page.run(SELECTED) == [0, 2, 3, 4, 7]
    page.press("Escape")
    assert page.run(SELECTED) == []
    page.press("u")
    assert page.run(SELECTED) == [0, 2, 3, 4, 7]
    page.press("Ctrl+a")
    assert page.run(CHOSEN) == "200 selected" and violations(page) == [], "also what is selected can be read"
    page.press("u", "u", "u", "u", "u", "u", "u", "u", "u", "u")
    assert page.run(SELECTED) == []


def test_a_selection_is_exported_without_formulas(page, known):
    keep_downloads(page)
    page.press("e")
    assert page.run("document.querySelector('#said').innerText") == "Nothing is selected"
    page.press("Space", "ArrowRight")
    page.click(".panel button[aria-pressed]")
    page.press("e")
    page.wait("window.offered")
    rows = list(csv.DictReader(io.StringIO(written(page).removeprefix("\ufeff"))))
    assert [row["id"] for row in rows] == [f"'{FORMULA}", known[1]["id"]]
    assert rows[1]["target"] == known[1]["target"] and float(rows[1]["metadata.light"]) == known[1]["metadata.light"]
    everything = page.run("fetch(document.querySelector('a[download]').href).then(answer => answer.text())")
    assert len(everything.strip().splitlines()) == len(known) + 1


def test_enter_enlarges_at_once_and_arrows_go_on(page, known):
    page.press("ArrowRight", "Enter")
    assert page.run("document.querySelector('dialog.zoom canvas').hidden") is False or page.run(
        "document.querySelector('dialog.zoom img').complete"
    ), "something is shown before anything was asked for"
    page.wait("document.querySelector('dialog.zoom img').complete && !document.querySelector('dialog.zoom img').hidden")
    box = page.run("(box => [box.width, box.height])(document.querySelector('dialog img').getBoundingClientRect())")
    assert min(box) > 500, "as large as the window allows"
    assert page.run("getComputedStyle(document.querySelector('dialog.zoom img')).imageRendering") == "pixelated"
    assert violations(page) == []
    page.press("ArrowRight", "ArrowRight", "ArrowLeft", "Space")
    assert known[2]["id"] in page.run("document.querySelector('dialog figcaption').textContent")
    assert "selected" in page.run("document.querySelector('dialog figcaption').textContent")
    assert "zoom=1" in here(page)
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert page.run(CURRENT) == 2 and page.run(SELECTED) == [2]
    assert page.run("document.activeElement.role") == "listbox", "the keyboard focus stays where it was"
    page.click(".cell[data-index='4']", clicks=2)
    page.wait("document.querySelector('dialog.zoom[open]')")
    page.press("Enter")
    page.wait("!document.querySelector('dialog')")


def press_button(page, words, where="main"):
    """Click the button that says so."""
    page.run("document.querySelectorAll('[data-pressed]').forEach(one => one.removeAttribute('data-pressed'))")
    page.run(
        f"[...document.querySelectorAll('{where} button')].find(one => (one.ariaLabel || one.innerText).trim()"
        f".startsWith({json.dumps(words)})).dataset.pressed = ''"
    )
    page.click("[data-pressed]")


def test_buttons_do_what_keys_do(page):
    keep_downloads(page)
    press_button(page, "Select all")
    assert page.run(CHOSEN) == "200 selected"
    press_button(page, "Selected as CSV")
    page.wait("window.offered?.split('\\n').length > 200")
    press_button(page, "Clear")
    assert page.run(CHOSEN) == "" and page.run("[...document.querySelectorAll('.tools button:disabled')].length") == 3
    press_button(page, "Enlarge")
    press_button(page, "Next picture", "dialog")
    press_button(page, "Next picture", "dialog")
    press_button(page, "Previous picture", "dialog")
    assert page.run("document.querySelector('dialog .bar p').textContent") == "2 of 200"
    press_button(page, "Close", "dialog")
    page.wait("!document.querySelector('dialog')")
    assert page.run(CURRENT) == 1


def test_a_deep_link_opens_the_very_sample_enlarged_and_selected(chromium, address):
    page = opened(
        chromium, address, "/samples?filter=correct:is:no&sort=-neighbour_accuracy&sample=7&selected=7,10-12&zoom=1"
    )
    page.wait("document.querySelector('dialog figcaption')?.textContent.includes('shape-0007')")
    assert "selected" in page.run("document.querySelector('dialog figcaption').textContent")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert page.run("document.querySelector('.panel h2').textContent") == "shape-0007"
    assert (
        page.run("document.querySelector('.chip').innerText.includes('correct is no')")
        and page.run(CHOSEN) == "4 selected"
    )


def test_search_leaves_what_has_that_name(page, known):
    page.press("/")
    page.type("0012")
    page.wait("document.querySelector('.tools p').textContent.startsWith('1 of 200')")
    settled(page)
    assert names(page) == ["shape-0012"] and "search=0012" in here(page)
    page.press("Escape")
    assert page.run("document.activeElement.role") == "listbox"
    page.press("/", *["Backspace"] * 4)
    page.type("nothing like it")
    page.wait("!document.querySelector('.caution').hidden")
    assert page.run("document.querySelector('.grid').hidden && document.querySelector('.panel').hidden")


def test_sorting_and_turning_the_order(page, known):
    page.press("s")
    choose(page, "neighbour_accuracy")
    settled(page)
    rising = sorted(row["accuracy"] for row in known)
    assert values(page) == rising[:20]
    page.click("[aria-label='Largest first']")
    page.wait(f"document.querySelector('.cell .two').textContent == '{max(row['accuracy'] for row in known):g}'")
    assert values(page) == rising[:-21:-1] and "sort=-neighbour_accuracy" in here(page)


def choose(page, value):
    """An option of the control that has the focus."""
    page.run(
        f"(() => {{ const node = document.activeElement; node.value = {json.dumps(value)};"
        " node.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def values(page):
    return page.run("[...document.querySelectorAll('.cell .two')].slice(0, 20).map(line => Number(line.textContent))")


def test_filters_are_added_shown_taken_away_and_back_brings_them_back(page, known):
    page.press("f")
    choose(page, "metadata.camera")
    page.run("document.querySelector('form input').focus()")
    page.type("rear")
    page.press("Enter")
    rear = sum(row["metadata.camera"] == "rear" for row in known)
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{rear} of')")
    page.press("Escape", "f")
    choose(page, "metadata.light")
    page.run("document.querySelector('form input').focus()")
    page.type("0.5")
    page.press("Enter")
    both = sum(row["metadata.camera"] == "rear" and row["metadata.light"] > 0.5 for row in known)
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{both} of')")
    assert page.run("[...document.querySelectorAll('.chip')].filter(chip => !chip.hidden).length") == 2
    page.click(".chip button")
    light = sum(row["metadata.light"] > 0.5 for row in known)
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{light} of')")
    page.run("history.back()")
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{both} of')")
    page.run("history.back()")
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{rear} of')")


def test_a_value_in_the_panel_becomes_a_filter_also_one_that_looks_like_a_script(page, known):
    place = next(n for n, row in enumerate(known) if row["target"] == HOSTILE)
    page.click(f".cell[data-index='{place}']")
    page.run(
        "[...document.querySelectorAll('.panel tr')].find(row => row.innerText.startsWith('Target'))"
        ".querySelector('button').click()"
    )
    alike = sum(row["target"] == HOSTILE for row in known)
    page.wait(f"document.querySelector('.tools p').textContent.startsWith('{alike} of')")


def test_links_lead_to_the_samples_cluster_and_place(page, known):
    place = next(n for n, row in enumerate(known) if not row["correct"])
    page.click(f".cell[data-index='{place}']")
    page.wait("document.querySelector('.links a[href^=\"/clusters\"]')")
    links = page.run("[...document.querySelectorAll('.links a')].map(link => link.getAttribute('href'))")
    assert any(link.startswith("/clusters?cluster=") for link in links) and f"/map?sample={place}" in links
    page.click(".links a[href^='/clusters']")
    page.wait("location.pathname === '/clusters' && document.querySelector('.cell.current')?.title")
    page.wait(f"document.querySelector('.cell.current').title.startsWith('{known[place]['id']}')")


def test_another_split_is_shown(page):
    page.run("document.querySelector('.tools select').focus()")
    choose(page, "train")
    page.wait("document.querySelector('.tools p')?.textContent.startsWith('40 of')")
    settled(page)
    assert names(page)[0] == "train-000" and "split=train" in here(page)


def test_an_address_that_asks_for_nonsense_is_told_so(chromium, address):
    page = opened(chromium, address, "/samples?filter=colour:is:red&sample=x&selected=a-b")
    page.wait("document.querySelector('#trouble .warning')")
    assert "colour" in page.run("document.querySelector('#trouble').innerText")
    page.press("Ctrl+a", "Space", "Enter", "e", "End")
    assert [one for one in page.complaints() if "exceptionDetails" in one] == []


def test_a_run_without_pictures_is_looked_through_all_the_same(chromium, whole_run, tmp_path):
    plain, whole = Run.create(tmp_path / "plain"), Run.open(whole_run)
    plain.describe(subject=whole.manifest()["subject"], data=whole.manifest()["data"])
    plain.save(whole["causes.errors"])
    with serving(plain.folder) as served:
        page = opened(chromium, served, "/samples")
        settled(page)
        tall = page.run("document.querySelector('.cell').getBoundingClientRect().height")
        lines = page.run("[...document.querySelector('.cell').innerText.split('\\n')]")
        assert tall < 100 and lines == [HOSTILE, FORMULA]
        page.press("ArrowRight", "Enter")
        assert page.run("document.querySelector('dialog')") is None
        assert "no pictures" in page.run("document.querySelector('#said').textContent")
        assert page.complaints() == [] and violations(page) == []
