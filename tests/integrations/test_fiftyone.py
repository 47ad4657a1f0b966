"""FiftyOne, which cannot be installed here: against a stand-in with the parts of its documented interface.

Dataset(name), add_samples, iteration, match(ViewField(f) == v), exists, save_view(name, view, overwrite=),
has_sample_field; Sample(filepath=), fields by [], has_field, save, tags; Classification(label=); Heatmap(map=, range=).
"""

import sys
from types import ModuleType

import numpy as np
import pytest

from weakspot.core.errors import ConfigError, DataError
from weakspot.integrations import labels_from_fiftyone, sample_columns, to_fiftyone


class Sample:
    """Fields by name; one that was never set is refused, as FiftyOne does."""

    def __init__(self, filepath):
        self.filepath, self._fields, self.saved, self.tags = filepath, {}, 0, []

    def __setitem__(self, name, value):
        assert name.replace("_", "").isalnum() and not name.startswith("_"), f"{name} is no name of a field"
        self._fields[name] = value

    def __getitem__(self, name):
        return self._fields[name]

    def has_field(self, name):
        return name in self._fields

    def save(self):
        self.saved += 1


class Label:
    def __init__(self, label):
        self.label = label


class Heatmap:
    def __init__(self, *, map, range):
        assert map.ndim == 2 and range == [0.0, 1.0]
        self.map, self.range = map, range


class ViewField:
    def __init__(self, name):
        self.name = name

    def __eq__(self, value):
        return lambda sample: sample.has_field(self.name) and sample[self.name] == value

    __hash__ = None


class Dataset:
    def __init__(self, name):
        self.name, self.samples, self.views = name, [], {}

    def __iter__(self):
        return iter(self.samples)

    def add_samples(self, samples):
        self.samples += samples

    def match(self, condition):
        return [sample for sample in self.samples if condition(sample)]

    def exists(self, field):
        return [sample for sample in self.samples if sample.has_field(field)]

    def has_sample_field(self, field):
        return any(sample.has_field(field) for sample in self.samples)

    def save_view(self, name, view, overwrite=False):
        assert overwrite or name not in self.views
        self.views[name] = view


@pytest.fixture(autouse=True)
def fiftyone(monkeypatch):
    module = ModuleType("fiftyone")
    module.Dataset, module.Sample, module.Classification = Dataset, Sample, Label
    module.Heatmap, module.ViewField = Heatmap, ViewField
    monkeypatch.setitem(sys.modules, "fiftyone", module)


FILES = {f"image {n:02d}": f"/images/{n:02d}.png" for n in range(30)}


def test_samples_have_columns_clusters_heat_maps_and_views(run):
    dataset = to_fiftyone(run, FILES, name="films")
    table = sample_columns(run)
    by_id = {sample["weakspot_id"]: sample for sample in dataset}
    assert by_id.keys() == FILES.keys() and by_id["image 07"].filepath == "/images/07.png"
    correct = dict(zip(table["id"].to_pylist(), table["causes.errors.correct"].to_pylist(), strict=True))
    assert {name: sample["causes_errors_correct"] for name, sample in by_id.items()} == correct
    wrong = {name for name, right in correct.items() if not right}
    assert {sample["weakspot_id"] for sample in dataset.views["weakspot errors"]} == wrong
    causes = run["causes.root_causes"].arrays
    ids, numbers = np.asarray(causes["image_id"]).tolist(), np.asarray(causes["image_cluster"]).tolist()
    for name, number in zip(ids, numbers, strict=True):
        if number > 0:
            assert by_id[name]["weakspot_cluster"].label == f"cluster {number}"
            assert by_id[name]["weakspot_heat_map"].map.max() == pytest.approx(1, abs=0.01)
    assert set(dataset.views) == {"weakspot errors", "weakspot weak", "weakspot clusters"}


def test_samples_that_are_there_get_fields(run):
    dataset = Dataset("mine")
    dataset.add_samples([Sample("/images/03.png"), Sample("/elsewhere.png")])
    assert to_fiftyone(run, {"image 03": "/images/03.png"}, name="", dataset=dataset) is dataset
    assert len(dataset.samples) == 2 and dataset.samples[0].saved == 1
    assert dataset.samples[0]["weakspot_id"] == "image 03" and not dataset.samples[1].has_field("weakspot_id")


def test_labels_come_back_by_id(run):
    dataset = to_fiftyone(run, FILES, name="films")
    for place, sample in enumerate(dataset):
        sample["label"] = Label("dark") if place % 3 == 0 else None
    labels = labels_from_fiftyone(dataset, "label")
    assert labels == dict.fromkeys(sorted(FILES)[::3], "dark")
    with pytest.raises(ConfigError, match="no field 'tag'"):
        labels_from_fiftyone(dataset, "tag")


def test_inputs_without_files_are_refused(run):
    with pytest.raises(DataError, match=r"none of the 30 inputs of .* has a file"):
        to_fiftyone(run, {"other": "/x.png"}, name="films")


def test_what_was_selected_in_the_viewer_is_tagged(run, tmp_path):
    path = tmp_path / "selected.csv"
    path.write_text("\ufeffid,correct\nimage 03,yes\nimage 07,no\n", encoding="utf-8")
    for _ in range(2):
        dataset = to_fiftyone(run, FILES, name="films", tags={"dark": path})
        assert {sample["weakspot_id"] for sample in dataset if sample.tags == ["dark"]} == {"image 03", "image 07"}
    again = to_fiftyone(run, FILES, name="", dataset=dataset, tags={"dark": path})
    assert sum(sample.tags == ["dark"] for sample in again) == 2, "a tag is given once"
    path.write_text("name\nimage 03\n")
    with pytest.raises(ConfigError, match="has no column 'id'"):
        to_fiftyone(run, FILES, name="films", tags={"dark": path})
