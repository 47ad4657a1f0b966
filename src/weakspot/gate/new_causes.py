"""Which root causes are new: clusters of images that the baseline mostly predicted correctly."""

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding

NEEDS = ("image_id", "image_cluster")


def new_causes(finding: Finding, baseline: Finding, *, overlap: float, where: str = "") -> list[int]:
    """The clusters of which the baseline predicts less than a share of `overlap` incorrectly.

    A cluster without images is new: nothing shows that it is not. Both must be of the same images: then an image that
    is an error in one only was predicted differently.
    """
    for held in (finding, baseline):
        if not set(NEEDS) <= held.arrays.keys() or held.table is None or "cluster" not in held.table.column_names:
            raise ConfigError(f"{where}: {held.name} holds no root-cause clusters: name the Finding of `causes`")
    if finding.provenance.get("data") != baseline.provenance.get("data"):
        raise ConfigError(
            f"{where}: the baseline was examined on other data, so causes cannot be compared: use the same data"
        )
    examined = np.isin(finding.arrays["image_id"], baseline.arrays["image_id"])
    of = np.asarray(finding.arrays["image_cluster"])
    if examined.shape != of.shape:
        raise ConfigError(f"{where}: {finding.name} is damaged: not every image has a cluster: examine again")
    numbers = [] if finding.table is None else finding.table["cluster"].to_pylist()
    shares = {number: examined[of == number] for number in numbers}
    return [number for number, was_wrong in shares.items() if not len(was_wrong) or was_wrong.mean() < overlap]
