"""The lesion page in a real browser: list, linked planes, window, outlines, and what is kept."""

import json
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from tests.viewer.driving import (
    DESKTOP,
    PHONE,
    assert_same_layout,
    beyond,
    needs_chromium,
    opened,
    serving,
    settled,
    violations,
)
from tests.viewer.lesion_runs import CASES, SHAPE, case_volume, lesion_run

pytestmark = needs_chromium
DRAWN = "[...document.querySelectorAll('.slice img')].every(image => image.complete && image.naturalWidth)"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    run = lesion_run(tmp_path_factory.mktemp("lesions") / "run")
    with serving(run.folder) as address:
        yield run, address


@pytest.fixture
def page(served, chromium):
    return ready(opened(chromium, served[1], "/lesions"))


def ready(page):
    page.wait("document.querySelector('.planes:not([hidden]) .slice figcaption')?.textContent")
    page.wait(DRAWN)
    settled(page)
    return page


def rows_of(run):
    """Every lesion, likely false ones first."""
    rows = run["lesions.scores"].table.to_pylist()
    return sorted(rows, key=lambda row: -row["false_positive_probability"])


def place(page):
    """Where the planes cut, (z, y, x), as they say."""
    told = page.run("[...document.querySelectorAll('.slice figcaption')].map(node => node.textContent)")
    return [int(text.split("·")[1].split("of")[0]) - 1 for text in told]


def await_place(page, wanted):
    """Until the planes cut there: what is of another case comes a moment later."""
    captions = (
        "[...document.querySelectorAll('.slice figcaption')].map(node => parseInt(node.textContent.split('·')[1]) - 1)"
    )
    page.wait(f"{captions}.join() === '{','.join(map(str, wanted))}'")


def given(page, name):
    """What stands in the address, once it does."""
    page.run("new Promise(done => setTimeout(done, 160))")
    return parse_qs(urlsplit(page.run("location.href")).query).get(name, [None])[0]


def address_of(page, plane, layer):
    """What a plane shows."""
    number = ("axial", "coronal", "sagittal").index(plane) + 1
    page.wait(DRAWN)
    found = page.run(f"document.querySelector('.slice:nth-child({number}) .{layer}').src")
    return parse_qs(urlsplit(found).query), urlsplit(found).path


def stage(page, number, right, down):
    """A spot of a slice on the screen."""
    left, top, width, height = page.run(
        f"(() => {{ const box = document.querySelector('.slice:nth-child({number}) .stage').getBoundingClientRect();"
        " return [box.left, box.top, box.width, box.height]; })()"
    )
    return left + right * width, top + down * height


@pytest.mark.parametrize(("name", "size"), [("desktop", DESKTOP), ("phone", PHONE)])
def test_it_opens_cleanly_and_shuts_nobody_out(served, chromium, name, size):
    page = ready(opened(chromium, served[1], "/lesions?truth=1&below=0.6", size=size))
    assert violations(page) == []
    assert page.run("document.documentElement.scrollWidth") <= size[0]
    assert_same_layout(page, f"lesions-{name}")
    assert page.complaints() == []
    assert beyond(page, served[1]) == []


def test_the_likeliest_false_one_is_first_and_shown_where_it_is(page, served):
    rows = rows_of(served[0])
    told = page.run("[...document.querySelectorAll('.cell strong')].map(node => node.textContent)")
    assert told[:6] == [f"{row['false_positive_probability']:.2f}" for row in rows[:6]]
    for number in range(3):
        own = rows[number]
        await_place(page, [round(own[axis]) for axis in "zyx"])
        assert (given(page, "case"), given(page, "lesion")) == (own["case"], str(own["lesion"]))
        page.press("ArrowDown")
    page.click(".cell[data-index='1']")
    await_place(page, [round(rows[1][axis]) for axis in "zyx"])
    page.wait(f"document.querySelector('.about-lesion').textContent.includes({json.dumps(rows[1]['case'])})")
    page.press("k")
    await_place(page, [round(rows[0][axis]) for axis in "zyx"])
    assert page.complaints() == []


