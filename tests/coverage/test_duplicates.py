"""Copies of images: found as a plain search finds them, and told with accuracy with and without them."""

import io
import tracemalloc

import numpy as np
import pytest
import torch
from PIL import Image

from tests.references.plain_duplicates import hash_bits, nearest
from weakspot import Run, Subject, examine
from weakspot.core.errors import ConfigError
from weakspot.core.plan import Plan
from weakspot.coverage import Duplicates, ImageKeys, nearest_copies, perceptual_hashes
from weakspot.coverage.metrics_duplicates import SIDE, content_digests, small_pictures
from weakspot.coverage.metrics_feature_copies import feature_copies
from weakspot.coverage.room import steps
from weakspot.data.sources import ArraySource, Grouped


def scenes(count, seed=0, size=40):
    """Smooth pictures, all different."""
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.random((count, 3, 6, 6), dtype=np.float32))
    return torch.nn.functional.interpolate(coarse, size, mode="bicubic").clamp(0, 1).numpy()


def keys(images):
    inputs = torch.from_numpy(np.ascontiguousarray(images))
    pictures = small_pictures(inputs)
    return ImageKeys(content_digests(inputs), perceptual_hashes(pictures), pictures)


def changed(image, rng):
    """The same picture, stored, brightened and scaled anew."""
    pixels = Image.fromarray((image.transpose(1, 2, 0) * 255).astype(np.uint8))
    file = io.BytesIO()
    pixels.resize((32, 32)).resize((40, 40)).save(file, "JPEG", quality=80)
    again = np.asarray(Image.open(file), dtype=np.float32).transpose(2, 0, 1) / 255
    return np.clip(again * rng.uniform(0.8, 1.0) + 0.05, 0, 1).astype(np.float32)


@pytest.fixture
def mixed():
    """Twelve training and fourteen test images with exact and near copies in both."""
    rng = np.random.default_rng(1)
    train, test = scenes(12), scenes(14, seed=1)
    test[3], test[8] = train[5], changed(train[2], rng)
    test[10], test[11] = test[0], changed(test[1], rng)
    test[12] = 0.5  # without contrast: nothing is near it
    test[13] = 0.25
    return train, test


@pytest.mark.parametrize("same", [False, True])
def test_copies_are_those_of_a_plain_search(mixed, same):
    train, test = mixed
    others = test if same else train
    copies = nearest_copies(keys(test), None if same else keys(train))
    expected = nearest(test, keys(test).pictures, others, keys(others).pictures, 10, 0.97, same)
    assert list(zip(copies.place.tolist(), copies.similarity.round(9).tolist(), strict=True)) == [
        (place, round(value, 9)) for place, value in expected
    ]
    assert (copies.place >= 0).sum() == (4 if same else 2)


def test_hashes_are_those_of_the_cosine_transform():
    pictures = keys(scenes(50)).pictures
    bits = np.unpackbits(perceptual_hashes(pictures).view(np.uint8).reshape(50, 8), axis=1)[:, :63]
    agreement = (bits == np.stack([hash_bits(picture) for picture in pictures])).mean()
    assert agreement > 0.995  # whole-number cosines round what lies at the median


def test_changed_copies_are_found_and_other_pictures_are_not():
    rng, originals = np.random.default_rng(2), scenes(150, seed=3)
    copies = nearest_copies(keys(np.stack([changed(image, rng) for image in originals])), keys(originals))
    assert (copies.place == np.arange(150)).mean() > 0.97
    others = nearest_copies(keys(scenes(150, seed=4)), keys(originals))
    assert not (others.place >= 0).any()


def test_memory_does_not_grow_with_the_pairs():
    rng = np.random.default_rng(0)

    def peak(count):
        one = ImageKeys(
            rng.integers(0, 256, (count, 16), dtype=np.uint8),
            rng.integers(0, 8, count, dtype=np.uint64),  # every hash is near every other
            np.zeros((count, SIDE, SIDE, 1), dtype=np.uint8),
        )
        tracemalloc.start()
        nearest_copies(one)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(600) < 1.6 * peak(300)


