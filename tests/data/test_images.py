"""Decoding: every kind of image as plain Pillow reads it, and every damaged one refused by name, without a warning."""

import contextlib
import io
import struct
import threading
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.data.files import COLOUR, DEEP, DEEP_FILES, EIGHT_BITS, FLOATS, HEIGHT, WIDTH, plain, saved, turned
from weakspot.core.errors import BadSample, DataError
from weakspot.data.images import decode, decoded

ALL = {**EIGHT_BITS, **DEEP_FILES}


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", EIGHT_BITS)
def test_eight_bits_are_as_pillow_reads_them(name, mode):
    found = decode(EIGHT_BITS[name], sample=name, mode=mode)
    assert found.dtype == np.float32
    assert np.array_equal(found, plain(EIGHT_BITS[name], mode))


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_deep_grey_is_scaled_and_not_saturated(mode):
    channels = 3 if mode == "RGB" else 1
    deep = decode(DEEP_FILES["deep.png"], sample="x", mode=mode)
    assert np.array_equal(deep, np.repeat(DEEP[None].astype(np.float32) / 65535, channels, 0))
    floats = decode(DEEP_FILES["floats.tif"], sample="x", mode=mode)
    assert np.array_equal(floats, np.repeat(FLOATS[None], channels, 0))


def test_sixteen_bits_of_other_kinds():
    big_endian = saved(Image.frombytes("I;16B", (WIDTH, HEIGHT), DEEP.astype(">u2").tobytes()), "TIFF")
    netpbm = b"P5 2 1 65535\n" + np.array([65535, 13107], dtype=">u2").tobytes()
    assert np.array_equal(decode(big_endian, sample="x", mode="L")[0], DEEP.astype(np.float32) / 65535)
    np.testing.assert_allclose(decode(netpbm, sample="x", mode="L"), [[[1, 0.2]]])


def test_colour_of_sixteen_bits_keeps_its_brightness():
    """Pillow reads the higher byte of each."""
    rows = b"".join(b"\0" + struct.pack(">6H", 0, 32768, 65535, 13107, 26214, 52428) for _ in range(1))
    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts]
    found = decode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), sample="x")
    np.testing.assert_allclose(found[:, 0], [[0, 0.2], [0.5, 0.4], [1, 0.8]], atol=1 / 255)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_pictures_are_turned_as_exif_says(orientation, kind):
    array = np.asarray(COLOUR).transpose(2, 0, 1)
    by_hand = {
        1: array,
        2: array[:, :, ::-1],
        3: array[:, ::-1, ::-1],
        4: array[:, ::-1],
        5: array.transpose(0, 2, 1),
        6: array.transpose(0, 2, 1)[:, :, ::-1],
        7: array.transpose(0, 2, 1)[:, ::-1, ::-1],
        8: array.transpose(0, 2, 1)[:, ::-1],
    }[orientation]
    found = decode(saved(COLOUR, kind, exif=turned(orientation)), sample="x")
    assert np.array_equal(found, by_hand.astype(np.float32) / 255)


def test_alpha_is_dropped_and_not_mixed_with_a_background():
    pixels = np.array([[[255, 0, 0, 0], [0, 255, 0, 128]]], dtype=np.uint8)
    assert decode(saved(Image.fromarray(pixels), "PNG"), sample="x")[:, 0].T.tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("name", ALL)
def test_resizing(name):
    found = decode(ALL[name], sample=name, size=(5, 4))
    assert found.shape == (3, 5, 4)
    upright = decode(ALL[name], sample=name)
    if name in DEEP_FILES:
        expected = np.asarray(Image.fromarray(upright[0]).resize((4, 5), Image.Resampling.BILINEAR))
    else:
        shown = Image.fromarray(np.round(upright * 255).astype(np.uint8).transpose(1, 2, 0))
        expected = np.asarray(shown.resize((4, 5), Image.Resampling.BILINEAR), dtype=np.float32)[..., 0] / 255
    assert np.array_equal(found[0], expected)


