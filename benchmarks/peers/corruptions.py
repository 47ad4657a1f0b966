"""Common corruptions beside the published code: severities, difference of the images, and time per image.

    python benchmarks/peers/corruptions.py [--robustness FOLDER] [--device cuda] [--images 32] [--rounds 3]

The reference is the package imagecorruptions (severities of ImageNet-C, any size), with scikit-image and OpenCV; with
--robustness, a checkout of the authors' own hendrycks/robustness, also the script that made CIFAR-10-C, as far as it
runs without ImageMagick (its motion blur and snow need that). Both are older than today's numpy, scipy and
scikit-image; `modernised` gives them back the names they call. Where the reference is not installed nothing is
measured; --alone times our side on such a machine.

Severities are compared number by number, out of the reference's source. Images are bytes; both sides are compared as
floats from 0 to 1, ours before rounding to bytes. Where chance decides, two draws of the reference differ too: `again`
is the mean absolute difference of two of its own draws, and `difference` should be near it. `change` is the mean
absolute change of the image, ours and theirs: for frost, whose textures are made and not photographs, it is what can be
compared. Bar: at least 10 times as many images per second.
"""

import argparse
import ast
import io
import sys
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
from weakspot.looks import Corruption, Neighbour
from weakspot.looks.corruption_severities import KINDS, LARGE, SEVERITIES, SMALL_IMAGES

BAR = 10
RANDOM = {
    "gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow", "frost", "fog",
    "elastic_transform",
}  # fmt: skip
NEEDS_IMAGEMAGICK = {"motion_blur", "snow"}
Reference = dict[str, Callable[[Image.Image, int], Any]]


def modernised() -> None:
    """The names that the reference calls, as numpy, scipy and scikit-image had them."""
    import scipy.ndimage
    from skimage import filters

    plain = filters.gaussian
    if not hasattr(np, "float_"):
        np.float_ = np.float64

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
    wanted = {*KINDS, "disk", "plasma_fractal", "clipped_zoom"}
    functions = [part for part in whole.body if isinstance(part, ast.FunctionDef) and part.name in wanted]
    import cv2
    import skimage as sk
    from scipy.ndimage import map_coordinates
    from scipy.ndimage import zoom as scizoom
    from skimage.filters import gaussian

    names: dict[str, Any] = {
        "np": np, "cv2": cv2, "sk": sk, "scizoom": scizoom, "map_coordinates": map_coordinates,
        "gaussian": gaussian, "PILImage": Image, "BytesIO": io.BytesIO,
    }  # fmt: skip
    exec(compile(ast.Module(functions, []), "make_cifar_c.py", "exec"), names)
    return {kind: names[kind] for kind in KINDS if kind not in NEEDS_IMAGEMAGICK}, source


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
            seconds = interleaved({"weakspot": ours, "reference": theirs}, options.rounds, options.device)
            plain = pictures / 255
            yield {
                "machine": machine(options.device),
                "set": set_name,
                "corruption": kind,
                "severity": severity,
                "severities_equal": equal[kind],
                "difference": round(float(np.abs(made - first).mean()), 4),
                "again": round(float(np.abs(again - first).mean()), 4) if kind in RANDOM else "",
                "change_weakspot": round(float(np.abs(made - plain).mean()), 4),
                "change_reference": round(float(np.abs(first - plain).mean()), 4),
                "ms_weakspot": round(1000 * float(np.median(seconds["weakspot"])) / len(images), 4),
                "ms_reference": round(1000 * float(np.median(seconds["reference"])) / len(images), 4),
                "times_as_fast": round(ratio(seconds, "reference", "weakspot"), 1),
                "bar": BAR,
            }


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
    parser.add_argument("--images", type=int, default=32)
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
    except ImportError as error:
        print(f"nothing is measured: {error}; install imagecorruptions, scikit-image and opencv-python-headless")
        return
    equal = same_severities(source, LARGE)
    rows = list(measure("ImageNet-C at 224", photographs(options.images), large, equal, "large", options))
    rows += measure("ImageNet-C at 32", house_numbers(4 * options.images), large, equal, "large", options)
    if options.robustness is not None:
        small, source = small_reference(options.robustness)
        small.pop("frost")  # reads its pictures from the folder it is started in
        equal = same_severities(source, SMALL_IMAGES)
        rows += measure("CIFAR-10-C", house_numbers(4 * options.images), small, equal, "small", options)
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
