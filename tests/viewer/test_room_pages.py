"""Clusters, pairs, weak inputs, holes, the map and two Runs side by side: every control clicked or typed."""

import csv
import io
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.report.browser import until
from tests.report.samples import HOSTILE
from tests.viewer.driving import opened, serving, settled, violations
from tests.viewer.runs import retrain
from tests.viewer.test_samples_page import choose, here, keep_downloads, press_button, written
from tests.viewer.whole_run import CLUSTERS


@pytest.fixture(scope="module")
def address(whole_run, tmp_path_factory):
    after = retrain(whole_run, tmp_path_factory.mktemp("rooms") / "after")
    with serving(whole_run, after) as served:
        yield served


@pytest.fixture
def show(chromium, address):
    """A page of the viewer, which must not complain until the test ends."""
    shown = []

    def opening(path):
        page = opened(chromium, address, path)
        settled(page)
        shown.append(page)
        return page

    yield opening
    assert shown[-1].complaints() == []


def table(run, finding):
    return pq.read_table(run / "findings" / finding / "table.parquet").to_pylist()


def chosen(page):
    return page.run("document.querySelector('.list [aria-current=true]').innerText")


def picture_of(page, selector):
    """What a canvas or image shows, as a text that differs where the picture does."""
    return page.run(
        f"(() => {{ const shown = document.querySelector({selector!r}), copy = document.createElement('canvas');"
        " copy.width = copy.height = 16; copy.getContext('2d').drawImage(shown, 0, 0, 16, 16);"
        " return copy.toDataURL(); })()"
    )


# the first page


def test_the_overview_leads_from_an_answer_to_its_finding_and_to_the_pages(show):
    page = show("/")
    page.click(".answers dd a[href='#finding-causes.error_slices']")
    page.wait("document.getElementById('finding-causes.error_slices').open")
    page.click("[id='finding-causes.errors'] summary")
    assert "29" in page.run("document.getElementById('finding-causes.errors').innerText")
    links = page.run("[...document.querySelectorAll('.cards a')].map(link => link.getAttribute('href'))")
    assert links == ["/samples", "/causes", "/clusters", "/weak", "/map", "/pairs", "/holes", "/findings", "/compare"]
    page.click(".cards a[href='/holes']")
    page.wait("location.pathname === '/holes' && document.querySelector('.list button')")
    page.click("nav[aria-label='Run'] a:not([aria-current])")
    page.wait("location.search === '?run=1' || location.search.startsWith('?run=1&')")
    page.wait("document.querySelector('nav[aria-label=Pages] a[href=\"/samples?run=1\"]')")


# root causes


def test_clusters_are_gone_through_with_keys(show):
    page = show("/clusters")
    assert "Cluster 1" in chosen(page) and HOSTILE in page.run("document.querySelector('.cluster-facts').innerText")
    place = "document.querySelector('.grid').getBoundingClientRect().top"
    top = page.run(place)
    page.press("n")
    assert "Cluster 2" in chosen(page) and "cluster=2" in here(page)
    assert page.run(place) == top, "nothing jumps"
    page.press("j", "j", "j")
    assert f"Cluster {CLUSTERS}" in chosen(page) and "not stable" in page.run(
        "document.querySelector('.cluster-facts').innerText"
    )
    page.press("p")
    page.run("document.querySelector('.list [aria-current]').focus()")
    page.press("ArrowUp")
    assert "Cluster 1" in chosen(page)
    page.click(".list li:nth-child(2) button")
    assert "Cluster 2" in chosen(page)
    page.run("history.back()")
    page.wait("document.querySelector('.list [aria-current]').innerText.includes('Cluster 1')")


def test_heat_maps_are_laid_over_the_pictures_and_taken_away(show):
    page = show("/clusters")
    plain = picture_of(page, ".cell canvas")
    page.press("h")
    assert page.run("document.querySelector('.main button').getAttribute('aria-pressed')") == "true"
    until(lambda: picture_of(page, ".cell canvas") != plain, "heat over the picture")
    assert "heat=1" in here(page)
    page.click(".main button")
    until(lambda: picture_of(page, ".cell canvas") == plain, "the plain picture again")


