"""Runs that are damaged, made up to do harm, or written to while they are looked at: told, never fatal."""

import json
import os
import random
import resource
import shutil
import threading
import time
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.viewer.runs import client_of
from weakspot.core.digest import digest_file
from weakspot.core.finding import Finding, table_of
from weakspot.core.run import Run
from weakspot.viewer import reading

LOOKED_AT = (
    "/api/run", "/api/samples?limit=500", "/api/samples?sort=correct&filter=correct:is:no", "/api/samples.csv",
    "/api/samples/column?column=x", "/api/picture/test/3", "/api/sheet/test?positions=0,1,2",
    "/api/sheet/train?positions=0", "/api/clusters", "/api/clusters/1", "/api/clusters/0",
    "/api/clusters/1/sheet?heat=1",    "/api/clusters/1/animation",
    "/api/clusters/1/mean", "/api/clusters/picture/0?heat=1", "/api/pairs", "/api/weak", "/api/map", "/api/holes",
    "/api/media/classes.class_pairs/0", "/api/media/robustness.weak_strips/0", "/api/label", "/api/label/prediction/0",
    "/api/label/picture/0", "/api/lesions", "/api/compare", "/api/compare/numbers", "/", "/samples", "/clusters",
)  # fmt: skip
FEW = ("/api/run", "/api/samples?limit=5", "/api/picture/test/3", "/api/pairs", "/api/media/classes.class_pairs/0", "/")
SEEDS = np.arange(24)
"""Each does something bad to one file; 300 were tried by hand."""
SECRET = "the secret of another folder"


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    """What is damaged stays so; nothing is gained by looking again a little later."""
    monkeypatch.setattr(reading, "_PAUSE", 0)


def look(client, paths=FEW):
    """Several kinds of answers; none may be a failure of the viewer, nor name a place in its code."""
    answers = {}
    for path in paths:
        answer = client.get(path)
        answers[path] = answer
        assert answer.status_code < 500, (path, answer.text)
        assert "Traceback" not in answer.text
        assert SECRET not in answer.text
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}, path
            assert len(answer.json()["error"]) > 20
    return answers


def copied(run, folder):
    """A copy that shares its files until they are replaced."""
    return shutil.copytree(run, folder, copy_function=os.link)


def put(path, content):
    """Replace a file, not its content: the copy shares it."""
    path.unlink()
    path.write_bytes(content)


def agree(run, name):
    """Let the manifest name the Finding as it is now, so that what is wrong inside is met."""
    manifest = json.loads((run / "run.json").read_text())
    manifest["findings"][name] = digest_file(run / "findings" / name / "finding.json")
    put(run / "run.json", json.dumps(manifest).encode())


def agree_with_files(run, name):
    """Let the index of a Finding hold the digests of its files as they are now, and the manifest that of the index."""
    folder = run / "findings" / name
    files = json.loads((folder / "finding.json").read_text())["files"]
    edited(run, name, files={file: digest_file(folder / file) for file in files})


def edited(run, name, **entries):
    """Put other entries into a Finding's index."""
    path = run / "findings" / name / "finding.json"
    index = json.loads(path.read_text())
    put(path, json.dumps({**index, **entries}).encode())
    agree(run, name)


def truncated(draw, path):
    put(path, path.read_bytes()[: draw.randrange(path.stat().st_size + 1)])


def flipped(draw, path):
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 3, 30])):
        if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    put(path, bytes(content))


def shaken_json(draw, path):
    """One value somewhere in a JSON file becomes of another kind."""
    if path.suffix != ".json":
        return flipped(draw, path)
    tree = json.loads(path.read_text())
    node, key = tree, draw.choice(list(tree))
    while isinstance(node[key], dict | list) and node[key] and draw.random() < 0.7:
        node = node[key]
        key = draw.choice(list(node) if isinstance(node, dict) else range(len(node)))
    node[key] = draw.choice(
        [None, 0, -1, 1e308, "", "../../etc/passwd", "\udcff" * 0 + "☃", [], {}, [[]], True, [1, 2, 3]]
    )
    return put(path, json.dumps(tree).encode())


def other_array(draw, path):
    if path.suffix != ".npy":
        return truncated(draw, path)
    array = np.load(path)
    other = draw.choice([
        lambda: array.astype(np.float32) if array.dtype.kind in "iufb" else array.astype("S"),
        lambda: np.zeros((3, *array.shape), np.int8), lambda: array.reshape(-1)[:1], lambda: array[..., None],
        lambda: np.full(array.shape, np.nan), lambda: np.full(array.shape, 2**62),
        lambda: np.array(7), lambda: array[:0], lambda: np.full(array.shape, "☃"),
    ])()  # fmt: skip
    path.unlink()
    return np.save(path, other)


