"""Labels joined onto samples, and samples held out."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset
from weakspot.data import digits
from weakspot.data.sources import ArraySource
from weakspot.repair import Labelled, held_out, targets_of

UNLABELLED = ArraySource(np.arange(12, dtype=np.float32).reshape(4, 3), ids=["a", "b", "c", "d"])


def test_only_labelled_samples_in_the_order_of_the_source():
    made = Labelled(UNLABELLED, {"d": 1, "a": 0})
    assert made.ids == ("a", "d")
    batch = made.read(np.array([1, 0]))
    assert batch.ids == ("d", "a")
    assert batch.targets.tolist() == [1, 0]
    assert batch.targets.dtype == torch.int64
    assert batch.inputs.tolist() == [[9, 10, 11], [0, 1, 2]]


def test_labels_stand_in_the_place_of_targets():
    source = Subset(digits.train(), range(3))
    made = Labelled(source, {source.ids[0]: 7})
    assert made.read(np.arange(1)).targets.tolist() == [7]
    assert made.fingerprint() != Labelled(source, {source.ids[0]: 8}).fingerprint()


def test_several_numbers_per_sample():
    batch = Labelled(UNLABELLED, {"b": [0.5, 1.0], "c": [2.0, 3.0]}).read(np.arange(2))
    assert batch.targets.tolist() == [[0.5, 1.0], [2.0, 3.0]]
    assert batch.targets.dtype == torch.float32


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"a": 1, "x": 0}, r"no sample 'x' \(1 of 2 ids"),
        ({"a": 1, "b": [1, 2]}, "different shapes"),
        ({"a": "cat"}, "expected labels that are numbers"),
    ],
)
def test_labels_that_cannot_be_used(labels, told):
    with pytest.raises(DataError, match=told):
        Labelled(UNLABELLED, labels)


def table(*labels):
    return pa.table({"id": list("abcd")[: len(labels)], "cluster": [1] * len(labels), "label": list(labels)})


@pytest.mark.parametrize(
    ("task", "labels", "expected"),
    [
        ("classification", ["dog", None, "0"], {"a": 1, "c": 0}),
        ("multilabel", ["cat;dog", ";", "dog"], {"a": [1, 1], "b": [0, 0], "c": [0, 1]}),
        ("regression", ["1.5", None, "-2"], {"a": 1.5, "c": -2.0}),
        ("keypoints", ["1.5 2.0", "3;4"], {"a": [1.5, 2.0], "b": [3.0, 4.0]}),
    ],
)
def test_targets_of_a_table(task, labels, expected):
    assert targets_of(table(*labels), task=task, classes=["cat", "dog"]) == expected


def test_targets_that_are_none():
    with pytest.raises(DataError, match=r"label 'cow' of 'a' is not a class: expected one of cat, dog"):
        targets_of(table("cow"), classes=["cat", "dog"])
    with pytest.raises(DataError, match="label '2' of 'a' is not a class"):
        targets_of(table("2"), classes=["cat", "dog"])
    with pytest.raises(DataError, match="label 'far' of 'a' is not a number"):
        targets_of(table("far"), task="regression")
    with pytest.raises(DataError, match="expected the columns id and label"):
        targets_of(pa.table({"id": ["a"]}))
    with pytest.raises(ConfigError, match="segmentation cannot be read from a table"):
        targets_of(table("1"), task="segmentation")


def test_held_out_parts_are_apart_and_drawn_by_the_ids():
    source = digits.train()
    rest, part = held_out(source, 0.25, seed=1)
    assert len(part.ids) == round(0.25 * len(source.ids))
    assert set(rest.ids) | set(part.ids) == set(source.ids)
    assert not set(rest.ids) & set(part.ids)
    assert held_out(source, 0.25, seed=2)[1].ids != part.ids
    reversed_source = Subset(source, range(len(source.ids))[::-1])
    assert set(held_out(reversed_source, 0.25, seed=1)[1].ids) == set(part.ids)
    with pytest.raises(DataError, match=r"0\.1 of 3 samples cannot be held out"):
        held_out(Subset(source, range(3)), 0.1)
    with pytest.raises(ConfigError, match="a share between 0 and 1"):
        held_out(source, 1.0)


def test_what_is_unusable_is_not_trained_on_unless_a_class_has_that_name():
    table = pa.table({"id": ["a", "b"], "label": ["unusable", "cat"]})
    assert targets_of(table, classes=["dog", "cat"]) == {"b": 1}
    assert targets_of(table, classes=["cat", "unusable"]) == {"a": 1, "b": 0}