def test_a_member_is_enlarged_with_and_without_heat(show):
    page = show("/clusters")
    page.click(".cell[data-index='1']")
    page.press("Enter")
    page.wait("document.querySelector('dialog.zoom img').complete && !document.querySelector('dialog.zoom img').hidden")
    plain = picture_of(page, "dialog img")
    page.press("h")
    beside = ".stage + .stage img"
    page.wait(
        f"(image => image.src.includes('heat=true') && image.complete)(document.querySelector('dialog {beside}'))"
    )
    assert picture_of(page, "dialog img") == plain, "the picture stays as it is, its heat map stands beside it"
    assert picture_of(page, f"dialog {beside}") != plain
    kind, told = page.run("['figcaption', '.meaning-of'].map(one => document.querySelector(`dialog ${one}`).innerText)")
    assert f"the predicted class, {kind.split(' → ')[1].split(' · ')[0]}: red speaks for it, blue against it" in told
    assert violations(page) == []
    page.press("ArrowRight")
    page.wait("document.querySelector('dialog .bar p').textContent.startsWith('3 of')")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert page.run("document.querySelector('.cell.current').dataset.index") == "2"
    assert page.run("document.querySelector('.main button').getAttribute('aria-pressed')") == "true", (
        "stays as it was left"
    )


def test_the_animation_plays_and_the_members_are_shown_among_all_samples(show):
    page = show("/clusters?cluster=2")
    assert "/mean" in page.run("document.querySelector('.moving').src")
    page.press("g")
    page.wait(
        "document.querySelector('.moving').src.includes('/animation') && document.querySelector('.moving').complete"
    )
    assert page.run("document.querySelector('.moving').naturalWidth") > 0 and "play=1" in here(page)
    images = page.run("document.querySelector('.cluster-facts dd').innerText.split(',')[0]")
    page.press("s")
    page.wait("location.pathname === '/samples'")
    page.wait(f"document.querySelector('.tools p')?.textContent.startsWith('{images} of')")


# pairs, weak inputs, holes


def test_pairs_show_the_images_of_each_direction(show, whole_run):
    page = show("/pairs")
    errors = table(whole_run, "causes.errors")
    for _ in range(6):
        first, second = page.run("document.querySelector('.main h2').textContent").split(" and ")
        settled(page)
        told = page.run(
            "[...document.querySelectorAll('.gallery')]"
            ".map(part => [part.querySelector('h3').textContent, part.querySelectorAll('canvas').length])"
        )
        for (target, given), (title, count) in zip([(first, second), (second, first)], told, strict=True):
            assert title == f"{target}, taken for {given}"
            assert count == min(24, sum(row["target"] == target and row["prediction"] == given for row in errors))
        page.press("n")
    assert chosen(page) and "second=" in here(page)


def test_a_picture_of_a_pair_and_of_its_gallery_is_enlarged(show):
    page = show("/pairs")
    page.click(".strip button")
    page.wait("document.querySelector('dialog.zoom img').complete")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.click(".thumbs button")
    page.wait("document.querySelector('dialog figcaption').textContent.includes(', is ')")
    page.press("ArrowRight", "Enter")
    page.wait("!document.querySelector('dialog')")
    page.click(".gallery a")
    page.wait("location.pathname === '/samples' && document.querySelectorAll('.chip').length > 1")


def test_weak_inputs_stand_beside_their_neighbours(show, whole_run):
    page = show("/weak")
    assert HOSTILE in page.run("document.querySelector('figcaption').textContent")
    page.press("n", "Enter")
    page.wait("document.querySelector('dialog figcaption')?.textContent.includes('shape-0004')")
    page.press("ArrowRight", "Escape")
    page.wait("!document.querySelector('dialog')")
    assert "shape-0005" in chosen(page) and "id=shape-0005" in here(page)
    weak = sum(row["weak"] for row in table(whole_run, "robustness.neighbour_accuracy"))
    assert f"{weak} samples in the grid" in page.run("document.querySelectorAll('.gallery')[1].innerText")
    page.click(".main p a")
    page.wait("location.pathname === '/samples' && document.querySelector('.panel h2')?.textContent === 'shape-0005'")


def test_holes_show_the_nearest_training_images(show):
    page = show("/holes")
    page.press("n")
    told = page.run("document.querySelector('.main').innerText")
    assert "Hole 2" in told and "train-003" in told and "distance" not in told
    page.click(".thumbs button")
    page.wait("document.querySelector('dialog figcaption').textContent.includes('from those of the hole 0')")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.click(".thumbs a")
    page.wait(
        "location.search.includes('split=train') && document.querySelector('.panel h2')?.textContent === 'train-003'"
    )


