"""Which root causes are new: clusters of images that the baseline mostly predicted correctly."""

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding

NEEDS = ("image_id", "image_cluster")


def new_causes(finding: Finding, baseline: Finding, *, overlap: float, where: str = "") -> list[int]:
    """The clusters of which less than `overlap` of the images was error-inducing in the baseline too.

    A cluster without images is new: nothing shows that it was known. Both must be of the same images: then an image
    that is wrong in one and not in the other was truly answered differently.
    """
    for held in (finding, baseline):
        if not set(NEEDS) <= held.arrays.keys() or held.table is None or "cluster" not in held.table.column_names:
            raise ConfigError(f"{where}: {held.name} holds no root-cause clusters: name the Finding of `causes`")
    if finding.provenance.get("data") != baseline.provenance.get("data"):
        raise ConfigError(
            f"{where}: the baseline examined other data, so that no cause can be called new: use the same"
        )
    examined = np.isin(finding.arrays["image_id"], baseline.arrays["image_id"])
    of = np.asarray(finding.arrays["image_cluster"])
    if examined.shape != of.shape:
        raise ConfigError(f"{where}: {finding.name} is damaged: not every image has a cluster: examine again")
    numbers = [] if finding.table is None else finding.table["cluster"].to_pylist()
    shares = {number: examined[of == number] for number in numbers}
    return [number for number, was_wrong in shares.items() if not len(was_wrong) or was_wrong.mean() < overlap]
