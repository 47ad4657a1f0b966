"""Lesions matched one to one, panoptic quality, surface distances, FROC: against plain loops; and a promise kept."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.references import lesions as reference
from weakspot.core.errors import ConfigError, DataError
from weakspot.lesions.estimates import kept_estimates
from weakspot.lesions.metrics_components import lesion_components
from weakspot.lesions.metrics_detection import froc, matches, surface_distance
from weakspot.lesions.operating_points import KeptShare, fewest_patients, operating_point, set_apart


def blobs(rng, shape, shift):
    """A smooth random mask and a similar one."""
    field = rng.random(shape)
    for axis in range(len(shape)):
        field = (field + np.roll(field, 1, axis) + np.roll(field, -1, axis)) / 3
    level = np.quantile(field, 0.8)
    return field > level, (0.75 * field + 0.25 * np.roll(field, shift, 0)) > level


@pytest.mark.parametrize(("shape", "spacing"), [((12, 13, 11), (3.0, 1.0, 0.5)), ((24, 30), None)])
def test_matches_agree_with_sets_of_voxels(shape, spacing):
    predicted, truth = (lesion_components(mask, smallest=1)[0] for mask in blobs(np.random.default_rng(3), shape, 2))
    found = matches(predicted, truth, spacing)
    ours, theirs = ([set(part) for part in reference.components(labels > 0)] for labels in (predicted, truth))
    pairs = []
    for number, own in enumerate(ours):
        shared = [len(own & other) for other in theirs]
        best = int(np.argmax(shared))
        assert found.true_lesion[number] == (best + 1 if shared[best] else 0)
        iou = shared[best] / len(own | theirs[best]) if shared[best] else 0.0
        assert found.iou[number] == pytest.approx(iou)
        if iou > 0.5:
            pairs.append(iou)
            distance = reference.hd95(own, theirs[best], spacing or (1,) * len(shape))
            assert found.hd95[number] == pytest.approx(distance)
        else:
            assert np.isnan(found.hd95[number])
    assert len(pairs) > 1
    expected = sum(pairs) / (len(pairs) + (len(ours) - len(pairs)) / 2 + (len(theirs) - len(pairs)) / 2)
    assert found.panoptic_quality(len(theirs)) == pytest.approx(expected)


def test_surface_distance_is_that_of_all_pairs_of_points():
    one, other = np.random.default_rng(0).normal(size=(2, 40, 3))
    distances = cdist(one, other)
    both = np.concatenate([distances.min(0), distances.min(1)])
    assert surface_distance(one, other) == pytest.approx(np.percentile(both, 95))
    assert surface_distance(one, other, percentile=100) == pytest.approx(both.max())


def test_nothing_predicted_and_nothing_true():
    empty, some = np.zeros((4, 4), np.int32), np.eye(4, dtype=np.int32)
    assert np.isnan(matches(empty, empty).panoptic_quality(0))
    assert matches(empty, some).panoptic_quality(1) == 0 and matches(some, empty).panoptic_quality(0) == 0
    with pytest.raises(DataError, match="differ in shape"):
        matches(empty, some[:2])


def test_froc_agrees_with_dropping_lesions_one_by_one():
    rng = np.random.default_rng(1)
    unsure, false = rng.random(50).round(1), rng.random(50) < 0.5
    found = np.where(false, -1, rng.integers(0, 20, 50))
    curve = froc(unsure, false, found, scans=4, true_lesions=25)
    for level in sorted(set(unsure)):
        kept = unsure <= level
        at = np.flatnonzero(np.isclose(curve.false_positives, (kept & false).sum() / 4))
        assert any(np.isclose(curve.sensitivity[i], len(set(found[kept & ~false])) / 25) for i in at)
    for per_scan in (0, 1, 2, 4, 99):
        reachable = [len(set(found[(unsure <= level) & ~false])) / 25 for level in [-1, *unsure]
                     if ((unsure <= level) & false).sum() / 4 <= per_scan]  # fmt: skip
        assert curve.at(per_scan) == pytest.approx(max(reachable))
    with pytest.raises(DataError, match="0 scans with 3 true lesions"):
        froc(unsure, false, found, scans=0, true_lesions=3)


# the share of true lesions that is kept


def patients_drawn(rng, count):
    """Scores of lesions of so many patients, who differ in how certain the network is of them."""
    score, wrong, patient = [], [], []
    for number in range(count):
        size, centre = rng.integers(1, 9), rng.normal(0, 0.7)
        own_wrong = rng.random(size) < 0.4
        score += (centre + rng.normal(size=size) + 1.5 * own_wrong).tolist()
        wrong += own_wrong.tolist()
        patient += [f"p{number}"] * size
    return np.array(score), np.array(wrong), np.array(patient)


def loss(score, wrong, patient, threshold):
    true = {name: score[(patient == name) & ~wrong] for name in np.unique(patient)}
    return [float((own > threshold).mean()) for own in true.values() if len(own)]


@pytest.mark.parametrize("keep", [0.95, 0.8])
def test_the_threshold_is_the_lowest_that_keeps_its_promise(keep):
    score, wrong, patient = patients_drawn(np.random.default_rng(2), 60)
    point = operating_point(score, wrong, patient, keep=keep)
    losses = loss(score, wrong, patient, point.threshold)
    assert (sum(losses) + 1) / (len(losses) + 1) <= 1 - keep and point.patients == len(losses)
    lower = max(score[~wrong & (score < point.threshold)])
    assert (sum(loss(score, wrong, patient, lower)) + 1) / (len(losses) + 1) > 1 - keep
    assert point.kept == pytest.approx(1 - np.mean(losses)) and point.false_positives == wrong.sum()
    assert point.removed == (score[wrong] > point.threshold).sum()
    assert KeptShare.of(point.about()) == point


def test_new_patients_keep_their_true_lesions_as_promised():
    """Over many draws of patients the mean share lost is at most 5 %, and not far below."""
    rng, losses = np.random.default_rng(7), []
    for _ in range(400):
        point = operating_point(*patients_drawn(rng, 60), keep=0.95)
        losses.append(np.mean(loss(*patients_drawn(rng, 30), point.threshold)))
    assert 0.02 < np.mean(losses) < 0.05 + 2 * np.std(losses) / np.sqrt(len(losses))


def test_too_few_patients_are_refused():
    rng = np.random.default_rng(0)
    score, wrong = rng.random(36), np.tile([False, True], 18)
    patient = np.repeat([f"p{n}" for n in range(18)], 2)
    with pytest.raises(DataError, match=r"18 patients with true lesions are set apart.*95% of the true.*19 or more"):
        operating_point(score, wrong, patient, keep=0.95)
    with pytest.raises(DataError, match=r"18 patients have true lesions: .* take 21 or more"):
        set_apart(patient, wrong, keep=0.95, seed=0)
    assert fewest_patients(0.9) == 9 and operating_point(score, wrong, patient, keep=0.9).patients == 18
    with pytest.raises(ConfigError, match=r"keep_true is 1.5: expected a share"):
        fewest_patients(1.5)
    apart = set_apart(np.repeat([f"p{n}" for n in range(90)], 2), np.tile([False, True], 90), keep=0.95, seed=0)
    assert apart.sum() == 60 and (apart[::2] == apart[1::2]).all()


def test_what_is_dropped_is_told_with_the_truth_where_it_is_known():
    class Known:
        truth_known, false_positive = True, np.array([False, False, True, True, False])

    point = KeptShare(0.95, 1.0, 20, 0.97, 3, 9)
    kept, patient = np.array([True, False, False, True, True]), np.array(["a", "a", "a", "b", "b"])
    told = kept_estimates(kept, Known(), patient, point)
    assert told["dropped"].value == 2 and told["false_positives_dropped"].value == 1
    assert told["true_positives_kept"].value == pytest.approx((0.5 + 1) / 2)


def test_panoptica_gives_the_same():
    panoptica = pytest.importorskip("panoptica", reason="needs panoptica", exc_type=ImportError)
    predicted, truth = blobs(np.random.default_rng(0), (14, 15, 13), 2)  # no IoU is ½, a match for panoptica
    evaluator = panoptica.Panoptica_Evaluator(
        expected_input=panoptica.InputType.SEMANTIC,
        instance_approximator=panoptica.ConnectedComponentsInstanceApproximator(),
        instance_matcher=panoptica.NaiveThresholdMatching(),
        instance_metrics=[panoptica.Metric.IOU, panoptica.Metric.HD95],
        decision_metric=panoptica.Metric.IOU,
        decision_threshold=0.5,
    )
    result = evaluator.evaluate(predicted.astype(np.uint8), truth.astype(np.uint8), verbose=False)["ungrouped"]
    theirs, count = lesion_components(truth, smallest=1)
    found = matches(lesion_components(predicted, smallest=1)[0], theirs)
    assert found.panoptic_quality(count) == pytest.approx(result.pq)
    assert np.nanmean(found.hd95) == pytest.approx(result.sq_hd95)
