"""Saved views, keys of one's own, verdicts on lesions, and what a page says of a Run that changes."""

import json
import shutil

import numpy as np
import pytest

from tests.viewer.driving import opened, serving, settled
from tests.viewer.label_runs import label_run
from tests.viewer.runs import client_of
from weakspot.causes.labelling import RunLabels
from weakspot.causes.nearest_pages import appearance
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run
from weakspot.viewer.settings import FILE, MOST_VERDICTS, MOST_VIEWS


@pytest.fixture
def folder(whole_run, tmp_path):
    return shutil.copytree(whole_run, tmp_path / "run")


def views(client):
    return client.get("/api/settings").json()["views"]


def test_a_view_is_kept_under_its_name_replaced_and_removed(folder):
    client = client_of(folder)
    assert client.get("/api/settings").json() == {"views": [], "keys": {}}
    for name, address in (("dark", "/samples?sort=id"), ("map", "/map"), ("dark", "/samples?sort=-id")):
        assert client.put("/api/settings/views", json={"name": name, "address": address}).status_code == 200
    assert views(client) == [{"name": "map", "address": "/map"}, {"name": "dark", "address": "/samples?sort=-id"}]
    assert views(client_of(folder)) == views(client), "another viewer of the Run has them too"
    client.put("/api/settings/views", json={"name": "map", "address": None})
    assert [one["name"] for one in views(client)] == ["dark"]


@pytest.mark.parametrize(
    "address",
    ["https://elsewhere/samples", "//elsewhere", "javascript:alert(1)", "/api/run", "/samples#x", "/samples?\n"],
)
def test_a_view_leads_to_no_other_place(folder, address):
    client = client_of(folder)
    answer = client.put("/api/settings/views", json={"name": "x", "address": address})
    assert answer.status_code == 400 and "is no page of the viewer" in answer.json()["error"]
    made = {"views": [{"name": "x", "address": address}], "keys": {}}
    (folder / FILE).write_text(json.dumps(made))
    assert views(client) == [], "nor does one that came with the Run"


def test_there_are_only_so_many_views(folder):
    made = {"views": [{"name": str(n), "address": "/map"} for n in range(MOST_VIEWS)], "keys": {}}
    (folder / FILE).write_text(json.dumps(made))
    client = client_of(folder)
    assert (
        "remove one first" in client.put("/api/settings/views", json={"name": "n", "address": "/map"}).json()["error"]
    )
    assert client.put("/api/settings/views", json={"name": "7", "address": "/samples"}).status_code == 200


VERDICT = {"split": "test", "case": "a", "lesion": 3, "verdict": "rejected", "note": "a vessel", "blind": True}


def judged(client, split="test"):
    return client.get("/api/settings/verdicts", params={"split": split}).json()["verdicts"]


def test_a_verdict_belongs_to_its_run_and_split_and_is_replaced_or_taken_back(tmp_path):
    client, other = (client_of(Run.create(tmp_path / name).folder) for name in ("one", "two"))
    client.put("/api/settings/keys", json={"keys": {"q": "circle"}})
    later = {**VERDICT, "verdict": "accepted", "note": ""}
    for given in (VERDICT, {**VERDICT, "lesion": 4}, {**VERDICT, "split": "validation"}, later):
        assert client.put("/api/settings/verdicts", json=given).json() == given
    assert judged(client) == [{**VERDICT, "lesion": 4}, later]
    assert judged(client, "validation") == [{**VERDICT, "split": "validation"}]
    assert judged(client_of(tmp_path / "one")) == judged(client), "another viewer of the Run has them too"
    assert judged(other) == []
    client.put("/api/settings/verdicts", json={**VERDICT, "verdict": "", "note": ""})
    assert judged(client) == [{**VERDICT, "lesion": 4}]
    assert client.get("/api/settings").json() == {"views": [], "keys": {"q": "circle"}}


@pytest.mark.parametrize(
    "odd", [{"verdict": "maybe"}, {"lesion": -1}, {"note": "x" * 2001}, {"case": None}, {"split": "s" * 201}]
)
def test_a_verdict_that_is_none_is_refused(tmp_path, odd):
    folder = Run.create(tmp_path / "run").folder
    answer = client_of(folder).put("/api/settings/verdicts", json=VERDICT | odd)
    assert answer.status_code == 422 and next(iter(odd)) in answer.json()["error"]
    assert not (folder / FILE).exists()


def test_there_are_only_so_many_verdicts_and_so_much_text(tmp_path):
    folder = Run.create(tmp_path / "run").folder
    client = client_of(folder)
    for number, note, words in ((MOST_VERDICTS, "", "take one back first"), (2000, "x" * 1950, "shorten notes")):
        made = [{**VERDICT, "lesion": lesion, "note": note} for lesion in range(number)]
        (folder / FILE).write_text(json.dumps({"views": [], "keys": {}, "verdicts": made}, separators=(",", ":")))
        before = (folder / FILE).read_bytes()
        for new in range(number, number + 50):
            answer = client.put("/api/settings/verdicts", json={**VERDICT, "lesion": new, "note": "x" * 2000})
            if answer.status_code != 200:
                break
            before = (folder / FILE).read_bytes()
        assert answer.status_code == 400 and words in answer.json()["error"]
        assert (folder / FILE).read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"views": [1], "keys": {}}',
        '{"views": [], "keys": {"a": 1}}',
        '{"views": [], "keys": {}, "verdicts": [1]}',
    ],
)
def test_a_damaged_file_is_told_and_left(folder, content):
    (folder / FILE).write_text(content)
    client = client_of(folder)
    for answer in (
        client.get("/api/settings"),
        client.put("/api/settings/keys", json={"keys": {}}),
    ):
        assert answer.status_code == 409 and "viewer.json is damaged" in answer.json()["error"]
    assert (folder / FILE).read_text() == content


