"""Rotation and shift: against the published neighbours, against scipy, and by hand."""

import importlib.util
import json
import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.look import Original
from weakspot.looks import (
    Combined,
    Geometric,
    Neighbour,
    OneOf,
    Photometric,
    Quantity,
    Rotate,
    Scale,
    Shear,
    Shift,
    per_image,
    recalled,
    warp,
)
from weakspot.looks import variations as module


@pytest.fixture(scope="session")
def published(shared):
    """The neighbours that the trained models of the shared folder were judged with."""
    spec = importlib.util.spec_from_file_location("neighbours", shared / "models" / "neighbours" / "neighbours.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_rotation_and_shift_are_the_published_ones(published, svhn):
    images = torch.from_numpy(svhn[0][:40].astype(np.float32) / 255)
    images = images.movedim(-1, 1).contiguous() if images.shape[-1] == 3 else images
    parameters = torch.from_numpy(published.neighbour_parameters(40, 1)[:, 0])
    made = (Rotate(30) & Shift(3)).apply(images, parameters.double())
    torch.testing.assert_close(made, published.warp(images, parameters), rtol=0, atol=1e-5)
    assert (made - images).abs().mean() > 0.01


def scipy_warp(image, inverse):
    """Each pixel from where the map about the centre says, bilinear, black outside; image (height, width)."""
    height, width = image.shape
    centre = np.array([(height - 1) / 2, (width - 1) / 2])
    rows_columns = np.array(inverse)[:2, :2][::-1, ::-1]  # (x, y) to (row, column)
    shift = np.array(inverse)[:2, 2][::-1]
    offset = centre + shift - rows_columns @ centre
    padded = np.pad(image, 2)
    inner = ndimage.affine_transform(
        padded,
        rows_columns,
        offset=offset + 2 - rows_columns @ [2, 2],
        order=1,
        mode="constant",
        output_shape=padded.shape,
    )
    return inner[2:-2, 2:-2]


@pytest.mark.parametrize("size", [(9, 9), (8, 13), (12, 7), (1, 6)])
@pytest.mark.parametrize("angle", [0.0, 17.0, -33.5, 90.0, 180.0])
def test_rotation_agrees_with_scipy_also_on_oblong_images(size, angle):
    image = np.random.default_rng(0).random(size)
    made = Rotate(180).apply(torch.from_numpy(image)[None, None], torch.tensor([[angle]], dtype=torch.float64))
    radians = math.radians(angle)
    turn = [[math.cos(radians), math.sin(radians), 0], [-math.sin(radians), math.cos(radians), 0], [0, 0, 1]]
    np.testing.assert_allclose(made[0, 0].numpy(), scipy_warp(image, turn), atol=1e-9)


@pytest.mark.parametrize("shift", [(0.0, 0.0), (2.0, 0.0), (0.0, -1.0), (1.25, -0.5), (20.0, 0.0)])
def test_shift_agrees_with_scipy_also_on_oblong_images(shift):
    image = np.random.default_rng(1).random((6, 9))
    made = Shift(20).apply(torch.from_numpy(image)[None, None], torch.tensor([shift], dtype=torch.float64))
    expected = scipy_warp(image, [[1, 0, -shift[0]], [0, 1, -shift[1]], [0, 0, 1]])
    np.testing.assert_allclose(made[0, 0].numpy(), expected, atol=1e-9)


def test_a_shift_by_whole_pixels_by_hand():
    image = torch.arange(6.0).reshape(1, 1, 2, 3)
    right = Shift(3).apply(image, torch.tensor([[1.0, 0.0]]))
    down = Shift(3).apply(image, torch.tensor([[0.0, 1.0]]))
    torch.testing.assert_close(right[0, 0], torch.tensor([[0.0, 0.0, 1.0], [0.0, 3.0, 4.0]]))
    torch.testing.assert_close(down[0, 0], torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]))


def test_a_quarter_turn_by_hand():
    """About a positive angle the picture turns clockwise on the screen, as y points down."""
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    turned = Rotate(90).apply(image, torch.tensor([[90.0]]))
    expected = torch.tensor([[3.0, 1.0], [4.0, 2.0]])
    torch.testing.assert_close(turned[0, 0], expected, rtol=0, atol=1e-5)


