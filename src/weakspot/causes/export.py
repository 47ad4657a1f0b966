"""Root-cause clusters as folders of images, as users of HUDD know them (Fahmy et al. 2021, figure 3)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.causes.analysis import ErrorImages
from weakspot.causes.cause_folders import pictures_of, write_causes
from weakspot.causes.cluster_pictures import heat_map_picture
from weakspot.causes.clusters import RootCauseCluster
from weakspot.causes.distances import square
from weakspot.causes.export_files import file_name, write_csv
from weakspot.causes.export_heat_maps import said, write_heat_maps
from weakspot.causes.labelling import table_in
from weakspot.causes.reclustering import NAME
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.files import whole_folder, writing
from weakspot.core.finding import Finding
from weakspot.core.run import Run
from weakspot.core.source import Source
from weakspot.data.images import animation, contact_sheet, png

RESULTS = {"test": "causes.errors", "train": "causes.errors-train"}
"""The Findings that hold the prediction for each image, by split."""
MOST_IN_CSV = 2000
"""Distances of more images are written as an array alone: as text they would be gigabytes."""
_SHEET = 100
"""Images on a contact sheet; the animation shows all."""
_FRAME = 128


def export_clusters(run: Run, source: Source | None, folder: str | Path, *, heat_maps: bool = False) -> list[str]:
    """Write the root-cause clusters of a Run to a new folder, whole or not at all; says in words what was left out.

    source: the test data, for the images: files are copied, everything else is written as PNG; without it the small
        pictures of the Finding are taken.
    heat_maps: also write the heat maps of every layer, of those that the Finding holds whole: of all with `keep: all`.

        clusters.csv, images.csv            the clusters, and the cluster of every error-inducing image
        cluster-01/                         its images, the medoid first; contact_sheet.png, heat_map.png, animation.gif
        causes/01-dark/                     of each confirmed cause a sentence, its images as CSV, wrong and correct
        layers/00-conv1/                    distances.npy and .csv, clusters.npy and .csv of every layer; on request
                                            heat_maps.npy, and heat_map-01.png of each cluster
        test_results.csv, train_results.csv the prediction for each image, for those that the Run knows
    """
    target = Path(folder)
    if target.exists():
        raise ConfigError(f"{folder} exists already: choose another folder, or remove it")
    finding = run[NAME]
    images, table = ErrorImages.of_finding(finding), table_in(finding)
    with whole_folder(target) as scratch, writing(target):
        write_csv(scratch / "clusters.csv", table.column_names, map(dict.values, table.to_pylist()))
        _write_images(scratch / "images.csv", finding, images)
        originals = Originals(images, source)
        clusters = clusters_of(finding)
        for number, cluster in enumerate(clusters, start=1):
            _write_cluster(scratch / f"cluster-{number:02d}", originals, cluster)
        write_causes(scratch / "causes", run, source)
        left_out = [_write_layer(scratch / "layers", finding, images, number) for number in range(len(images.layers))]
        if heat_maps:
            left_out += _write_all_heat_maps(scratch / "layers", images, clusters)
        for split, name in RESULTS.items():
            if name not in run:
                left_out.append(f"no {split}_results.csv: the Run has no {name}")
                continue
            results = results_table(run[name])
            write_csv(scratch / f"{split}_results.csv", list(results), zip(*results.values(), strict=True))
    return list(dict.fromkeys(filter(None, left_out)))


def clusters_of(finding: Finding) -> list[RootCauseCluster]:
    """The clusters of a Finding of `RootCauses`, members by distance, the medoid first."""
    ids = np.asarray(finding.arrays["image_id"])
    numbers, far = (np.asarray(finding.arrays[name]) for name in ("image_cluster", "image_distance"))
    clusters = []
    for row in table_in(finding).to_pylist():
        members = np.flatnonzero(numbers == row["cluster"])
        order = np.lexsort((members, far[members], ids[members] != row["medoid"]))
        clusters.append(RootCauseCluster(members[order], far[members[order]], row["spread"], row["stability"]))
    return clusters


def results_table(finding: Finding) -> dict[str, Sequence[Any]]:
    """Id, target, prediction, correct and error of each image, by column; numbers with spaces between them."""
    table = table_in(finding)
    numbers = {
        name: [" ".join(f"{v:.6g}" for v in row) for row in values.tolist()] for name, values in finding.arrays.items()
    }
    columns = {name: table[name].to_pylist() for name in table.column_names}
    everything = {**columns, **numbers}
    first = [name for name in ("id", "target", "prediction", "correct", "error") if name in everything]
    return {name: everything[name] for name in [*first, *(name for name in columns if name not in (*first, "kind"))]}


def _write_images(path: Path, finding: Finding, images: ErrorImages) -> None:
    arrays = finding.arrays
    rows = zip(images.ids, images.kinds, arrays["image_cluster"], arrays["image_distance"], strict=True)
    write_csv(path, ["id", "kind", "cluster", "distance"], rows)


class Originals:
    """The images behind the ids: from the data, or, without them, as the small pictures of the Finding."""

    def __init__(self, images: ErrorImages, source: Source | None):
        self.images, self._source = images, source
        known = set() if source is None else set(source.ids)
        lost = [] if source is None else [name for name in images.ids.tolist() if name not in known]
        if lost:
            raise DataError(
                f"the data have no sample {lost[0]!r} ({len(lost)} of {len(images)} error-inducing images are not "
                "there): give the test data that the Run examined"
            )

    def of(self, members: np.ndarray) -> Iterator[tuple[str, bytes | None, np.ndarray]]:
        """Name, content of the file where there is one, and pixels of each; nothing where these are no images."""
        names = self.images.ids[members].tolist()
        if self._source is None:
            kept = self.images.thumbnails
            yield from [] if kept is None else ((name, None, kept[m]) for name, m in zip(names, members, strict=True))
            return
        yield from pictures_of(self._source, names)


def _write_cluster(folder: Path, originals: Originals, cluster: RootCauseCluster) -> None:
    """The images of one cluster, the medoid first, and the pictures that show them together."""
    folder.mkdir()
    width, small = len(str(len(cluster))), []
    for rank, (name, content, pixels) in enumerate(originals.of(cluster.members), start=1):
        stem, suffix = file_name(name)
        file = folder / f"{rank:0{width}d}-{stem}{'.png' if content is None else suffix}"
        file.write_bytes(png(pixels) if content is None else content)
        small.append(_reduced(pixels))
    if small:
        (folder / "contact_sheet.png").write_bytes(png(contact_sheet(small[:_SHEET])))
        (folder / "animation.gif").write_bytes(animation(small))
    heat = heat_map_picture(originals.images, cluster.members)
    if heat is not None:
        (folder / "heat_map.png").write_bytes(heat)


def _reduced(pixels: np.ndarray) -> np.ndarray:
    """No larger than a frame of an animation."""
    picture = Image.fromarray(pixels)
    picture.thumbnail((_FRAME, _FRAME))
    return np.asarray(picture)


def _layer_folder(folder: Path, images: ErrorImages, number: int) -> Path:
    return folder / f"{number:02d}-{file_name(images.layers[number])[0]}"


def _write_all_heat_maps(folder: Path, images: ErrorImages, clusters: Sequence[RootCauseCluster]) -> list[str]:
    """Those of every layer beside its distances; says of which there are none."""
    numbers = range(len(images.layers))
    missing = [write_heat_maps(_layer_folder(folder, images, n), images, clusters, n) for n in numbers]
    return said([layer for layer in missing if layer is not None])


def _write_layer(folder: Path, finding: Finding, images: ErrorImages, number: int) -> str | None:
    """Distances and clusters of one layer; says what was left out."""
    layer_folder = _layer_folder(folder, images, number)
    layer_folder.mkdir(parents=True)
    distances, ids = images.distances[number], images.ids[images.landmarks]
    labels = np.asarray(finding.arrays["layer_labels"])[number] + 1
    np.save(layer_folder / "distances.npy", distances)
    np.save(layer_folder / "clusters.npy", labels)
    write_csv(layer_folder / "clusters.csv", ["id", "cluster"], zip(ids, labels, strict=True))
    if len(ids) > MOST_IN_CSV:
        return f"no distances.csv: {len(ids)} images are more than {MOST_IN_CSV}; the distances are in distances.npy"
    rows = ([name, *map("{:.6g}".format, row)] for name, row in zip(ids, square(distances), strict=True))
    write_csv(layer_folder / "distances.csv", ["id", *ids], rows)
    return None
