import numpy as np
import pytest
from scipy.sparse import csr_array

from tests.references import classes as reference
from weakspot.classes import (
    activation_counts,
    activation_probability,
    class_members,
    class_sizes,
    neural_paths,
    neuron_coverage,
    rankable_classes,
)
from weakspot.classes import metrics_activation as module
from weakspot.core.errors import DataError


@pytest.mark.parametrize("block_bytes", [1, 64 << 20])
def test_probability_equals_the_plain_definition(monkeypatch, case, block_bytes: int) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", block_bytes)
    expected = reference.activation_probability(case.activated, case.predicted_sets, case.classes)
    probability = activation_probability(case.bits, case.predicted, neurons=case.neurons)
    np.testing.assert_array_equal(probability, expected)
    assert np.isnan(probability[-1]).all()  # the class without images


def test_paths_equal_the_plain_definition(case) -> None:
    few = case.bits[:, :1] & 0b11100000  # three neurons: paths repeat
    activated = np.unpackbits(few, axis=1, count=3).astype(bool).tolist()
    expected = reference.neural_paths(activated, case.predicted_sets, case.classes)
    assert neural_paths(few, case.predicted).tolist() == expected
    assert max(expected) <= 8


def test_the_papers_two_cows() -> None:
    cows = np.packbits([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], axis=1)
    assert neural_paths(cows, class_members([0, 0], 1)).tolist() == [2]
    assert neuron_coverage(cows, neurons=5).tolist() == [0.6, 0.6]


def test_members_from_every_kind_of_labels() -> None:
    table = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    for labels in ([1, 0, -1], np.array([1, 0, -1], dtype=np.int8), table, np.array(table) > 0, csr_array(table)):
        assert class_members(labels, 3).toarray().tolist() == table
    assert class_sizes(class_members([1, 1, 0], 3)).tolist() == [1, 2, 0]


def test_rankable_classes_have_enough_images() -> None:
    assert rankable_classes([10, 9, 11]).tolist() == [0, 2]
    assert rankable_classes([5, 1, 5, 7], minimum=2, most_frequent=2).tolist() == [0, 3]
    assert rankable_classes([0, 0], minimum=0).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_members([0, 3], 3), r"class numbers 0 … 2 \(−1: no label\), got 0 … 3"),
        (lambda: class_members([0.5], 3), "one class number per image or a matrix"),
        (lambda: class_members([[1, 0]], 3), "labels of 3 classes, got a matrix of 2 columns"),
        (
            lambda: activation_probability(np.zeros((2, 3), np.uint8), class_members([0, 0], 1), neurons=25),
            "2 images and 25 neurons, shape .2, 4., got .2, 3.",
        ),
    ],
)
def test_says_what_is_wrong(call, message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


def test_counts_are_as_narrow_as_the_largest_class_allows():
    generator = np.random.default_rng(4)
    active = generator.random((700, 30)) < 0.9
    labels = np.repeat([0, 1, 2], [300, 255, 145])
    counts = activation_counts(np.packbits(active, axis=1), class_members(labels, 4), neurons=30)
    assert counts.dtype == np.uint16
    np.testing.assert_array_equal(counts[:3], [active[labels == each].sum(0) for each in range(3)])
    assert not counts[3].any()
    few = activation_counts(np.packbits(active[300:], axis=1), class_members(labels[300:], 3), neurons=30)
    assert few.dtype == np.uint8
    np.testing.assert_array_equal(few, counts[[3, 1, 2]])