def other_table(draw, path):
    if path.suffix != ".parquet":
        return truncated(draw, path)
    table = parquet.read_table(path)
    name = draw.choice(table.column_names)
    place = table.column_names.index(name)
    other = draw.choice([
        lambda: table.drop_columns([name]), lambda: table.slice(0, 0),
        lambda: table.set_column(place, name, pa.array([None] * table.num_rows, pa.string())),
        lambda: table.set_column(place, name, pa.array([[1, 2]] * table.num_rows)),
        lambda: table.set_column(place, name, pa.array([float("nan")] * table.num_rows)),
        lambda: table.set_column(place, name, pa.array([2**62] * table.num_rows)),
        lambda: table.set_column(place, name, pa.array(["x"] * table.num_rows).dictionary_encode()),
        lambda: table.set_column(place, name, pa.array([b"\xff\x00"] * table.num_rows)),
        lambda: table.append_column(name, table[name]), lambda: pa.concat_tables([table, table]),
        lambda: table.set_column(place, name, pa.array(list(range(table.num_rows)), pa.timestamp("ns"))),
    ])()  # fmt: skip
    path.unlink()
    return parquet.write_table(other, path)


def gone(draw, path):
    path.unlink()


def folder_instead(draw, path):
    path.unlink()
    path.mkdir()


DAMAGES = (truncated, flipped, shaken_json, other_array, other_table, gone, folder_instead)


def damage(run, seed):
    """Do something bad to a file, of those kinds that can be damaged so."""
    draw = random.Random(seed)
    how = draw.choice(DAMAGES)
    ending = {other_array: ".npy", other_table: ".parquet", shaken_json: ".json"}.get(how, "")
    files = sorted(
        path for path in run.rglob("*") if path.is_file() and path.name.endswith(ending) and path.name[0] != "."
    )
    path = draw.choice(files)
    how(draw, path)
    if path.parent.parent.name == "findings" and (path.parent / "finding.json").is_file():
        agree(run, path.parent.name)
    return f"{how.__name__} {path.relative_to(run)}"


@pytest.mark.parametrize("seeds", np.array_split(SEEDS, 3))
def test_damaged_files_are_told_and_the_rest_works(small_run, retrained_run, tmp_path, seeds, capfd):
    for seed in seeds.tolist():
        run = copied(small_run, tmp_path / str(seed))
        told = damage(run, seed)
        look(
            client_of(Run(run), retrained_run),
            [path for path in LOOKED_AT if not path.endswith(("numbers", "animation"))],
        )
        assert capfd.readouterr().err == "", told
        shutil.rmtree(run)


@pytest.mark.parametrize(
    "name", ["causes.root_causes", "classes.class_pairs", "robustness.weak_places", "data.pictures"]
)
def test_one_damaged_finding_hides_its_own_page_alone(small_run, tmp_path, name):
    run = copied(small_run, tmp_path / "run")
    put(run / "findings" / name / "finding.json", b'{"format": "weakspot-finding", "version": 1}')
    agree(run, name)
    client = client_of(run)
    answers = look(client, LOOKED_AT)
    damaged = client.get("/api/run").json()["runs"][0]["damaged"]
    assert [entry["finding"] for entry in damaged] == [name]
    assert "examine again" in damaged[0]["error"]
    lost = {path for path, answer in answers.items() if answer.status_code == 409}
    own = {
        "causes.root_causes": "/api/clusters",
        "classes.class_pairs": "/api/pairs",
        "robustness.weak_places": "/api/map",
    }
    assert all(path.startswith((own.get(name, "/none"), f"/api/media/{name}")) for path in lost)
    assert (own.get(name) in lost) == (name in own)
    assert answers["/api/samples?limit=500"].json()["total"] == 100


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b"null", b'{"format": "weakspot-run", "version": 1}',
    b'{"format": "weakspot-run", "version": 9, "findings": {}}', b"[" * 100_000,
    b'{"format": "weakspot-run", "version": 1, "subject": {}, "data": {"a": 3}, "findings": {}}',
    b'{"format": "weakspot-run", "version": 1, "subject": 1, "data": {}, "findings": []}'])  # fmt: skip
def test_a_damaged_manifest_is_told_on_every_page(small_run, tmp_path, manifest):
    run = copied(small_run, tmp_path / "run")
    client = client_of(run)
    assert client.get("/api/run").status_code == 200
    put(run / "run.json", manifest)
    assert look(client)["/api/run"].status_code == 409
    shutil.copy(small_run / "run.json", run / "run.json")
    assert look(client)["/api/run"].status_code == 200, "and it goes on when that is put right"


