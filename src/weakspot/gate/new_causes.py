"""Which root causes are new: clusters of images that the baseline mostly predicted correctly."""

from typing import NamedTuple

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.statistics.intervals import wilson_interval

NEEDS = ("image_id", "image_cluster")
_CONFIDENCE = 0.95


class NewCauses(NamedTuple):
    """The clusters that are surely new, and those that may be."""

    new: list[int]
    perhaps: list[int]

    @property
    def text(self) -> str:
        """What was found, in words."""
        if not self.new and not self.perhaps:
            return "none is new"
        said = f"new: {_named(self.new)}" if self.new else "none is surely new"
        return f"{said}; too small to tell: {_named(self.perhaps)}" if self.perhaps else said


def _named(clusters: list[int]) -> str:
    return ", ".join(f"cluster {number}" for number in clusters)


def new_causes(finding: Finding, baseline: Finding, *, overlap: float, where: str = "") -> NewCauses:
    """The clusters of which the baseline surely predicts less than a share of `overlap` incorrectly.

    Surely: the upper end of the share's interval (Wilson 1927, `wilson1927`) is below it, for all clusters at once. Two
    trainings always differ in some images, so a cluster of two images that are newly incorrect shows nothing yet. A
    cluster without images is new: nothing shows that it is not. Both must be of the same images: then an image that is
    an error in one only was predicted differently.
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
    known = {number: examined[of == number] for number in numbers}
    below = [number for number, was_wrong in known.items() if not len(was_wrong) or was_wrong.mean() < overlap]
    each = 1 - (1 - _CONFIDENCE) / max(1, len(known))
    surely = {
        number
        for number in below
        if not len(known[number])
        or wilson_interval(int(known[number].sum()), len(known[number]), confidence=each).high < overlap
    }
    return NewCauses([number for number in below if number in surely], [n for n in below if n not in surely])
