"""Pictures of a cluster: its images side by side, as a sheet, one after another, and its mean heat map."""

import numpy as np
from PIL import Image

from weakspot.causes.analysis import ErrorImages
from weakspot.causes.clusters import RootCauseCluster
from weakspot.causes.distances import HeatMapRows, spans
from weakspot.data.images import enlarged, png, strip
from weakspot.heat_pictures import overlay

SHOWN = 5
"""Images of a cluster that a person looks at."""
_SIDE = 64


def cluster_picture(images: ErrorImages, cluster: RootCauseCluster) -> bytes | None:
    """The medoid, the members nearest to it and the mean heat map, as PNG; None where no small pictures were kept."""
    if images.thumbnails is None:
        return None
    panels = [enlarged(images.thumbnails[member], _SIDE) for member in cluster.members[:SHOWN]]
    heat = mean_heat_map(images, cluster.members)
    return png(strip(panels if heat is None else [*panels, _over_mean(images.thumbnails[cluster.members], heat)]))


def mean_heat_map(images: ErrorImages, members: np.ndarray) -> np.ndarray | None:
    """What each pixel contributed on average to the predictions for these images, (height, width), float64.

    The channels' relevance is added up and divided by the image's largest, so that every image counts alike.
    """
    if images.heat_pictures is None:
        return None
    return np.asarray(images.heat_pictures[members].mean(0, dtype=np.float64))


def heat_map_picture(images: ErrorImages, members: np.ndarray) -> bytes | None:
    """The mean heat map over the mean image, as PNG; None where either was not kept."""
    heat = mean_heat_map(images, members)
    if heat is None or images.thumbnails is None:
        return None
    return heat_over_mean(images.thumbnails[members], heat)


def mean_of_maps(rows: HeatMapRows, members: np.ndarray) -> np.ndarray:
    """The mean heat map of one layer's maps (channels, height, width), added up and scaled as `mean_heat_map` is."""
    total = np.zeros(rows.shape[1:])
    for first, last in spans(len(members), rows.size):
        maps = rows.select(members[first:last]).values().reshape(-1, *rows.shape).sum(1)
        largest = np.abs(maps).max((1, 2), keepdims=True)
        total += (maps / np.where(largest > 0, largest, 1)).sum(0)
    return total / len(members)


def heat_over_mean(thumbnails: np.ndarray, heat: np.ndarray) -> bytes:
    """A heat map of any size over the mean of some images, as PNG."""
    return png(_over_mean(thumbnails, heat))


def _over_mean(thumbnails: np.ndarray, heat: np.ndarray) -> np.ndarray:
    mean = enlarged(thumbnails.mean(0).round().astype(np.uint8), _SIDE)
    size = mean.shape[1], mean.shape[0]
    wide = np.asarray(Image.fromarray(heat.astype(np.float32)).resize(size, Image.Resampling.BILINEAR))
    return overlay(mean.transpose(2, 0, 1), wide)
