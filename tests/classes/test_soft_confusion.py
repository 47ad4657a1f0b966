"""What the outputs alone say of pairs of classes: the function, its columns beside the distance, and a black box."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from tests.references import classes as reference
from weakspot import ExecutionOptions, Finding, Plan, Run, Subject, examine
from weakspot.classes import (
    class_members,
    confusion_errors,
    label_coincidence,
    output_soft_confusion,
    pair_confusion,
)
from weakspot.classes.probes import ClassPairs, ImagesToLabel, OutputPairs
from weakspot.classes.room import steps
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.data.sources import ArraySource
from weakspot.laws import LAWS, Trial

CLASSES, QUICK = ("cat", "dog", "car", "bus", "van"), ExecutionOptions(batch_size=32, shard_size=64, workers=0)
TASKS = ("classification", "multilabel")


def logits(count: int = 90) -> np.ndarray:
    """Answers in which cat and dog, and car and bus, are often nearly as likely; nobody is predicted a van."""
    drawn = np.random.default_rng(3).normal(0, 1.5, (count, 5)).astype(np.float32)
    drawn[:, 1] = drawn[:, 0] + drawn[:, 1] / 4
    drawn[:, 3] = drawn[:, 2] + drawn[:, 3] / 2
    drawn[:, 4] = -4
    return drawn


def predicted_sets(outputs: np.ndarray, task: str) -> list[set[int]]:
    if task == "classification":
        return [{int(row.argmax())} for row in outputs]
    return [set(np.flatnonzero(row > 0).tolist()) for row in outputs]


def members_of(sets: list[set[int]]):
    return class_members([[number in own for number in range(5)] for own in sets], 5)


@pytest.mark.parametrize("task", TASKS)
def test_soft_confusion_equals_the_plain_definition_in_any_order_and_block(task, monkeypatch) -> None:
    outputs = logits()
    sets = predicted_sets(outputs, task)
    found = output_soft_confusion(outputs, members_of(sets), task=task, scores="logits")
    probability = reference.probabilities(outputs.tolist(), several=task == "multilabel")
    np.testing.assert_allclose(found, reference.soft_confusion(probability, sets, 5), rtol=1e-12)
    monkeypatch.setattr("weakspot.classes.metrics_confusion._BLOCK_BYTES", 8 * 5 * 7)  # seven images at a time
    order = np.random.default_rng(0).permutation(90)
    shuffled = members_of([sets[place] for place in order])
    again = output_soft_confusion(outputs[order], shuffled, task=task, scores="logits", rank=order)
    assert np.array_equal(
        again,
        output_soft_confusion(outputs, members_of(sets), task=task, scores="logits", rank=np.arange(90)),
        equal_nan=True,
    )


def test_labels_without_scores_lean_as_often_as_they_are_predicted_together() -> None:
    said = logits() > 0.5
    found = output_soft_confusion(said.astype(float), class_members(said, 5), task="multilabel", scores="probabilities")
    together = label_coincidence(class_members(said, 5))
    np.fill_diagonal(together, 0)
    np.testing.assert_allclose(pair_confusion(found), together, rtol=1e-12)


def test_outputs_of_other_images_are_refused() -> None:
    with pytest.raises(DataError, match=r"outputs of shape \(2, 3\) .images × classes., got \(2, 4\)"):
        output_soft_confusion(np.zeros((2, 4)), class_members([0, 1], 3), task="classification", scores="logits")


class Looked(nn.Module):
    """Gives the answers that its inputs hold, through a layer with neurons."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(5, 5)
        with torch.no_grad():
            self.last.weight.copy_(torch.eye(5)), self.last.bias.zero_()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(inputs)


