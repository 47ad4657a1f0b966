"""Labelling over HTTP: what is answered is on the disk, whatever happens to the server afterwards."""

import http.client
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image
from typer.testing import CliRunner

from tests.viewer.label_runs import label_run, plan_finding
from weakspot.causes import label_pages
from weakspot.causes.labelling import LABELS, RunLabels, current_labels
from weakspot.cli.main import app as cli
from weakspot.core.finding import table_of
from weakspot.core.run import Run
from weakspot.viewer.library import Library
from weakspot.viewer.responses import add_error_answers


def client_of(*runs):
    app = FastAPI()
    app.state.library = Library(runs)
    app.include_router(label_pages.router)
    add_error_answers(app)
    return TestClient(app)


@pytest.fixture
def run(tmp_path):
    return label_run(tmp_path / "run")


@pytest.fixture
def client(run):
    return client_of(run)


@pytest.mark.parametrize("name", ["classes.label_plan", "classes.label_plan-week"])
def test_a_plan_of_few_labels_is_labelled_like_the_unsafe_set(tmp_path, name):
    """From the page to the accuracy on all inputs, which one command computes of the same labels."""
    run = Run.create(tmp_path / "run")
    run.save(plan_finding(name))
    client = client_of(run)
    told = client.get("/api/label").json()
    assert told["plan"] and told["lists"] == [name] and not told["causes"]
    assert told["images"]["id"] == [f"frame {number:02d}" for number in range(30)]  # in the order of the plan
    assert set(told["images"]["distance"]) == {None} and "prediction" not in json.dumps(told)
    assert client.get("/api/label/picture/2").status_code == 200
    labels = {f"frame {number:02d}": "cat" if number % 10 else "dog" for number in range(30)}
    assert client.put("/api/label", json={"labels": labels}).status_code == 200
    lines = client.get("/api/label/export.csv").text.splitlines()
    assert lines[:2] == ["\ufeffid,label", "frame 00,dog"]
    assert CliRunner().invoke(cli, ["classes", "label", str(run.folder)]).exit_code == 0
    finding = Run.open(run.folder)["classes.estimated_accuracy"]
    assert finding.summary["accuracy"].value == pytest.approx(27 / 30)
    assert finding.summary["accuracy"].low < 0.9 < finding.summary["accuracy"].high


def test_of_two_lists_the_page_names_one(run):
    run.save(plan_finding())
    client, plan = client_of(run), {"of": "classes.label_plan"}
    assert client.get("/api/label").json()["images"]["cluster"][0] == 1
    told = client.get("/api/label", params=plan).json()
    assert told["lists"] == ["causes.unsafe", "classes.label_plan"] and told["images"]["id"][0] == "frame 00"
    assert client.get("/api/label/prediction/20", params=plan).json() == {"prediction": "cat"}
    assert client.put("/api/label", params=plan, json={"labels": {"image 000": "cat"}}).status_code == 404
    assert client.post("/api/label/import", params=plan, content=b"id,label\nframe 03,dog\n").json()["labels"] == {
        "frame 03": "dog"
    }
    assert "frame 03" not in current_labels(run).table["id"].to_pylist()  # it is for the estimate
    assert "earlier" not in current_labels(run).summary
    refused = client.get("/api/label", params={"of": "causes.errors"})
    assert refused.status_code == 404 and "there is causes.unsafe, classes.label_plan" in refused.json()["error"]


def test_of_a_plan_every_input_needs_a_class(run):
    run.save(plan_finding())
    client, plan = client_of(run), {"of": "classes.label_plan"}
    refused = client.put("/api/label", params=plan, json={"labels": {"frame 03": "unusable"}})
    assert refused.status_code == 400 and "take it out of the data" in refused.json()["error"]
    assert client.put("/api/label", json={"labels": {"image 003": "unusable"}}).status_code == 200


def test_the_images_come_without_what_the_model_thinks(client):
    told = client.get("/api/label").json()
    assert (told["task"], told["classes"], told["outputs"]) == ("classification", ["cat", "dog", "<b>owl</b>"], 3)
    images = told["images"]
    assert images["id"] == [f"image {number:03d}" for number in range(12)]
    assert images["cluster"] == [1] * 4 + [2] * 4 + [3] * 4
    assert images["label"] == [None] * 12
    assert "prediction" not in json.dumps(told)
    assert client.get("/api/label/prediction/3").json() == {"prediction": "cat"}
    assert client.get("/api/label/prediction/12").status_code == 404


def test_pictures_are_those_of_the_finding(client, run):
    version = client.get("/api/label").json()["version"]
    answer = client.get("/api/label/picture/5", params={"v": version})
    assert answer.headers["content-type"] == "image/png"
    assert "immutable" in answer.headers["cache-control"]
    kept = run["causes.unsafe"].arrays["thumbnails"][5]
    assert (np.asarray(Image.open(io.BytesIO(answer.content))) == kept).all()
    assert client.get("/api/label/picture/5", params={"v": "older"}).headers["cache-control"] == "no-store"
    assert client.get("/api/label/picture/12").status_code == 404


