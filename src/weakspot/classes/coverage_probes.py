"""Can coverage criteria tell classes apart? The comparison of DeepInspect's first research question.

Neuron coverage per image, compared between classes by effect size; and the criteria of DeepGauge per class, against
bounds profiled on the training images of the same class.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from weakspot.classes import finding_outputs as declared
from weakspot.classes.membership import class_members
from weakspot.classes.metrics_coverage import class_coverage, class_entries, class_separation, most_active
from weakspot.core.class_names import class_names
from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding
from weakspot.core.observation import Observation
from weakspot.core.probe import LayerProbe, Rows
from weakspot.core.rows import id_order
from weakspot.core.sections import section_numbers
from weakspot.core.state import Max, Min, Sum
from weakspot.core.step import Step
from weakspot.statistics import pairwise_cohens_d

CRITERIA = ("k_multisection", "boundary", "strong_activation", "top_neurons")
BINS = 100


class ClassCoverage(LayerProbe):
    """Neuron coverage of each image, compared between the true classes: does it tell them apart?

    Neuron coverage (Pei et al. 2017) of an image is the share of the neurons it activates. Compared by a Kruskal–Wallis
    test and, since with many images every difference is significant, by Cohen's d between every two classes (Tian et
    al. 2020, RQ1a). An image with several labels counts in each of its classes.

    threshold: above which a neuron counts as active.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "output", the values before normalisation and activation, as the paper's code takes them; or "activated".
    """

    outputs = declared.CLASS_COVERAGE

    tasks = ("classification", "multilabel")

    scaled = True

    threshold: float = 0.5

    images = Rows()
    output_count = Max()

    def observe(self, seen: Observation) -> None:
        """Count the neurons that each image activates."""
        active = (seen.channels(self.tap).scaled > self.threshold).sum(1)
        self.images.append(seen.ids, active=active, target=seen.targets.long())
        self.output_count = torch.tensor(float(seen.outputs.shape[1]))

    def finish(self) -> Finding:
        """The test, the effect sizes, and each class's distribution."""
        rows = self.images.read()
        order = id_order(rows.ids)
        names = class_names(self.setting.classes, int(self.output_count))
        members = class_members(rows["target"], len(names))[order]
        coverage = rows["active"][order] / self.setting.layout(self.tap).neurons
        separation = class_separation(coverage, members)
        image, number = members.tocoo().coords
        values = [coverage[image[number == each]] for each in range(len(names))]
        quartiles = np.array(
            [np.quantile(shares, [0.25, 0.5, 0.75]) if shares.size else [np.nan] * 3 for shares in values]
        )
        test = separation.test
        return self.finding(
            summary={
                "p_value": Estimate(test.p_value, about="Kruskal–Wallis: chance of such differences if there are none"),
                "epsilon_squared": Estimate(test.epsilon_squared, about="effect size of that test, 0 to 1"),
                **{
                    f"{name}_share": Estimate(share, about=f"share of the class pairs whose difference is {name}")
                    for name, share in separation.effect_sizes.items()
                },
            },
            table={
                "class": np.array(names),
                "images": np.array([shares.size for shares in values]),
                "lower_quartile": quartiles[:, 0],
                "median": quartiles[:, 1],
                "upper_quartile": quartiles[:, 2],
            },
            arrays={"cohens_d": pairwise_cohens_d(coverage[image], number)},
        )


