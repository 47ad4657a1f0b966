"""Rain and fog beside a plain per-image OpenCV version of the published algorithm, at 320 × 160 and other sizes.

    python benchmarks/peers/weather.py [--device cuda] [--images 64] [--repeats 10]

Bar: at least 5 times as many images per second at 320 × 160. The OpenCV version (opencv-python-headless) is written
here from the description of Automold: heavy rain and fog as the driving study used them, one image after another.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
import torch
from measuring import interleaved, machine, ratio, write

from weakspot.core.own_process import keep_freed_memory
from weakspot.looks import Fog, Neighbour, Rain

SIZES = {(160, 320): 5.0, (120, 240): "", (224, 224): "", (32, 32): ""}


def opencv_rain(image: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """area // 600 lines of length 30 that lean alike, 7 × 7 box blur, lightness × 0.7; bytes (height, width, 3)."""
    height, width = image.shape[:2]
    slant, drawn = int(chance.integers(-10, 11)), image.copy()
    for _ in range(height * width // 600):
        left, right = max(0, -slant), width - max(0, slant)
        x, y = int(chance.integers(left, max(left + 1, right))), int(chance.integers(0, max(1, height - 30)))
        cv2.line(drawn, (x, y), (x + slant, y + 30), (200, 200, 200), 1)
    hls = cv2.cvtColor(cv2.blur(drawn, (7, 7)), cv2.COLOR_RGB2HLS)
    hls[:, :, 1] = hls[:, :, 1] * 0.7
    return cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)


def opencv_fog(image: np.ndarray, chance: np.random.Generator, thickness: float | None = None) -> np.ndarray:
    """White discs blended in one by one, over ever wider frames about the middle, then a box blur."""
    thickness = chance.uniform(0.3, 1) if thickness is None else thickness
    height, width = image.shape[:2]
    disc = max(1, int(width // 3 * thickness))
    alpha, foggy = 0.08 * thickness, image
    for x, y in fog_places(height, width, disc, chance):
        overlay = foggy.copy()
        cv2.circle(overlay, (x + disc // 2, y + disc // 2), disc // 2, (255, 255, 255), -1)
        foggy = cv2.addWeighted(overlay, alpha, foggy, 1 - alpha, 0)
    return cv2.blur(foggy, (max(1, disc // 10),) * 2)


def fog_places(height: int, width: int, disc: int, chance: np.random.Generator) -> list[tuple[int, int]]:
    """Corners of the discs: more of them in every wider frame."""
    left, top, ring, places = width // 2 - 2 * disc, height // 2 - disc, 1, []
    while left > -disc or top > -disc:
        for _ in range(disc // 10 * ring):
            x, y = chance.integers(left, width - left - disc), chance.integers(top, height - top - disc)
            places.append((int(x), int(y)))
        left -= 3 * disc * width // (height + width + 3)
        top -= 3 * disc * height // (height + width + 3)
        ring += 1
    return places


def measure(size: tuple[int, int], options: argparse.Namespace) -> list[dict[str, object]]:
    images = torch.rand(options.images, 3, *size, generator=torch.Generator().manual_seed(0)).to(options.device)
    photographs = list((images.cpu().numpy() * 255).astype(np.uint8).transpose(0, 2, 3, 1).copy())
    ids = [f"s{number}" for number in range(options.images)]
    rows = []
    for name, ours, theirs in (("rain", Rain(), opencv_rain), ("fog", Fog(), opencv_fog)):
        look, chance = Neighbour(ours, bounds=(0, 1)), np.random.default_rng(0)
        tasks = {
            "weakspot": lambda look=look: look.images(images, ids, 1),
            "opencv": lambda theirs=theirs, chance=chance: [theirs(photograph, chance) for photograph in photographs],
        }
        seconds = interleaved(tasks, options.repeats, options.device)
        rows.append(
            {
                "machine": machine(options.device),
                "weather": name,
                "height": size[0],
                "width": size[1],
                "times_opencv": round(1 / ratio(seconds, "weakspot", "opencv"), 2),
                "bar": SIZES[size],
                "images_per_second": round(options.images / float(np.median(seconds["weakspot"]))),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    keep_freed_memory()
    rows = [row for size in SIZES for row in measure(size, options)]
    write(Path(__file__).with_suffix(".csv"), rows)


if __name__ == "__main__":
    main()
