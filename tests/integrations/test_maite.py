"""MAITE, the real package: both ways, and its own evaluation with weakspot's parts."""

import numpy as np
import pytest

from tests.integrations.conftest import CLASSES, Net, images
from weakspot import Subject, examine
from weakspot.core.errors import DataError
from weakspot.integrations import MaiteAccuracy, MaiteDataset, MaiteModel, source_from_maite, subject_from_maite
from weakspot.repair import Predictions

protocols = pytest.importorskip("maite.protocols.image_classification", reason="needs weakspot[maite]")


@pytest.fixture
def parts(source):
    subject = Subject(Net(), classes=CLASSES, scores="logits", bounds=(0, 1))
    return subject, MaiteModel(subject, name="net"), MaiteDataset(source, name="films", classes=CLASSES)


def test_they_are_what_maite_calls_model_dataset_and_metric(parts):
    _, model, dataset = parts
    assert isinstance(model, protocols.Model) and isinstance(dataset, protocols.Dataset)
    assert isinstance(MaiteAccuracy(), protocols.Metric)
    image, target, known = dataset[4]
    assert image.shape == (1, 8, 8) and target.sum() == 1 and known == {"id": "image 04", "site": "a"}


def test_maites_own_evaluation_gives_weakspots_accuracy(parts, source):
    from maite.tasks import evaluate

    subject, model, dataset = parts
    result, *_ = evaluate(model=model, dataset=dataset, metric=MaiteAccuracy(), batch_size=7)
    [finding] = examine(subject, source._source, [Predictions()])
    expected = finding.summary["accuracy"]
    assert result == pytest.approx({"accuracy": expected.value, "low": expected.low, "high": expected.high})


def test_a_round_trip_gives_the_same_examination(parts, source):
    subject, model, dataset = parts
    again = source_from_maite(dataset)
    assert again.ids == source.ids and again.classes == tuple(CLASSES)
    assert again.fingerprint() == source_from_maite(dataset).fingerprint()
    batch = again.read(np.array([3, 1]))
    assert np.array_equal(batch.inputs.numpy(), images()[0][[3, 1]]) and batch.metadata["site"].tolist() == ["b", "b"]
    [plain] = examine(subject, source, [Predictions()])
    [through] = examine(subject_from_maite(model, scores="logits"), again, [Predictions()])
    assert through.table["prediction"].to_pylist() == plain.table["prediction"].to_pylist()


def test_accuracy_goes_by_group_where_the_metadata_name_one():
    one_hot = np.eye(2, dtype=np.float32)
    for group, wider in ((None, False), ("film", True)):
        metric = MaiteAccuracy(group=group)
        for film in range(6):
            said = [one_hot[int(film < 4)]] * 5
            metric.update(said, [one_hot[1]] * 5, [{"id": str(n), "film": str(film)} for n in range(5)])
        result = metric.compute()
        assert result["accuracy"] == pytest.approx(20 / 30)
        assert (result["high"] - result["low"] > 0.5) is wider
        metric.reset()


def test_what_is_no_dataset_is_refused(source):
    with pytest.raises(DataError, match="int is no dataset of MAITE"):
        source_from_maite(3)
    with pytest.raises(DataError, match="MAITE needs the names of the classes"):
        MaiteDataset(source, name="films")