BAD = {
    "nothing": (b"", "the file is empty"),
    "text": (b"this is no image at all", "it is of no kind that Pillow knows"),
    "NaN": (saved(Image.fromarray(np.array([[0, np.nan]], dtype=np.float32)), "TIFF"), "NaN or infinite pixels"),
    "infinity": (saved(Image.fromarray(np.array([[np.inf, 0]], dtype=np.float32)), "TIFF"), "NaN or infinite pixels"),
    "32 bits": (saved(Image.fromarray(np.array([[1, 2]], dtype=np.int32)), "TIFF"), "32 bits have no known range"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_named(name):
    content, reason = BAD[name]
    with pytest.raises(
        BadSample, match=f"my {name} cannot be read as an image: .*{reason}.*; repair or remove"
    ) as told:
        decode(content, sample=f"my {name}")
    assert told.value.sample == f"my {name}"
    assert isinstance(told.value, DataError)


@pytest.mark.parametrize(("width", "height"), [(10_000, 9_500), (20_000, 10_000), (65_000, 65_000)])
def test_decompression_bombs_are_refused_by_name_without_a_warning(width, height):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    bomb = b"\x89PNG\r\n\x1a\n" + chunk + EIGHT_BITS["a.png"][33:]
    with pytest.raises(BadSample, match=r"bomb.png cannot be read as an image: .*decompression bomb"):
        decode(bomb, sample="bomb.png")


def test_the_message_cannot_steer_the_terminal():
    with pytest.raises(BadSample, match=r"^a\\n\\x1b\[31m cannot be read"):
        decode(b"", sample="a\n\x1b[31m")


def test_what_pillow_misses_in_a_png_is_seen():
    """A bit changed in the pixel data that Pillow itself reads without complaint, and with other pixels."""
    content = saved(Image.fromarray(np.asarray(COLOUR) // 32 * 32), "PNG")
    clean, start, missed = plain(content, "RGB"), content.index(b"IDAT") + 4, 0
    for place in range(8 * start, 8 * (len(content) - 16)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        read = plain(bytes(changed), "RGB")
        if read is not None and not np.array_equal(read, clean):
            missed += 1
            with pytest.raises(BadSample, match="damaged"):
                decode(bytes(changed), sample="x")
    assert missed, "Pillow checks by itself now: the check of PNG sums can go"


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(sorted(ALL)),
    keep=st.floats(0, 1),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    mode=st.sampled_from(["RGB", "L"]),
)
def test_damaged_files_are_refused_or_read_as_pillow_reads_them(name, keep, changes, mode):
    content = bytearray(ALL[name])
    for place, value in changes:
        content[int(place * len(content))] = value
    content = bytes(content[: round(keep * len(content))])
    try:
        found = decode(content, sample=name, mode=mode)
    except BadSample as error:
        assert error.sample == name
        if content == EIGHT_BITS.get(name):
            raise
        return
    if name in DEEP_FILES:
        assert found.shape[0] == (3 if mode == "RGB" else 1)
        assert np.isfinite(found).all()
    else:
        assert np.array_equal(found, plain(content, mode))


def test_the_filters_of_warnings_come_back_also_with_many_threads():
    before = list(warnings.filters)
    contents = [ALL["palette.png"], b"", ALL["a.tif"]] * 20

    def work():
        for content in contents:
            with contextlib.suppress(BadSample):
                decode(content, sample="x")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="Transparency"):
        Image.open(io.BytesIO(ALL["palette.png"])).convert("RGB")


def test_images_that_are_open_already():
    assert np.array_equal(decoded(COLOUR), np.asarray(COLOUR).transpose(2, 0, 1).astype(np.float32) / 255)
    assert np.array_equal(decoded(Image.fromarray(DEEP), "L"), DEEP[None].astype(np.float32) / 65535)