def test_every_channel_and_every_sample_is_moved_by_its_own_parameters():
    images = torch.rand(3, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    parameters = torch.tensor([[10.0, 1.0, 0.0], [-20.0, 0.0, 2.0], [5.0, -1.0, 1.0]])
    both = Rotate(30) & Shift(3)
    together = both.apply(images, parameters)
    for sample in range(3):
        for channel in range(4):
            alone = both.apply(images[sample : sample + 1, channel : channel + 1], parameters[sample : sample + 1])
            torch.testing.assert_close(together[sample, channel], alone[0, 0])


def test_rotation_then_shift_is_interpolated_once(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "warp", lambda images, inverse, fill: (calls.append(inverse), warp(images, inverse))[1])
    image = torch.rand(1, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    made = (Rotate(30) & Shift(3) & Rotate(30)).apply(image, torch.tensor([[20.0, 1.0, 0.5, -20.0]]))
    assert len(calls) == 1
    there_and_back = (Rotate(30) & Rotate(30)).apply(image, torch.tensor([[20.0, -20.0]]))
    torch.testing.assert_close(there_and_back, image, rtol=0, atol=1e-5)
    assert made.shape == image.shape


def test_the_order_of_changes_is_the_order_of_writing():
    """A point to the right of the centre, turned by 90° and then moved right, ends below and to the right."""
    image = torch.zeros(1, 1, 9, 9)
    image[0, 0, 4, 6] = 1
    turned_then_moved = (Rotate(90) & Shift(3)).apply(image, torch.tensor([[90.0, 1.0, 0.0]]))
    moved_then_turned = (Shift(3) & Rotate(90)).apply(image, torch.tensor([[1.0, 0.0, 90.0]]))
    assert divmod(int(turned_then_moved.argmax()), 9) == (6, 5)
    assert divmod(int(moved_then_turned.argmax()), 9) == (7, 4)


class Brighter(Photometric):
    """Not a change of place, and written by a user."""

    quantities = (Quantity("more", "of 1"),)

    def parameters(self, chance):
        return chance

    def alter(self, images, parameters):
        return images + per_image(parameters[:, 0], images)


def test_what_lies_between_two_changes_of_place_keeps_its_turn():
    image = torch.zeros(1, 1, 3, 3)
    moved_late = (Brighter() & Shift(3)).apply(image, torch.tensor([[1.0, 1.0, 0.0]]), (0, 1))
    moved_early = (Shift(3) & Brighter()).apply(image, torch.tensor([[1.0, 0.0, 1.0]]), (0, 1))
    around = (Shift(3) & Brighter() & Shift(3)).apply(image, torch.tensor([[1.0, 0.0, 1.0, -1.0, 0.0]]), (0, 1))
    torch.testing.assert_close(moved_late[0, 0, :, 0], torch.zeros(3))
    torch.testing.assert_close(moved_early, torch.ones(1, 1, 3, 3))
    torch.testing.assert_close(around[0, 0, :, 2], torch.zeros(3))
    torch.testing.assert_close(around[0, 0, :, :2], torch.ones(3, 2))


def test_combinations_are_flat_and_equal_ones_are_equal():
    assert (Rotate(1) & Shift(2)) & Rotate(3) == Rotate(1) & (Shift(2) & Rotate(3))
    assert Combined((Rotate(1), Shift(2), Rotate(3))).draws == 4
    assert hash(Neighbour(Rotate(1) & Shift(2))) == hash(Neighbour(Rotate(1) & Shift(2)))
    assert isinstance(Rotate(1), Geometric)


def test_drawn_parameters_fill_their_range():
    look = Neighbour(Rotate(30) & Shift(3), seed=5)
    drawn = torch.as_tensor(look.drawn([f"s{i}" for i in range(3000)], 1)).double()
    limits = torch.tensor([30.0, 3.0, 3.0], dtype=torch.float64)
    assert (drawn.abs() <= limits).all()
    assert (drawn.amax(0) > 0.99 * limits).all()
    assert (drawn.amin(0) < -0.99 * limits).all()
    assert (drawn.mean(0).abs() < 0.06 * limits).all()
    assert torch.corrcoef(drawn.T).fill_diagonal_(0).abs().max() < 0.08


def test_a_neighbour_depends_on_seed_id_and_number_alone():
    look, images = Neighbour(Rotate(30) & Shift(3)), torch.rand(3, 1, 8, 8)
    together = look.outputs(lambda x: x, images, ["a", "b", "c"], 2)
    alone = look.outputs(lambda x: x, images[1:2], ["b"], 2)
    torch.testing.assert_close(together[1:2], alone, rtol=0, atol=0)
    for other, number in ((look, 3), (Neighbour(Rotate(30) & Shift(3), seed=1), 2)):
        assert not torch.equal(other.outputs(lambda x: x, images[1:2], ["b"], number), alone)


def test_a_neighbour_can_be_made_again_from_its_parameters():
    look, images = Neighbour(Rotate(30) & Shift(3)), torch.rand(2, 1, 8, 8)
    again = look.variation.apply(images, look.drawn(["a", "b"], 7))
    assert torch.equal(again, look.outputs(lambda x: x, images, ["a", "b"], 7))


def test_numbers_of_looks():
    assert list(Original().numbers(1)) == [0]
    assert list(Neighbour(Rotate(1)).numbers(3)) == [1, 2, 3]


def test_only_images_can_be_warped():
    with pytest.raises(DataError, match=r"need images of shape \(samples, channels, height, width\), got \(2, 5\)"):
        Neighbour(Rotate(3)).outputs(lambda x: x, torch.zeros(2, 5), ["a", "b"], 1)


@pytest.mark.parametrize("shape", [(2, 1, 4, 5, 6), (2, 3, 8)])
def test_volumes_are_refused(shape):
    with pytest.raises(DataError, match=r"got \(2, .*volumes and tables cannot be varied"):
        Neighbour(Rotate(3)).images(torch.zeros(shape), ["a", "b"], 1)


@pytest.mark.parametrize("size", [(9, 9), (8, 13)])
@pytest.mark.parametrize(
    ("made", "number", "inverse"),
    [
        (Shear(45), 20.0, [[1, -math.tan(math.radians(20)), 0], [0, 1, 0], [0, 0, 1]]),
        (Shear(45), -45.0, [[1, 1, 0], [0, 1, 0], [0, 0, 1]]),
        (Scale(0.5), 1.3, [[1 / 1.3, 0, 0], [0, 1 / 1.3, 0], [0, 0, 1]]),
        (Scale(0.5), 0.5, [[2, 0, 0], [0, 2, 0], [0, 0, 1]]),
    ],
)
def test_shear_and_scale_agree_with_scipy(size, made, number, inverse):
    image = np.random.default_rng(0).random(size)
    changed = made.apply(torch.from_numpy(image)[None, None], torch.tensor([[number]], dtype=torch.float64))
    np.testing.assert_allclose(changed[0, 0].numpy(), scipy_warp(image, inverse), atol=1e-9)


NOTHING = [(Rotate(9), [0.0]), (Shift(9), [0.0, 0.0]), (Shear(9), [0.0]), (Scale(0.1), [1.0])]


@pytest.mark.parametrize(("made", "numbers"), NOTHING, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_neutral_parameters_change_nothing_in_any_type(made, numbers, dtype):
    images = (torch.rand(1, 3, 20, 28, generator=torch.Generator().manual_seed(0)) * 255).to(dtype)
    changed = made.apply(images, torch.tensor([numbers], dtype=torch.float64))
    assert changed.dtype == dtype
    torch.testing.assert_close(changed, images, rtol=0, atol=0 if dtype == torch.uint8 else 1e-3)
    assert changed.data_ptr() != images.data_ptr()


def test_half_precision_finds_places_in_full_precision():
    """Numbers of 8 bits could not tell the pixels of a large image apart."""
    image = torch.rand(1, 1, 300, 300, generator=torch.Generator().manual_seed(0)).bfloat16()
    numbers = torch.tensor([[17.0]], dtype=torch.float64)
    made, exact = Rotate(30).apply(image, numbers), Rotate(30).apply(image.double(), numbers)
    torch.testing.assert_close(made.double(), exact, rtol=0, atol=4e-3)


def test_what_comes_from_outside_is_black_whatever_black_is():
    image = torch.full((1, 1, 4, 4), 0.5)
    for low in (-1.0, 0.0, 0.25):
        moved = Shift(9).apply(image, torch.tensor([[1.0, 0.0]]), (low, 1.0))
        torch.testing.assert_close(moved[0, 0, :, 0], torch.full((4,), low))
        torch.testing.assert_close(moved[0, 0, :, 1:], torch.full((4, 3), 0.5))


def test_large_batches_are_warped_piece_by_piece_to_the_same_result():
    images = torch.rand(9, 1, 300, 300, generator=torch.Generator().manual_seed(0))
    numbers = torch.linspace(-30, 30, 9, dtype=torch.float64)[:, None]
    together = Rotate(30).apply(images, numbers)
    alone = torch.cat([Rotate(30).apply(images[i : i + 1], numbers[i : i + 1]) for i in range(9)])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("count", [0, 1])
def test_batches_of_none_and_one(count):
    look = Neighbour(Rotate(3) & Brighter(), bounds=(0, 1))
    assert look.images(torch.rand(count, 3, 8, 9), ["a"][:count], 1).shape == (count, 3, 8, 9)


def test_either_takes_turns_so_that_shares_are_exact():
    both = Neighbour(Rotate(1) | Shift(2))
    kinds = [type(both.at(number)).__name__ for number in both.numbers(50)]
    assert kinds[:4] == ["Rotate", "Shift", "Rotate", "Shift"]
    assert kinds.count("Rotate") == kinds.count("Shift") == 25
    assert both.drawn(["a"], 1).shape == (1, 1)
    assert both.drawn(["a"], 2).shape == (1, 2)
    assert (
        (Rotate(1) | Shift(2)) | Shear(3) == Rotate(1) | (Shift(2) | Shear(3)) == OneOf((Rotate(1), Shift(2), Shear(3)))
    )


def test_every_choice_meets_every_other_equally_often():
    four = (Rotate(1) | Rotate(2)) & (Shift(1) | Shift(2))
    assert four.alternatives == 4
    met = [four.at(turn) for turn in range(8)]
    assert {Combined((Rotate(i), Shift(j))) for i in (1, 2) for j in (1, 2)} == set(met)
    assert all(met.count(each) == 2 for each in met)
    nested = Rotate(1) | ((Rotate(2) | Rotate(3)) & Shift(1))
    turns = [nested.at(turn) for turn in range(nested.alternatives)]
    assert turns.count(Rotate(1)) == len(turns) / 2
    assert (
        turns.count(Combined((Rotate(2), Shift(1)))) == turns.count(Combined((Rotate(3), Shift(1)))) == len(turns) / 4
    )


def test_which_of_several_is_meant_must_be_known():
    for asked in (lambda: (Rotate(1) | Shift(1)).draws, lambda: (Rotate(1) | Shift(1)).change(None, None, None)):
        with pytest.raises(ConfigError, match=r"depends on the look: choose with .at\(turn\) first"):
            asked()


@pytest.mark.parametrize("made", [Rotate((1, 2)), Rotate(3) & Shift(2), Rotate(3) & (Shift(1) | Shear(2))])
def test_a_variation_is_known_again_from_its_record(made):
    assert recalled(json.loads(json.dumps(made.__canonical__()))) == made
    with pytest.raises(ConfigError, match="describes no known variation: import the module"):
        recalled({"is": "nowhere:Twirl"})


def test_quantities_have_names_and_units():
    assert (Rotate(3) & Shift(2)).quantities == (
        ("rotation", "degrees"), ("shift to the right", "pixels"), ("shift down", "pixels"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Rotate("a lot"), r"degrees of Rotate is 'a lot': expected one number, or \[low, high\]"),
        (lambda: Rotate((3, 1)), "lower one first"),
        (lambda: Rotate((1, 2, 3)), "expected one number"),
        (lambda: Rotate(float("nan")), "expected one number"),
        (lambda: Rotate(True), "expected one number"),
        (lambda: Rotate(-3), "how far to go at most, so it cannot be negative"),
        (lambda: Scale(1.5), r"factor of Scale is 1.5, that is from -0.5 to 2.5: expected 0.01 to 100"),
        (lambda: Shear((-90, 0)), "expected -85 to 85"),
        (lambda: Rotate(1) & 3, "expected a variation such as Rotate"),
        (lambda: Combined((Rotate(1),)), "joins two variations or more"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong()


def test_a_range_of_two_numbers_and_of_one():
    assert Rotate(30).range == (-30, 30)
    assert Rotate([10, 20]) == Rotate((10, 20))
    assert Scale(0.2).range == (0.8, 1.2)
    drawn = Neighbour(Rotate((10, 20))).drawn([f"s{i}" for i in range(2000)], 1)
    assert 10 <= drawn.min() < 10.05
    assert 19.95 < drawn.max() < 20
