"""Common corruptions beside the published code: severities, difference of the images, and time per image.

    python benchmarks/peers/corruptions.py [--robustness FOLDER] [--device cuda] [--images 32] [--rounds 3]

The reference is the package imagecorruptions (severities of ImageNet-C, any size), with scikit-image and OpenCV; with
--robustness, a checkout of the authors' own hendrycks/robustness, also the script that made CIFAR-10-C; its motion blur
and snow need Wand and ImageMagick, and are left out where these are missing. Both are older than today's numpy, scipy
and scikit-image; `modernised` gives them back the names they call. Where the reference is not installed nothing is
measured; --alone times our side on such a machine.

Severities are compared number by number, out of the reference's source. Images are bytes; both sides are compared as
floats from 0 to 1, ours before rounding to bytes. Where chance decides, two draws of the reference differ too: `again`
is the mean absolute difference of two of its own draws, and `difference` should be near it. `change` is the mean
absolute change of the image, ours and theirs: for frost, whose textures are made and not photographs, it is what can be
compared. `same_angle` is the difference of motion blur where both sides smear in the same directions.

Milliseconds are the processor's, one thread on both sides, so that other work on the machine has no part in them.
`ms_least` is what no implementation on the same random numbers can save: to draw them, and to read and write the image
once. Bar: at least 10 times as many images per second; where ten times `ms_least` is more than the reference takes, the
bar cannot be met on this processor.
"""

import argparse
import ast
import contextlib
import ctypes
import io
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import SHARED, interleaved, machine, ratio, write
from PIL import Image
from torch import Tensor

from weakspot.core.own_process import keep_freed_memory
from weakspot.core.stateless_random import device_words
from weakspot.looks import Corruption, Neighbour
from weakspot.looks.corruption_blur import smeared
from weakspot.looks.corruption_severities import KINDS, LARGE, SEVERITIES, SMALL_IMAGES, strength

BAR = 10
RANDOM = {
    "gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow", "frost", "fog",
    "elastic_transform",
}  # fmt: skip
DRAWN = {"gaussian_noise": 1, "shot_noise": 1, "impulse_noise": 1, "fog": 1 / 3, "elastic_transform": 1 / 3}
"""Random words per value of an image of three channels."""
Reference = dict[str, Callable[[Image.Image, int], Any]]


def modernised() -> None:
    """The names that the reference calls, as numpy, scipy and scikit-image had them."""
    import scipy.ndimage
    from skimage import filters

    plain = filters.gaussian
    if not hasattr(np, "float_"):
        np.float_ = np.float64
    np.fromstring = np.frombuffer

    def gaussian(image: Any, sigma: Any = 1, *, multichannel: bool = False, **how: Any) -> Any:
        return plain(image, sigma, channel_axis=-1 if multichannel else None, **how)

    filters.gaussian = gaussian
    sys.modules["scipy.ndimage.interpolation"] = scipy.ndimage
    resources = types.ModuleType("pkg_resources")
    resources.resource_filename = lambda package, name: str(Path(sys.modules[package].__file__).parent / name)
    sys.modules["pkg_resources"] = resources


def large_reference() -> tuple[Reference, str]:
    """imagecorruptions, and its source."""
    from imagecorruptions import corruptions as module

    return {kind: getattr(module, kind) for kind in KINDS}, Path(module.__file__).read_text()


def small_reference(folder: Path) -> tuple[Reference, str]:
    """The functions of the script that made CIFAR-10-C, without the part that writes the files."""
    source = (folder / "ImageNet-C" / "create_c" / "make_cifar_c.py").read_text()
    whole = ast.parse(source)
    wanted = {*KINDS, "disk", "plasma_fractal", "clipped_zoom", "MotionImage"}
    kinds = (ast.FunctionDef, ast.ClassDef)
    functions = [part for part in whole.body if isinstance(part, kinds) and part.name in wanted]
    import cv2
    import skimage as sk
    from scipy.ndimage import map_coordinates
    from scipy.ndimage import zoom as scizoom
    from skimage.filters import gaussian

    names: dict[str, Any] = {
        "np": np, "cv2": cv2, "sk": sk, "scizoom": scizoom, "map_coordinates": map_coordinates,
        "gaussian": gaussian, "PILImage": Image, "BytesIO": io.BytesIO, **imagemagick(),
    }  # fmt: skip
    missing = set() if "WandImage" in names else {"motion_blur", "snow"}
    functions = [part for part in functions if missing == set() or part.name != "MotionImage"]
    exec(compile(ast.Module(functions, []), "make_cifar_c.py", "exec"), names)
    frost = names["frost"]
    names["frost"] = lambda *given: _within(
        folder / "ImageNet-C" / "create_c", frost, *given
    )  # reads its pictures there
    return {kind: names[kind] for kind in KINDS if kind not in missing}, source


