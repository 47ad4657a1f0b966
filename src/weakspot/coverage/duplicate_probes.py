"""Copies in the data: test images that the model was trained on, and test images that occur several times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from weakspot.core.errors import ConfigError
from weakspot.core.finding import Estimate, Finding, Picture
from weakspot.core.observation import Observation, Setting
from weakspot.core.probe import Probe, Rows
from weakspot.core.rows import RowTable, id_order
from weakspot.core.taps import Tap
from weakspot.coverage.duplicate_outputs import DUPLICATES, IMAGE_HASHES
from weakspot.coverage.metrics_duplicates import (
    MANY,
    Copies,
    ImageKeys,
    content_digests,
    nearest_copies,
    perceptual_hashes,
    small_pictures,
)
from weakspot.coverage.metrics_feature_copies import FeatureCopies, feature_copies
from weakspot.data.image_measures import measurable
from weakspot.data.images import enlarged, png, strip
from weakspot.estimates import share_of

_CLASSES = ("classification", "multilabel")
_LEAST = 96
"""Pixels of a side of a shown picture."""


class ImageKeysProbe(Probe):
    """Keeps what images are compared by.

    feature_layer: a layer whose values images are compared by, too; by default none.
    """

    tasks = ("classification", "multilabel", "regression", "keypoints")

    feature_layer: str | None = None

    images = Rows()

    @property
    def tap(self) -> Tap | None:
        """The layer named."""
        return None if self.feature_layer is None else Tap((self.feature_layer,))

    def observe(self, seen: Observation) -> None:
        """Keep the digest, the hash and a small picture of each image."""
        if not measurable(seen.inputs):
            raise ConfigError(
                f"copies are found among images, and the inputs have shape {tuple(seen.inputs.shape)}: leave "
                "`duplicates` out"
            )
        pictures = small_pictures(seen.inputs)
        columns = {"content": content_digests(seen.inputs), "hash": perceptual_hashes(pictures).view(np.int64)}
        if self.tap is not None:
            columns["features"] = seen.channels(self.tap).mean.cpu()
        self.images.append(seen.ids, **columns, picture=pictures, **self.columns(seen))

    def columns(self, seen: Observation) -> dict[str, Any]:
        """What to keep besides: the label and whether it is predicted, where there are classes."""
        if seen.batch.targets is None or self.setting.task not in _CLASSES:
            return {}
        columns = seen.prediction_columns()
        return {"target": columns["target"], "correct": columns["correct"]}


class ImageHashes(ImageKeysProbe):
    """What the training images are compared by: digest, perceptual hash (Zauner 2010) and small picture of each.

    feature_layer: a layer whose values images are compared by, too; by default none.
    """

    split = "train"
    outputs = IMAGE_HASHES

    def finish(self) -> Finding:
        """The arrays, in the order of the ids."""
        rows = self.images.read()
        order = id_order(rows.ids)
        keys = _keys(rows, order)
        arrays = {"image_id": np.asarray(rows.ids, dtype=np.str_)[order], "content": keys.contents}
        arrays |= {"hash": keys.hashes, "picture": keys.pictures}
        arrays |= {name: np.asarray(rows[name])[order] for name in ("target", "features") if name in rows}
        return self.finding(summary={"inputs": Estimate(rows.count)}, arrays=arrays)


class Duplicates(ImageKeysProbe):
    """Test images with a copy in the training data or in the test data, exact or near, and accuracy without them.

    An exact copy has the same numbers. A near one looks alike: a perceptual hash (Zauner 2010) differs in few bits, and
    small pictures correlate. Mirrored, rotated and strongly cropped copies are not found.

    distance: in how many of 63 bits the hashes of near copies may differ.
    correlation: how much the small pictures of near copies must correlate at least.
    feature_layer: a layer of the network: images near each other among its channel means are listed apart, as alike to
        the network. By default none: in its last layers images of a class are near each other, copies or not.
    feature_distance: how near: a share of the usual distance between two images.
    pictures: how many pairs to show.
    hashes: the Finding of `ImageHashes` of the training data; without it only the test data are searched.
    """

    outputs = DUPLICATES
    by_group = (
        "accuracy_without_leaked", "accuracy_of_leaked", "accuracy_without_copies", "accuracy_without_alike",
    )  # fmt: skip

    distance: int = 10
    correlation: float = 0.97
    feature_distance: float = 0.3
    pictures: int = 8
    hashes: Finding | None = None

    def __post_init__(self) -> None:
        if not 0 < self.feature_distance < 1:
            raise ConfigError(f"expected a feature_distance between 0 and 1, got {self.feature_distance}")
        if not 0 <= self.distance <= 20 or not 0.5 <= self.correlation <= 1 or self.pictures < 0:
            raise ConfigError(
                "expected a distance of 0 to 20 bits, a correlation of 0.5 to 1 and 0 pictures or more, got "
                f"{self.distance}, {self.correlation} and {self.pictures}"
            )

    def finish(self) -> Finding:
        """Every test image with its most similar copies, those of training images first."""
        rows = self.images.read()
        order = id_order(rows.ids)
        ids, keys = np.asarray(rows.ids, dtype=np.str_)[order], _keys(rows, order)
        how: dict[str, Any] = {"distance": self.distance, "correlation": self.correlation}
        among = {"repeated": (nearest_copies(keys, **how), ids, keys.pictures)}
        if self.hashes is not None:
            arrays = {name: np.asarray(array) for name, array in self.hashes.arrays.items()}
            others = ImageKeys(arrays["content"], arrays["hash"], arrays["picture"])
            among = {"leaked": (nearest_copies(keys, others, **how), arrays["image_id"], others.pictures), **among}
        labels = {name: np.asarray(rows[name])[order] for name in ("target", "correct") if name in rows}
        table: dict[str, np.ndarray] = {"id": ids}
        for name, (copies, names, _) in among.items():
            table |= _columns(name, copies, names)
        features = np.asarray(rows["features"], dtype=np.float64)[order] if "features" in rows else None
        alike = {} if features is None else self._alike(features)
        for name, near in alike.items():
            table |= _alike_columns(name, near, among[name][1])
        if "correct" in labels:
            table["correct"] = labels["correct"]
        ranked = np.lexsort((ids, *(-copies.similarity for copies, *_ in reversed(among.values()))))
        return self.finding(
            summary={
                **_counts({name: copies for name, (copies, *_) in among.items()}, self.setting),
                **{f"{name}_alike": Estimate(int((near.place >= 0).sum())) for name, near in alike.items()},
                **self._labels(among["repeated"][0], labels),
                **self._accuracy(table, ids),
                "inputs": Estimate(len(ids)),
            },
            table={name: column[ranked] for name, column in table.items()},
            media={**self._shown(ids, keys, among), **self._shown_alike(ids, keys, among, alike)},
        )

    def _alike(self, features: np.ndarray) -> dict[str, FeatureCopies]:
        """The test images alike to the network: those like training images first."""
        others = None if self.hashes is None else self.hashes.arrays.get("features")
        leaked = {} if others is None else {"leaked": np.asarray(others, dtype=np.float64)}
        sides: dict[str, np.ndarray | None] = {**leaked, "repeated": None}
        return {name: feature_copies(features, side, limit=self.feature_distance) for name, side in sides.items()}

    def _labels(self, copies: Copies, labels: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
        """How many exact copies within the test data have another label than their copy."""
        if "target" not in labels or not copies.exact.any():
            return {}
        first, second = labels["target"][copies.exact], labels["target"][copies.place[copies.exact]]
        differing = (first != second).reshape(len(first), -1).any(1)
        return {"other_labels": Estimate(int(differing.sum()))} if differing.any() else {}

    def _accuracy(self, table: Mapping[str, np.ndarray], ids: np.ndarray) -> dict[str, Estimate]:
        if "correct" not in table:
            return {}
        correct, groups = table["correct"], self.setting.groups_of(ids.tolist())
        parts = {"accuracy_without_copies": ~table["repeated"]}
        if "leaked" in table:
            parts["accuracy_without_copies"] = parts["accuracy_without_copies"] & ~table["leaked"]
            parts |= {"accuracy_without_leaked": ~table["leaked"], "accuracy_of_leaked": table["leaked"]}
        alike = [table[name] for name in ("leaked_alike", "repeated_alike") if name in table]
        if alike:
            parts["accuracy_without_alike"] = parts["accuracy_without_copies"] & ~np.any(alike, axis=0)
        shares = {
            name: share_of(correct[of], groups=None if groups is None else groups[of])
            for name, of in parts.items()
            if of.any()
        }
        return {"accuracy": share_of(correct), **shares}

    def _shown(
        self, ids: np.ndarray, keys: ImageKeys, among: Mapping[str, tuple[Copies, np.ndarray, np.ndarray]]
    ) -> dict[str, Picture]:
        """The most similar pairs side by side, near copies before exact ones, which look the same."""
        shown: dict[str, Picture] = {}
        for name, (copies, names, pictures) in among.items():
            order = np.lexsort((np.arange(len(ids)), -copies.similarity, copies.exact))
            for place in [row for row in order.tolist() if copies.place[row] >= 0][: self.pictures]:
                other = int(copies.place[place])
                pair = [enlarged(_colour(picture), _LEAST) for picture in (keys.pictures[place], pictures[other])]
                kind = "exactly" if copies.exact[place] else f"with correlation {copies.similarity[place]:.3f}"
                of = "the training image" if name == "leaked" else "the test image"
                caption = f"{ids[place]} and {of} {names[other]} agree {kind}"
                shown[f"{name} {len(shown) + 1}"] = Picture(png(strip(pair)), caption)
        return shown

    def _shown_alike(
        self,
        ids: np.ndarray,
        keys: ImageKeys,
        among: Mapping[str, tuple[Copies, np.ndarray, np.ndarray]],
        alike: Mapping[str, FeatureCopies],
    ) -> dict[str, Picture]:
        """The nearest pairs by the network that are no copies by their pictures, side by side."""
        shown: dict[str, Picture] = {}
        for name, near in alike.items():
            copies, names, pictures = among[name]
            only = np.flatnonzero((near.place >= 0) & (copies.place < 0))
            for place in only[np.argsort(near.distance[only], kind="stable")][: self.pictures].tolist():
                other = int(near.place[place])
                pair = [enlarged(_colour(picture), _LEAST) for picture in (keys.pictures[place], pictures[other])]
                of = "the training image" if name == "leaked" else "the test image"
                caption = (
                    f"{ids[place]} and {of} {names[other]} are alike to the network: {near.distance[place]:.2f} of the "
                    "usual distance"
                )
                shown[f"{name} alike {len(shown) + 1}"] = Picture(png(strip(pair)), caption)
        return shown


def _alike_columns(name: str, near: FeatureCopies, names: np.ndarray) -> dict[str, np.ndarray]:
    found = near.place >= 0
    return {
        f"{name}_alike": found,
        f"{name}_alike_copy": np.where(found, names[near.place] if len(names) else "", ""),
        f"{name}_alike_distance": near.distance,
    }


def _keys(rows: RowTable, order: np.ndarray) -> ImageKeys:
    columns = {name: np.asarray(rows[name])[order] for name in ("content", "hash", "picture")}
    return ImageKeys(columns["content"], columns["hash"].view(np.uint64), columns["picture"])


def _columns(name: str, copies: Copies, names: np.ndarray) -> dict[str, np.ndarray]:
    found = copies.place >= 0
    return {
        name: found,
        f"{name}_copy": np.where(found, names[copies.place] if len(names) else "", ""),
        f"{name}_exactly": copies.exact,
        f"{name}_similarity": copies.similarity,
    }


def _counts(among: Mapping[str, Copies], setting: Setting) -> dict[str, Estimate]:
    counts = {}
    for name, copies in among.items():
        found = copies.place >= 0
        counts[f"{name}_exact"] = Estimate(int(copies.exact.sum()))
        counts[f"{name}_near"] = Estimate(int(copies.near.sum()))
        counts[f"{name}_share"] = Estimate(float(found.mean()))
        if found.any():
            counts[name] = Estimate(int(found.sum()))
    near = among["repeated"].near
    if near.mean() >= MANY and setting.groups is None:
        counts["alike"] = Estimate(float(near.mean()))
    return counts


def _colour(picture: np.ndarray) -> np.ndarray:
    return np.broadcast_to(picture, (*picture.shape[:2], 3))
