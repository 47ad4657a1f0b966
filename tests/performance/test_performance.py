"""What is said first: accuracy or errors, by class, calibration, confusions; against plain sums and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torch import nn

from weakspot import Subject, examine
from weakspot.core.plan import Plan
from weakspot.core.rows import RowTable
from weakspot.core.source import Source
from weakspot.data.sources import ArraySource
from weakspot.performance import Performance, class_scores, confusions, r_squared, surely_worst
from weakspot.performance.room import steps, with_performance
from weakspot.registry import steps_for

LOGITS = torch.tensor([[4.0, 0, 0], [0, 1, 0], [0, 3, 0], [0, 0, 2], [1, 0, 0], [0, 5, 0]])
LABELS = np.array([0, 1, 1, 2, 2, 0])


class Given(nn.Module):
    """Gives the outputs that stand in the first row of each image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images[:, 0, 0]


def images(outputs) -> np.ndarray:
    made = np.zeros((len(outputs), 1, 4, outputs.shape[1]), dtype=np.float32)
    made[:, 0, 0] = outputs
    return made


def found(outputs, labels=None, task="classification", scores="logits", metadata=None, **options):
    source: Source = ArraySource(images(np.asarray(outputs)), labels, metadata=metadata)
    subject = Subject(Given(), task=task, scores=scores)
    (finding,) = examine(subject, source, [Performance(**options)])
    return finding


def test_the_numbers_are_those_of_plain_sums():
    finding = found(LOGITS, LABELS)
    probability = torch.softmax(LOGITS, 1).numpy()
    said, sure = probability.argmax(1), probability.max(1)
    numbers = {name: estimate.value for name, estimate in finding.summary.items()}
    assert numbers["accuracy"] == pytest.approx(sk.accuracy_score(LABELS, said)) == pytest.approx(4 / 6)
    assert numbers["class_mean"] == pytest.approx(sk.balanced_accuracy_score(LABELS, said))
    assert numbers["errors"] == 2 and numbers["inputs"] == 6
    assert numbers["most_frequent"] == pytest.approx(2 / 6)
    assert numbers["mean_confidence"] == pytest.approx(sure.mean())
    assert numbers["overconfidence"] == pytest.approx(sure.mean() - 4 / 6)
    assert numbers["confident_errors"] == int((sure[said != LABELS] >= 0.9).sum()) == 1
    tenth = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs((sure - (said == LABELS))[tenth == one].mean()) * (tenth == one).mean() for one in set(tenth)]
    assert numbers["calibration_error"] == pytest.approx(sum(gaps))
    assert finding.summary["accuracy"].low < 4 / 6 < finding.summary["accuracy"].high


def test_the_table_has_every_prediction_with_its_confidence_and_metadata():
    finding = found(LOGITS, LABELS, metadata={"light": np.arange(6.0)})
    table = finding.table.to_pydict()
    assert table["prediction"] == ["0", "1", "1", "2", "0", "1"] and table["target"] == list("011220")
    assert table["correct"] == [True, True, True, True, False, False]
    assert table["metadata.light"] == list(range(6))
    assert finding.outputs.columns_of_role(finding, "metadata") == ["metadata.light"]


def test_the_confusions_come_with_their_counts_and_errors_with_pictures():
    finding = found(LOGITS, LABELS)
    assert finding.arrays["confusion"].tolist() == ["0 → 1", "2 → 0"]
    assert finding.arrays["confusion_inputs"].tolist() == [1, 1]
    first = finding.media["confident error 1"]
    assert "label 0" in first.caption and first.caption.startswith("1, ") and first.png.startswith(b"\x89PNG")
    assert {"0 → 1", "2 → 0"} <= finding.media.keys()
    assert found(LOGITS, LABELS, shown=0).media == {}


def test_images_of_differing_sizes_are_pictured_as_they_are():
    small, large = images(LOGITS[4:5].numpy()), np.pad(images(LOGITS[5:].numpy()), ((0, 0), (0, 0), (0, 3), (0, 0)))

    class Two:
        ids = ("a", "b")

        def read(self, positions):
            from weakspot.core.observation import Batch

            (place,) = positions
            image = torch.from_numpy((small, large)[place])
            return Batch((self.ids[place],), positions, image, torch.from_numpy(LABELS[4 + place : 5 + place]))

        def fingerprint(self):
            return "two"

        batch_limit = 1

    (finding,) = examine(Subject(Given(), task="classification", scores="logits"), Two(), [Performance()])
    assert len([name for name in finding.media if name.startswith("confident")]) == 2


def test_without_labels_or_without_scores_what_cannot_be_said_is_left_out():
    bare = found(LOGITS)
    assert set(bare.summary) == {"mean_confidence", "inputs"} and bare.table.column_names == [
        "id", "prediction", "confidence"
    ]  # fmt: skip
    unsaid = found(LOGITS, LABELS, scores=None)
    assert "calibration_error" not in unsaid.summary and unsaid.summary["accuracy"].value == pytest.approx(4 / 6)


