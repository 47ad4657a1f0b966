"""What each method shows as causes of errors: the ranked causes, clusters of heat maps, and the other rivals."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from planted import Planted
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from weakspot import Finding, Plan, Run, Subject, examine
from weakspot.causes import ErrorSlices
from weakspot.causes.room import steps
from weakspot.causes.slice_views import SOURCES, WITHOUT_RELEVANCE
from weakspot.data.sources import ArraySource, WithMetadata
from weakspot.slices import SliceRule, View

SHOWN = 10


@dataclass(frozen=True)
class Item:
    """What a method shows: the errors it holds, the most typical first, and the words that name it."""

    errors: Sequence[int]
    words: Sequence[str] = ()


@dataclass(frozen=True)
class Examined:
    """One net and its test images: what it answers, and what its layers show; everything in the order of the ids."""

    planted: Planted
    subject: Subject
    ids: list[str]
    labels: np.ndarray
    predicted: np.ndarray
    softmax: np.ndarray
    views: Sequence[View]
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> np.ndarray:
        """Which images are predicted incorrectly."""
        return self.labels != self.predicted

    def source(self, *, metadata: bool = True) -> Any:
        """The test images with their labels."""
        images = ArraySource(self.planted.test[0].numpy(), self.labels, ids=self.ids)
        return WithMetadata(images, {"id": self.ids, **self.planted.metadata}) if metadata else images

    def with_labels(self, labels: np.ndarray) -> "Examined":
        """The same net, asked for other labels."""
        return replace(self, labels=labels)


def examined(planted: Planted, net: nn.Module) -> Examined:
    """The answers of a net, with the input of its last layer and the channel means of its convolutions."""
    images, truth = planted.test
    means: list[torch.Tensor] = []
    features: list[torch.Tensor] = []
    layers = [layer for layer in net if isinstance(layer, nn.Conv2d)]
    hooks = [layer.register_forward_hook(lambda _, __, output: means.append(output.mean((2, 3)))) for layer in layers]
    hooks.append(net[-1].register_forward_pre_hook(lambda _, inputs: features.append(inputs[0])))
    with torch.no_grad():
        softmax = net(images).softmax(1).numpy()
    for hook in hooks:
        hook.remove()
    views = (View("features", features[0].numpy()), View("layer statistics", torch.cat(means, 1).numpy()))
    ids = [f"i{number:04d}" for number in range(len(images))]
    subject = Subject(net, classes=planted.classes, scores="logits")
    return Examined(planted, subject, ids, truth.numpy(), softmax.argmax(1), softmax, views)


def causes(one: Examined, *, metadata: bool = True, **options: Any) -> list[Item]:
    """Errors whose label may be wrong, and the confirmed rules, at most ten; all sources, as `weakspot causes` has."""
    asked = ErrorSlices(**{"sources": SOURCES, **options})
    finding = examine(one.subject, one.source(metadata=metadata), [asked])[0]
    columns, place = _columns(one, finding), {name: number for number, name in enumerate(one.ids)}
    doubtful = [place[name] for name in finding.arrays.get("doubtful_id", np.array([])).tolist()]
    items = [Item(doubtful, ["label"])] if doubtful else []
    for row in [] if finding.table is None else finding.table.to_pylist():
        if row["confirmed"]:
            rule = SliceRule.from_json(json.loads(row["conditions"]))
            first = [place[name] for name in row["incorrect_examples"].split(", ")]
            rest = np.setdiff1d(np.flatnonzero(rule.holds(columns) & one.wrong), first).tolist()
            words = row["contrast"].split("; ")[:1] if row["kind"] == "features" else [row["rule"]]
            items.append(Item([*first, *rest], words))
    return items[:SHOWN]


def _columns(one: Examined, finding: Finding) -> dict[str, np.ndarray]:
    """What the rules are asked of, as somebody would who has new images."""
    measured = finding.arrays["measure_names"].tolist()
    columns = dict(zip(measured, finding.arrays["measures"].T, strict=True))
    columns |= {name: np.asarray(column) for name, column in one.planted.metadata.items()}
    columns |= {"true class": one.labels.astype(str), "predicted class": one.predicted.astype(str)}
    for number, name in enumerate(finding.arrays.get("regions", np.array([])).tolist()):
        columns[name] = finding.arrays["region_likeness"][:, number]
    return columns


def heat_maps(one: Examined, folder: Path, **options: Any) -> list[Item]:
    """Clusters of heat maps."""
    asked = {"replicates": 0, "pictures": 0, "thumbnail": 0, "slices": False, **options}
    finding = Plan.of(steps(asked)).run(one.subject, {"test": one.source()}, Run.create(folder))[-1]
    ids, numbers = finding.arrays["image_id"].tolist(), finding.arrays["image_cluster"]
    places, distances = np.array([one.ids.index(name) for name in ids]), finding.arrays["image_distance"]
    chosen = range(1, min(int(numbers.max(initial=0)), SHOWN) + 1)
    members = [np.flatnonzero(numbers == number) for number in chosen]
    return [Item(places[each[np.argsort(distances[each], kind="stable")]].tolist()) for each in members]


def _blocks(one: Examined) -> list[np.ndarray]:
    """Features and layer statistics of the errors, standardised by correct images, each block of the same weight."""
    blocks = []
    for view in one.views:
        usual = view.values[~one.wrong]
        scaled = (view.values - usual.mean(0)) / (view.values.std(0) + 1e-6)
        blocks.append(scaled[one.wrong] / np.sqrt((scaled[one.wrong] ** 2).sum(1).mean()))
    return blocks


def _groups(one: Examined, places: np.ndarray, numbers: np.ndarray) -> list[Item]:
    """Clusters of the errors, the largest first, their members by the distance from the middle."""
    errors, items = np.flatnonzero(one.wrong), []
    for number in np.unique(numbers[numbers >= 0]):
        members = np.flatnonzero(numbers == number)
        far = ((places[members] - places[members].mean(0)) ** 2).sum(1)
        items.append(Item(errors[members[np.argsort(far, kind="stable")]].tolist()))
    return sorted(items, key=lambda item: -len(item.errors))[:SHOWN]


def k_means(one: Examined) -> list[Item]:
    """Six clusters of features, layer statistics, softmax and label."""
    label = np.eye(one.planted.classes)[one.labels]
    places = np.concatenate([*_blocks(one), one.softmax[one.wrong], label[one.wrong]], 1)
    return _groups(one, places, KMeans(6, n_init=4, random_state=0).fit_predict(places))


def mixture(one: Examined) -> list[Item]:
    """As Domino (Eyuboglu et al. 2022): a mixture over features, label and softmax of all images, weighted by 10."""
    values = one.views[0].values
    label = np.eye(one.planted.classes)[one.labels]
    reduced = PCA(32, random_state=0).fit_transform((values - values.mean(0)) / (values.std(0) + 1e-6))
    places = np.concatenate([reduced / reduced.std(), 10**0.5 * label, 10**0.5 * one.softmax], 1)
    fitted = GaussianMixture(25, covariance_type="diag", reg_covar=1e-3, random_state=0, max_iter=50).fit(places)
    own = fitted.predict(places)
    return _groups(one, places[one.wrong], own[one.wrong])


def density(one: Examined) -> list[Item]:
    """HDBSCAN on the features of the errors."""
    places = PCA(20, random_state=0).fit_transform(_blocks(one)[0])
    return _groups(one, places, HDBSCAN(min_cluster_size=5, copy=True).fit_predict(places))


def by_value(one: Examined, values: np.ndarray) -> list[Item]:
    """Errors by a value of each, the commonest first."""
    members = [np.flatnonzero(one.wrong & (values == value)).tolist() for value in np.unique(values[one.wrong])]
    return [Item(each) for each in sorted(members, key=lambda each: -len(each))[:SHOWN]]


def tree(one: Examined) -> list[Item]:
    """Leaves of a decision tree on metadata and class, by the errors beyond the average."""
    columns = []
    for values in [*one.planted.metadata.values(), [f"class {number}" for number in one.labels.tolist()]]:
        if isinstance(values[0], str):
            columns += [[float(value == name) for value in values] for name in sorted(set(values))]
        else:
            columns.append([float(value) for value in values])
    known = np.array(columns).T
    fitted = DecisionTreeClassifier(max_leaf_nodes=12, min_samples_leaf=20, random_state=0).fit(known, one.wrong)
    leaves, rate = fitted.apply(known), one.wrong.mean()
    excess = {leaf: (one.wrong[leaves == leaf] - rate).sum() for leaf in np.unique(leaves)}
    ranked = sorted((leaf for leaf in excess if excess[leaf] > 0), key=lambda leaf: -excess[leaf])
    return [Item(np.flatnonzero((leaves == leaf) & one.wrong).tolist()) for leaf in ranked[:SHOWN]]


def chance(one: Examined, sizes: Sequence[int], seed: int) -> list[Item]:
    """Errors at random, in items of these sizes."""
    rng, errors = np.random.default_rng(seed), np.flatnonzero(one.wrong)
    return [Item(rng.permutation(errors)[:size].tolist()) for size in sizes]


def all_methods(one: Examined, folder: Path, seed: int) -> dict[str, Callable[[], list[Item]]]:
    """Every method by its name: what it shows."""
    last = {"layers": ("4",), "unit_length": True, "clusters": 6}
    return {
        "ranked causes": lambda: causes(one),
        "ranked causes, no metadata": lambda: causes(one, metadata=False),
        "ranked causes, no heat maps": lambda: causes(one, sources=WITHOUT_RELEVANCE),
        "traits and confusions alone": lambda: causes(one, sources=("traits", "confusions")),
        "tree on metadata and class": lambda: tree(one),
        "k-means of features, statistics, softmax, label": lambda: k_means(one),
        "heat maps, default": lambda: heat_maps(one, folder / "default"),
        "heat maps, unit length, last convolution, k = 6": lambda: heat_maps(one, folder / "last", **last),
        "predicted class": lambda: by_value(one, one.predicted),
        "confusion pair": lambda: by_value(one, one.labels * one.planted.classes + one.predicted),
        "mixture as Domino": lambda: mixture(one),
        "HDBSCAN of features": lambda: density(one),
        "chance": lambda: chance(one, [len(item.errors) for item in causes(one)], seed),
    }
