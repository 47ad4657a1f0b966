"""Copies of images within test data and between training and test data, on real data, and what the search costs.

    python benchmarks/data/duplicates.py [--out FILE]

writes duplicates.csv beside this script, or to --out: how many test images have an exact or a near copy, and the median
correlation of near ones. SVHN (Netzer et al. 2011), traffic signs (Stallkamp et al. 2012; test is the official test
set, "improvement" 470 tracks that share none with training), YouTube faces as given, and split by person; frames of a
driving simulator, shuffled, and split in time. `made`: SVHN test images stored again as JPEG, half of them resized, and
searched in SVHN's: the share that is found. `50,000 x 50,000`: random hashes, with the seconds of one core and GiB.
"""

import argparse
import csv
import io
import os
import resource
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from weakspot.coverage import ImageKeys, nearest_copies, perceptual_hashes
from weakspot.coverage.metrics_duplicates import content_digests, small_pictures

DATA = Path(os.environ.get("WEAKSPOT_SHARED", "")) / "data"
COLUMNS = ("data", "train", "test", "leaked_exact", "leaked_near", "repeated_exact", "repeated_near", "similarity",
           "found", "seconds", "gib")  # fmt: skip


def keys_of(images: np.ndarray) -> ImageKeys:
    """What images (images, height, width, channels), uint8, are compared by."""
    parts = []
    for start in range(0, len(images), 500):
        batch = torch.from_numpy(images[start : start + 500]).permute(0, 3, 1, 2).float() / 255
        parts.append((content_digests(batch), small_pictures(batch)))
    pictures = np.concatenate([part[1] for part in parts])
    return ImageKeys(np.concatenate([part[0] for part in parts]), perceptual_hashes(pictures), pictures)


def zipped(name: str, mode: str) -> tuple[np.ndarray, list[dict[str, str]]]:
    """The images of an archive, and the rows of its list."""
    with zipfile.ZipFile(DATA / name) as archive:
        rows = list(csv.DictReader(io.TextIOWrapper(archive.open("manifest.csv"), encoding="utf-8")))
        images = [np.asarray(Image.open(archive.open(row["path"])).convert(mode)) for row in rows]
    stacked = np.stack(images)
    return (stacked if stacked.ndim == 4 else stacked[..., None]), rows


def splits() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, training and test images."""
    with np.load(DATA / "svhn.npz") as svhn:
        yield "SVHN", svhn["x_train"], svhn["x_test"]
    images, rows = zipped("gtsrb.zip", "RGB")
    split = np.array([row["split"] for row in rows])
    yield "traffic signs, official test", images[split == "train"], images[split == "test"]
    yield "traffic signs, other tracks", images[split == "train"], images[split == "improvement"]
    images, rows = zipped("faces.zip", "L")
    split = np.array([row["split"] for row in rows])
    yield "faces, as given", images[split == "train"], images[split == "test"]
    person = np.array([Path(row["path"]).name.rsplit("_", 1)[0] for row in rows])
    names = np.unique(person)
    held_out = np.isin(person, np.random.default_rng(0).permutation(names)[: len(names) // 5])
    yield "faces, by person", images[~held_out], images[held_out]
    images, _ = zipped("driving.zip", "RGB")
    shuffled = np.random.default_rng(0).permutation(len(images))
    part = len(images) // 5
    yield "driving, shuffled", images[shuffled[part:]], images[shuffled[:part]]
    yield "driving, in time", images[:-part], images[-part:]


def stored_again(image: np.ndarray, resized: bool) -> np.ndarray:
    """The image after JPEG of quality 80, and after scaling to three quarters and back."""
    picture = Image.fromarray(image)
    if resized:
        picture = picture.resize((24, 24)).resize(image.shape[:2])
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=80)
    return np.asarray(Image.open(file))


def counted(name: str, train: np.ndarray, test: np.ndarray) -> dict[str, object]:
    """The row of one pair of splits."""
    begun = time.process_time()
    keys = keys_of(test)
    leaked, repeated = nearest_copies(keys, keys_of(train)), nearest_copies(keys)
    similar = np.concatenate([copies.similarity[copies.near] for copies in (leaked, repeated)])
    return {
        "data": name,
        "train": len(train),
        "test": len(test),
        "leaked_exact": int(leaked.exact.sum()),
        "leaked_near": int(leaked.near.sum()),
        "repeated_exact": int(repeated.exact.sum()),
        "repeated_near": int(repeated.near.sum()),
        "similarity": f"{np.median(similar):.3f}" if len(similar) else "",
        "seconds": f"{time.process_time() - begun:.1f}",
    }


def made() -> dict[str, object]:
    """How many of 2,000 copies that were stored again are found."""
    with np.load(DATA / "svhn.npz") as svhn:
        images = svhn["x_test"]
    again = np.stack([stored_again(image, place % 2 == 1) for place, image in enumerate(images[:2000])])
    copies = nearest_copies(keys_of(again), keys_of(images))
    found = float((copies.place == np.arange(2000)).mean())
    return {"data": "made", "train": len(images), "test": 2000, "found": f"{found:.4f}"}


def large() -> dict[str, object]:
    """The cost of 50,000 against 50,000, of which 5,000 are near copies."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 2**63, 50_000, dtype=np.uint64)
    pictures = rng.integers(0, 256, (50_000, 24, 24, 3), dtype=np.uint8)
    others = np.concatenate([hashes[:5000] ^ np.uint64(5), rng.integers(0, 2**63, 45_000, dtype=np.uint64)])
    contents = [np.arange(50_000 * 2, dtype=np.uint64).view(np.uint8).reshape(-1, 16) + np.uint8(k) for k in (0, 128)]
    begun = time.process_time()
    copies = nearest_copies(ImageKeys(contents[0], hashes, pictures), ImageKeys(contents[1], others, pictures))
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "data": "50,000 x 50,000",
        "train": 50_000,
        "test": 50_000,
        "leaked_near": int(copies.near.sum()),
        "seconds": f"{time.process_time() - begun:.1f}",
        "gib": f"{gib:.2f}",
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = asked.parse_args()
    torch.set_num_threads(1)
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in (large(), *(counted(*parts) for parts in splits()), made()):
            print(row, flush=True)
            writer.writerow(row)


if __name__ == "__main__":
    main()
