"""Resizing and cropping: pixel by pixel what the processors do that models were trained with."""

import io

import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import BadSample, ConfigError
from weakspot.data.framing import Framing
from weakspot.data.images import decode
from weakspot.data.sources import ImageFolder
from weakspot.models.stated import _processor_framing, _processor_normalise


def picture(height, width):
    values = np.random.default_rng(height * width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values).resize((width, height))


def as_png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("shape", [(40, 60), (61, 37), (32, 32), (90, 30)])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ViTImageProcessorPil", {"size": {"height": 24, "width": 20}, "resample": 3}),
        ("CLIPImageProcessorPil", {"size": {"shortest_edge": 28}, "crop_size": {"height": 24, "width": 24}}),
        ("ConvNextImageProcessorPil", {"size": {"shortest_edge": 28}, "crop_pct": 0.875}),
        ("ConvNextImageProcessorPil", {"size": {"shortest_edge": 384}}),
    ],
)
def test_images_become_what_the_processor_of_hugging_face_makes_of_them(kind, options, shape):
    transformers = pytest.importorskip("transformers")
    processor = getattr(transformers, kind)(**options)
    image = picture(*shape)
    expected = processor(image, return_tensors="np")["pixel_values"][0]
    said = processor.to_dict()
    framing = Framing(**{k: tuple(v) if isinstance(v, list) else v for k, v in _processor_framing(said).items()})
    inputs = decode(as_png(image), sample="x", size=framing)
    import torch

    made = _processor_normalise(said)(torch.from_numpy(inputs)[None])[0].numpy()
    np.testing.assert_allclose(made, expected, atol=2e-5)


def test_a_crop_alone_is_the_middle():
    image = picture(7, 9)
    whole, middle = decode(as_png(image), sample="x"), decode(as_png(image), sample="x", size=Framing(crop=(3, 5)))
    assert np.array_equal(middle, whole[:, 2:5, 2:7])


def test_deep_grey_is_framed_too():
    values = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    framed = decode(as_png(Image.fromarray(values)), sample="x", mode="L", size=Framing(crop=(2, 2)))
    assert np.allclose(framed[0], values[3:5, 3:5] / 65535)


def test_what_is_too_small_to_crop_is_named():
    with pytest.raises(BadSample, match="x cannot be read as an image: it is 4×4, too small to cut 5×5 out of it"):
        decode(as_png(picture(4, 4)), sample="x", size=Framing(crop=(5, 5)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither size nor crop"),
        ({"shorter_side": 8}, "give crop with it"),
        ({"shorter_side": 8, "size": (8, 8)}, "and no size"),
        ({"shorter_side": 0, "crop": (1, 1)}, "shorter_side is 0"),
        ({"size": (0, 3)}, "size .* is not a size"),
        ({"crop": (3,)}, "crop .* is not a size"),
        ({"size": (3, 3), "interpolation": "cubic"}, "interpolation 'cubic' is not known: choose one of nearest, bil"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Framing(**options)


def test_a_folder_with_images_of_many_sizes(tmp_path):
    for number, shape in enumerate([(20, 30), (40, 21), (20, 20)]):
        picture(*shape).save(tmp_path / f"{number}.png")
    framing = Framing(shorter_side=16, crop=(16, 12), interpolation="bicubic")
    source = ImageFolder(tmp_path, size=framing)
    batch = source.read(np.arange(3))
    assert batch.inputs.shape == (3, 3, 16, 12)
    assert source.fingerprint() != ImageFolder(tmp_path, size=(16, 12)).fingerprint()
    again = ImageFolder(tmp_path, size=Framing(shorter_side=16, crop=(16, 12), interpolation="bicubic"))
    assert source.fingerprint() == again.fingerprint()
