"""Structural uncertainty and error retention, against plain loops over sets of voxels."""

import numpy as np
import pytest
import torch

from tests.lesions import toy
from tests.references import lesions as reference
from weakspot import ExecutionOptions, examine
from weakspot.core.errors import DataError
from weakspot.core.finding import Finding
from weakspot.lesions.metrics_components import lesion_components
from weakspot.lesions.probes import Lesions
from weakspot.lesions.retention import RETAINED, dice_retention, precision_retention
from weakspot.lesions.structural import SampledMasks, sampled_masks, structural_uncertainty
from weakspot.looks import McDropout


@pytest.mark.parametrize(("shape", "looks"), [((9, 8, 7), 5), ((12, 11), 3), ((6, 6, 6), 9), ((5, 1, 7), 1)])
def test_agrees_with_sets_of_voxels(shape, looks):
    rng = np.random.default_rng(looks)
    smooth = rng.random((looks, *shape))
    smooth = (smooth + np.roll(smooth, 1, 1) + 1.5 * rng.random(shape)) / 3.5
    mean = sum(smooth) / looks > 0.62
    labels, count = lesion_components(mean, smallest=2)
    masks = SampledMasks.of([np.packbits(sample > 0.62) for sample in smooth], mean)
    found, whole = structural_uncertainty(masks, labels, count, smallest=2)
    expected, expected_whole = reference.structural(list(smooth), 0.62, 2)
    assert count > 1 and found.tolist() == pytest.approx(expected) and whole == pytest.approx(expected_whole)
    for look, sample in enumerate(smooth):
        inside = np.zeros(shape, dtype=bool)
        inside.ravel()[masks.places] = masks.mask(look)
        assert np.array_equal(inside, sample > 0.62)


def test_no_lesion_in_any_look_is_agreement():
    nothing = np.zeros((3, 4, 5), dtype=bool)
    masks = SampledMasks.of([np.packbits(nothing)] * 2, nothing)
    found, whole = structural_uncertainty(masks, nothing.astype(np.int32), 0)
    assert found.shape == (0,) and whole == 0


def test_a_run_suffices_to_compute_it_again():
    source, subject = toy.source(3), toy.subject()
    how = Lesions(looks=9, seed=2)
    finding = examine(subject, source, [how], execution=ExecutionOptions(batch_size=2))[0]
    rows, batch, look = finding.table.to_pylist(), source.read(np.arange(3)), McDropout(2)
    with torch.no_grad():
        draws = [look.outputs(subject.forward, batch.inputs, batch.ids, number) for number in range(1, 10)]
    lesion = torch.stack([draw.softmax(1)[:, 1] for draw in draws]).numpy()
    for number, case in enumerate(source.ids):
        masks = sampled_masks(finding, case)
        assert masks.sides == (14, 14, 14) and masks.looks == 9
        assert [masks.mask(index).sum() for index in range(9)] == (lesion[:, number] > 0.5).sum((1, 2, 3)).tolist()
        expected, whole = reference.structural(list(lesion[:, number]), 0.5, 3)
        assert [row["structural"] for row in rows if row["case"] == case] == pytest.approx(expected)
        assert finding.arrays["case_structural"][number] == pytest.approx(whole)
    with pytest.raises(DataError, match="has no case 'other'"):
        sampled_masks(finding, "other")
    with pytest.raises(DataError, match="holds no masks of its looks"):
        sampled_masks(Finding(name="lesions.lesions", summary={}), "test-000")


def test_precision_retention_agrees_with_a_plain_loop_and_lies_between_chance_and_the_best():
    rng = np.random.default_rng(0)
    wrong = rng.random(60) < 0.4
    unsure, patient = rng.random(60) + 0.4 * wrong, np.repeat(["a", "b", "c"], 20)
    found = precision_retention(unsure, wrong, patient)
    for kept in range(0, 21, 5):
        expected = [reference.precision_retained(unsure[own], wrong[own], kept) for own in np.split(np.arange(60), 3)]
        assert found.curve[round(100 * kept / 20)] == pytest.approx(np.mean(expected))
    assert found.curve[0] == 1 and found.curve[-1] == pytest.approx(found.random[-1]) == pytest.approx(found.ideal[-1])
    assert 0 < found.gain < 1 and precision_retention(wrong.astype(float), wrong, patient).gain == pytest.approx(1)
    assert precision_retention(np.ones(60), wrong, patient).gain == pytest.approx(0)
    drawn = [precision_retention(rng.permutation(60), wrong, patient).area for _ in range(300)]
    assert np.mean(drawn) == pytest.approx(float(np.trapezoid(found.random, RETAINED)), abs=0.01)
    with pytest.raises(DataError, match="no patient has a true positive"):
        precision_retention(unsure, np.ones(60, dtype=bool), patient)


def test_dice_retention_by_hand():
    found = dice_retention(np.array([0.1, 0.9, 0.5, 0.3]), np.array([0.8, 0.2, 0.6, np.nan]))
    at = [0, 1 / 3, 2 / 3, 1]  # kept: none, the first, the first and third, all
    expected = [1, 2.8 / 3, 2.4 / 3, 1.6 / 3]
    assert found.curve.tolist() == pytest.approx(np.interp(RETAINED, at, expected).tolist())
    assert found.gain == pytest.approx(1)
    with pytest.raises(DataError, match="1 patients have a Dice"):
        dice_retention(np.array([0.1]), np.array([0.5]))