def data(task: str, *, labelled: bool = True) -> ArraySource:
    """Every fifth answer is wrong: the next class instead, or one label more."""
    outputs = logits(200)
    sets = predicted_sets(outputs, task)
    if task == "classification":
        truth = np.array([(min(own) + (place % 5 == 0)) % 4 for place, own in enumerate(sets)])
    else:
        truth = np.array([[c in own and (c + place) % 5 > 0 for c in range(5)] for place, own in enumerate(sets)])
    return ArraySource(outputs, truth.astype(np.int64) if labelled else None)


def examined(probe, task: str, *, box: bool = False, labelled: bool = True) -> Finding:
    net = Looked().eval()
    model, name = (net.forward, "looked 1") if box else (net, None)
    subject = Subject(model, task=task, classes=CLASSES, scores="logits", fingerprint=name)
    return examine(subject, data(task, labelled=labelled), [probe], execution=QUICK)[0]


@pytest.mark.parametrize("task", TASKS)
def test_columns_beside_the_distance_equal_the_plain_definition(task) -> None:
    finding = examined(ClassPairs(least_images=2, replicates=0), task)
    outputs = logits(200).astype(float)
    probability = reference.probabilities(outputs.tolist(), several=task == "multilabel")
    directional = np.array(reference.soft_confusion(probability, predicted_sets(outputs, task), 5))[:4, :4]
    assert finding.arrays["classes"].tolist() == [0, 1, 2, 3]  # no van was predicted
    np.testing.assert_allclose(finding.arrays["soft_confusion"], directional, rtol=1e-6)
    mean, unequal = reference.pair_confusion(directional), reference.average_confusion_disparity(directional)
    pairs = list(combinations(range(4), 2))
    score = [mean[a][b] for a, b in pairs]
    rank = {pair: place for place, (_, pair) in enumerate(sorted(zip([-s for s in score], pairs, strict=True)), 1)}
    limit = np.mean(score) + np.std(score)
    for row in finding.table.to_pylist():
        a, b = CLASSES.index(row["first"]), CLASSES.index(row["second"])
        assert row["soft_confusion"] == pytest.approx(mean[a][b], rel=1e-6)
        assert row["soft_confusion_rank"] == rank[a, b]
        assert row["outputs_confused"] == (mean[a][b] > limit)
        assert row["soft_confusion_bias"] == pytest.approx(unequal[a][b], rel=1e-6)
    truth = reference.pair_confusion(finding.arrays["confusion"].tolist())
    expected = reference.errors(score, [truth[a][b] for a, b in pairs])
    told = [finding.summary[f"outputs_confusion_{name}_positives"].value for name in ("true", "false")]
    assert tuple(told) == expected
    assert finding.summary["outputs_confused"].value == sum(expected)
    disparity = finding.arrays["disparity"]
    expected = reference.errors([unequal[a][b] for a, b in pairs], [disparity[a, b] for a, b in pairs])
    assert expected == tuple(finding.summary[f"outputs_bias_{name}_positives"].value for name in ("true", "false"))


@pytest.mark.parametrize("task", TASKS)
def test_a_black_box_is_told_the_same(task) -> None:
    inside, alone = examined(ClassPairs(least_images=2), task), examined(OutputPairs(least_images=2), task, box=True)
    np.testing.assert_allclose(alone.arrays["soft_confusion"], inside.arrays["soft_confusion"], rtol=1e-12)
    rows = alone.table.to_pylist()
    assert [row["soft_confusion"] for row in rows] == sorted((row["soft_confusion"] for row in rows), reverse=True)
    same = {(row["first"], row["second"]): row for row in inside.table.to_pylist()}
    for row in rows:
        beside = same[row["first"], row["second"]]
        assert (row["confused"], row["biased"]) == (beside["outputs_confused"], beside["outputs_biased"])
        assert row["first_like_second"] == beside["first_like_second"]
    for name in ("confusion_gain", "confusion_recall", "bias_gain", "bias_correlation"):
        assert alone.summary[name].value == pytest.approx(inside.summary[f"outputs_{name}"].value)
    np.testing.assert_array_equal(alone.arrays["confusion_found"], inside.arrays["outputs_confusion_found"])
    with pytest.raises(SubjectError, match="looks inside the model"):
        examined(ClassPairs(least_images=2), task, box=True)