def test_a_link_leads_back_to_the_same_view(served, chromium):
    link = "/lesions?case=case-a&lesion=2&z=3&y=10&x=20&below=0.4&low=100&high=300&truth=1"
    page = ready(opened(chromium, served[1], link))
    assert place(page) == [3, 10, 20]
    grey, path = address_of(page, "coronal", "grey")
    assert (grey["low"], grey["high"], path) == (["100"], ["300"], "/api/lesions/case/0/slice/coronal/10")
    outlines, _ = address_of(page, "coronal", "outlines")
    assert (outlines["below"], outlines["truth"]) == (["0.4"], ["true"])
    assert page.run("document.querySelector('.keeping input').value") == "0.4"
    assert "Lesion2" in page.run("document.querySelector('.about-lesion').textContent")


def test_a_click_moves_the_other_planes(page):
    z, _, _ = place(page)
    x, y = stage(page, 1, 0.25, 0.75)
    page.drag([(x, y)])
    assert place(page) == [z, int(SHAPE[1] * 0.25), int(SHAPE[2] * 0.75)]  # both axes are shown turned round
    page.drag([stage(page, 2, 0.5, 0.125), stage(page, 2, 0.5, 0.875)])
    assert place(page) == [int(SHAPE[0] * 0.125), int(SHAPE[1] * 0.25), int(SHAPE[2] * 0.5)]
    lines = page.run("[...document.querySelectorAll('.slice:first-child .line')].map(node => node.style.cssText)")
    assert lines[1] == f"left: {100 * (1 - 16.5 / 32):g}%;"


def test_slices_are_stepped_with_wheel_slider_and_keys(page):
    start = place(page)
    x, y = stage(page, 3, 0.5, 0.5)
    page.hover(x, y)
    page.wheel(x, y, down=120)
    page.wait(f"document.querySelector('.slice:nth-child(3) figcaption').textContent.includes('{start[2] + 4} of')")
    page.press(".")
    assert place(page) == [start[0], start[1], start[2] + 4]
    page.press("2", ",")
    assert place(page) == [start[0], start[1] - 1, start[2] + 4]
    page.run("document.querySelector('.slice:first-child input').focus()")
    page.press("ArrowRight")
    assert place(page) == [start[0] + 1, start[1] - 1, start[2] + 4]
    assert [int(given(page, axis)) for axis in "zyx"] == place(page)


def test_the_window_is_dragged_typed_and_chosen(page):
    assert address_of(page, "axial", "grey")[0]["low"] == ["50"]
    x, y = stage(page, 1, 0.5, 0.5)
    before = place(page)
    page.press("w")
    page.drag([(x, y), (x + 50, y)])
    page.press("w")
    assert place(page) == before
    low, high = float(given(page, "low")), float(given(page, "high"))
    assert (low + high) / 2 == pytest.approx(235, rel=1e-3)
    assert high - low == pytest.approx(370 + 50 * 510 / 500, rel=1e-3)
    page.drag([(x, y), (x, y + 20)], held="Shift")
    assert float(given(page, "low")) == pytest.approx(low + 20 * 510 / 500, rel=1e-3)
    page.run(
        "(() => { const [level, width] = document.querySelectorAll('.controls input');"
        " level.value = 200; width.value = 100; width.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('.slice .grey').src.includes('low=150&high=250')")
    page.press("r")
    page.wait("document.querySelector('.slice .grey').src.includes('low=50&high=420')")
    page.run(
        "(() => { const preset = document.querySelectorAll('.controls select')[1];"
        " preset.value = '1'; preset.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('.slice .grey').src.includes('low=-10&high=500')")
    assert page.complaints() == []


def test_the_slider_says_how_many_true_and_false_ones_are_kept(page, served):
    rows = rows_of(served[0])
    for below in (0.3, 0.7):
        page.run(
            f"(() => {{ const own = document.querySelector('.keeping input'); own.value = {below};"
            " own.dispatchEvent(new Event('input')); })()"
        )
        kept = [row for row in rows if row["false_positive_probability"] < below]
        real = sum(row["true_positive"] for row in rows)
        told = page.run("document.querySelector('#kept').textContent")
        assert told == (
            f"Kept: {sum(row['true_positive'] for row in kept)} of {real} true lesions, "
            f"{sum(not row['true_positive'] for row in kept)} of {len(rows) - real} false positives"
        )
        gone = page.run("[...document.querySelectorAll('.cell')].map(cell => cell.classList.contains('dropped'))")
        assert gone == [row["false_positive_probability"] >= below for row in rows][: len(gone)]
        page.wait(f"document.querySelector('.slice .outlines').src.includes('below={below}')")
    assert given(page, "below") == "0.7"


