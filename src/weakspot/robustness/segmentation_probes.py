"""Which inputs are segmented well only by luck? Overlap and agreement over small variations."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from weakspot.core.class_names import class_names
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.observation import Observation
from weakspot.core.pixel_confusion import class_ious, mean_ious, pixel_accuracies, pixel_confusion
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import id_order
from weakspot.core.state import Sum
from weakspot.core.tasks import Task
from weakspot.estimates import mean_of, share_of
from weakspot.looks import VARIATIONS, Brightness, Neighbour, Noise, Photometric, Variation, moves
from weakspot.robustness.segmentation_outputs import NEIGHBOUR_SEGMENTATION


class NeighbourSegmentation(Probe):
    """Overlap of the segmentation with its target, over an input's small variations; weak where it is too little.

    neighbour IoU = mean over m neighbours of the mean IoU (Everingham et al. 2010) over the classes that occur in
    target or prediction. After neighbour accuracy (Zhong et al. 2021).
    Agreement is the share of the positions of the neighbours that are predicted as in the original, which needs no
    label. Targets stay as they are, so variations that move the image are refused.

    variation: how neighbours may differ from the input.
    looks: m, how many neighbours each input has.
    least_iou: an input is weak if its neighbour IoU is below this.
    seed: of the random variations; any neighbour can be made again from it and the input's id.
    """

    tasks: ClassVar[tuple[Task, ...]] = ("segmentation",)
    outputs = NEIGHBOUR_SEGMENTATION

    variation: Variation = Brightness(0.2) & Noise(0.05)
    looks: int = 20
    least_iou: float = 0.75
    seed: int = 0

    originals = Sum()
    neighbours = Sum()
    records = Rows()

    def __post_init__(self) -> None:
        if self.looks < 1 or not 0 < self.least_iou <= 1:
            raise ConfigError(f"expected looks ≥ 1 and 0 < least_iou ≤ 1, got {self.looks} and {self.least_iou}")

    @classmethod
    def check_task(cls, task: Task, options: Mapping[str, Any]) -> None:
        """Refuse to move images whose masks stay where they are."""
        super().check_task(task, options)
        if moves(options.get("variation", cls.variation)):
            still = ", ".join(name for name, kind in VARIATIONS.items() if issubclass(kind, Photometric))
            raise ConfigError(
                "the variation moves the image, and the masks of the data stay where they are, so correct predictions "
                f"would count as wrong: choose neighbours that move nothing ({still})"
            )

    @property
    def needs(self) -> Needs:
        """The original and m neighbours."""
        return Needs(looks={Original(): 1, Neighbour(self.variation, self.seed): self.looks})

    def observe(self, seen: Observation) -> None:
        """Count which class is predicted where; keep per sample how far it overlaps and agrees."""
        confusion = pixel_confusion(seen.predicted, seen.targets, seen.outputs.shape[1])
        overlap = mean_ious(confusion).cpu()
        if seen.number == 0:
            self._original, self._agreed = seen.predicted, torch.zeros(len(overlap), dtype=torch.int64)
            self._first = {"iou": overlap, "pixel_accuracy": pixel_accuracies(confusion).cpu()}
            self._overlap, self._worst = torch.zeros_like(overlap), torch.full_like(overlap, torch.inf)
            self.originals = self.originals + confusion.sum(0)
            return
        self._agreed = self._agreed + (seen.predicted == self._original).flatten(1).sum(1).cpu()
        self._overlap, self._worst = self._overlap + overlap, torch.minimum(self._worst, overlap)
        self.neighbours = self.neighbours + confusion.sum(0)

    def close(self, ids: Sequence[str]) -> None:
        """Write what the looks at the batch gave."""
        positions = self.looks * self._original[0].numel()
        self.records.append(
            ids,
            neighbour_iou=self._overlap / self.looks,
            worst_iou=self._worst,
            agreement=self._agreed.double() / positions,
            **self._first,
        )

    def finish(self) -> Finding:
        """Every input with whether it is weak, the weakest first; the classes with their IoU over all positions."""
        rows = self.records.read()
        order = id_order(rows.ids)
        columns = {name: np.asarray(rows[name])[order] for name in rows if name != "sample"}
        weak = columns["neighbour_iou"] < self.least_iou
        table = {"id": np.array(rows.ids)[order], "weak": weak, **columns}
        ranked = np.argsort(columns["neighbour_iou"], kind="stable")
        means = {name: mean_of(columns[name]) for name in ("neighbour_iou", "iou", "agreement", "pixel_accuracy")}
        pooled = {"class_iou": self.originals, "class_neighbour_iou": self.neighbours}
        arrays = {name: class_ious(torch.as_tensor(confusion).cpu()).numpy() for name, confusion in pooled.items()}
        return self.finding(
            summary={
                "weak_share": share_of(weak),
                "fragile": Estimate(int((weak & (columns["iou"] >= self.least_iou)).sum())),
                **means,
                "inputs": Estimate(len(weak)),
            },
            table={name: column[ranked] for name, column in table.items()},
            arrays={"class_name": np.array(class_names(self.setting.classes, len(arrays["class_iou"]))), **arrays},
        )