def _within(folder: Path, function: Callable[..., Any], *given: Any) -> Any:
    with contextlib.chdir(folder):
        return function(*given)


def imagemagick() -> dict[str, Any]:
    """The names of ImageMagick that the script calls; none where it is missing."""
    try:
        from wand.api import library
        from wand.image import Image as WandImage
    except ImportError:
        return {}
    library.MagickMotionBlurImage.argtypes = (ctypes.c_void_p, *[ctypes.c_double] * 3)
    return {"WandImage": WandImage, "wandlibrary": library}


def severities(source: str) -> dict[str, list[Any]]:
    """The list `c = [...][severity - 1]` of every function of the reference."""
    found = {}
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and function.name in KINDS:
            lists = (part for part in ast.walk(function) if isinstance(part, ast.List) and len(part.elts) == 5)
            names = {"np": np, "IMSIZE": 1}
            found[function.name] = eval(compile(ast.Expression(next(lists)), "severities", "eval"), names)
    return found


def same_severities(source: str, ours: dict[str, tuple[Any, ...]]) -> dict[str, bool]:
    """Whether all numbers of a kind are those of the reference."""
    theirs = severities(source)

    def comparable(kind: str, value: Any) -> Any:
        if kind == "zoom_blur" and isinstance(value, tuple):
            return np.arange(1, *value)
        return value

    return {
        kind: all(
            np.allclose(comparable(kind, one), other) for one, other in zip(ours[kind], theirs[kind], strict=True)
        )
        for kind in KINDS
    }