class FirstPixel(torch.nn.Module):
    """Predicts 1 where the first pixel is bright."""

    def forward(self, images):
        bright = images[:, 0, 0, 0] - 0.5
        return torch.stack([-bright, bright], 1)


def sources(mixed):
    train, test = mixed
    truth = (test[:, 0, 0, 0] > 0.5).astype(np.int64)
    labels = truth.copy()
    labels[[3, 4, 10]] = 1 - labels[[3, 4, 10]]
    ids = [f"t{number:02d}" for number in range(len(test))]
    train_ids = [f"r{number:02d}" for number in range(len(train))]
    data = {
        "train": ArraySource(train, np.zeros(len(train), dtype=np.int64), ids=train_ids),
        "test": ArraySource(test, labels, ids=ids),
    }
    return data, labels == truth


def asked(mixed, tmp_path, data=None, **options):
    data = data or sources(mixed)[0]
    subject = Subject(FirstPixel(), classes=["dark", "bright"], scores="logits", bounds=(0, 1))
    plan = Plan.of(steps({"criteria": [], "duplicates": options or True}))
    plan.run(subject, data, Run.create(tmp_path / "run"))
    return Run.open(tmp_path / "run")["coverage.duplicates"]


def test_the_finding_tells_accuracy_with_and_without_copies(mixed, tmp_path):
    right = sources(mixed)[1]
    finding = asked(mixed, tmp_path)
    values = {name: one.value for name, one in finding.summary.items()}
    leaked, repeated = np.isin(np.arange(14), [3, 8]), np.isin(np.arange(14), [0, 10, 1, 11])
    assert (values["leaked_exact"], values["leaked_near"]) == (1, 1)
    assert (values["repeated_exact"], values["repeated_near"]) == (2, 2)
    assert values["accuracy"] == pytest.approx(right.mean())
    assert values["accuracy_of_leaked"] == pytest.approx(right[leaked].mean())
    assert values["accuracy_without_leaked"] == pytest.approx(right[~leaked].mean())
    assert values["accuracy_without_copies"] == pytest.approx(right[~leaked & ~repeated].mean())
    assert values["other_labels"] == 2  # t00 and t10
    rows = {row["id"]: row for row in finding.table.to_pylist()}
    assert list(rows)[:2] == ["t03", "t08"]
    assert (rows["t03"]["leaked_copy"], rows["t08"]["leaked_copy"]) == ("r05", "r02")
    assert rows["t11"]["repeated_copy"] == "t01" and not rows["t11"]["repeated_exactly"]
    assert [name for name in finding.media if name.startswith("leaked")] == ["leaked 1", "leaked 2"]
    assert "t08 and the training image r02 agree with correlation" in finding.media["leaked 1"].caption
    assert finding.outputs.problems(finding) == []


def test_without_training_data_the_test_data_are_searched_alone(mixed, tmp_path):
    finding = asked(mixed, tmp_path, {"test": sources(mixed)[0]["test"]}, training=False)
    assert "leaked_share" not in finding.summary and finding.summary["repeated_near"].value == 2


def test_many_near_copies_are_said_to_look_like_frames(tmp_path):
    films = np.repeat(scenes(5), 4, axis=0) * np.linspace(0.9, 1, 20, dtype=np.float32)[:, None, None, None]
    labels = np.zeros(20, dtype=np.int64)
    finding = asked(None, tmp_path, {"test": ArraySource(films, labels)}, training=False)
    assert finding.summary["alike"].value == 1.0
    grouped = Grouped(ArraySource(films, labels), np.repeat(np.arange(5), 4))
    [finding] = examine(Subject(FirstPixel(), scores="logits"), grouped, [Duplicates()])
    assert "alike" not in finding.summary


def test_what_is_no_image_is_refused():
    flat = ArraySource(np.zeros((4, 6), dtype=np.float32), np.zeros(4, dtype=np.int64))
    with pytest.raises(ConfigError, match=r"copies are found among images.*\(4, 6\): leave `duplicates` out"):
        examine(Subject(torch.nn.Linear(6, 2), scores="logits"), flat, [Duplicates()])
    with pytest.raises(ConfigError, match="expected a distance of 0 to 20 bits"):
        Duplicates(distance=30)
    with pytest.raises(ConfigError, match="duplicates is 3: expected true, false or a mapping"):
        steps({"criteria": [], "duplicates": 3})


