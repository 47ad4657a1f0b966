"""What the rooms found, as the browser gets it: compared with the Findings of a real examination."""

import io

import numpy as np
import pytest
from PIL import Image

from tests.viewer.runs import client_of
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run
from weakspot.heat_pictures import overlay


@pytest.fixture(scope="module")
def run(small_run):
    return Run.open(small_run)


def got(client, path, **query):
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pixels(client, path, **query):
    answer = client.get(path, params=query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def samples(client, filters, **query):
    return got(client, "/api/samples", filter=filters, limit=500, **query)


def test_the_overview_tells_answers_and_numbers(browser, run):
    told = got(browser, "/api/run")
    assert told["runs"][0]["subject"]["model"] == "EyeNet"
    assert told["runs"][0]["splits"]["test"] == {"label": "test", "samples": 100, "skipped": 0}
    assert told["runs"][0]["sampled"][:3] == ["test", "train", "pool"]
    assert told["runs"][0]["damaged"] == []
    assert [page["page"] for page in told["pages"]] == [
        "overview", "samples", "performance", "causes", "clusters", "label", "weak", "map", "pairs", "holes",
        "findings",
    ]  # fmt: skip
    assert [answer["room"] for answer in told["answers"]] == [
        "performance", "causes", "robustness", "classes", "coverage",
    ]  # fmt: skip
    sentence = "".join(part["text"] for part in told["answers"][2]["sentence"])
    assert "of the inputs are weak" in sentence
    assert {part["finding"] for part in told["answers"][2]["sentence"]} == {None, "robustness.neighbour_accuracy"}
    assert [finding["name"] for finding in told["findings"]] == run.names()
    summary = dict(next(one for one in told["findings"] if one["name"] == "causes.errors")["summary"])
    assert summary["errors"]["value"] == run["causes.errors"].summary["errors"].value


def test_clusters_are_those_of_the_finding(browser, run):
    finding = run["causes.root_causes"]
    told = got(browser, "/api/clusters")
    assert told["clusters"] == finding.table.to_pylist()
    assert (told["split"], told["images"], told["heat"]) == ("test", len(finding.arrays["image_id"]), True)
    listed = []
    for row in told["clusters"]:
        members = got(browser, f"/api/clusters/{row['cluster']}")["members"]
        assert len(members) == row["images"]
        assert members[0]["id"] == row["medoid"]
        assert [one["distance"] for one in members[1:]] == sorted(one["distance"] for one in members[1:])
        shown = samples(browser, [f"cluster:is:{row['cluster']}"])
        assert {one["id"] for one in shown["rows"]} == {one["id"] for one in members}
        assert {one["position"] for one in shown["rows"]} == {one["position"] for one in members}
        listed += [one["place"] for one in members]
    alone = got(browser, "/api/clusters/0")["members"]
    assert sorted(listed + [one["place"] for one in alone]) == list(range(told["images"]))
    assert (
        got(browser, "/api/clusters/1", offset=1, limit=1)["members"] == got(browser, "/api/clusters/1")["members"][1:2]
    )


def test_pictures_of_clusters_with_and_without_heat(browser, run):
    arrays = run["causes.root_causes"].arrays
    members = [one["place"] for one in got(browser, "/api/clusters/1")["members"]]
    assert (pixels(browser, f"/api/clusters/picture/{members[0]}") == arrays["thumbnails"][members[0]]).all()
    sheet = pixels(browser, "/api/clusters/1/sheet")
    height, width = arrays["thumbnails"].shape[1:3]
    assert (sheet[:height, width : 2 * width] == arrays["thumbnails"][members[1]]).all()
    heat = np.asarray(
        Image.fromarray(arrays["heat_pictures"][members[0]].astype(np.float32)).resize((width, height), 2)
    )
    expected = overlay(np.moveaxis(np.asarray(arrays["thumbnails"][members[0]]), 2, 0), heat)
    assert (pixels(browser, f"/api/clusters/picture/{members[0]}", heat=1) == expected).all()
    assert (pixels(browser, "/api/clusters/1/sheet", heat=1)[:height, :width] == expected).all()
    assert pixels(browser, "/api/clusters/1/mean").shape == (height, width, 3)
    answer = browser.get("/api/clusters/1/animation")
    with Image.open(io.BytesIO(answer.content)) as animation:
        assert (answer.headers["content-type"], animation.n_frames) == ("image/gif", min(len(members), 200))


def test_a_cluster_that_is_not_there(browser):
    assert "there is no cluster 99" in browser.get("/api/clusters/99").json()["error"]
    assert browser.get("/api/clusters/99/sheet").status_code == 404
    assert browser.get("/api/clusters/picture/99999").status_code == 404


def test_pairs_lead_to_the_images_of_each_direction(browser, run):
    told = got(browser, "/api/pairs")
    errors = run["causes.errors"].table.to_pylist()
    assert len(told["pairs"]) == run["classes.class_pairs"].table.num_rows
    seen = [max(row["first_taken_for_second"] or 0, row["second_taken_for_first"] or 0) for row in told["pairs"]]
    assert seen == sorted(seen, reverse=True)
    for row in told["pairs"][:5]:
        shown = samples(browser, row["filters"]["first_as_second"])
        expected = {e["id"] for e in errors if (e["target"], e["prediction"]) == (row["first"], row["second"])}
        assert {one["id"] for one in shown["rows"]} == expected
    pictured = [picture for row in told["pairs"] for picture in row["pictures"]]
    media = list(run["classes.class_pairs"].media.values())
    assert sorted(picture["number"] for picture in pictured) == list(range(len(media)))
    for picture in pictured:
        answer = browser.get(f"/api/media/classes.class_pairs/{picture['number']}", params={"v": picture["version"]})
        assert answer.content == media[picture["number"]].png
        assert picture["caption"] == media[picture["number"]].caption
        assert "immutable" in answer.headers["cache-control"]
    assert browser.get("/api/media/classes.class_pairs/999").status_code == 404
    assert browser.get("/api/media/none/0").status_code == 404


def test_pairs_by_the_outputs_alone_have_the_page_of_pairs(tmp_path):
    made = Run.create(tmp_path / "run")
    columns = {"first": ["a", "a"], "second": ["b", "c"], "soft_confusion": [0.1, 0.3], "confused": [False, False]}
    made.save(Finding("classes.output_pairs", table=table_of(columns)))
    client = client_of(made.folder)
    assert "pairs" in [page["page"] for page in got(client, "/api/run")["pages"]]
    told = got(client, "/api/pairs")
    assert (told["finding"], [row["soft_confusion"] for row in told["pairs"]]) == ("classes.output_pairs", [0.3, 0.1])
    assert not told["several_labels"]
    made.describe(subject={"task": "multilabel"}, data={})
    assert got(client, "/api/pairs")["several_labels"]


def test_weak_inputs_and_their_strips(browser, run):
    told = got(browser, "/api/weak")
    table = run["robustness.neighbour_accuracy"].table.to_pylist()
    weak = {row["id"] for row in table if row["weak"]}
    assert {row["id"] for row in samples(browser, told["filters"])["rows"]} == weak
    correct = {row["id"] for row in table if row["target"] == row["prediction"]}
    assert {row["id"] for row in samples(browser, told["fragile"])["rows"]} == weak & correct
    accuracy = {row["id"]: row["neighbour_accuracy"] for row in table}
    order = [accuracy[row["id"]] for row in samples(browser, told["filters"], sort=told["sort"])["rows"]]
    assert order == sorted(order)
    names = [row["id"] for row in samples(browser, [])["rows"]]
    for strip in told["strips"]:
        assert names[strip["position"]] == strip["id"]
        picture = browser.get(f"/api/media/{told['finding']}/{strip['picture']['number']}").content
        assert picture == run["robustness.weak_strips"].media[strip["id"]].png


def test_the_map_has_a_place_for_every_input(browser, run):
    told = got(browser, "/api/map")
    table = {row["id"]: row for row in run["robustness.weak_places"].table.to_pylist()}
    ids = [row["id"] for row in samples(browser, [])["rows"]]
    for name in ("x", "y"):
        values = np.frombuffer(browser.get("/api/samples/column", params={"column": told[name]}).content, "<f4")
        assert np.allclose(values, [table[one][name] for one in ids], atol=1e-6)
    assert told["total"] == len(ids) == 100
    assert told["columns"][0]["name"] == "weak"
    assert {"x", "y"}.isdisjoint(column["name"] for column in told["columns"])


def test_holes_are_shown_by_training_inputs(browser, run):
    told = got(browser, "/api/holes")
    arrays = run["coverage.importance_driven_coverage"].arrays
    assert (told["split"], len(told["holes"])) == ("train", len(arrays["hole_group"]))
    shown = run["data.pictures-train"].arrays["pixels"]
    names = run["data.pictures-train"].table["id"].to_pylist()
    for hole, ids in zip(told["holes"], arrays["hole_nearest_id"], strict=True):
        assert [one["id"] for one in hole["nearest"]] == ids.tolist()
        assert [names[one["position"]] for one in hole["nearest"]] == ids.tolist()
    first = told["holes"][0]["nearest"][0]["position"]
    assert (pixels(browser, f"/api/picture/train/{first}") == shown[first]).all()
    assert told["holes"][0]["picture"]["caption"].startswith("No test input covers")


def test_pictures_of_the_samples_are_those_of_the_probe(browser, run):
    shown = run["data.pictures"].arrays["pixels"]
    assert (pixels(browser, "/api/picture/test/7") == shown[7]).all()


@pytest.mark.parametrize("path", ["clusters", "pairs", "weak", "map", "holes"])
def test_what_was_not_asked_is_not_there(tmp_path, path):
    client = client_of(Run.create(tmp_path / "run").folder)
    answer = client.get(f"/api/{path}")
    assert answer.status_code == 404
    assert "examine with" in answer.json()["error"]


@pytest.fixture(scope="module")
def client(small_run, retrained_run):
    """Both Runs side by side."""
    return client_of(small_run, retrained_run)


class TestTwoRuns:
    def test_samples_before_and_after(self, client, run, retrained_run):
        told = got(client, "/api/compare", limit=500)
        before = {row["id"]: row["correct"] for row in run["causes.errors"].table.to_pylist()}
        after = {row["id"]: row["correct"] for row in Run.open(retrained_run)["causes.errors"].table.to_pylist()}
        word = {(False, True): "fixed", (True, False): "broken", (False, False): "incorrect", (True, True): "correct"}
        expected = {name: word[before[name], after[name]] for name in before}
        assert {row["id"]: row["outcome"] for row in told["rows"]} == expected
        assert {name: list(expected.values()).count(name) for name in word.values()} == {
            name: count for name, count in told["outcomes"].items() if name != "unknown"
        }
        assert told["outcomes"]["broken"] == 1
        assert told["runs"] == [run.folder.name, retrained_run.name]
        place = [column["name"] for column in told["columns"]].index("correct")
        assert all(row["before"][place] == before[row["id"]] for row in told["rows"])
        assert all(row["after"][place] == after[row["id"]] for row in told["rows"])

    def test_only_some_outcomes(self, client):
        told = got(client, "/api/compare", outcome=["fixed", "broken"], limit=500)
        assert {row["outcome"] for row in told["rows"]} == {"fixed", "broken"}
        assert told["matching"] == told["outcomes"]["fixed"] + told["outcomes"]["broken"]
        one = told["rows"][0]["id"]
        assert [row["id"] for row in got(client, "/api/compare", search=one.upper())["rows"]] == [one]

    def test_sorted_by_what_changed(self, client):
        told = got(client, "/api/compare", sort="change.correct", limit=500)
        outcomes = [row["outcome"] for row in told["rows"]]
        assert outcomes[0] == "broken"
        assert outcomes[-told["outcomes"]["fixed"] :] == ["fixed"] * told["outcomes"]["fixed"]
        assert "cannot sort by" in client.get("/api/compare?sort=correct").json()["error"]

    def test_numbers_that_differ(self, client):
        told = got(client, "/api/compare/numbers")
        correct = next(d for d in told["differences"] if (d["finding"], d["name"]) == ("causes.errors", "correct"))
        assert correct["verdict"] == "better"
        assert 0 < correct["low"] <= correct["difference"] <= correct["high"]

    def test_every_address_takes_the_run(self, client, retrained_run):
        wrong = sum(not row["correct"] for row in Run.open(retrained_run)["causes.errors"].table.to_pylist())
        assert samples(client, ["correct:is:no"], run=1)["matching"] == wrong
        assert client.get("/samples?run=1").status_code == 200
        assert "compare" in [page["page"] for page in got(client, "/api/run", run=1)["pages"]]

    def test_one_run_alone_cannot_be_compared(self, browser):
        assert "weakspot view RUN OTHER" in browser.get("/api/compare").json()["error"]

    def test_answers_are_told_from_targets_where_no_finding_says_what_is_wrong(self, tmp_path):
        runs = []
        for name, said in (("one", ["a", "b", "a"]), ("two", ["a", "a", "b"])):
            run = Run.create(tmp_path / name)
            run.describe(subject={}, data={"test": {"fingerprint": "d"}})
            table = {"id": ["x", "y", f"only {name}"], "target": ["a", "a", "a"], "prediction": said}
            run.save(Finding("room.some", table=table_of(table), provenance={"data": "d"}))
            runs.append(run.folder)
        told = got(client_of(*runs), "/api/compare")
        assert {row["id"]: row["outcome"] for row in told["rows"]} == {"x": "correct", "y": "fixed"}
        assert told["samples"] == [3, 3]


def test_the_samples_behind_a_number_are_as_many_as_it_says(browser, run):
    """Each number that the first page links leads to samples: counts to as many, shares to that share."""
    told = got(browser, "/api/run")
    linked = [part["behind"] for answer in told["answers"] for part in answer["sentence"] if part["behind"]]
    assert {"performance.performance/errors", "robustness.neighbour_accuracy/fragile"} <= set(linked)
    assert "robustness.neighbour_accuracy/weak_share" in linked
    for number in linked:
        finding, _, name = number.partition("/")
        behind = got(browser, "/api/behind", number=number)
        found = got(browser, "/api/samples", **behind, limit=0)
        value = run[finding].summary[name].value
        assert found["matching"] == pytest.approx(value if isinstance(value, int) else value * found["total"])
    for number in ("performance.performance/mean_confidence", "performance.performance/x", "nothing/errors", "x"):
        assert browser.get("/api/behind", params={"number": number}).status_code == 404