# the map


@pytest.fixture(scope="module")
def places(whole_run):
    rows = table(whole_run, "robustness.weak_places")
    return np.array([[row["x"], row["y"]] for row in rows]), [row["id"] for row in rows]


def on_screen(page, place):
    """Where a point of the map is on the screen."""
    box = page.run(
        "(box => [box.left, box.top, box.width, box.height])(document.querySelector('.plane').getBoundingClientRect())"
    )
    left, right, low, high = page.limits
    scale = min(box[2] / ((right - left) * 1.1), box[3] / ((high - low) * 1.1))
    return box[0] + box[2] / 2 + (place[0] - (left + right) / 2) * scale, box[1] + box[3] / 2 - (
        place[1] - (low + high) / 2
    ) * scale


@pytest.fixture
def mapped(show, places):
    page = show("/map")
    xy = places[0]
    page.limits = (xy[:, 0].min(), xy[:, 0].max(), xy[:, 1].min(), xy[:, 1].max())
    return page


def test_a_point_shows_its_picture_on_hover_and_its_values_on_a_click(mapped, places):
    alone = int(np.argmax([np.sort(np.hypot(*(places[0] - here).T))[1] for here in places[0]]))
    x, y = on_screen(mapped, places[0][alone])
    mapped.hover(x + 1, y + 1)
    mapped.wait("!document.querySelector('.hover').hidden && document.querySelector('.hover img').complete")
    assert mapped.run("document.querySelector('.hover img').naturalWidth") > 0
    mapped.mouse("mousePressed", x, y)
    mapped.mouse("mouseReleased", x, y)
    mapped.wait(f"document.querySelector('.panel').innerText.includes('{places[1][alone]}')")
    assert f"sample={alone}" in here(mapped)
    mapped.hover(5, 5)
    mapped.wait("document.querySelector('.hover').hidden")


def test_a_lasso_selects_is_undone_and_leads_to_the_grid_and_to_csv(mapped, places):
    xy = places[0]
    centre, radius = np.array([1.0, 0.0]), 0.5
    circle = [centre + radius * np.array([math.cos(a), math.sin(a)]) for a in np.linspace(0, 2 * math.pi, 40)]
    inside = int((np.hypot(*(xy - centre).T) < radius).sum())
    mapped.drag([on_screen(mapped, point) for point in circle])
    mapped.wait("document.querySelector('.panel p').textContent.includes('selected')")
    found = int(mapped.run("document.querySelector('.panel p').textContent.split(' ')[0]"))
    assert abs(found - inside) <= 2 and found > 20, "up to points on the line itself"
    assert "lasso=" in here(mapped)
    mapped.press("u")
    assert "selected" not in mapped.run("document.querySelector('.panel p').textContent")
    mapped.press("Ctrl+Shift+z")
    keep_downloads(mapped)
    mapped.press("e")
    mapped.wait("window.offered")
    ids = [row["id"].removeprefix("'") for row in csv.DictReader(io.StringIO(written(mapped).removeprefix("\ufeff")))]
    assert len(ids) == found
    assert all(np.hypot(*(xy[places[1].index(name)] - centre)) < radius + 0.02 for name in ids)
    mapped.press("g")
    mapped.wait(
        f"location.pathname === '/samples' && document.querySelector('.tools p')?.textContent.startsWith('{found} of')"
    )
    settled(mapped)
    assert set(mapped.run("[...document.querySelectorAll('.cell')].map(cell => cell.title)")) <= set(ids)
    mapped.click("[aria-label='Remove the choice made on the map']")
    mapped.wait("document.querySelector('.tools p').textContent.startsWith('200 of')")