def test_labels_are_set_changed_and_taken_back(client, run):
    told = client.put("/api/label", json={"labels": {"image 000": "dog", "image 001": "2"}})
    assert told.json() == {
        "labels": {"image 000": "dog", "image 001": "<b>owl</b>"},
        "before": {"image 000": None, "image 001": None},
    }
    assert current_labels(run).summary["labelled"].value == 2
    assert client.put("/api/label", json={"labels": {"image 000": None}}).json()["before"] == {"image 000": "dog"}
    assert client.get("/api/label").json()["images"]["label"][:3] == [None, "<b>owl</b>", None]


@pytest.mark.parametrize(
    ("labels", "status", "told"),
    [
        ({"image 000": "cow"}, 400, "'cow' is not a class: there are cat, dog"),
        ({"image 000": "dgo"}, 400, "did you mean 'dog'"),
        ({"image 000": "cat", "../../etc": "cat"}, 404, "is not an image to label"),
        ({"image 000": 3}, 422, "labels"),
        ({"image 000": "x" * 10_001}, 422, "labels"),
    ],
)
def test_what_is_no_label_is_refused_and_nothing_is_set(client, run, labels, status, told):
    answer = client.put("/api/label", json={"labels": labels})
    assert answer.status_code == status
    assert told in answer.json()["error"]
    assert RunLabels(run).by_id() == {}


def test_two_viewers_see_each_other_and_overwrite_nothing_unseen(run):
    one, two = client_of(run), client_of(Run.open(run.folder))
    one.put("/api/label", json={"labels": {"image 000": "cat"}, "before": {"image 000": None}})
    refused = two.put("/api/label", json={"labels": {"image 000": "dog"}, "before": {"image 000": None}})
    assert refused.status_code == 409
    assert refused.json()["labels"] == {"image 000": "cat"}
    assert "labelled elsewhere meanwhile" in refused.json()["error"]
    two.put("/api/label", json={"labels": {"image 001": "dog"}, "before": {"image 001": None}})
    assert one.get("/api/label").json()["images"]["label"][:2] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("options", "given", "kept"),
    [
        ({"task": "multilabel"}, "dog; 0", "dog;cat"),
        ({"task": "multilabel"}, ";", ";"),
        ({"task": "regression", "outputs": 1}, " 1.5 ", "1.5"),
        ({"task": "keypoints", "outputs": 2}, "1 2", "1.0 2.0"),
    ],
)
def test_every_task(tmp_path, options, given, kept):
    client = client_of(label_run(tmp_path / "run", **options))
    assert client.put("/api/label", json={"labels": {"image 000": given}}).json()["labels"] == {"image 000": kept}
    wrong = client.put("/api/label", json={"labels": {"image 000": "cow 1 2"}})
    assert wrong.status_code == 400


def test_csv_out_and_in_again(client, run):
    client.put("/api/label", json={"labels": {"image 000": "dog"}})
    out = client.get("/api/label/export.csv")
    assert out.headers["content-type"].startswith("text/csv")
    assert "attachment" in out.headers["content-disposition"]
    lines = out.content.decode("utf-8-sig").splitlines()
    assert lines[:2] == ["id,cluster,distance,label", "image 000,1,0,dog"]
    lines[2] += "cat"
    given = "\r\n".join(lines).encode()
    told = client.post("/api/label/import", content=given, headers={"content-type": "text/csv"})
    assert told.json()["labels"] == {"image 000": "dog", "image 001": "cat"}
    assert told.json()["before"] == {"image 000": "dog", "image 001": None}
    assert RunLabels(run).by_id() == {"image 000": "dog", "image 001": "cat"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"id,label\nimage 000,cow\n", "mine.csv:2: 'cow' is not a class"),
        (b"id,label\nimage 000,cat\nimage 999,cat\n", "mine.csv:3: 'image 999' is not an image to label"),
        (b"\xff\xfe", "mine.csv is not UTF-8 text"),
        (b"id\n", "mine.csv has no column 'label'"),
    ],
)
def test_a_file_with_mistakes_changes_nothing(client, run, content, told):
    headers = {"content-type": "text/csv"}
    answer = client.post("/api/label/import", params={"name": "mine.csv"}, content=content, headers=headers)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert RunLabels(run).by_id() == {}


def test_when_the_viewer_ends_the_finding_is_what_was_given(run):
    with client_of(run) as client:
        client.put("/api/label", json={"labels": {"image 000": "dog"}})
        assert LABELS not in run
    assert run[LABELS].summary["labelled"].value == 1
    run.verify()


def test_labels_are_taken_while_the_run_is_examined(run):
    with run.locked(), client_of(run) as client:
        assert client.put("/api/label", json={"labels": {"image 000": "dog"}}).status_code == 200
    assert RunLabels(run).by_id() == {"image 000": "dog"}


