"""The labelling page in a real browser: every key and button, what is on disk afterwards, and what is told when not."""

import json
import resource
import shutil

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
from tests.viewer.label_runs import label_run, plan_finding, unsafe_finding
from weakspot.causes.labelling import RunLabels
from weakspot.core.run import Run

pytestmark = needs_chromium
ON_DISK = "document.querySelector('.bar .quiet').textContent === 'all on disk'"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of one Run, whose labels each test takes away again."""
    run = label_run(tmp_path_factory.mktemp("label") / "run", images=30)
    with serving(run.folder) as address:
        yield run, address


@pytest.fixture
def run(served):
    (served[0].folder / "labels.jsonl").unlink(missing_ok=True)
    return served[0]


@pytest.fixture
def page(run, served, chromium):
    return ready(opened(chromium, served[1], "/label"))


def ready(page):
    page.wait("document.querySelector('.labelling:not([hidden]) figcaption strong')")
    settled(page)
    return page


def known(page, run):
    page.wait(ON_DISK)
    return RunLabels(run).by_id()


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)}).textContent")


def at(page):
    return text(page, "figcaption strong")


def test_a_plan_of_few_labels_stands_beside_the_unsafe_set(tmp_path, chromium):
    run = label_run(tmp_path / "run", images=6)
    run.save(plan_finding())
    with serving(run.folder) as address:
        page = ready(opened(chromium, address, "/label"))
        assert at(page) == "image 000" and "Few labels for the accuracy" in text(page, "main")
        page = ready(opened(chromium, address, "/label?of=classes.label_plan"))
        assert at(page) == "frame 00" and violations(page) == []
        assert "distance" not in text(page, "figcaption") and "weakspot classes label RUN" in text(page, "main")
        page.press("1")
        page.wait("document.querySelector('figcaption strong').textContent === 'frame 01'")
        assert known(page, run) == {"frame 00": "dog"}


@pytest.mark.parametrize(("name", "size"), [("desktop", DESKTOP), ("phone", PHONE)])
def test_it_opens_cleanly_and_shuts_nobody_out(run, served, chromium, name, size):
    page = ready(opened(chromium, served[1], "/label?image=image%20003", size=size))
    assert at(page) == "image 003"
    assert violations(page) == []
    assert page.run("document.documentElement.scrollWidth") <= size[0]
    assert_same_layout(page, f"label-{name}")
    assert page.complaints() == []
    assert beyond(page, served[1]) == []


def test_digits_label_and_the_next_image_comes(page, run):
    assert "cat" not in text(page, ".prediction")
    page.press("1", "0", "2")
    assert known(page, run) == {"image 000": "dog", "image 001": "cat", "image 002": "<b>owl</b>"}
    assert at(page) == "image 003"
    assert text(page, "main > .bar strong") == "3 of 30 images labelled"
    assert text(page, ".chooser [aria-current] .counts") == "3 of 10 labelled"
    assert (
        page.run("location.search") == "?image=image+003" or page.wait("location.search === '?image=image+003'") is None
    )
    page.press("u", "Ctrl+z")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('1 of')")
    assert known(page, run) == {"image 000": "dog"}
    assert at(page) == "image 001", "the image whose label was taken away is shown again"
    assert text(page, ".given") == "no label yet"
    shown = page.run("[...document.querySelectorAll('.strip-of-images button.done')].map(one => one.ariaLabel)")
    assert shown == ["image 000, labelled dog"]
    page.press("Ctrl+Shift+Z")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('2 of')")
    assert known(page, run) == {"image 000": "dog", "image 001": "cat"}
    page.click(".strip-of-images li:first-child button")
    assert at(page) == "image 000"
    assert text(page, ".given") == "labelled dog"
    page.press("Backspace")
    page.wait("document.querySelector('.given').textContent === 'no label yet'")
    assert known(page, run) == {"image 001": "cat"}
    assert page.complaints() == []


def test_moving_without_labelling(page, run):
    page.press("ArrowRight", "s", "Space")
    assert at(page) == "image 003"
    page.press("ArrowLeft")
    assert at(page) == "image 002"
    page.press("ArrowDown")
    assert at(page) == "image 010"
    page.press("ArrowUp")
    assert at(page) == "image 000"
    page.click(".chooser li:last-child button")
    assert at(page) == "image 020"
    assert known(page, run) == {}


def test_jump_to_the_next_unlabelled_goes_around_the_end(run, served, chromium):
    RunLabels(run).change({f"image {number:03d}": "cat" for number in (*range(5), 29)})
    page = ready(opened(chromium, served[1], "/label?image=image%20028"))
    page.press("1")
    assert at(page) == "image 005"
    page.press("ArrowLeft", "ArrowLeft", "n")
    assert at(page) == "image 005"


def test_the_prediction_is_shown_on_request_alone(page):
    assert not any("/prediction/" in url for url in page.requests())
    page.press("g")
    page.wait("document.querySelector('.prediction').textContent === 'The model predicts cat.'")
    page.press("g")
    page.wait("document.querySelector('.prediction').textContent === ''")
    page.press("g")
    page.wait("document.querySelector('.prediction').textContent")
    page.press("ArrowRight")
    assert text(page, ".prediction") == ""


def test_names_are_text_and_pictures_grow(page):
    assert text(page, ".answer li:last-child button").endswith("<b>owl</b>")
    assert page.run("document.querySelectorAll('main b').length") == 0
    page.press("Enter")
    page.wait("document.querySelector('dialog.zoom img').naturalWidth === 16")
    page.press("ArrowRight", "Escape")
    page.wait("!document.querySelector('dialog')")
    assert at(page) == "image 001"
    page.press("?")
    assert "label as dog" in text(page, "dialog.help")
    page.press("Escape")


def test_buttons_do_what_keys_do(page, run):
    page.click(".answer li:nth-child(2) button")
    page.wait("document.querySelector('figcaption strong').textContent === 'image 001'")
    assert known(page, run) == {"image 000": "dog"}
    page.click("main > .bar button:nth-of-type(1)")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('0 of')")
    page.wait("!document.querySelector('main > .bar button:nth-of-type(2)').disabled")
    page.click("main > .bar button:nth-of-type(2)")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('1 of')")
    assert known(page, run) == {"image 000": "dog"}


def test_csv_in_and_out(page, run, tmp_path):
    (tmp_path / "mine.csv").write_text("id,label\nimage 004,dog\nimage 005,1\n")
    (tmp_path / "bad.csv").write_text("id,label\nimage 004,cow\n")
    give_file(page, tmp_path / "mine.csv")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('2 of')")
    assert known(page, run) == {"image 004": "dog", "image 005": "dog"}
    out = page.run("fetch(document.querySelector('a[download]').href).then(told => told.text())")
    assert "image 004,1,0.137931,dog\n" in out
    page.press("u")
    page.wait("document.querySelector('main > .bar strong').textContent.startsWith('0 of')")
    assert known(page, run) == {}
    give_file(page, tmp_path / "bad.csv")
    page.wait("document.querySelector('#trouble').textContent.includes('bad.csv:2: \\'cow\\' is not a class')")
    assert known(page, run) == {}


def give_file(page, path):
    send = page.browser.send
    root = send("DOM.getDocument")["root"]["nodeId"]
    node = send("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
    send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])


def test_what_another_has_labelled_is_not_overwritten(page, run):
    RunLabels(run).change({"image 000": "cat"})
    page.press("1")
    page.wait("document.querySelector('#trouble').textContent.includes('labelled elsewhere meanwhile')")
    page.wait("document.querySelector('.given').textContent === 'labelled cat'")
    assert at(page) == "image 000"
    assert known(page, run) == {"image 000": "cat"}


def test_a_full_disk_is_told_and_the_label_is_not_shown_as_given(page, run):
    page.press("1")
    assert known(page, run) == {"image 000": "dog"}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((run.folder / "labels.jsonl").stat().st_size, before[1]))
    try:
        page.press("2")
        page.wait("document.querySelector('#trouble').textContent.includes('check free space')")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    page.wait("document.querySelector('.given').textContent === 'no label yet'")
    assert at(page) == "image 001"
    page.press("2")
    page.wait("document.querySelector('figcaption strong').textContent === 'image 002'")
    assert known(page, run) == {"image 000": "dog", "image 001": "<b>owl</b>"}


MANY = tuple(f"{kind} {number}" for kind in ("red", "blue") for number in range(8))


@pytest.mark.parametrize(
    ("options", "keys", "kept"),
    [
        ({"classes": MANY}, ["blue 3", "Enter", "3", "ArrowDown", "Enter"], ["blue 3", "blue 3"]),
        ({"classes": MANY}, ["ed", "Enter"], ["red 0"]),
        ({"task": "multilabel"}, ["do", "Enter"], None),
        ({"task": "multilabel"}, ["dog; cat", "Enter", ";", "Enter"], ["dog;cat", ";"]),
        ({"task": "regression", "outputs": 1}, ["-1.5", "Enter"], ["-1.5"]),
        ({"task": "keypoints", "outputs": 2}, ["1 2", "Enter"], ["1.0 2.0"]),
    ],
)
def test_other_answers_are_typed(run, served, chromium, options, keys, kept):
    everything = run["causes.unsafe"]
    run.save(unsafe_finding(images=4, clusters=1, **options))
    try:
        page = ready(opened(chromium, served[1], "/label"))
        page.press("/")
        for key in keys:
            page.press(key) if key in ("Enter", "ArrowDown") else page.type(key)
        if kept is None:
            page.wait("document.querySelector('#trouble').textContent.includes('is not a class')")
            assert known(page, run) == {}
            return
        assert known(page, run) == {f"image {number:03d}": label for number, label in enumerate(kept)}
        page.press("Escape", "u")
        page.wait(f"document.querySelector('main > .bar strong').textContent.startsWith('{len(kept) - 1} of')")
        assert page.complaints() == []
    finally:
        run.save(everything)


def test_a_label_that_waits_for_the_server_is_not_said_to_be_on_disk(page, run):
    """From the very key on until the last of several labels is there; nobody leaves the page unasked meanwhile."""
    told = page.run(
        """(() => { const said = () => document.querySelector('.bar .quiet').textContent, trail = [said()];
            for (const key of ['1', '0']) {
                document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
                trail.push(said());
            }
            const leaving = new Event('beforeunload', {cancelable: true});
            dispatchEvent(leaving);
            return [...trail, leaving.defaultPrevented]; })()"""
    )
    assert told == ["all on disk", "saving …", "saving …", True]
    assert known(page, run) == {"image 000": "dog", "image 001": "cat"}


def test_the_errors_of_the_cluster_stand_below(whole_run, tmp_path, chromium):
    shutil.copytree(whole_run, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    run.save(unsafe_finding(images=6, clusters=2))
    with serving(run.folder) as address:
        page = ready(opened(chromium, address, "/label"))
        page.wait("document.querySelectorAll('.errors:not([hidden]) img').length > 1")
        settled(page)
        assert page.run("document.querySelector('.errors img').naturalWidth") > 1
        assert page.run("document.querySelector('.errors a').getAttribute('href')") == "/clusters?cluster=1"
        page.press("ArrowDown")
        page.wait("document.querySelector('.errors a').getAttribute('href') === '/clusters?cluster=2'")
        assert page.complaints() == []


def test_the_module_counts_as_by_hand(page):
    told = page.run(
        """import('/static/labels.js').then(({ Labels, meant }) => {
          const columns = {id: [...'abcd'], cluster: [2, 1, 2, 1], distance: [], label: ['x', null, null, 'y']};
          const own = new Labels(columns);
          return {
            order: own.order, done: own.clusters.map(({places}) => own.done(places)), of: own.of(['d']),
            unlabelled: [own.unlabelled(2), own.unlabelled(1)], stepped: [own.stepped(2, 1), own.stepped(3, 1)],
            around: own.around(0, 1),
            meant: [meant(['cat', 'bobcat', 'dog'], 'CAT'), meant(['a', 'b'], '1'), meant(['a'], '7')],
          };
        })"""
    )
    assert told == {
        "order": [0, 2, 1, 3], "done": [1, 1], "of": {"d": "y"}, "unlabelled": [1, 2], "stepped": [1, 3],
        "around": [0], "meant": [["cat", "bobcat"], ["b"], []],
    }  # fmt: skip
