"""Small image files of every kind, and what plain Pillow makes of them."""

import io
import warnings

import numpy as np
from PIL import Image, ImageOps

HEIGHT, WIDTH = 9, 13
RNG = np.random.default_rng(0)
COLOUR = Image.fromarray(RNG.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))
DEEP = RNG.integers(0, 65536, (HEIGHT, WIDTH), dtype=np.uint16)
FLOATS = RNG.random((HEIGHT, WIDTH), dtype=np.float32)


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


EIGHT_BITS = {
    "a.png": saved(COLOUR, "PNG"),
    "a.jpg": saved(COLOUR, "JPEG"),
    "turned.jpg": saved(COLOUR, "JPEG", exif=turned(6)),
    "turned.png": saved(COLOUR, "PNG", exif=turned(5)),
    "turned.tif": saved(COLOUR, "TIFF", exif=turned(8)),
    "turned.webp": saved(COLOUR, "WEBP", exif=turned(3), lossless=True),
    "a.gif": saved(COLOUR.convert("P"), "GIF"),
    "moving.gif": saved(COLOUR.convert("P"), "GIF", save_all=True, append_images=[COLOUR.rotate(180).convert("P")]),
    "pages.tif": saved(COLOUR, "TIFF", save_all=True, append_images=[COLOUR.rotate(180)]),
    "a.bmp": saved(COLOUR, "BMP"),
    "a.tif": saved(COLOUR, "TIFF"),
    "packed.tif": saved(COLOUR, "TIFF", compression="tiff_lzw"),
    "a.webp": saved(COLOUR, "WEBP"),
    "a.ppm": saved(COLOUR, "PPM"),
    "palette.png": saved(COLOUR.convert("P"), "PNG", transparency=b"\0\x80"),
    "alpha.png": saved(COLOUR.convert("RGBA"), "PNG"),
    "grey-alpha.png": saved(COLOUR.convert("LA"), "PNG"),
    "grey.png": saved(COLOUR.convert("L"), "PNG"),
    "bits.png": saved(COLOUR.convert("1"), "PNG"),
    "cmyk.jpg": saved(COLOUR.convert("CMYK"), "JPEG"),
    "luminance.jpg": saved(COLOUR.convert("YCbCr"), "JPEG"),
}
DEEP_FILES = {"deep.png": saved(Image.fromarray(DEEP), "PNG"), "floats.tif": saved(Image.fromarray(FLOATS), "TIFF")}


def plain(content, mode):
    """An 8-bit image as Pillow alone reads it, float32 (channels, height, width); None where it cannot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(content)) as opened:
                image = ImageOps.exif_transpose(opened).convert(mode)
        except Exception:
            return None
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    return pixels.transpose(2, 0, 1).astype(np.float32) / 255