def test_top_five_is_given_where_there_are_many_classes():
    outputs = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)
    labels = np.random.default_rng(1).integers(20, size=50)
    told = found(outputs, labels).summary["top5_accuracy"].value
    assert told == pytest.approx(sk.top_k_accuracy_score(labels, outputs, k=5, labels=range(20)))
    assert "top5_accuracy" not in found(LOGITS, LABELS).summary


def test_a_regression_gets_errors_and_r_squared_and_no_accuracy():
    random = np.random.default_rng(0)
    true = random.normal(size=(80, 1)).astype(np.float32)
    said = (true + random.normal(scale=0.5, size=(80, 1))).astype(np.float32)
    finding = found(said, true, task="regression", scores=None)
    numbers = {name: estimate.value for name, estimate in finding.summary.items()}
    assert numbers["mean_absolute_error"] == pytest.approx(sk.mean_absolute_error(true, said), rel=1e-6)
    assert numbers["root_mean_squared_error"] == pytest.approx(sk.root_mean_squared_error(true, said), rel=1e-6)
    assert numbers["r_squared"] == pytest.approx(sk.r2_score(true, said), rel=1e-6)
    told = finding.summary["r_squared"]
    assert told.low < told.value < told.high
    assert "accuracy" not in numbers


def test_labels_get_their_mean_f1():
    random = np.random.default_rng(0)
    true = random.random((60, 3)) < 0.4
    outputs = (np.where(true, 1, -1) + random.normal(size=(60, 3)) * 1.5).astype(np.float32)
    numbers = found(outputs, true, task="multilabel").summary
    assert numbers["macro_f1"].value == pytest.approx(sk.f1_score(true, outputs > 0, average="macro"))
    assert numbers["accuracy"].value == pytest.approx(sk.accuracy_score(true, outputs > 0))
    assert numbers["label_accuracy"].value == pytest.approx(1 - sk.hamming_loss(true, outputs > 0))


def test_the_worst_class_is_one_that_is_surely_bad():
    target, said = np.repeat([0, 1], [100, 1]), np.r_[np.repeat([0, 2], [50, 50]), 0]
    scores = class_scores(target, said)
    assert scores.accuracy.tolist() == [0.5, 0.0]
    assert scores.number[surely_worst(scores)].tolist() == [0, 1]
    assert np.isnan(class_scores([3], [0]).precision).all()


def test_r_squared_leaves_out_what_does_not_vary():
    assert np.isnan(r_squared([[1.0], [2.0]], [[1.0], [1.0]]))
    assert r_squared([[1.0, 5.0], [2.0, 5.0]], [[1.0, 0.0], [2.0, 0.0]]) == 1.0


def test_confusions_of_perfect_predictions_are_none():
    assert [len(part) for part in confusions([0, 1], [0, 1])] == [0, 0, 0]


@pytest.mark.parametrize(
    ("ask", "task", "scores", "added"),
    [
        ({"neuron_coverage": {}}, "classification", None, True),
        ({"neuron_coverage": {}}, "multilabel", None, False),
        ({"neuron_coverage": {}}, "multilabel", "logits", True),
        ({"neuron_coverage": {}}, "segmentation", None, True),
        ({"activation_ranges": {}}, "classification", None, False),
        ({"performance": {"shown": 3}}, "classification", None, False),
    ],
)
def test_it_is_asked_besides_where_it_costs_no_pass(ask, task, scores, added):
    planned = Plan.of(steps_for(ask))
    more = with_performance(planned, Subject(Given(), task=task, scores=scores))
    assert len(more.steps) - len(planned.steps) == added
    assert len(more.passes()) == len(planned.passes())
    assert planned.asked <= more.asked


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(Exception, match="expected numbers of 0 or more"):
        steps({"shown": -1})


def test_intervals_of_classes_go_by_group():
    rng = np.random.default_rng(0)
    target, said = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    once = class_scores(target, said)
    copies = np.repeat(target, 8), np.repeat(said, 8)
    plain, grouped = class_scores(*copies), class_scores(*copies, np.repeat(np.arange(60), 8))
    assert grouped.accuracy.tolist() == once.accuracy.tolist()
    assert (plain.high - plain.low < 0.6 * (once.high - once.low)).all()
    assert (grouped.high - grouped.low > 0.9 * (once.high - once.low)).all()


def test_more_inputs_are_not_read_more_often(monkeypatch):
    reads, read = [], RowTable.__getitem__
    monkeypatch.setattr(RowTable, "__getitem__", lambda self, name: reads.append(name) or read(self, name))
    counts = []
    for times in (10, 20):  # with as many errors as pictures, and with more
        reads.clear()
        found(LOGITS.repeat(times, 1), np.tile(LABELS, times))
        counts.append(len(reads))
    assert counts[0] == counts[1] > 0