class TwoStripes(torch.nn.Module):
    """Looks at an image through the means of its left and right half, mirrored or not."""

    def __init__(self):
        super().__init__()
        self.halves = torch.nn.Conv2d(3, 4, 20, stride=20, bias=False)
        self.answer = torch.nn.Linear(4, 2)

    def forward(self, images):
        return self.answer(self.halves(images).mean((2, 3)))


def plain_feature_copies(features, others, limit, same):
    """Pair by pair, straight from the definition."""
    spread = others.std(0)
    first, second = features / spread, others / spread
    usual = np.median([np.linalg.norm(second[a] - second[b]) for a in range(len(second)) for b in range(a)])
    found = []
    for row, one in enumerate(first):
        between = [np.inf if same and row == at else np.linalg.norm(one - other) for at, other in enumerate(second)]
        best = int(np.argmin(between))
        found.append((best if between[best] <= limit * usual else -1, round(between[best] / usual, 6)))
    return found


@pytest.mark.parametrize("same", [False, True])
def test_what_is_alike_to_the_network_is_what_a_plain_search_finds(same):
    rng = np.random.default_rng(3)
    features, others = rng.normal(size=(40, 5)) * [1, 2, 3, 4, 50], rng.normal(size=(30, 5)) * [1, 2, 3, 4, 50]
    features[7], features[9] = features[8] * 1.001, others[4] * 0.999
    found = feature_copies(features, None if same else others, limit=0.3)
    expected = plain_feature_copies(features, features if same else others, 0.3, same)
    assert found.place.tolist() == [place for place, _ in expected]
    assert found.distance.tolist() == pytest.approx([near for _, near in expected], abs=2e-6)
    assert found.place[7 if same else 9] == (8 if same else 4)


def test_mirrored_copies_are_found_by_a_layer_that_does_not_see_the_difference(tmp_path):
    torch.manual_seed(0)
    net = TwoStripes()
    with torch.no_grad():
        net.halves.weight.copy_(torch.rand(4, 3, 1, 1).expand(4, 3, 20, 20) / 400)
    test = scenes(20, seed=6)
    test[11] = test[5][:, :, ::-1]
    train = scenes(20, seed=7)
    train[3] = test[2][:, :, ::-1]
    labels = np.zeros(20, dtype=np.int64)
    plan = Plan.of(steps({"criteria": [], "duplicates": {"feature_layer": "halves", "feature_distance": 0.01}}))
    subject = Subject(net, classes=["dark", "bright"], scores="logits", bounds=(0, 1))
    data = {"train": ArraySource(train, labels), "test": ArraySource(test, labels)}
    plan.run(subject, data, Run.create(tmp_path / "run"))
    finding = Run.open(tmp_path / "run")["coverage.duplicates"]
    values = {name: one.value for name, one in finding.summary.items()}
    assert (values["leaked_alike"], values["repeated_alike"]) == (1, 2)
    assert (values["leaked_near"], values["repeated_near"]) == (0, 0)
    rows = {row["id"]: row for row in finding.table.to_pylist()}
    assert (rows["02"]["leaked_alike_copy"], rows["05"]["repeated_alike_copy"]) == ("03", "11")
    right = np.array([rows[f"{number:02d}"]["correct"] for number in range(20)])
    assert values["accuracy_without_alike"] == pytest.approx(np.delete(right, [2, 5, 11]).mean())
    told = [picture.caption for name, picture in finding.media.items() if "alike" in name]
    assert "02 and the training image 03 are alike to the network: 0.00 of the usual distance" in told
    assert finding.outputs.problems(finding) == []


def test_a_distance_that_says_nothing_is_refused():
    with pytest.raises(ConfigError, match="expected a feature_distance between 0 and 1, got 2"):
        Duplicates(feature_distance=2.0)