def test_truth_is_drawn_on_request(page):
    assert "truth" not in address_of(page, "axial", "outlines")[0]
    page.press("t")
    page.wait("document.querySelector('.slice .outlines').src.includes('truth=true')")
    assert given(page, "truth") == "1"


def test_zoom_shows_the_place_at_hand_larger(page):
    before = page.run("document.querySelector('.slice .stage').getBoundingClientRect().width")
    page.press("+", "+")
    page.wait("document.querySelector('.slice .frame').classList.contains('enlarged')")
    boxes = page.run(
        "['.frame', '.stage', '.line.down'].map(name => document.querySelector('.slice ' + name))"
        ".map(node => node.getBoundingClientRect()).map(box => [box.left, box.width])"
    )
    (left, width), (_, large), (line, _) = boxes
    assert large == pytest.approx(4 * before, rel=0.02) and left <= line <= left + width
    page.press("0")
    assert page.run("document.querySelector('.slice .stage').getBoundingClientRect().width") == pytest.approx(before)
    assert page.complaints() == []


def test_verdicts_are_given_by_key_and_stay(page):
    page.press("a")
    assert page.run("document.querySelector('.cell .mark').textContent") == "accepted"
    page.press("j", "x")
    assert page.run("[...document.querySelectorAll('.cell .mark')].map(node => node.textContent)") == [
        "accepted",
        "rejected",
    ]
    page.press("x")
    assert page.run("document.querySelectorAll('.cell .mark').length") == 1
    page.press("k", "a")
    assert page.run("document.querySelectorAll('.cell .mark').length") == 0


def test_verdicts_are_there_again_and_not_in_another_run(chromium, tmp_path):
    runs = [lesion_run(tmp_path / name) for name in ("one", "two")]
    mark = "document.querySelector('.cell .mark')?.textContent"
    with serving(runs[0].folder, runs[1].folder) as address:
        page = ready(opened(chromium, address, "/lesions"))
        page.press("x")
        page.click(".verdict textarea")
        page.type("a vessel")
        page.run("document.activeElement.blur()")
        settled(page)
        page.go(f"{address}/lesions?run=1")
        assert ready(page).run(mark) is None
        page.go(f"{address}/lesions")
        assert ready(page).run(mark) == "rejected"
        assert page.run("document.querySelector('.verdict textarea').value") == "a vessel"
        (runs[0].folder / "viewer.json").write_text("{")
        page.press("a")
        page.wait("document.body.textContent.includes('viewer.json is damaged')")
        assert page.run(mark) == "rejected", "as it was, since it could not be kept"


def test_an_overlay_is_off_until_asked_for_with_a_legend(page, tmp_path, chromium):
    legend = (
        "(bar => bar.closest('[hidden]') ? '' : bar.nextElementSibling.innerText)"
        "(document.querySelector('.ramp-bar.dark'))"
    )
    assert page.run(legend) == "" and "over=" not in address_of(page, "axial", "outlines")[0]
    told = {"probability": "mean probability of a lesion 1", "entropy": "entropy of the mean, in nats 0.69"}
    for over, words in told.items():
        page.press("o")
        page.wait(f"document.querySelector('.slice .outlines').src.includes('over={over}')")
        assert given(page, "over") == over and words in page.run(legend)
    page.press("b")
    page.wait("!document.querySelector('.slice .outlines').src.includes('over=')")
    assert page.run(legend) == "", "nor does an unbiased read show it"
    page.press("b", "o")
    page.wait("!document.querySelector('.slice .outlines').src.includes('over=')")
    assert given(page, "over") in (None, "") and page.complaints() == []
    with serving(lesion_run(tmp_path / "run", maps=False).folder) as address:
        other = ready(opened(chromium, address, "/lesions?over=entropy"))
        other.press("o")
        assert other.run(legend) == "" and other.run("document.body.innerText.includes('Overlay')") is False
        assert other.complaints() == []