class ClassRanges(LayerProbe):
    """Smallest and largest value of each neuron over the training images of each class: bounds for `ClassCriteria`.

    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "output", the values before normalisation and activation, as the paper's code takes them; or "activated".
    """

    outputs = declared.CLASS_RANGES

    tasks = ("classification", "multilabel")
    split = "train"

    low = Min()
    high = Max()
    images = Sum()

    def observe(self, seen: Observation) -> None:
        """Widen the ranges of the classes that the images belong to."""
        values, classes = seen.channels(self.tap).mean.double(), seen.outputs.shape[1]
        image, number = class_entries(seen.targets)
        entries, row = values[image], number[:, None].expand(-1, values.shape[1])
        empty = values.new_full((classes, values.shape[1]), float("inf"))
        self.low = torch.minimum(self.low.to(values.device), empty.scatter_reduce(0, row, entries, "amin"))
        self.high = torch.maximum(self.high.to(values.device), (-empty).scatter_reduce(0, row, entries, "amax"))
        self.images = self.images.to(number.device) + torch.bincount(number, minlength=classes)

    def finish(self) -> Finding:
        """The ranges, classes × neurons; of a class without images, from infinity to minus infinity."""
        images = self.images.numpy()
        names = class_names(self.setting.classes, len(images))
        return self.finding(
            summary={"classes": Estimate(int((images > 0).sum()), about="classes with training images")},
            table={"class": np.array(names), "images": images},
            arrays={"low": self.low.numpy(), "high": self.high.numpy()},
        )


class ClassCriteria(LayerProbe):
    """DeepGauge's criteria for each class: how many classes share the same coverage?

    Of the test images of a class (Ma et al. 2018, as Tian et al. 2020 apply it, RQ1b): share of the k sections of each
    neuron's range that they reach, of the regions beyond the range, of those above it, and of the neurons that are the
    most active of their layer; and the number of distinct patterns of most active neurons. Ranges are of the training
    images of the same class.

    sections: k, into how many sections each range is cut.
    layers: "all" convolutions and linears, "penultimate", names or patterns.
    side: "output", the values before normalisation and activation, as the paper's code takes them; or "activated".
    ranges: the Finding of `ClassRanges` over the training data.
    """

    outputs = declared.CLASS_CRITERIA

    tasks = ("classification", "multilabel")

    sections: int = 100
    ranges: Finding

    entries = Rows()

    def __post_init__(self) -> None:
        if not 1 <= self.sections <= 254:
            raise ConfigError(f"sections is {self.sections}: expected 1 to 254")

    @classmethod
    def upstream(cls, options: Mapping[str, Any]) -> dict[str, Step]:
        """The ranges of the same layers."""
        return {"ranges": Step.of(ClassRanges, layers=options["layers"], side=options["side"])}

    def observe(self, seen: Observation) -> None:
        """One record per image and class: the section of each neuron, and the most active neuron of each layer."""
        values = seen.channels(self.tap).mean.double()
        image, number = class_entries(seen.targets)
        low, high = (torch.from_numpy(self.ranges.arrays[side][number.cpu().numpy()]) for side in ("low", "high"))
        section = section_numbers(values[image], low.to(values.device), high.to(values.device), self.sections)
        top = most_active(values, self.setting.layout(self.tap))[image]
        ids = [seen.ids[index] for index in image.tolist()]
        self.entries.append(ids, number=number, section=section.to(torch.uint8), top=top)

    def finish(self) -> Finding:
        """Each class's coverage, and how many classes share the same."""
        rows, layout = self.entries.read(), self.setting.layout(self.tap)
        profiled = np.isfinite(self.ranges.arrays["low"]).all(axis=1)
        names = class_names(self.setting.classes, len(profiled))
        number = np.asarray(rows["number"])
        members_of = [
            np.flatnonzero(number == each) if profiled[each] else np.empty(0, int) for each in range(len(names))
        ]
        coverages = np.array(
            [class_coverage(rows["section"], rows["top"], members, layout, self.sections) for members in members_of]
        )
        columns = dict(zip((*CRITERIA, "patterns"), coverages.T, strict=True))
        histograms = {f"histogram_{name}": np.histogram(columns[name], BINS, (0, 1))[0] for name in CRITERIA}
        return self.finding(
            summary={
                f"{name}_alike": Estimate(
                    int(histograms[f"histogram_{name}"].max()), about=f"most classes that share a hundredth of {name}"
                )
                for name in CRITERIA
            },
            table={"class": np.array(names), "images": np.array([members.size for members in members_of]), **columns},
            arrays=histograms,
        )
