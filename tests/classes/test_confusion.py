import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from tests.references import classes as reference
from weakspot.classes import (
    class_members,
    confusion_errors,
    label_coincidence,
    pair_confusion,
    pair_values,
    type1_confusion,
    type2_confusion,
)
from weakspot.core.errors import DataError


@pytest.mark.parametrize(("kind", "function"), [(1, type1_confusion), (2, type2_confusion)])
@pytest.mark.parametrize("minimum", [1, 10, 25])
def test_equals_the_plain_definition(case, kind: int, function, minimum: int) -> None:
    expected = reference.confusion(case.label_sets, case.predicted_sets, case.classes, kind=kind, minimum=minimum)
    np.testing.assert_array_equal(function(case.labels, case.predicted, minimum=minimum), expected)


def test_single_label_type1_is_the_normalised_confusion_matrix() -> None:
    labels, predicted = np.random.default_rng(0).integers(0, 4, (2, 200))
    expected = confusion_matrix(labels, predicted, normalize="true")
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(type1_confusion(class_members(labels, 4), class_members(predicted, 4)), expected)


def test_pairs_are_the_mean_of_both_directions(case) -> None:
    directional = type1_confusion(case.labels, case.predicted, minimum=25)
    np.testing.assert_allclose(pair_confusion(directional), reference.pair_confusion(directional.tolist()))
    assert np.isnan(directional).any()  # the argument is left as it was


def test_coincidence_equals_the_plain_definition(case) -> None:
    table = label_coincidence(case.labels)
    for a in range(case.classes):
        for b in range(case.classes):
            assert table[a, b] == pytest.approx(reference.coincidence(case.label_sets, a, b))


@pytest.mark.parametrize(("cutoff", "top"), [("std", None), ("top 20%", 9)])
def test_errors_equal_the_plain_definition(cutoff: str, top: int | None) -> None:
    generator = np.random.default_rng(3)
    distance, confusion = generator.random((2, 10, 10))
    distance += distance.T
    truth = pair_values(pair_confusion(confusion)).tolist()
    found = confusion_errors(distance, confusion, cutoff=cutoff)
    expected = reference.errors((-pair_values(distance)).tolist(), truth, top=top)
    assert (found.true_positives, found.false_positives) == expected


def test_a_number_reports_every_pair_below_that_distance() -> None:
    distance = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    assert confusion_errors(distance, np.zeros((3, 3)), cutoff=2.5).reported == 2
    assert confusion_errors(distance, np.zeros((3, 3)), cutoff=1).reported == 0


def test_a_class_without_distance_is_left_out_of_report_and_truth() -> None:
    generator = np.random.default_rng(4)
    distance, confusion = generator.random((2, 8, 8))
    distance += distance.T
    without = confusion_errors(distance[1:, 1:], confusion[1:, 1:])
    distance[0] = distance[:, 0] = np.nan
    assert confusion_errors(distance, confusion) == without


def test_says_what_is_wrong() -> None:
    with pytest.raises(DataError, match="same classes"):
        confusion_errors(np.zeros((2, 2)), np.zeros((3, 3)))
    with pytest.raises(DataError, match="same images and classes"):
        type1_confusion(class_members([0, 1], 2), class_members([0], 2))
