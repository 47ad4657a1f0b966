"""The generator of implanted lesions: each piece on small volumes whose answer is known, and the splits."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "papers"))
import lesions_ms_implants as implants
import lesions_ms_protocol as protocol

SHAPE = (24, 26, 28)


def ball(centre, radius, shape=SHAPE):
    grid = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return ((grid - np.array(centre)) ** 2).sum(-1) <= radius**2


def made_patient(rng, *, flair=0.5, t1=-0.3, noise=2.0):
    """White matter of level 100 and 200 all over, noise, and two lesions of known contrast."""
    lesions = ball((8, 9, 9), 3) | ball((16, 17, 19), 4)
    images = {
        "flair": 100 + noise * rng.normal(size=SHAPE) + 100 * flair * lesions,
        "t1": 200 + noise * rng.normal(size=SHAPE) + 200 * t1 * lesions,
    }
    return implants.Patient("07", {name: image.astype(np.float32) for name, image in images.items()}, lesions)


def made_brain(*, amplitude=((0.4, -0.2),), voxels=(50,), texture=0.0, white=None):
    looks = implants.Measured(
        np.array(voxels),
        np.array(amplitude, dtype=float),
        np.full((len(voxels), 2), texture),
        np.tile([0.1, 0.25, 0.7, 1, 1, 1], (2, 1)),
        np.ones(2),
    )
    images = {"flair": np.full(SHAPE, 100, np.float32), "t1": np.full(SHAPE, 200, np.float32)}
    inside = np.ones(SHAPE, dtype=bool) if white is None else white
    return implants.EmptyBrain("07", images, inside, {"flair": 100.0, "t1": 200.0}, looks)


def test_the_mean_inside_weighs_known_voxels_alone():
    rng = np.random.default_rng(0)
    volume, known = rng.normal(size=(7, 6, 5)), rng.random((7, 6, 5)) < 0.6
    found = implants.smoothed_inside(volume, known, 0.8)
    for place in [(3, 3, 2), (2, 4, 1)]:  # scipy's own weights; symmetric, up to how the border is met
        spike = np.zeros(volume.shape)
        spike[place] = 1
        weights = ndimage.gaussian_filter(spike, 0.8) * known
        assert found[place] == pytest.approx((weights * volume).sum() / weights.sum(), abs=2e-2)
    along = np.broadcast_to(np.arange(40.0)[:, None, None], (40, 3, 3))
    assert implants.smoothed_inside(along, along < 2, 1.0)[-1, 1, 1] == pytest.approx(0.5)


def test_noise_is_borrowed_from_healthy_voxels_in_whole_pieces():
    rng = np.random.default_rng(1)
    paint, healthy = ball((8, 8, 8), 3), ~ball((8, 8, 8), 6)
    to, source = implants.borrowed_places(paint, healthy, rng)
    assert len(to) == paint.sum()
    assert paint[tuple(to.T)].all()
    assert healthy[tuple(source.T)].all()
    for block in np.unique(to // implants.BLOCK, axis=0):
        own = (to // implants.BLOCK == block).all(1)
        shifts = np.unique((source - to)[own], axis=0)
        assert len(shifts) <= max(2, own.sum() // 3)


def test_filling_leaves_no_trace_in_level_or_noise():
    patient = made_patient(np.random.default_rng(2))
    found = implants.filled(patient, np.ones(SHAPE, dtype=bool), np.random.default_rng(3))
    around = ndimage.binary_dilation(patient.lesions, implants.TOUCHING, iterations=implants.REACH)
    for name, level in (("flair", 100), ("t1", 200)):
        assert np.array_equal(found[name][~around], patient.images[name][~around])
        painted, usual = found[name][patient.lesions], found[name][~around]
        assert painted.mean() == pytest.approx(level, abs=0.6)
        assert painted.std() == pytest.approx(usual.std(), rel=0.2)
    assert abs(patient.images["flair"][patient.lesions].mean() - 100) > 40


def test_depth_counts_voxels_from_the_border():
    mask = np.zeros((1, 1, 9), dtype=bool)
    mask[0, 0, 3:6] = True
    padded = np.pad(mask, ((3, 3), (3, 3), (0, 0)), constant_values=False)
    assert implants.depth_of(padded)[3, 3].tolist() == [-3, -2, -1, 0, 0, 0, -1, -2, -3]
    solid = np.zeros((7, 7, 7), dtype=bool)
    solid[1:6, 1:6, 1:6] = True
    assert implants.depth_of(solid)[3, 3].tolist() == [-1, 0, 1, 2, 1, 0, -1]


def test_the_profile_ends_beyond_its_reach():
    profile = np.array([0.1, 0.2, 0.6, 0.9, 1.0, 1.1])
    found = implants.profile_at(np.array([-9, -3, -2, -1, 0, 1, 2, 3, 8]), profile)
    assert found.tolist() == [0, 0, 0.1, 0.2, 0.6, 0.9, 1.0, 1.1, 1.1]


def test_a_planted_contrast_is_measured():
    patient, white = made_patient(np.random.default_rng(4)), np.ones(SHAPE, dtype=bool)
    empty = implants.filled(patient, white, np.random.default_rng(5))
    found = implants.measure(patient, empty, white, {"flair": 100.0, "t1": 200.0})
    assert found.voxels.tolist() == [123, 257]
    assert np.allclose(found.amplitude, [[0.5, -0.3]] * 2, atol=0.01)
    assert np.allclose(found.profile[0], [0, 0, 1, 1, 1, 1], atol=0.05)
    assert (found.texture < 0.03).all()


def test_a_planted_texture_is_measured():
    rng = np.random.default_rng(6)
    patient, white = made_patient(rng, noise=0.5), np.ones(SHAPE, dtype=bool)
    rough = ndimage.gaussian_filter(rng.normal(size=SHAPE), 1.0)
    rough *= 8 / rough.std()
    patient.images["flair"][patient.lesions] += rough[patient.lesions]
    empty = implants.filled(patient, white, np.random.default_rng(7))
    found = implants.measure(patient, empty, white, {"flair": 100.0, "t1": 200.0})
    labels, _ = ndimage.label(patient.lesions)
    assert np.allclose(found.texture[:, 0], ndimage.standard_deviation(rough, labels, [1, 2]) / 100, atol=0.012)
    assert found.grain[0] == pytest.approx(1.0, abs=0.35)


def test_looks_follow_size_and_keep_the_residuals_of_one_lesion_together():
    size = np.array([np.e**1, np.e**2, np.e**3, np.e**4])
    amplitude = np.stack([0.1 + 0.1 * np.log(size), -0.05 * np.log(size)], 1)
    exact = implants.Measured(size, amplitude, np.zeros((4, 2)), np.zeros((2, 6)), np.ones(2))
    drawn, _ = implants.drawn_looks(exact, np.array([np.e**2.5, 1e9, 1]), np.random.default_rng(0))
    assert np.allclose(drawn, [[0.35, -0.125], [0.5, -0.2], [0.2, -0.05]])
    off = np.array([0.1, -0.1, -0.1, 0.1])  # no slope and no mean, so the line stays
    loose = implants.Measured(
        size, amplitude + np.stack([off, 2 * off], 1), np.arange(8.0).reshape(4, 2), np.zeros((2, 6)), np.ones(2)
    )
    drawn, texture = implants.drawn_looks(loose, np.full(400, np.e**2), np.random.default_rng(1))
    apart = drawn - [0.3, -0.1]
    assert np.allclose(apart[:, 1], 2 * apart[:, 0])
    assert np.mean(apart[:, 0] > 0) == pytest.approx(0.5, abs=0.1)
    assert np.array_equal(off[(texture[:, 0] / 2).astype(int)] > 0, apart[:, 0] > 0)


def test_lesions_stay_move_into_white_matter_or_are_left_out():
    white = np.zeros(SHAPE, dtype=bool)
    white[:, :, :16] = True
    stays, moves, lost = ball((6, 6, 6), 2), ball((12, 18, 17), 2), ball((18, 8, 24), 2)
    found, told = implants.placed(stays | moves | lost, white, np.random.default_rng(0))
    assert told == {"given": 3, "placed": 2, "moved": 1}
    assert not (found > 0)[~white].any()
    assert ((found > 0) & stays).sum() == stays.sum()
    size = np.bincount(found.ravel())[1:]
    assert size[1] >= implants.INSIDE * moves.sum()


def test_implants_add_what_was_drawn_and_nothing_elsewhere():
    brain, mask = made_brain(), ball((12, 12, 12), 4)
    images, lesions, told = implants.implanted(brain, mask, implants.case_rng("07", "11", 0))
    assert np.array_equal(lesions, mask)
    assert told["placed"] == 1
    assert images["flair"][12, 12, 12] == pytest.approx(140)
    assert images["t1"][12, 12, 12] == pytest.approx(160)
    far = implants.depth_of(mask) < -implants.REACH
    assert np.array_equal(images["flair"][far], brain.images["flair"][far])
    assert images["flair"][12, 12, 17] == pytest.approx(100 + 40 * 0.25)
    again, _, _ = implants.implanted(brain, mask, implants.case_rng("07", "11", 0))
    assert np.array_equal(again["flair"], images["flair"])


def test_implants_are_measured_as_they_were_drawn():
    """Implanting and measuring undo each other: amplitude and texture come out again."""
    rng = np.random.default_rng(8)
    brain = made_brain(amplitude=((0.6, -0.3),), texture=0.05)
    for image in brain.images.values():
        np.add(image, rng.normal(0, 1, SHAPE), out=image, casting="same_kind")
    images, lesions, _ = implants.implanted(brain, ball((12, 12, 13), 6), rng)
    found = implants.measure(implants.Patient("07", images, lesions), brain.images, brain.white, brain.level)
    assert found.amplitude[0] == pytest.approx([0.6, -0.3], abs=0.04)
    assert found.profile[0, 2] == pytest.approx(0.7, abs=0.06)
    assert found.texture[0, 0] == pytest.approx(0.05, abs=0.02)


def test_a_mirrored_mask_lies_across_the_midline():
    whole = np.zeros((182, 218, 182), dtype=bool)
    whole[60, 100, 70:75] = True
    found = implants.mirrored(whole[implants.BOX])
    assert np.array_equal(found, whole[:, :, ::-1][implants.BOX])
    assert found.sum() == 5


def test_each_case_has_its_own_draws():
    keys = list(itertools.product(("07", "19"), ("01", "02"), (0, 1)))
    drawn = {tuple(implants.case_rng(*key).integers(2**32, size=4)) for key in keys}
    assert len(drawn) == len(keys)


def test_masks_are_dealt_out_evenly():
    counts = {f"{n:02d}": n * n for n in range(27)}
    parts = implants.mask_parts(counts)
    assert sorted(itertools.chain(*parts)) == sorted(counts)
    totals = [sum(counts[name] for name in part) for part in parts]
    assert max(totals) < 1.2 * min(totals)
    assert parts == implants.mask_parts(counts)


@pytest.mark.parametrize("held_out", protocol.BRAINS)
def test_nothing_is_on_two_sides(held_out):
    fold = protocol.Fold(0, held_out, ("01", "02"), ("03", "04"), ("05", "06"))
    assert len(fold.nets) == 3
    for net in fold.nets:
        trained = fold.training(net)
        assert held_out not in net
        assert {case.brain for case in trained} == set(net)
        assert len(trained) == 2 * protocol.VARIANTS
        tested = [*fold.test(), *fold.real()]
        assert {case.brain for case in tested} == {held_out}
        assert not {case.mask for case in trained} & {case.mask for case in tested}
    for net in fold.nets[:2]:
        learnt = fold.validation(net)
        assert not {case.brain for case in learnt} & {held_out, *net}
        assert not {case.mask for case in learnt} & {case.mask for case in [*fold.training(net), *fold.test()]}


def test_the_three_brains_lend_no_masks_and_every_mask_tests_once():
    assert len(protocol.LESIONS) == 27
    assert not set(protocol.LESIONS) & set(protocol.BRAINS)
    folds = protocol.folds()
    assert sorted(itertools.chain(*(fold.test_masks for fold in folds))) == sorted(protocol.LESIONS)
    assert [fold.held_out for fold in folds] == list(protocol.BRAINS)


def test_the_number_of_lesions_is_that_of_the_masks():
    if not protocol.MSLUB.is_dir():
        pytest.skip(f"needs {protocol.MSLUB}: set $WEAKSPOT_SHARED")
    for name in ("02", "29"):
        assert ndimage.label(implants.read_mask(protocol.MSLUB, name), implants.TOUCHING)[1] == protocol.LESIONS[name]