def test_an_unbiased_read_shows_neither_truth_nor_probability(page):
    page.press("t")
    page.wait("document.querySelector('.slice .outlines').src.includes('truth=true')")
    page.press("b")
    page.wait("document.querySelector('.slice .outlines').src.includes('plain=true')")
    assert "truth" not in address_of(page, "axial", "outlines")[0]
    told = page.run("document.querySelector('main').innerText")
    assert "true lesion" not in told.replace("True lesions", "").replace("Purple: true lesions", "")
    assert "no lesion" not in told and page.run("document.querySelector('.keeping').hidden")
    assert set(page.run("[...document.querySelectorAll('.cell strong')].map(node => node.textContent)")) == {"–"}
    assert given(page, "blind") == "1"


def test_one_case_alone_and_other_orders(page, served):
    page.run(
        "(() => { const own = document.querySelectorAll('.listed select')[1]; own.value = 'case-a';"
        " own.dispatchEvent(new Event('change')); })()"
    )
    page.wait("[...document.querySelectorAll('.cell .line:first-child')].every(l => l.textContent.includes('case-a'))")
    assert given(page, "only") == "case-a"
    page.run(
        "(() => { const own = document.querySelectorAll('.listed select')[2]; own.value = 'probability';"
        " own.dispatchEvent(new Event('change')); })()"
    )
    told = page.run("[...document.querySelectorAll('.cell strong')].map(node => Number(node.textContent))")
    assert told == sorted(told)
    assert len(told) == case_volume(0)[1].max()


def test_without_volumes_the_list_works(tmp_path, chromium):
    run = lesion_run(tmp_path / "run", volumes=False, scored=False, truth=False)
    with serving(run.folder) as address:
        page = opened(chromium, address, "/lesions")
        page.wait("document.querySelectorAll('.cell').length > 5")
        assert "volumes: true" in page.run("document.querySelector('.looked-at .caution').textContent")
        assert page.run("document.querySelector('.keeping').hidden && document.querySelector('.planes').hidden")
        page.press("ArrowDown")
        assert page.run("document.querySelector('.cell.current').dataset.index") == "1"
        assert page.complaints() == []


def test_names_are_text(page):
    assert page.run("document.querySelectorAll('main i').length") == 0
    assert CASES[2] in page.run("document.querySelector('.listed').textContent")


def test_the_modules_count_as_by_hand(page):
    told = page.run(
        """Promise.all([import('/static/lesion_table.js'), import('/static/planes.js')]).then(([lesions, own]) => {
          const table = new lesions.LesionTable({case: ['a', 'a', 'b'], lesion: [1, 2, 1], voxels: [5, 9, 7],
            false_positive_probability: [0.2, null, 0.8], true_positive: [true, true, false]});
          const volume = [10, 20, 40];
          return {
            rows: [table.rows(), table.rows('a', 'voxels'), table.rows('', 'probability')],
            counts: table.counts([0, 1, 2], 0.5), find: [table.find('b', 1), table.find('b', 2)],
            spots: own.PLANES.map(plane => own.spot(plane, [0, 19, 9.5], volume)),
            places: own.PLANES.map(plane => own.placeAt(plane, 0, 0.999, [4, 5, 6], volume)),
            stepped: own.stepped('axial', 99, [4, 5, 6], volume),
            fitted: own.fitted({width: 100, height: 50}, {width: 60, height: 60}),
            dragged: own.dragged({low: 0, high: 100}, 10, -5, 500),
            presets: [own.presets({low: 1, high: 2, smallest: 0, largest: 3}).length,
              own.presets({low: 1, high: 2, smallest: -1024, largest: 3000}).find(([name]) => name === 'lung')],
          };
        })"""
    )
    assert told["rows"] == [[2, 0, 1], [1, 0], [0, 2, 1]]
    assert told["counts"] == {"all": 3, "kept": 2, "true": 2, "trueKept": 2, "false": 1, "falseKept": 0}
    assert told["find"] == [2, -1]
    assert np.allclose(told["spots"], [[0.75, 0.025], [0.75, 0.95], [0.025, 0.95]])
    assert told["places"] == [[4, 0, 39], [0, 5, 39], [0, 19, 6]]
    assert (told["stepped"], told["fitted"]) == ([9, 5, 6], {"width": 60, "height": 30})
    assert told["dragged"] == {"low": -10, "high": 100}
    assert told["presets"] == [2, ["lung", -1350, 150]]