def test_without_a_mouse_a_rectangle_is_typed_and_points_are_gone_through(mapped, places):
    mapped.press("r")
    for number in (0.5, 1.5, -0.4, 0.4):
        mapped.press("Ctrl+a")
        mapped.type(f"{number:g}")
        mapped.press("Tab")
    mapped.press("Enter")
    x, y = places[0].T
    inside = int(((x > 0.5) & (x < 1.5) & (y > -0.4) & (y < 0.4)).sum())
    mapped.wait(f"document.querySelector('.panel p').textContent === '{inside} samples selected'")
    press_button(mapped, "Clear")
    assert mapped.run("document.querySelector('.panel p').textContent") == "200 samples"
    mapped.run("document.querySelector('.plane').focus()")
    mapped.press("ArrowRight")
    mapped.wait("document.querySelectorAll('.panel h2').length === 2")
    first = mapped.run("document.querySelectorAll('.panel h2')[1].textContent")
    mapped.press("ArrowUp")
    mapped.wait(f"document.querySelectorAll('.panel h2')[1].textContent !== '{first}'")
    second = mapped.run("document.querySelectorAll('.panel h2')[1].textContent")
    assert y[places[1].index(second)] > y[places[1].index(first)], "upwards"
    mapped.press("Enter")
    mapped.wait("document.querySelector('dialog.zoom[open]')")
    mapped.press("Escape")


def test_the_map_is_coloured_zoomed_and_moved(mapped):
    before = picture_of(mapped, ".plane canvas")
    mapped.press("c")
    choose(mapped, "neighbour_accuracy")
    mapped.wait("document.querySelector('.ramp')")
    mapped.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert picture_of(mapped, ".plane canvas") != before and "colour=neighbour_accuracy" in here(mapped)
    choose(mapped, "target")
    mapped.wait("document.querySelectorAll('.legend li').length === 4")
    assert HOSTILE in mapped.run("document.querySelector('.legend').innerText")
    whole = mapped.run("location.search")
    mapped.run("document.querySelector('.plane').focus()")
    mapped.press("+", "+", "Shift+ArrowLeft")
    closer = here(mapped)
    assert "view=" in closer and closer != whole
    x, y = mapped.middle(".plane canvas")
    mapped.wheel(x, y, down=-200)
    mapped.wait(f"(document.querySelector('.plane'), location.search !== {closer!r})")
    mapped.press("m")
    view = here(mapped)
    mapped.drag([(x, y), (x + 40, y), (x + 80, y + 30)])
    assert here(mapped) != view and "lasso" not in here(mapped) and "pan=1" in here(mapped)
    press_button(mapped, "Lasso")
    for words in ("Whole map", "Zoom in", "Zoom out"):
        view = here(mapped)
        press_button(mapped, words)
        assert here(mapped) != view and "pan=1" not in here(mapped), words
    assert violations(mapped) == []


# two Runs


@pytest.fixture(scope="module")
def became(whole_run, address):
    """What became of each sample, worked out from what `retrain` says that it does."""
    before = [not row["correct"] for row in table(whole_run, "causes.errors")]
    after, places = list(before), [n for n, wrong in enumerate(before) if wrong]
    for place in places[::2]:
        after[place] = False
    after[before.index(False)] = True
    kinds = {(False, True): "broken", (True, False): "fixed", (True, True): "incorrect", (False, False): "correct"}
    return [kinds[pair] for pair in zip(before, after, strict=True)]


def test_two_runs_show_what_was_fixed_and_what_was_broken(show, became):
    page = show("/compare")
    told = page.run(
        "[...document.querySelectorAll('[aria-label^=\"How the predictions\"] button')].map(one => one.innerText)"
    )
    for kind, word in (
        ("broken", "Broken"),
        ("fixed", "Fixed"),
        ("incorrect", "Incorrect in both"),
        ("correct", "Correct in both"),
    ):
        assert any(word in text and text.endswith(f" {became.count(kind)}") for text in told), kind
    page.press("f")
    page.wait(f"document.querySelector('main p.quiet').textContent.startsWith('{became.count('fixed')} of')")
    settled(page)
    shown = page.run("[...document.querySelectorAll('.cell')].map(cell => [cell.title, cell.dataset.outcome])")
    ids = {f"shape-{n:04d}" if n else "=1+1" for n, kind in enumerate(became) if kind == "fixed"}
    assert shown and all(name in ids and kind == "fixed" for name, kind in shown) and "outcome=fixed" in here(page)
    page.press("ArrowRight", "Enter")
    page.wait("document.querySelector('dialog figcaption')?.textContent.includes('fixed')")
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert "incorrect before, correct after" in page.run("document.querySelector('.panel').innerText")
    assert page.run("[...document.querySelectorAll('.panel .differs th')].map(one => one.innerText)") == ["Correct"]
    links = page.run("[...document.querySelectorAll('.panel a')].map(link => link.getAttribute('href'))")
    assert links[0].startswith("/samples?split=test") and links[1].startswith("/samples?run=1&split=test")