def photographs(count: int) -> np.ndarray:
    """Frames of the driving simulator, cut and enlarged to 224 × 224; bytes (count, 224, 224, 3)."""
    with zipfile.ZipFile(SHARED / "data" / "driving.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith((".jpg", ".png")))
        chosen = names[:: max(1, len(names) // count)][:count]
        frames = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in chosen]
    return np.stack([np.asarray(frame.crop((60, 0, 180, 120)).resize((224, 224), Image.BICUBIC)) for frame in frames])


def house_numbers(count: int) -> np.ndarray:
    """SVHN; bytes (count, 32, 32, 3)."""
    with np.load(SHARED / "data" / "svhn.npz") as stored:
        return stored["x_test"][:count]


@contextmanager
def silent() -> Iterator[None]:
    kept, sys.stdout = sys.stdout, io.StringIO()
    try:
        yield
    finally:
        sys.stdout = kept


def measure(
    set_name: str, pictures: np.ndarray, reference: Reference, equal: dict[str, bool], sizes: Any, options: Any
) -> Iterator[dict[str, Any]]:
    images = torch.from_numpy(pictures).permute(0, 3, 1, 2).float().div(255).contiguous().to(options.device)
    ids, bytes_ = [f"s{number}" for number in range(len(images))], [Image.fromarray(one) for one in pictures]
    for kind, function in reference.items():
        for severity in SEVERITIES:
            look = Neighbour(Corruption(severity, kind, sizes), bounds=(0, 1))

            def ours(look: Neighbour = look) -> Tensor:
                return look.images(images, ids, 1)

            def theirs(function: Any = function, severity: int = severity) -> np.ndarray:
                with silent():
                    return np.stack([np.uint8(function(one, severity)) for one in bytes_])

            np.random.seed(0)
            first, again = (theirs() / 255 for _ in range(2))
            made = ours().permute(0, 2, 3, 1).cpu().double().numpy()
            tasks = {"weakspot": ours, "reference": theirs, "least": partial(least, kind, images)}
            clock = time.process_time if options.device == "cpu" else time.perf_counter
            seconds = interleaved(tasks, options.rounds, options.device, clock)
            plain = pictures / 255
            yield {
                "machine": machine(options.device),
                "set": set_name,
                "corruption": kind,
                "severity": severity,
                "severities_equal": equal[kind],
                "difference": round(float(np.abs(made - first).mean()), 4),
                "again": round(float(np.abs(again - first).mean()), 4) if kind in RANDOM else "",
                "same_angle": round(at_same_angles(function, severity, images, bytes_, sizes), 4)
                if kind == "motion_blur"
                else "",
                "change_weakspot": round(float(np.abs(made - plain).mean()), 4),
                "change_reference": round(float(np.abs(first - plain).mean()), 4),
                "ms_weakspot": round(1000 * float(np.median(seconds["weakspot"])) / len(images), 4),
                "ms_reference": round(1000 * float(np.median(seconds["reference"])) / len(images), 4),
                "ms_least": round(1000 * float(np.median(seconds["least"])) / len(images), 4),
                "times_as_fast": round(ratio(seconds, "reference", "weakspot"), 1),
                "bar": BAR,
            }


def least(kind: str, images: Tensor) -> Tensor:
    """Draw the random numbers of a corruption, and read and write the images once."""
    words = int(DRAWN.get(kind, 0) * images[0].numel())
    if words:
        device_words(np.arange(len(images), dtype=np.uint64), words, images.device)
    return images.clamp(0, 1)


def at_same_angles(function: Any, severity: int, images: Tensor, bytes_: list[Image.Image], sizes: str) -> float:
    """The mean absolute difference of motion blur where both sides smear in the same directions."""
    degrees, plain = np.linspace(-44, 44, len(bytes_)), np.random.uniform
    made = smeared(images, degrees, *strength("motion_blur", severity, small=sizes == "small"))
    theirs = []
    try:
        for one, angle in zip(bytes_, degrees.tolist(), strict=True):
            np.random.uniform = lambda *given, angle=angle, **named: angle
            theirs.append(np.uint8(function(one, severity)))
    finally:
        np.random.uniform = plain
    return float(np.abs(made.permute(0, 2, 3, 1).cpu().numpy() - np.stack(theirs) / 255).mean())


def alone(options: Any) -> Iterator[dict[str, Any]]:
    """Our side alone, on a machine without the reference: milliseconds per image of random images."""
    for side, count in ((224, options.images), (32, 16 * options.images)):
        images = torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0)).to(options.device)
        ids = [f"s{number}" for number in range(count)]
        looks = {kind: Neighbour(Corruption(5, kind, "large"), bounds=(0, 1)) for kind in KINDS}
        tasks = {kind: partial(look.images, images, ids, 1) for kind, look in looks.items()}
        for kind, seconds in interleaved(tasks, options.rounds, options.device).items():
            yield {
                "machine": machine(options.device),
                "height": side,
                "images": count,
                "corruption": kind,
                "severity": 5,
                "ms_weakspot": round(1000 * float(np.median(seconds)) / count, 4),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robustness", type=Path, help="a checkout of hendrycks/robustness")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=8, help="of 224²; 32 times as many of 32²")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", type=Path, help="time our side alone, and write it to this CSV")
    options = parser.parse_args()
    keep_freed_memory()
    if options.alone is not None:
        write(options.alone, list(alone(options)))
        return
    try:
        modernised()
        large, source = large_reference()
        import cv2
    except ImportError as error:
        print(f"nothing is measured: {error}; install imagecorruptions, scikit-image and opencv-python-headless")
        return
    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    equal = same_severities(source, LARGE)
    rows = list(measure("ImageNet-C at 224", photographs(options.images), large, equal, "large", options))
    rows += measure("ImageNet-C at 32", house_numbers(32 * options.images), large, equal, "large", options)
    if options.robustness is not None:
        small, source = small_reference(options.robustness.resolve())
        equal = same_severities(source, SMALL_IMAGES)
        rows += measure("CIFAR-10-C", house_numbers(32 * options.images), small, equal, "small", options)
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
