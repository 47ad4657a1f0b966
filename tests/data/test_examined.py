"""From files to Findings: odd names, bad samples, metadata and workers all the way through an examination."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.data.files import EIGHT_BITS, saved
from tests.data.test_folders import ODD, filled
from weakspot.core.driver import examine
from weakspot.core.errors import BadSample
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding, verify
from weakspot.core.subject import Subject
from weakspot.data.sources import ArraySource, ImageFolder, ImageManifest, LoaderSource, WithMetadata
from weakspot.repair.probes import Predictions

PNG = EIGHT_BITS["a.png"]
FEW = ExecutionOptions(batch_size=3, shard_size=6)


def subject():
    torch.manual_seed(0)
    return Subject(nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 2)), classes=["cat", "dog"])


def picture(seed):
    return saved(Image.fromarray(np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)), "PNG")


@pytest.fixture
def folder(tmp_path):
    names = [*ODD, "caf\udce9.png"]
    kinds = ("cat", "dog")
    return filled(tmp_path / "data", {f"{kinds[i % 2]}/{name}": picture(i) for i, name in enumerate(names)})


def test_odd_names_are_written_and_read_back(folder, tmp_path):
    source = ImageFolder(folder)
    finding = examine(subject(), source, [Predictions()], execution=FEW)[0]
    finding.save(tmp_path / "finding")
    verify(tmp_path / "finding")
    back = Finding.load(tmp_path / "finding")
    assert back.digest == finding.digest
    json.loads((tmp_path / "finding" / "finding.json").read_text(encoding="utf-8"))
    columns = [column.to_pylist() for column in back.table.columns]
    assert list(source.ids) in columns


def test_a_bad_image_stops_with_its_name(folder):
    (folder / "cat" / "zzz.png").write_bytes(b"broken")
    with pytest.raises(BadSample, match=r"cat/zzz.png cannot be read as an image"):
        examine(subject(), ImageFolder(folder), [Predictions()], execution=FEW)


def test_bad_samples_of_every_kind_are_skipped_and_listed(folder):
    good = ImageFolder(folder)
    expected = examine(subject(), good, [Predictions()], execution=FEW)[0]
    bad = {"cat/0.png": b"", "cat/zz.png": b"broken", "dog/zz.png": picture(0)[:-30], "dog/big.png": PNG}
    source = ImageFolder(filled(folder, bad))
    found = examine(subject(), source, [Predictions()], execution=replace(FEW, on_bad_sample="skip"))[0]
    assert found.table.equals(expected.table)
    assert set(found.provenance["skipped"]) == set(bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_values_that_are_no_numbers_are_refused_by_name(value):
    inputs = np.zeros((7, 3, 4, 4))
    inputs[5, 1, 2, 3] = value
    with pytest.raises(BadSample, match=r"sample 'five'|five") as told:
        examine(
            subject(), ArraySource(inputs, [0] * 7, ids="zero one two three four five six".split()), [Predictions()]
        )
    assert told.value.sample == "five"


def test_all_ways_to_hold_the_same_samples_give_the_same_answers(tmp_path):
    contents = {f"cat/{i}.png" if i % 2 else f"dog/{i}.png": picture(i) for i in range(9)}
    images = ImageFolder(filled(tmp_path / "in", contents))
    lines = ["path,target", *(f"in/{name},{name.split('/')[0]}" for name in images.ids)]
    (tmp_path / "list.csv").write_text("\n".join(lines))
    batch = images.read(np.arange(9))
    loader = DataLoader(TensorDataset(batch.inputs, batch.targets), 4, shuffle=True)
    sources = [
        images,
        ImageManifest(tmp_path / "list.csv"),
        ArraySource(batch.inputs, batch.targets),
        LoaderSource(loader),
        WithMetadata(images, {"id": list(images.ids), "site": list("abcabcabc")}),
    ]
    found = [examine(subject(), source, [Predictions()], execution=FEW)[0] for source in sources]
    answers = [finding.table.select(["correct", "target", "prediction"]) for finding in found]
    assert all(table.equals(answers[0]) for table in answers)