def test_in_two_runs_one_searches_sorts_and_reads_the_numbers(show):
    page = show("/compare?outcome=broken")
    page.click("[aria-label^='How the predictions'] button")
    page.wait("document.querySelector('main p.quiet').textContent.startsWith('200 of')")
    page.press("/")
    page.type("0017")
    page.wait("document.querySelector('main p.quiet').textContent.startsWith('1 of')")
    page.run("document.querySelector('main select').focus()")
    choose(page, "-change.neighbour_accuracy")
    page.wait("location.search.includes('change')")
    page.click("summary")
    page.wait("document.querySelector('.numbers tbody tr')")
    assert violations(page) == []
    numbers = page.run("document.querySelector('.numbers tbody tr').innerText").split("\t")
    assert numbers[:4] == ["Error share", "29 %", "15 %", "-14 %"] and numbers[-1] == "better"
    rows = page.run("[...document.querySelectorAll('.numbers table:last-of-type tbody tr')].map(row => row.innerText)")
    assert any(row.startswith("correct causes.errors\t71 %\t85 %\t14 %") and row.endswith("better") for row in rows)


def test_root_causes_show_wrong_images_beside_correct_ones_like_them(show):
    page = show("/causes")
    told = page.run("document.querySelector('.main').innerText")
    for words in ("dark (light < 0.2)", "Confirmed on images", "where it holds", "60 %", "50 % to 70 %", "10 %"):
        assert words in told
    assert page.run("[...document.querySelectorAll('.pair-of h3')].map(one => one.textContent)") == [
        "Wrong", "Correct, and like them",
    ]  # fmt: skip
    lines = page.run(
        "[...document.querySelectorAll('.pair-of section')].map(one => one.querySelector('li span').textContent)"
    )
    assert " → " in lines[0] and " → " not in lines[1]
    wide = page.run("[...document.querySelectorAll('.filled')].map(one => one.getBoundingClientRect().width)")
    assert wide[0] == pytest.approx(6 * wide[1], rel=0.02), "both rates on one scale"
    page.press("n")
    page.wait("document.querySelector('.main').innerText.includes('A suspicion')")
    page.press("n")
    page.wait("document.querySelector('.main h2').textContent === 'Labels to check'")
    page.press("p")
    page.wait(
        "document.querySelector('.main h2').textContent.includes('script') && document.querySelector('.gallery p a')"
    )
    settled(page)
    page.run("document.querySelector('.gallery p a').click()")  # wherever it has moved to meanwhile
    page.wait("location.pathname === '/samples' && document.querySelector('.panel h2')")
    assert "Root cause 2" in page.run("document.querySelector('.panel').innerText")


def test_a_number_of_the_first_page_leads_to_the_samples_behind_it(show):
    page = show("/")
    page.click(".answers a[title]")
    page.wait(
        "location.pathname === '/samples' && location.search.includes('filter') && document.querySelector('.cell')"
    )
    assert "behind" not in page.run("location.search")
    told = page.run("document.querySelector('.tools [role=status]').textContent")
    assert not told.startswith("200 of") and told.endswith("of 200 samples")


def test_a_finger_swipes_through_enlarged_pictures(show):
    page = show("/clusters")
    page.click(".cell[data-index='0']")
    page.press("Enter")
    page.wait("document.querySelector('dialog .bar p')?.textContent.startsWith('1 of')")
    moved = (
        "(kind, x, pointerType) => document.querySelector('dialog figure')"
        ".dispatchEvent(new PointerEvent(kind, {pointerType, clientX: x, bubbles: true}))"
    )
    for begin, end, kind, place in (
        (300, 200, "touch", 2),
        (200, 190, "touch", 2),
        (300, 100, "mouse", 2),
        (100, 300, "touch", 1),
    ):
        page.run(f"({moved})('pointerdown', {begin}, '{kind}'), ({moved})('pointerup', {end}, '{kind}')")
        assert page.run("document.querySelector('dialog .bar p').textContent").startswith(f"{place} of")
    page.press("Escape")