def test_a_full_disk_is_told_and_nothing_is_lost(client, run):
    client.put("/api/label", json={"labels": {"image 000": "dog"}})
    size = (run.folder / "labels.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        refused = client.put("/api/label", json={"labels": {"image 001": "cat"}})
        shown = client.get("/api/label").json()["images"]["label"][:2]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refused.status_code == 409
    assert "check free space" in refused.json()["error"]
    assert shown == ["dog", None]
    assert (run.folder / "labels.jsonl").stat().st_size == size
    client.put("/api/label", json={"labels": {"image 001": "cat"}})
    assert RunLabels(run).by_id() == {"image 000": "dog", "image 001": "cat"}


def test_damage_is_told(client, run):
    (run.folder / "labels.jsonl").write_text("no\n")
    answer = client.get("/api/label")
    assert answer.status_code == 409
    assert "labels.jsonl, line 1 is damaged" in answer.json()["error"]


def test_a_run_without_images_to_label_says_so(tmp_path):
    answer = client_of(Run.create(tmp_path / "run")).get("/api/label")
    assert answer.status_code == 404
    assert "causes.unsafe" in answer.json()["error"]


SERVER = """
import sys
from pathlib import Path
from weakspot.viewer.serving import serve
say = lambda text: print(text, flush=True)
serve([Path(sys.argv[1])], host="127.0.0.1", port=0, browser=False, say=say, token="secret")
"""


class Stream:
    """Sends one label after another to a server until it dies, and remembers those that were answered."""

    def __init__(self, port, names):
        self.port, self.names, self.answered, self.count = port, names, {}, 0

    def __call__(self):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port)) as connection:
            self.send_to(connection)

    def send_to(self, connection):
        host = f"127.0.0.1:{self.port}"
        headers = {
            "Authorization": "Bearer secret", "Origin": f"http://{host}", "Content-Type": "application/json",
        }  # fmt: skip
        for round_, label in enumerate(["cat", "dog"] * 500):
            for name in self.names:
                body = json.dumps({"labels": {name: label}, "before": {name: self.answered.get(name)}})
                try:
                    connection.request("PUT", "/api/label", body, headers)
                    told = connection.getresponse()
                    content = told.read()
                except (OSError, http.client.HTTPException):
                    self.last = {name: label}
                    return
                assert told.status == 200, (round_, content)
                self.answered[name], self.count = label, self.count + 1


@pytest.mark.parametrize("answers", [5, 60])
def test_after_kill_every_answered_label_is_there(tmp_path, answers):
    run = label_run(tmp_path / "run", images=40)
    ids = run["causes.unsafe"].table["id"].to_pylist()
    server = subprocess.Popen([sys.executable, "-c", SERVER, run.folder], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])
        streams = [Stream(port, ids[:20]), Stream(port, ids[20:])]
        threads = [threading.Thread(target=stream) for stream in streams]
        for thread in threads:
            thread.start()
        while sum(stream.count for stream in streams) < answers and all(thread.is_alive() for thread in threads):
            time.sleep(0.001)
        os.kill(server.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
    finally:
        server.kill()
        server.communicate()
    known = RunLabels(run).by_id()
    assert sum(stream.count for stream in streams) >= answers
    for stream in streams:
        answered = {**stream.answered}
        ((name, label),) = stream.last.items()  # that one may have been written and not answered
        assert known.get(name) in (answered.pop(name, None), label)
        assert {name: known.get(name) for name in answered} == answered
    assert current_labels(run).summary["labelled"].value == len(known)


BROKEN = {
    "table": {"table": None},
    "columns": {"table": table_of({"id": ["a"], "cluster": [1]})},
    "clusters": {"table": table_of({"id": ["a"], "cluster": ["x"], "distance": [1.0], "prediction": ["cat"]})},
    "ids": {"table": table_of({"id": [1], "cluster": [1], "distance": [1.0], "prediction": ["cat"]})},
    "pictures": {"arrays": {"thumbnails": np.zeros((2, 3), dtype=np.uint8)}},
    "outputs": {"arrays": {"outputs": np.array(["x", "y"])}},
}


@pytest.mark.parametrize("parts", BROKEN.values(), ids=BROKEN)
def test_a_made_up_unsafe_set_is_refused_in_words(tmp_path, parts):
    run = label_run(tmp_path / "run")
    finding = run["causes.unsafe"]
    changed = {**parts, "arrays": {**finding.arrays, **parts.get("arrays", {})}}
    run.save(replace(finding, **changed))
    client = client_of(run)
    given = client.put("/api/label", json={"labels": {"a": "cat"}})
    for answer in (client.get("/api/label"), client.get("/api/label/prediction/0"), given):
        assert answer.status_code in (404, 409)
        assert answer.json()["error"]