@pytest.mark.parametrize("value", [5, True, "abc", {"a": 1}, [1, None, [2]], None, "\u2603", 1e308])
@pytest.mark.parametrize("entry", ["subject.classes", "subject.model", "subject.fingerprint", "subject.task", "asked",
                                   "data.test.fingerprint", "data.test.samples", "findings.causes.errors"])  # fmt: skip
def test_odd_entries_of_a_manifest_stop_nothing(plain_run, entry, value, capfd):
    manifest = json.loads((plain_run.folder / "run.json").read_text())
    key, _, rest = entry.partition(".")
    if rest.startswith("test."):
        manifest["data"]["test"][rest.removeprefix("test.")] = value
    else:
        manifest[key] = {**manifest[key], rest: value} if rest else value
    (plain_run.folder / "run.json").write_text(json.dumps(manifest))
    look(client_of(plain_run, plain_run), [*FEW, "/api/compare", "/api/compare/numbers", "/api/weak", "/api/map"])
    assert capfd.readouterr().err == ""


def test_a_run_that_is_gone_is_told(small_run, tmp_path):
    run = copied(small_run, tmp_path / "run")
    client = client_of(run)
    shutil.rmtree(run)
    assert "was the Run moved?" in look(client)["/api/run"].json()["error"]


@pytest.fixture
def outside(tmp_path):
    """A file and a Finding beside the Run that nobody may see."""
    (tmp_path / "secret.png").write_text(SECRET)
    (tmp_path / "picture-0000.png").write_text(SECRET)
    np.save(tmp_path / "pixels.npy", np.frombuffer((SECRET * 9).encode(), np.uint8))
    return tmp_path


@pytest.mark.parametrize(
    "media", [[["a", "../../../secret.png", "c"]], [["a", "/etc/passwd", "c"]], [["a", "..", "c"]],
              [["a", ".lock", "c"]], [["a", "finding.json\x00", "c"]], [[1, 2, 3]], [["a", "b"]], {"a": "b"}, 7, None]
)  # fmt: skip
def test_no_entry_of_an_index_leads_out_of_the_run(small_run, outside, media):
    run = copied(small_run, outside / "run")
    edited(run, "classes.class_pairs", media=media)
    answers = look(client_of(run))
    assert answers["/api/media/classes.class_pairs/0"].status_code == 409
    assert answers["/api/pairs"].status_code == 409


@pytest.mark.parametrize("entry", [{"value": [1]}, {"value": {}}, {"value": 1, "low": "0"}, {"value": 0.5, "high": []},
                                   {"value": 0.5, "low": 0.1, "high": 0.9, "confidence": "sure"},
                                   {"value": 1, "about": 7}, {"value": 1, "more": 1}, {}, 3, None, []])  # fmt: skip
def test_numbers_that_are_none_are_told(small_run, tmp_path, entry):
    run = copied(small_run, tmp_path / "run")
    edited(run, "robustness.neighbour_accuracy", summary=[["weak_share", entry]])
    client = client_of(run)
    look(client)
    assert [one["finding"] for one in client.get("/api/run").json()["runs"][0]["damaged"]] == [
        "robustness.neighbour_accuracy"
    ]


def test_no_array_leads_out_of_the_run(small_run, outside):
    run = copied(small_run, outside / "run")
    index = json.loads((run / "findings/data.pictures/finding.json").read_text())
    edited(run, "data.pictures", arrays=["../../../pixels"], files=index["files"])
    look(client_of(run))


@pytest.mark.parametrize(
    "path",
    [
        "findings",
        "findings/classes.class_pairs",
        "findings/classes.class_pairs/picture-0000.png",
        "findings/classes.class_pairs/finding.json",
        "findings/data.pictures/pixels.npy",
    ],
)
def test_no_link_leads_out_of_the_run(small_run, outside, path):
    run = copied(small_run, outside / "run")
    place, target = run / path, outside / "elsewhere"
    shutil.move(place, target)
    if target.is_file():
        put(target, SECRET.encode())
    place.symlink_to(target)
    client = client_of(run)
    look(client)
    damaged = {entry["finding"] for entry in client.get("/api/run").json()["runs"][0]["damaged"]}
    assert ("data.pictures" if "pixels" in path else "classes.class_pairs") in damaged


