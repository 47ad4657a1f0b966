"""The heat maps of every layer that a Finding holds, as files: whole, and as pictures of each cluster's mean."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weakspot.causes.analysis import ErrorImages
from weakspot.causes.cluster_pictures import heat_over_mean, mean_of_maps
from weakspot.causes.clusters import RootCauseCluster
from weakspot.causes.distances import HeatMapRows, spans

Missing = tuple[str, str]
"""A layer, and why its heat maps are not written."""
_LEFT_OUT = {
    "not kept": "examine causes with keep: all",
    "kept as sketches": "examine causes with sketch: null for whole heat maps",
}


def write_heat_maps(
    folder: Path, images: ErrorImages, clusters: Sequence[RootCauseCluster], number: int
) -> Missing | None:
    """heat_maps.npy of one layer, and heat_map-01.png of each cluster where maps have a height and a width.

    The array is float32, its rows in the order of the ids; the relevance of every value, not scaled.
    """
    name, rows = images.layers[number], images.heat_maps.get(number)
    if rows is None:
        return name, "not kept"
    if images.sketch is not None and images.sketch_errors and not np.isnan(images.sketch_errors[number]):
        return name, "kept as sketches"
    _write_whole(folder / "heat_maps.npy", rows)
    if len(rows.shape) == 3 and images.thumbnails is not None:
        for rank, cluster in enumerate(clusters, start=1):
            picture = heat_over_mean(images.thumbnails[cluster.members], mean_of_maps(rows, cluster.members))
            (folder / f"heat_map-{rank:02d}.png").write_bytes(picture)
    return None


def said(missing: Sequence[Missing]) -> list[str]:
    """In words, of which layers there are no heat maps."""
    lines = []
    for why, advice in _LEFT_OUT.items():
        layers = [name for name, reason in missing if reason == why]
        if layers:
            lines.append(f"no heat maps of {', '.join(layers)}: they were {why}; {advice}")
    return lines


def _write_whole(path: Path, rows: HeatMapRows) -> None:
    """Block by block, as heat maps may be larger than memory; not mapped, as a full disk would end the process."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), *rows.shape)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for first, last in spans(len(rows), rows.size):
            file.write(rows.select(np.arange(first, last)).values().astype("<f4").tobytes())
