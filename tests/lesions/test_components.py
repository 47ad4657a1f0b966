"""Components and adjusted IoU against flood fill and sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.references import lesions as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.cases import LesionDefinition, case_lesions
from weakspot.lesions.metrics_components import (
    adjusted_iou,
    lesion_components,
    lesion_geometry,
    true_positives,
    voxel_volume,
)

SHAPES = st.one_of(st.tuples(*[st.integers(1, 7)] * 2), st.tuples(*[st.integers(1, 5)] * 3))
MASKS = SHAPES.flatmap(lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape)))


@settings(deadline=None)
@given(MASKS, st.integers(1, 4))
def test_components_as_by_flood_fill(masks, smallest):
    mask = masks[0]
    labels, count = lesion_components(mask, smallest=smallest)
    expected = [part for part in reference.components(mask) if len(part) >= smallest]
    assert count == len(expected)
    assert [sorted(map(tuple, np.argwhere(labels == k + 1).tolist())) for k in range(count)] == expected
    assert (labels > 0).sum() == sum(map(len, expected))


@settings(deadline=None)
@given(MASKS)
def test_adjusted_iou_as_with_sets(masks):
    predicted, truth = masks
    labels, _ = lesion_components(predicted, smallest=1)
    true_labels, _ = lesion_components(truth, smallest=1)
    np.testing.assert_allclose(adjusted_iou(labels, true_labels), reference.adjusted_iou(predicted, truth))


def test_a_true_lesion_in_two_pieces_is_held_against_neither():
    """A ring of ten that two predictions of four cover: plain IoU 0.4 each; what the other covers does not count."""
    truth = np.ones((1, 10), dtype=bool)
    predicted = np.array([[1, 1, 1, 1, 0, 0, 1, 1, 1, 1]], dtype=bool)
    labels, count = lesion_components(predicted)
    assert count == 2
    np.testing.assert_allclose(adjusted_iou(labels, lesion_components(truth)[0]), [4 / 6, 4 / 6])


def test_what_is_too_small_for_a_lesion_still_covers_the_truth():
    """Of a true lesion of ten, a prediction of four and one of two: the two voxels are held against nobody."""
    truth = np.ones((1, 10), dtype=bool)
    predicted = np.array([[1, 1, 1, 1, 0, 0, 0, 0, 1, 1]], dtype=bool)
    maps = dict.fromkeys(("entropy", "variance", "pcs", "mutual_information"), np.zeros((1, 10)))
    for small_cover, iou, overlap in ((True, 4 / 8, 12 / 16), (False, 4 / 10, 8 / 14)):
        definition = LesionDefinition(small_cover=small_cover)
        cut = case_lesions({**maps, "lesion": predicted * 1.0}, np.zeros((1, 1, 10)), truth, definition)
        assert cut.columns["adjusted_iou"].tolist() == [iou] and cut.whole["dice"] == pytest.approx(overlap)


def test_true_and_false_positives_at_a_tenth():
    assert true_positives(np.array([0.0, 0.0999, 0.1, 1.0])).tolist() == [False, False, True, True]


def test_place_and_volume():
    mask = np.zeros((4, 5, 6), dtype=bool)
    mask[1, 2, 3] = mask[2, 2, 4] = True
    mask[0, 4, 0] = True
    geometry = lesion_geometry(*lesion_components(mask, smallest=1))
    assert geometry.voxels.tolist() == [1, 2]
    assert geometry.centre.tolist() == [[0, 4, 0], [1.5, 2, 3.5]]
    assert voxel_volume((2.0, 0.5, 0.5)) == 0.5


def test_nothing_found_is_no_error():
    labels, count = lesion_components(np.zeros((3, 4), dtype=bool))
    assert count == 0 and labels.shape == (3, 4) and not labels.any()
    assert adjusted_iou(labels, labels).shape == (0,)
    assert lesion_geometry(labels, 0).centre.shape == (0, 2)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(DataError, match=r"2 or 3 dimensions, got shape \(3,\)"):
        lesion_components(np.ones(3, dtype=bool))
    with pytest.raises(ConfigError, match="smallest is 0"):
        lesion_components(np.ones((2, 2), dtype=bool), smallest=0)
    with pytest.raises(DataError, match=r"differ in shape: \(2, 2\) and \(2, 3\)"):
        adjusted_iou(np.ones((2, 2), np.int32), np.ones((2, 3), np.int32))
    with pytest.raises(DataError, match="positive millimetres"):
        voxel_volume((1.0, 0.0, 1.0))