@pytest.mark.parametrize("name", ["../../outside", "/etc", "..", ".hidden", "a/b", "a\\b", "a\0b", ""])
def test_no_name_of_a_finding_leads_out_of_the_run(small_run, tmp_path, name):
    run = copied(small_run, tmp_path / "run")
    manifest = json.loads((run / "run.json").read_text())
    manifest["findings"][name] = "0" * 64
    put(run / "run.json", json.dumps(manifest).encode())
    client = client_of(run)
    look(client)
    assert name not in [finding["name"] for finding in client.get("/api/run").json()["findings"]]
    assert client.get(f"/api/media/{quote(name, safe='')}/0").status_code in (404, 422)


HEADER = "{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, 64, 64, 3), }}"


@pytest.mark.parametrize("count", [10**4, 10**9, 10**15, 10**30, -1])
def test_an_array_that_claims_to_be_huge_costs_no_memory(small_run, tmp_path, count):
    run = copied(small_run, tmp_path / "run")
    header = HEADER.format(count=count).encode().ljust(117) + b"\n"
    put(run / "findings/data.pictures/pixels.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    look(client_of(run))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_an_array_with_a_huge_header_is_refused(small_run, tmp_path):
    run = copied(small_run, tmp_path / "run")
    header = b"(" * 5_000_000
    put(run / "findings/data.pictures/pixels.npy", b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header)
    client = client_of(run)
    look(client)
    assert [entry["finding"] for entry in client.get("/api/run").json()["runs"][0]["damaged"]] == ["data.pictures"]


def test_a_table_that_would_fill_the_memory_is_refused(small_run, tmp_path, monkeypatch):
    """A thousand million equal values take a few kilobytes on disk."""
    monkeypatch.setattr(reading, "MOST_CELLS", 1_000_000)
    run = copied(small_run, tmp_path / "run")
    path = run / "findings/causes.errors/table.parquet"
    path.unlink()
    parquet.write_table(pa.table({"id": pa.array(["x"] * 2_000_000).dictionary_encode()}), path)
    agree_with_files(run, "causes.errors")
    assert path.stat().st_size < 100_000
    client = client_of(run)
    look(client)
    told = client.get("/api/run").json()["runs"][0]["damaged"]
    assert "claims 2000000 cells" in told[0]["error"]


def test_a_table_of_one_text_many_times_over_is_not_unpacked(small_run, tmp_path):
    """A few kilobytes that stand for four gigabytes, of which the file says nothing."""
    run = copied(small_run, tmp_path / "run")
    path = run / "findings/causes.errors/table.parquet"
    path.unlink()
    texts = pa.DictionaryArray.from_arrays(np.zeros(4000, np.int32), ["x" * 1_000_000])
    parquet.write_table(pa.table({"id": texts}), path, compression="zstd", store_schema=False)
    agree_with_files(run, "causes.errors")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    client = client_of(run)
    look(client)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    told = client.get("/api/run").json()["runs"][0]["damaged"]
    assert "its table would unpack to 4,0" in told[0]["error"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "path", ["run.json", *(f"findings/causes.errors/{name}" for name in ("finding.json", "table.parquet"))]
)
def test_what_nobody_writes_to_is_not_waited_for(small_run, tmp_path, path):
    run = copied(small_run, tmp_path / "run")
    client = client_of(run)
    (run / path).unlink()
    os.mkfifo(run / path)
    look(client)


def test_nothing_is_unpickled(small_run, tmp_path):
    run = copied(small_run, tmp_path / "run")
    path = run / "findings/data.pictures/pixels.npy"
    path.unlink()
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    client = client_of(run)
    look(client)
    assert [entry["finding"] for entry in client.get("/api/run").json()["runs"][0]["damaged"]] == ["data.pictures"]


def one_finding(run, value, rows=50):
    data = {"id": [f"s{number:02d}" for number in range(rows)], "value": np.full(rows, value)}
    return Finding("room.question", "About.", table=table_of(data), provenance={"data": "d" * 64})


@pytest.fixture
def plain_run(tmp_path):
    """A Run with one Finding."""
    run = Run.create(tmp_path / "run")
    run.describe(subject={}, data={"test": {"fingerprint": "d" * 64, "samples": 50}})
    run.save(one_finding(run, 0))
    return run


def test_a_finding_that_is_replaced_is_shown_anew(plain_run):
    client = client_of(plain_run.folder)
    for value in range(1, 4):
        plain_run.save(one_finding(plain_run, value, rows=50 + value))
        answer = client.get("/api/samples?limit=1").json()
        assert (answer["total"], answer["rows"][0]["values"]) == (50 + value, [value])


def test_findings_that_come_and_go_are_noticed(plain_run):
    client = client_of(plain_run.folder)
    assert [page["page"] for page in client.get("/api/run").json()["pages"]] == ["overview", "samples", "findings"]
    plain_run.save(Finding("classes.class_pairs", table=table_of({"first": ["a"], "second": ["b"]})))
    assert [page["page"] for page in client.get("/api/run").json()["pages"]] == [
        "overview",
        "samples",
        "pairs",
        "findings",
    ]
    assert client.get("/api/pairs").json()["pairs"][0]["first"] == "a"


def test_a_finding_between_folder_and_manifest_is_waited_for(plain_run, monkeypatch):
    """While one is replaced its folder is new and the manifest old; then comes the manifest."""
    client = client_of(plain_run.folder)
    new = one_finding(plain_run, 9)
    new.save(plain_run.finding_folder(new.name))
    pauses = []

    def manifest_comes(seconds):
        pauses.append(seconds)
        manifest = plain_run.manifest()
        plain_run._write({**manifest, "findings": {new.name: new.digest}})

    monkeypatch.setattr(reading, "time", SimpleNamespace(sleep=manifest_comes, monotonic=time.monotonic))
    assert client.get("/api/samples?limit=1").json()["rows"][0]["values"] == [9]
    assert len(pauses) == 1


def test_a_finding_that_is_not_the_manifests_is_told(plain_run):
    new = one_finding(plain_run, 9)
    new.save(plain_run.finding_folder(new.name))
    told = client_of(plain_run.folder).get("/api/run").json()["runs"][0]["damaged"]
    assert "not the Finding that the manifest names" in told[0]["error"]


def test_what_is_repaired_is_seen_after_a_while(small_run, tmp_path, monkeypatch):
    """As with a Run that is still being copied from another machine."""
    run = copied(small_run, tmp_path / "run")
    late = shutil.move(run / "findings/classes.class_pairs", tmp_path / "late")
    client = client_of(run)
    assert client.get("/api/pairs").status_code == 409
    shutil.move(late, run / "findings/classes.class_pairs")
    assert client.get("/api/pairs").status_code == 409
    monkeypatch.setattr(reading, "_TRUSTED", 0)
    assert client.get("/api/pairs").status_code == 200
    assert client.get("/api/run").json()["runs"][0]["damaged"] == []


def test_pictures_that_are_shown_outlive_their_file(small_run, tmp_path):
    run = copied(small_run, tmp_path / "run")
    client = client_of(run)
    before = client.get("/api/picture/test/3").content
    shutil.rmtree(run / "findings/data.pictures")
    assert client.get("/api/picture/test/3").content == before


def test_findings_of_another_model_are_told_and_left_out(small_run, tmp_path):
    run = copied(small_run, tmp_path / "run")
    made = Run.open(run)
    made.save(Finding("room.old", table=table_of({"id": ["x"], "old": [1]}), provenance={
        "data": made.manifest()["data"]["test"]["fingerprint"], "subject": "0" * 64}))  # fmt: skip
    client = client_of(run)
    told = client.get("/api/run").json()["runs"][0]["damaged"]
    assert [entry["finding"] for entry in told] == ["room.old"]
    assert "another model" in told[0]["error"]
    assert "old" not in [column["name"] for column in client.get("/api/samples").json()["columns"]]


def test_an_examination_goes_on_meanwhile(tmp_path, monkeypatch):
    """Findings are replaced again and again while somebody looks; every answer is of one of them, whole."""
    monkeypatch.setattr(reading, "_PAUSE", 0.02)
    run = Run.create(tmp_path / "run")
    run.describe(subject={}, data={"test": {"fingerprint": "d" * 64, "samples": 50}})
    run.save(one_finding(run, 0))
    client, done = client_of(run.folder), threading.Event()

    def examine():
        value = 0
        while not done.wait(0.05):
            value += 1
            run.save(one_finding(run, value, rows=50 + value % 7))

    writer = threading.Thread(target=examine)
    writer.start()
    try:
        seen, asked = set(), 0
        while asked < 40 or len(seen) <= 3:  # pytest's limit ends it where nothing new is ever seen
            asked += 1
            answer = client.get("/api/samples?limit=500")
            assert answer.status_code in (200, 404), answer.text
            if answer.status_code == 200:
                rows = answer.json()["rows"]
                (value,) = {row["values"][0] for row in rows}  # never of two
                assert len(rows) == 50 + value % 7
                seen.add(value)
    finally:
        done.set()
        writer.join()


def test_the_shape_of_what_is_looked_at(small_run, retrained_run):
    """The addresses above are answered where nothing is damaged; what they need is there."""
    answers = look(client_of(small_run, retrained_run), LOOKED_AT)
    assert {path for path, answer in answers.items() if answer.status_code != 200} == {"/api/lesions"}
