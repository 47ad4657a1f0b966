"""A Run to hand on: no picture, id or metadata that was to be left out is anywhere in the copy, report or evidence."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from weakspot import Plan, Run, Subject
from weakspot.causes.room import steps as causes
from weakspot.classes.room import steps as classes
from weakspot.cli.main import app
from weakspot.compare import compare_runs
from weakspot.core.errors import ConfigError
from weakspot.coverage.room import steps as coverage
from weakspot.data.sources import ArraySource, Grouped
from weakspot.evidence import write_bundle
from weakspot.report.html import render
from weakspot.robustness.room import steps as robustness
from weakspot.sharing import Sharing, shared_run

KEY = b"a key of sixteen bytes and more"
PEOPLE = ("Ada Lovelace", "Grace Hopper", "Emmy Noether")
NAMES = [f"{PEOPLE[place % 3]}/scan-{place:03d}.png" for place in range(60)]


class Sums(torch.nn.Module):
    """Two classes by a convolution, so that there are layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.linear = torch.nn.Linear(4 * 64, 2)

    def forward(self, images):
        return self.linear(torch.relu(self.convolution(images)).flatten(1))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = np.random.default_rng(0)
    images = rng.random((60, 1, 8, 8), dtype=np.float32)
    images[7] = images[3]
    owner = np.array([PEOPLE[place % 3] for place in range(60)])
    ward = [f"ward of Dr. Frankenstein {place % 2}" for place in range(60)]
    source = ArraySource(images, rng.integers(0, 2, 60), ids=NAMES, metadata={"ward": ward})
    train = ArraySource(images[:30], np.zeros(30, dtype=np.int64), ids=[f"train {name}" for name in NAMES[:30]])
    data = {"test": Grouped(source, owner), "train": train}
    asked = [
        *coverage({"criteria": ["nc"], "confidence": True, "duplicates": True}),
        *robustness({"looks": 5}),
        *classes({"least_images": 2, "replicates": 2}),
        *causes({"replicates": 0}),
    ]
    run = Run.create(tmp_path_factory.mktemp("private") / "run")
    subject = Subject(Sums(), classes=["ill", "well"], scores="logits", bounds=(0, 1))
    Plan.of(asked).run(subject, data, run)
    return run


def everything(folder):
    """All that a reader of the folder could see, tables in plain text."""
    seen = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            seen.append(str(pq.read_table(path).to_pydict()))
        elif path.suffix == ".npy":
            array = np.load(path)
            seen.append(str(array.ravel().tolist()) if array.dtype.kind == "U" else "")
        elif path.is_file():
            seen.append(path.read_bytes().decode("utf-8", "replace"))
        seen.append(path.name)
    return "\n".join(seen)


def names_in(text):
    return [name for name in (*NAMES, *PEOPLE) if name in text]


def test_names_are_there_at_first(run):
    text = everything(run.folder)
    assert set(names_in(text)) == {*NAMES, *PEOPLE} and "Frankenstein" in text
    assert "data:image/png" in render(run)


def test_no_name_is_left_in_copy_report_or_evidence(run, tmp_path):
    how = Sharing(pictures=False, metadata=False, key=KEY, without=["classes.*"])
    copied = shared_run(run, tmp_path / "copy", how)
    assert copied.names() == [name for name in run.names() if not name.startswith("classes.")]
    write_bundle(copied, tmp_path / "evidence")
    for text in (everything(copied.folder), render(copied), everything(tmp_path / "evidence")):
        assert names_in(text) == []
        assert "Frankenstein" not in text
    copied.verify()


def test_saved_views_stay_behind(run, tmp_path):
    (run.folder / "viewer.json").write_text('{"views": []}')
    assert not (shared_run(run, tmp_path / "copy", Sharing()).folder / "viewer.json").exists()


def test_no_picture_is_left(run, tmp_path):
    copied = shared_run(run, tmp_path / "copy", Sharing(pictures=False))
    assert not list(copied.folder.rglob("*.png"))
    assert [a for finding in copied for a in finding.arrays.values() if a.dtype == np.uint8 and a.ndim > 2] == []
    assert "data:image/png" not in render(copied)
    before, after = (set(one["causes.root_causes"].arrays) for one in (run, copied))
    assert before - after == {"thumbnails", "heat_pictures"}
    assert names_in(everything(copied.folder))  # only what was asked for is left out
    kept = shared_run(run, tmp_path / "kept", Sharing(key=KEY))
    assert list(kept.folder.rglob("*.png")) and names_in(render(kept)) == []


def test_numbers_stay_and_the_copy_says_what_it_is(run, tmp_path):
    copied = shared_run(run, tmp_path / "copy", Sharing(pictures=False, key=KEY))
    for finding in run:
        same = {name: one for name, one in finding.summary.items() if not isinstance(one.value, str)}
        assert {name: copied[finding.name].summary[name].value for name in same} == {
            n: o.value for n, o in same.items()
        }
        shared = copied[finding.name].provenance["shared"]
        assert shared == {"of": finding.digest, "pictures": False, "metadata": True, "pseudonyms": True}


def test_one_key_gives_the_same_pseudonyms_and_a_random_one_others(run, tmp_path):
    first, again = (shared_run(run, tmp_path / name, Sharing(key=KEY)) for name in ("a", "b"))
    paired = compare_runs(first, again)
    assert any(one.how == "paired over 60 inputs of 3 groups" for one in paired.differences)
    ids = first["coverage.confidence"].table["id"].to_pylist()
    assert len(set(ids)) == 60 and not set(ids) & set(NAMES)
    other = Sharing(key=b"another key of sixteen bytes")
    assert other.pseudonym(NAMES[0]) != Sharing(key=KEY).pseudonym(NAMES[0])


def test_numbers_as_ids_do_not_change_sentences(tmp_path):
    from weakspot.core.finding import Estimate, Finding, table_of
    from weakspot.core.outputs import Outputs, count, sample_id

    run = Run.create(tmp_path / "run")
    outputs = Outputs(summary={"inputs": count("3 of 3")}, columns={"id": sample_id()})
    run.save(
        Finding(
            "x.y", summary={"inputs": Estimate(3, about="3 of 3")}, table=table_of({"id": ["1", "3"]}), outputs=outputs
        )
    )
    copied = shared_run(run, tmp_path / "copy", Sharing(key=KEY))["x.y"]
    assert copied.summary["inputs"].about == "3 of 3"
    assert copied.table["id"].to_pylist() == [Sharing(key=KEY).pseudonym(name) for name in ("1", "3")]


def test_the_command_line(run, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    call = CliRunner().invoke
    done = call(app, ["share", str(run.folder), str(tmp_path / "copy"), "--no-pictures", "--key", str(key)])
    assert done.exit_code == 0 and f"{len(run.names())} Findings" in done.output
    assert names_in(render(Run.open(tmp_path / "copy"))) == []
    page = tmp_path / "page.html"
    assert call(app, ["report", str(run.folder), "--output", str(page), "--no-pictures", "--pseudonyms"]).exit_code == 0
    assert names_in(page.read_text()) == [] and "data:image/png" not in page.read_text()
    with pytest.raises(ConfigError, match="exists already: choose another folder"):
        shared_run(run, tmp_path / "copy", Sharing())
    with pytest.raises(ConfigError, match="the key has 3 bytes: expected 16 or more"):
        Sharing(key=b"abc")
