"""Footprints: what every input reaches, by every criterion at once, kept as rows; and two questions that rest on them.

Which inputs to add next, and whether the criteria agree with each other and with the errors found.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Finding
from weakspot.core.layers import Side
from weakspot.core.observation import Observation
from weakspot.core.probe import LayerProbe, Rows
from weakspot.core.rows import RowTable
from weakspot.core.sections import section_numbers
from weakspot.core.step import Step
from weakspot.core.tensors import packed
from weakspot.coverage.confidence_probes import observed_uncertainty
from weakspot.coverage.metrics_top_neurons import leading, pattern_words
from weakspot.coverage.neuron_probes import ActivationRanges
from weakspot.coverage.reached_targets import Bits, Cells, Reach, one_each

JUDGED = ("classification", "multilabel")
"""Tasks whose predictions are correct or not."""


class Footprints(LayerProbe):
    """What each input reaches by each of DeepGauge's criteria (Ma et al. 2018), with how sure the model is of it.

    threshold: of neuron coverage.
    sections: k of k-multisection coverage.
    top: k of top-k neuron coverage and patterns.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "activated", the values after the activation that follows the layer, as the papers define it; or "output",
        those before it.
    ranges: the Finding of `ActivationRanges` over the training data.
    """

    scaled = True

    side: Side = "activated"
    threshold: float = 0.75
    sections: int = 1000
    top: int = 3
    ranges: Finding

    footprints = Rows()

    def __post_init__(self) -> None:
        if self.sections < 1 or self.top < 1:
            raise ConfigError(f"expected sections ≥ 1 and top ≥ 1, got {self.sections} and {self.top}")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The training ranges of the same layers."""
        return {"ranges": Step.of(ActivationRanges, layers=options["layers"], side=options["side"])}

    def observe(self, seen: Observation) -> None:
        """Keep what each input reaches, how sure the model is, and, with labels, whether its prediction is correct."""
        channels = seen.channels(self.tap)
        low, high = self._bounds(channels.mean.device)
        narrow = torch.int16 if self.sections < 1 << 14 else torch.int32
        leads = leading(channels.mean, self.setting.layout(self.tap).widths, self.top)
        section = section_numbers(channels.mean, low, high, self.sections)
        above = section > self.sections
        self.footprints.append(
            seen.ids,
            active=packed(channels.scaled > self.threshold),
            section=section.to(narrow),
            beyond=packed(torch.stack([section == 0, above], 2).flatten(1)),
            above=packed(above),
            leads=packed(leads),
            pattern=pattern_words(leads),
            **self._unsure(seen),
            **self._errors(seen),
        )

    def _bounds(self, device: torch.device) -> list[Tensor]:
        """The training range on the device, sent there once."""
        sent: dict[torch.device, list[Tensor]] = self.__dict__.setdefault("_sent", {})
        if device not in sent:
            sent[device] = [torch.tensor(self.ranges.arrays[side], device=device) for side in ("low", "high")]
        return sent[device]

    def _unsure(self, seen: Observation) -> dict[str, Tensor]:
        if self.setting.task != "classification" or self.setting.scores is None:
            return {}
        return observed_uncertainty(seen)

    def _errors(self, seen: Observation) -> dict[str, Tensor]:
        """Whether each prediction is incorrect, and, of classes, the number of that pair of label and prediction."""
        if self.setting.task not in JUDGED or seen.batch.targets is None:
            return {}
        wrong = ~seen.correct
        if self.setting.task != "classification":
            return {"wrong": wrong}
        confusion = seen.targets.long() * seen.outputs.shape[1] + seen.predicted
        return {"wrong": wrong, "confusion": torch.where(wrong, confusion, -1)}

    def reaches(self, rows: RowTable) -> dict[str, Reach]:
        """What each input reaches, by criterion."""
        neurons = self.setting.layout(self.tap).neurons
        return {
            "nc": Bits(rows["active"], neurons),
            "kmnc": Cells(rows["section"], self.sections),
            "nbc": Bits(rows["beyond"], 2 * neurons),
            "snac": Bits(rows["above"], neurons),
            "tknc": Bits(rows["leads"], neurons),
            "tknp": one_each(rows["pattern"]),
        }