def test_without_labels_there_is_a_report_and_no_truth() -> None:
    alone = examined(OutputPairs(least_images=2), "classification", box=True, labelled=False)
    assert alone.summary["confused"].value > 0
    assert {alone.table["first"][0].as_py(), alone.table["second"][0].as_py()} == {"cat", "dog"}
    assert not [name for name in alone.summary if "gain" in name]
    inside = examined(ClassPairs(least_images=2), "classification", labelled=False)
    assert inside.summary["outputs_confused"].value == alone.summary["confused"].value


def test_a_cutoff_is_a_soft_confusion_for_the_outputs_and_a_distance_for_the_neurons() -> None:
    alone = examined(OutputPairs(least_images=2, cutoff=0.1), "classification")
    assert [row["confused"] for row in alone.table.to_pylist()] == [
        each > 0.1 for each in alone.table["soft_confusion"].to_pylist()
    ]
    inside = examined(ClassPairs(least_images=2, cutoff=0.1), "classification")
    usual = examined(ClassPairs(least_images=2), "classification")
    assert inside.table["outputs_confused"].to_pylist() == usual.table["outputs_confused"].to_pylist()


def test_scores_that_nobody_explained_are_not_guessed() -> None:
    subject = Subject(Looked().eval(), classes=CLASSES)
    finding = examine(subject, data("classification"), [ClassPairs(least_images=2)], execution=QUICK)[0]
    assert finding.summary["outputs_confused"].value is None
    assert "does not say what its scores are" in finding.summary["outputs_confused"].about
    assert "soft_confusion" not in finding.table.column_names
    with pytest.raises(SubjectError, match="give the subject scores='logits'"):
        examine(subject, data("classification"), [OutputPairs()], execution=QUICK)


def test_the_room_ranks_and_chooses_by_the_outputs(tmp_path) -> None:
    asked = steps({"by": "outputs", "least_images": 2, "select": {"from": "pool", "budget": 5}})
    assert [step.probe for step in asked] == [OutputPairs, ImagesToLabel]
    net = Looked().eval()
    subject = Subject(net.forward, classes=CLASSES, scores="logits", fingerprint="looked 1")
    splits = {"test": data("classification"), "pool": ArraySource(logits(60))}
    pairs, listed = Plan.of(asked).run(subject, splits, Run.create(tmp_path / "run"), execution=QUICK)
    confused = {frozenset((row["first"], row["second"])) for row in pairs.table.to_pylist() if row["confused"]}
    assert {frozenset((row["prediction"], row["suspected"])) for row in listed.table.to_pylist()} <= confused
    assert len(listed.table) == 5
    with pytest.raises(ConfigError, match=r'colour.* is not known: choose "neurons", "outputs" or "pixels"'):
        steps({"by": "colour"})
    with pytest.raises(ConfigError, match="has no option 'layers'"):
        steps({"by": "outputs", "layers": "all"})


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("law", [law for law in LAWS if law.__name__.startswith("any_")], ids=lambda law: law.__name__)
def test_laws_hold_where_classes_are_ranked(task, law) -> None:
    law(Trial(OutputPairs, task, {"least_images": 2}))


def test_on_the_authors_answers_for_coco_it_finds_more_than_the_distance(oracle) -> None:
    coco = oracle("coco")
    said = coco.predicted.toarray().astype(float)
    found = output_soft_confusion(said, coco.predicted, task="multilabel", scores="probabilities")
    alone = confusion_errors(-pair_confusion(found), coco.confusion)
    assert (alone.true_positives, alone.false_positives) == (167, 55)  # docs/papers-classes.md
    assert confusion_errors(coco.distance, coco.confusion).true_positives == 138  # Table III of the paper
