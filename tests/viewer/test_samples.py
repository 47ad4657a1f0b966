"""Samples: joined from all Findings, filtered, sorted, searched, paged, and exported. Answers worked out by hand."""

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.viewer.runs import client_of
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run

DATA = {"test": "d" * 64, "train": "e" * 64}
IDS = ["s3", "s1", "=cmd", "S2", "ünïcode/<b>"]
"""In the order of the data."""


def save(run, name, table, *, split="test", arrays=None, about="About."):
    held = table if isinstance(table, pa.Table) else table_of(table)
    run.save(Finding(name, about, table=held, arrays=arrays or {}, provenance={"data": DATA[split]}))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Five samples of which two Findings know something; a third knows other samples, one is no table of samples."""
    run = Run.create(tmp_path_factory.mktemp("run") / "run")
    run.describe(
        subject={"classes": ["cat", "dog"]},
        data={
            "train": {"fingerprint": DATA["train"], "samples": 2},
            "test": {"fingerprint": DATA["test"], "samples": 5},
        },
    )
    pixels = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((5, 2, 3, 3), np.uint8) * 50
    save(run, "data.pictures", {"id": IDS}, arrays={"pixels": pixels})
    save(run, "a.first", {
        "id": ["s1", "S2", "s3", "=cmd", "ünïcode/<b>"],
        "score": [0.5, np.nan, 0.1, np.inf, 0.5],
        "count": [3, 1, 2, 2, 2**40],
        "wrong": [True, False, True, False, True],
        "word": ["b", "a", "=1+1", "", "a:b"],
        "target": [0, 1, 1, 0, 1],
        "shared": [1.0, 2.0, 3.0, 4.0, 5.0],
        "both": [1, 2, 3, 4, 5],
    })  # fmt: skip
    save(run, "b.second", pa.table({
        "id": ["s3", "s1"], "both": [3, 9], "shared": [3.0, 1.0], "list": [[1], [2]],
        "may:be": pa.array(["x", None]), "when": pa.array([0, 86_400], pa.timestamp("s")),
    }))  # fmt: skip
    save(run, "c.train", {"id": ["t1", "t2"], "score": [1.0, 2.0]}, split="train")
    save(run, "d.classes", {"class": ["cat"], "share": [0.5]})
    save(run, "e.twice", {"id": ["s1", "s1"], "twice": [1, 2]})
    return run.folder


@pytest.fixture(scope="module")
def client(run):
    return client_of(run)


def ids(client, **query):
    answer = client.get("/api/samples", params=query)
    assert answer.status_code == 200, answer.text
    return [row["id"] for row in answer.json()["rows"]]


def error(client, **query):
    answer = client.get("/api/samples", params=query)
    assert answer.status_code in (400, 404, 422)
    return answer.json()["error"]


def test_everything_known_stands_in_one_row(client):
    answer = client.get("/api/samples").json()
    assert (answer["split"], answer["splits"], answer["total"], answer["matching"]) == ("test", ["test", "train"], 5, 5)
    names = [column["name"] for column in answer["columns"]]
    assert names == [
        "score", "count", "wrong", "word", "target", "shared", "a.first.both", "b.second.both", "may:be", "when",
    ]  # fmt: skip
    first = dict(zip(names, answer["rows"][0]["values"], strict=True))
    assert answer["rows"][0] | {"values": 0} == {"position": 0, "id": "s3", "picture": True, "values": 0}
    assert first == {
        "score": 0.1, "count": 2, "wrong": True, "word": "=1+1", "target": "dog", "shared": 3.0, "a.first.both": 3,
        "b.second.both": 3, "may:be": "x", "when": "1970-01-01 00:00:00.000",
    }  # fmt: skip
    second = dict(zip(names, answer["rows"][1]["values"], strict=True))
    assert (second["may:be"], second["b.second.both"], second["when"]) == (None, 9, "1970-01-02 00:00:00.000")
    assert dict(zip(names, answer["rows"][2]["values"], strict=True))["score"] is None, "infinity is no number of JSON"


def test_columns_say_what_they_hold(client):
    columns = {column["name"]: column for column in client.get("/api/samples").json()["columns"]}
    assert {name: column["kind"] for name, column in columns.items() if name in ("score", "wrong", "word", "when")} == {
        "score": "number", "wrong": "flag", "word": "text", "when": "text",
    }  # fmt: skip
    assert (columns["score"]["low"], columns["score"]["high"]) == (0.1, 0.5)
    assert (columns["count"]["whole"], columns["count"]["high"]) == (True, 2**40)
    assert columns["target"]["values"] == ["dog", "cat"], "the most frequent first"
    assert columns["b.second.both"]["label"] == "Both (second)"
    assert columns["score"]["finding"] == "a.first"


def test_samples_stand_in_the_order_of_the_data(client):
    assert ids(client) == IDS
    assert ids(client, split="train") == ["t1", "t2"]


def test_without_pictures_samples_stand_in_the_order_of_their_ids(tmp_path):
    run = Run.create(tmp_path / "run")
    run.describe(subject={}, data={"test": {"fingerprint": DATA["test"]}})
    save(run, "a.first", {"id": ["b", "a", "c"], "score": [1, 2, 3]})
    client = client_of(run.folder)
    assert ids(client) == ["a", "b", "c"]
    assert client.get("/api/samples").json()["pictures"]["width"] == 0
    assert client.get("/api/picture/test/0").status_code == 404
    assert "add pictures to ask" in client.get("/api/sheet/test?positions=0").json()["error"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["wrong:is:yes"], ["s3", "s1", "ünïcode/<b>"]),
        (["wrong:not:yes"], ["=cmd", "S2"]),
        (["score:above:0.1"], ["s1", "=cmd", "ünïcode/<b>"]),
        (["score:below:0.5"], ["s3"]),
        (["score:is:"], ["S2"]),
        (["score:not:"], ["s3", "s1", "=cmd", "ünïcode/<b>"]),
        (["score:is:0.5", "wrong:is:true"], ["s1", "ünïcode/<b>"]),
        (["word:is:a:b"], ["ünïcode/<b>"]),
        (["word:is:a", "word:is:b"], ["s1", "S2"]),
        (["word:is:a", "word:is:b", "wrong:is:no"], ["S2"]),
        (["word:has:A"], ["S2", "ünïcode/<b>"]),
        (["word:is:nothing"], []),
        (["word:not:nothing"], IDS),
        (["target:is:cat"], ["s1", "=cmd"]),
        (["may:be:is:x"], ["s3"]),
        (["may:be:is:"], ["s1", "=cmd", "S2", "ünïcode/<b>"]),
        (["count:is:1099511627776"], ["ünïcode/<b>"]),
        (["count:above:1", "count:below:3"], ["s3", "=cmd"]),
        (["id:has:S"], ["s3", "s1", "S2"]),
        (["id:not:s1", "id:has:s"], ["s3", "S2"]),
        (["id:is:S2"], ["S2"]),
    ],
)
def test_filters(client, filters, expected):
    assert ids(client, filter=filters) == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["target:has:1"], ["b", "c"]),
        (["target:has:10"], ["a", "c"]),
        (["target:has:10 + 1"], ["c"]),
        (["target:has:Cat"], ["d"]),
        (["prediction:has:1"], ["a"]),
        (["note:has:1"], ["a", "b"]),
    ],
)
def test_of_several_labels_a_filter_asks_for_whole_ones(tmp_path, filters, expected):
    run = Run.create(tmp_path / "run")
    run.describe(subject={"task": "multilabel"}, data={"test": {"fingerprint": DATA["test"]}})
    save(run, "a.first", {
        "id": list("abcd"),
        "target": ["10", "1 + 2", "1 + 10", "cat+dog"],
        "prediction": ["2;1", "", "11", "10+12"],
        "note": ["10", "1", "", "cat"],
    })  # fmt: skip
    assert ids(client_of(run.folder), filter=filters) == expected


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("score", ["s3", "s1", "ünïcode/<b>", "=cmd", "S2"]),
        ("-score", ["=cmd", "s1", "ünïcode/<b>", "s3", "S2"]),
        ("word", ["=cmd", "s3", "S2", "ünïcode/<b>", "s1"]),
        ("target", ["s1", "=cmd", "s3", "S2", "ünïcode/<b>"]),
        ("-wrong", ["s3", "s1", "ünïcode/<b>", "=cmd", "S2"]),
        ("id", ["=cmd", "S2", "s1", "s3", "ünïcode/<b>"]),
        ("-id", ["ünïcode/<b>", "s3", "s1", "S2", "=cmd"]),
    ],
)
def test_sorting_keeps_equal_ones_in_their_order_and_missing_ones_last(client, sort, expected):
    assert ids(client, sort=sort) == expected


@pytest.mark.parametrize(
    ("search", "expected"), [("S", ["s3", "s1", "S2"]), ("CODE/<", ["ünïcode/<b>"]), ("%", []), (".", [])]
)
def test_searching_is_for_a_part_of_the_id(client, search, expected):
    assert ids(client, search=search) == expected


def test_pages(client):
    assert ids(client, sort="id", offset=1, limit=2) == ["S2", "s1"]
    assert ids(client, offset=99) == []
    assert ids(client, limit=0) == []
    answer = client.get("/api/samples", params={"filter": "wrong:is:yes", "offset": 1, "limit": 1}).json()
    assert (answer["total"], answer["matching"], answer["offset"]) == (5, 3, 1)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"filter": "scoer:is:1"}, "there is no column 'scoer' to filter by; did you mean 'score'?"),
        ({"filter": "score"}, "'score' is no filter: expected column:operator:value"),
        ({"filter": "score:equals:1"}, "with one of is, not, below, above, has"),
        ({"filter": "score:is:many"}, "score is a number, which 'many' is not"),
        ({"filter": "score:has:1"}, "score is no text: expected is, not, below or above"),
        ({"filter": "word:below:b"}, "word is no number: expected is, not or has"),
        ({"filter": "wrong:is:maybe"}, "wrong is yes or no, not 'maybe'"),
        ({"filter": "id:below:3"}, "the operator below cannot be used with ids"),
        ({"sort": "scores"}, "there is no column 'scores' to sort by; did you mean 'score'?"),
        ({"split": "tset"}, "there is no split 'tset' with samples: expected one of test, train"),
        ({"limit": 501}, "limit: Input should be less than or equal to 500"),
        ({"offset": -1}, "offset: "),
        ({"run": 1}, "there is no run 1"),
        ({"search": "x" * 201}, "search: "),
        ({"filter": ["score:is:1"] * 33}, "filter: "),
    ],
)
def test_what_cannot_be_meant_is_told(client, query, told):
    assert told in error(client, **query)


def test_positions_and_columns_as_numbers(client):
    got = client.get("/api/samples/positions", params={"sort": "-id", "filter": "wrong:is:yes"})
    assert np.frombuffer(got.content, "<i4").tolist() == [4, 0, 1]
    scores = np.frombuffer(client.get("/api/samples/column", params={"column": "score"}).content, "<f4")
    assert np.array_equal(scores, np.array([0.1, 0.5, np.inf, np.nan, 0.5], np.float32), equal_nan=True)
    words = np.frombuffer(client.get("/api/samples/column", params={"column": "word"}).content, "<f4")
    texts = client.get("/api/samples/texts", params={"column": "word"}).json()["texts"]
    assert [texts[int(code)] for code in words] == ["=1+1", "b", "", "a", "a:b"]
    assert client.get("/api/samples/column", params={"column": "none"}).status_code == 400


def read_csv(answer):
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    assert answer.text.startswith("\ufeff"), "by which spreadsheets know UTF-8"
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


def test_samples_by_their_positions_are_those_of_the_list(client):
    listed = client.get("/api/samples").json()["rows"]
    asked = client.get("/api/samples/rows", params={"positions": "4,0,4"}).json()
    assert asked == {"split": "test", "rows": [listed[4], listed[0], listed[4]]}
    train = client.get("/api/samples/rows", params={"positions": "1", "split": "train"}).json()
    assert [row["id"] for row in train["rows"]] == ["t2"]


@pytest.mark.parametrize("positions", ["", "5", "-1", "a", "1,,2", ",".join(["0"] * 257)])
def test_samples_by_positions_that_are_not_there(client, positions):
    answer = client.get("/api/samples/rows", params={"positions": positions})
    assert answer.status_code in (400, 404, 422) and answer.json()["error"]


def test_a_selection_as_csv(client):
    rows = read_csv(client.get("/api/samples.csv", params={"sort": "id"}))
    assert [row["id"] for row in rows] == ["'=cmd", "S2", "s1", "s3", "ünïcode/<b>"], "no formula for a spreadsheet"
    assert [row["word"] for row in rows] == ["", "a", "b", "'=1+1", "a:b"]
    assert [row["wrong"] for row in rows] == ["no", "no", "yes", "yes", "yes"]
    assert [row["count"] for row in rows] == ["2", "1", "3", "2", "1099511627776"]
    assert rows[1]["score"] == ""


def test_chosen_samples_as_csv(client):
    rows = read_csv(client.post("/api/samples.csv", json={"positions": [4, 1]}))
    assert [row["id"] for row in rows] == ["ünïcode/<b>", "s1"]
    assert "position 5: the split has 5" in client.post("/api/samples.csv", json={"positions": [5]}).json()["error"]
    for wrong in ({"positions": [-1]}, {"positions": "all"}, {}, {"positions": [1.5]}, {"positions": [None]}):
        assert client.post("/api/samples.csv", json=wrong).status_code == 422


def pixels(answer):
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def test_pictures_are_those_of_the_samples(client):
    for position in range(5):
        assert (pixels(client.get(f"/api/picture/test/{position}")) == position * 50).all()
    sheet = pixels(client.get("/api/sheet/test?positions=3,0,3"))
    assert sheet.shape == (2, 9, 3)
    assert sheet[0, ::3, 0].tolist() == [150, 0, 150]


def test_a_sheet_has_sixteen_to_a_row(client):
    sheet = pixels(client.get("/api/sheet/test?positions=" + ",".join(["4"] * 17)))
    assert sheet.shape == (4, 48, 3)
    assert (sheet[2:, :3] == 200).all()
    assert (sheet[2:, 3:] == 0xEE).all(), "where there is no picture it is grey"


@pytest.mark.parametrize("positions", ["", "x", "-1", "1,,2", "1.5", "²", "1" * 20, ",".join(["1"] * 257), "5"])
def test_a_sheet_of_what_is_not_there(client, positions):
    assert client.get("/api/sheet/test", params={"positions": positions}).status_code in (400, 404)


def test_pictures_are_kept_by_the_browser_only_under_their_version(client):
    version = client.get("/api/samples").json()["pictures"]["version"]
    for path in ("/api/picture/test/1?", "/api/sheet/test?positions=1&"):
        assert "immutable" in client.get(f"{path}v={version}").headers["cache-control"]
        for other in ("", "v=", "v=old"):
            assert client.get(path + other).headers["cache-control"] == "no-store"


def test_pictures_of_errors_serve_where_nothing_else_was_kept(tmp_path):
    """Smaller ones are enlarged by whole pixels into the cells of the largest."""
    run = Run.create(tmp_path / "run")
    run.describe(subject={}, data={"test": {"fingerprint": DATA["test"]}})
    save(run, "a.first", {"id": ["a", "b", "c"], "score": [1, 2, 3]})
    small, large = np.full((1, 2, 2, 3), 7, np.uint8), np.full((1, 5, 4, 3), 9, np.uint8)
    save(run, "x.some", {"id": ["b"]}, arrays={"thumbnails": small})
    save(run, "y.more", {"id": ["c"]}, arrays={"thumbnails": large})
    client = client_of(run.folder)
    assert [row["picture"] for row in client.get("/api/samples").json()["rows"]] == [False, True, True]
    sheet = pixels(client.get("/api/sheet/test?positions=0,1,2"))
    assert (sheet[:, :4] == 0xEE).all()
    assert (sheet[:4, 4:8] == 7).all()
    assert (sheet[:, 8:] == 9).all()


def test_a_run_that_knows_nothing_of_samples_says_so(tmp_path):
    client = client_of(Run.create(tmp_path / "run").folder)
    answer = client.get("/api/samples")
    assert answer.status_code == 404
    assert "has no values of single inputs" in answer.json()["error"]
    assert [page["page"] for page in client.get("/api/run").json()["pages"]] == ["overview"]