def test_a_key_is_a_single_sign(folder):
    client = client_of(folder)
    assert client.put("/api/settings/keys", json={"keys": {"q": "circle"}}).json()["keys"] == {"q": "circle"}
    for key in ("?", " ", "ab", "", "\n"):
        answer = client.put("/api/settings/keys", json={"keys": {key: "circle"}})
        assert answer.status_code == 400 and "expected a single letter" in answer.json()["error"]
    assert client.get("/api/settings").json()["keys"] == {"q": "circle"}


def test_a_view_is_saved_opened_and_removed_on_the_page(folder, chromium):
    with serving(folder) as served:
        page = opened(chromium, served, "/samples?filter=correct:is:no&sort=-neighbour_accuracy")
        settled(page)
        page.press("v")
        page.wait("document.querySelector('dialog.views .quiet')")
        page.click(".views input")
        page.type("wrong ones")
        page.press("Enter")
        page.wait("document.querySelector('.views li a')?.textContent === 'wrong ones'")
        page.press("Escape")
        page.go(f"{served}/")
        settled(page)
        page.click("#views")
        page.wait("document.querySelector('.views li a')")
        page.click(".views li a")
        page.wait("location.pathname === '/samples' && document.body?.textContent.includes('correct is no')")
        assert page.run("location.search") == "?filter=correct%3Ais%3Ano&sort=-neighbour_accuracy"
        settled(page)
        page.click("#views")
        page.wait("document.querySelector('.views li button')")
        page.click(".views li button")
        page.wait("document.querySelector('.views li.quiet')")
        assert page.complaints() == []


def test_a_page_tells_what_an_examination_has_added(folder, chromium):
    with serving(folder) as served:
        page = opened(chromium, served, "/samples")
        settled(page)
        assert page.run("document.getElementById('news').textContent") == ""
        table = table_of({"id": np.array(["shape-0001"]), "glare": np.array([0.5])})
        data = Run.open(folder).manifest()["data"]["test"]["fingerprint"]
        Run.open(folder).save(Finding("my.glare", "Glare.", table=table, provenance={"data": data}))
        page.wait("document.getElementById('news').textContent.includes('1 Finding changed since')")
        (folder / "work").mkdir()
        page.wait("document.getElementById('news').textContent.includes('is being examined')")
        page.click("#news button")
        page.wait("document.querySelector('.panel')?.textContent.includes('Glare')")
        assert "changed since" not in page.run("document.getElementById('news').textContent")


def test_an_image_is_unusable_by_its_key_and_by_a_key_of_ones_own(chromium, tmp_path):
    run = label_run(tmp_path / "run", images=6)
    with serving(run.folder) as served:
        page = opened(chromium, served, "/label?image=image%20000")
        page.wait("document.querySelector('.labelling:not([hidden]) figcaption strong')")
        page.press("x")
        page.wait("document.querySelector('.bar strong').textContent.startsWith('1 of')")
        page.click(".own summary")
        for field, words in ((".own input[size]", "d"), (".own input:not([size])", "dog")):
            page.click(field)
            page.type(words)
        page.press("Enter")
        page.wait("document.querySelector('.own li')?.textContent.includes('dog')")
        page.run("document.activeElement.blur()")
        page.press("d")
        page.wait("document.querySelector('.bar strong').textContent.startsWith('2 of')")
        page.wait("document.querySelector('.bar .quiet').textContent === 'all on disk'")
        assert sorted(RunLabels(run).by_id().values()) == ["dog", "unusable"]
        page.press("u")
        page.wait("document.querySelector('.bar strong').textContent.startsWith('1 of')")
        shown = "document.querySelector('.given').textContent"
        page.wait(f"{shown} === 'no label yet'")
        assert page.complaints() == []


def test_the_training_images_most_alike_are_those_of_the_same_shape(whole_run, tmp_path):
    """Shapes differ by class, and by how bright they are: the class decides."""
    folder = shutil.copytree(whole_run, tmp_path / "run")
    pictures = Run.open(folder)["data.pictures"].arrays["pixels"][:9]
    run = label_run(tmp_path / "unsafe", images=9)
    made = run["causes.unsafe"]
    arrays = {name: np.array(array) for name, array in made.arrays.items()} | {"thumbnails": np.array(pictures) // 4}
    Run.open(folder).save(Finding(made.name, made.about, summary=made.summary, table=made.table, arrays=arrays))
    client = client_of(folder)
    target = Run.open(folder)["causes.errors"].table.to_pylist()
    classes = {row["id"]: row["target"] for row in target}
    names = Run.open(folder)["data.pictures"].table["id"].to_pylist()
    order = ["circle", "square", "triangle"]
    for number in range(9):
        found = client.get(f"/api/label/nearest/{number}").json()["nearest"]
        kinds = {int(one["id"].removeprefix("train-")) % 4 for one in found["images"]}
        kind = classes[names[number]]
        assert len(found["images"]) == 6 and kinds == {order.index(kind) if kind in order else 3}
    assert client.get("/api/label/nearest/9").status_code == 404
    assert client_of(run.folder).get("/api/label/nearest/0").json() == {"nearest": None}


@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (33, 17), (1, 1)])
def test_what_is_compared_has_one_size_whatever_a_picture_has(shape):
    pictures = np.random.default_rng(0).integers(0, 255, (2, *shape, 3), dtype=np.uint8)
    assert appearance(pictures).shape == (2, 8 * 8 * 3)
