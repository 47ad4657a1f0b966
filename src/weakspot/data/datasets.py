"""Any map-style torch data set, or a data loader over one, as a source."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from weakspot.core.digest import digest
from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.core.observation import Batch
from weakspot.core.source import Turn
from weakspot.data.arrays import ChannelsAt, target_tensor
from weakspot.data.carried import carried_grid, placed_metadata
from weakspot.data.images import Mode
from weakspot.data.names import hash_names, listed, numbered, shown, unique_ids
from weakspot.data.nifti_grid import Grid
from weakspot.data.parts import Part, input_array, is_single, metadata_array, taken, target_array
from weakspot.data.workers import Failed, WorkerProcesses, fetched

Collate = Callable[[list[Any]], Any]
Ids = Sequence[str] | Callable[[int], Any] | str | None
Pair = tuple[np.ndarray, np.ndarray | None]
Parts = tuple[np.ndarray, np.ndarray | None, dict[str, np.ndarray]]
_BLOCK = 64


class DatasetSource:
    """A map-style torch data set with its own transforms: samples are tuples or mappings of images, arrays or tensors.

    inputs, targets: which part of a sample: a place in a tuple, a key of a mapping, an attribute; `targets=None` for
        none. A sample that is a single image or array, or a tuple of one, is all input.
    metadata: keys of further parts that are known of each sample.
    ids: unique names, a function from the place of a sample to its name, or the name of an attribute of the data set
        that holds them; by default a sample's place.
    classes: the classes' names, for targets that are names; by default those of the data set where it has them.
    channels: where arrays and tensors keep their channels, as for `ArraySource`.
    mode: what Pillow's images become.
    collate: a function from a list of samples to a batch, whose parts are then taken; by default they are stacked.
    name: stands for the content: you vouch that equal names mean equal samples. Without one, all samples are read once
        to make the fingerprint.
    workers: processes that read samples. With 0 the data set is asked in this process, by one thread at a time, or by
        several at once where `threads` says that it may be.

    Inputs of bytes are divided by 255. A sample must be the same whenever it is asked for: turn random transforms off.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        inputs: Part = 0,
        targets: Part | None = 1,
        metadata: Sequence[str] = (),
        ids: Ids = None,
        classes: Sequence[str] | None = None,
        channels: ChannelsAt = "first",
        mode: Mode = "RGB",
        collate: Collate | None = None,
        name: str | None = None,
        workers: int = 0,
        threads: bool = False,
    ):
        self._dataset = _map_style(dataset)
        self._inputs, self._targets, self._metadata = inputs, targets, tuple(metadata)
        self._channels, self._mode, self._collate, self._name = channels, mode, collate, name
        self.ids = _ids(dataset, ids)
        self.classes = _classes(dataset, classes)
        self.remarks: tuple[str, ...] = ()
        self._workers = self._start(workers) if workers else None
        self._turn: AbstractContextManager[Any] = nullcontext() if threads else Turn()
        self._check_order(_classes(dataset, None))
        self._check_steady()
        self.batch_limit = 1 if self._of_volumes else None

    def _start(self, workers: int) -> WorkerProcesses:
        return WorkerProcesses(self._dataset, workers)

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, as the data set gives them."""
        samples = self._samples(positions)
        for position, sample in zip(positions, samples, strict=True):
            if isinstance(sample, Failed):
                raise self._bad(self.ids[position], sample.reason) from sample.error
        return self._batch(positions, samples)

    def _samples(self, positions: Iterable[int]) -> list[Any]:
        places = [int(position) for position in positions]
        if self._workers is not None:
            return self._workers.samples(places)
        with self._turn:
            return [fetched(self._dataset, index) for index in places]

    def _batch(self, positions: np.ndarray, samples: list[Any]) -> Batch:
        ids = tuple(self.ids[position] for position in positions)
        joined = self._collated if self._collate else self._stacked
        inputs, targets, metadata = joined(ids, samples)
        return Batch(
            ids=ids,
            positions=np.asarray(positions),
            inputs=torch.from_numpy(inputs),
            targets=None if targets is None else target_tensor(targets),
            metadata=metadata or None,
        )

    def _stacked(self, ids: Sequence[str], samples: list[Any]) -> Parts:
        pairs = [self._pair(name, sample) for name, sample in zip(ids, samples, strict=True)]
        for name, (inputs, target) in zip(ids, pairs, strict=True):
            self._check_alike(name, inputs, target)
        metadata = {key: metadata_array([taken(s, key, "metadata") for s in samples]) for key in self._metadata}
        metadata |= placed_metadata([self._input_of(sample) for sample in samples])
        targets = [target for _, target in pairs if target is not None]
        return np.stack([inputs for inputs, _ in pairs]), self._alike(targets) if targets else None, metadata

    def grid(self, case: str) -> Grid:
        """Where the voxels of a sample lie, by the affine that its input carries, as a MONAI MetaTensor does."""
        (sample,) = self._samples([self.ids.index(case)])
        if isinstance(sample, Failed):
            raise self._bad(case, sample.reason)
        found = carried_grid(self._input_of(sample))
        if found is None:
            raise self._bad(case, "its input carries no affine, so it is not known where its voxels lie")
        return found

    def _input_of(self, sample: Any) -> Any:
        return sample if is_single(sample) and self._inputs == 0 else taken(sample, self._inputs, "inputs")

    @cached_property
    def _of_volumes(self) -> bool:
        """Whether samples are volumes, which may differ in shape."""
        try:
            return self._collate is None and self._first[1].ndim == 4
        except (DataError, ConfigError):  # reading will say it
            return False

    def _alike(self, targets: list[np.ndarray]) -> np.ndarray:
        """Targets side by side, floats where the first of all is one: that must not depend on the batch."""
        first, stacked = self._first[2], np.stack(targets)
        return stacked.astype(np.float32) if first is not None and first.dtype.kind == "f" else stacked

    def _pair(self, name: str, sample: Any) -> Pair:
        """Input and target of one sample."""
        try:
            alone = is_single(sample) or (isinstance(sample, tuple | list) and len(sample) == 1)
            part = sample if is_single(sample) and self._inputs == 0 else taken(sample, self._inputs, "inputs")
            inputs = input_array(part, self._channels, self._mode)
            if self._targets is None or (alone and self._targets == 1):
                return inputs, None
            return inputs, target_array(taken(sample, self._targets, "targets"), self.classes)
        except ConfigError:
            raise
        except Exception as error:  # the user's objects may raise anything
            raise self._bad(name, error) from error

    @cached_property
    def _first(self) -> tuple[str, np.ndarray, np.ndarray | None]:
        """The first sample that can be read: what fits must not depend on the batch."""
        for position, name in enumerate(self.ids):
            (sample,) = self._samples([position])
            with suppress(BadSample):
                if not isinstance(sample, Failed):
                    return name, *self._pair(name, sample)
        raise DataError(f"none of the {len(self.ids)} samples can be read")

    def _check_alike(self, name: str, inputs: np.ndarray, target: np.ndarray | None) -> None:
        first, model_inputs, model_target = self._first
        sizes = (0, 0) if self._of_volumes else (inputs.shape[1:], model_inputs.shape[1:])
        if inputs.ndim != model_inputs.ndim or inputs.shape[0] != model_inputs.shape[0] or sizes[0] != sizes[1]:
            raise self._bad(name, f"its input is {inputs.shape}, that of {shown(first)} is {model_inputs.shape}")
        if target is None or model_target is None:
            if target is not model_target:
                raise self._bad(name, f"of it and {shown(first)} only one has a target")
        elif target.shape != model_target.shape and not self._of_volumes:
            raise self._bad(name, f"its target is {target.shape}, that of {shown(first)} is {model_target.shape}")
        elif target.dtype.kind == "f" and model_target.dtype.kind != "f":
            raise self._bad(name, f"its target is {target}, that of {shown(first)} a whole number: make all floats")

    def _collated(self, ids: Sequence[str], samples: list[Any]) -> Parts:
        """The parts of the batch that the user's function makes; where it fails, a sample that fails alone is named."""
        try:
            with self._turn:
                batch = self._collate(samples)  # type: ignore[misc]
            return self._parts(batch, len(ids))
        except ConfigError:
            raise
        except Exception as error:  # the user's code may raise anything
            reason = f"{type(error).__name__}: {error}"
            if len(samples) == 1:
                raise self._bad(ids[0], f"the collate function cannot make a batch of it: {reason}") from error
            for name, sample in zip(ids, samples, strict=True):
                self._collated([name], [sample])
            raise DataError(
                f"the collate function cannot make a batch of {shown(ids[0])} … {shown(ids[-1])}: {reason}"
            ) from error

    def _parts(self, batch: Any, expected: int) -> Parts:
        inputs = input_array(taken(batch, self._inputs, "inputs"), self._channels, self._mode, batched=True)
        part = None if self._targets is None else taken(batch, self._targets, "targets")
        targets = None if part is None else target_array(part, self.classes)
        metadata = {key: metadata_array(taken(batch, key, "metadata")) for key in self._metadata}
        for kind, values in {"inputs": inputs, "targets": targets, **metadata}.items():
            if values is not None and len(values) != expected:
                raise ValueError(f"{len(values)} {kind} for {expected} samples")
        return inputs, targets, metadata

    def _bad(self, name: str, reason: object) -> BadSample:
        return BadSample(name, f"sample {shown(name)} of the data set cannot be used: {reason}; correct or remove it")

    def _check_order(self, order: Sequence[str] | None) -> None:
        """Refuse the data set's own names in another order: its targets are numbers in its own."""
        named = self.classes or ()
        if order is None or tuple(order) == named or sorted(order) != sorted(named) or self._targets is None:
            return
        (sample,) = self._samples([0])
        with suppress(Exception):  # a sample that cannot be read is reported when it is read
            if isinstance(taken(sample, self._targets, "targets"), str):
                return
        raise ConfigError(
            f"the data set numbers its classes {listed(order)}, and they were given as {listed(named)}, so one "
            "number would mean two classes: give the targets as names, or number them in the order of the model's "
            "outputs"
        )

    def _check_steady(self) -> None:
        """Refuse a data set that gives something else each time."""
        for position in sorted({0, len(self.ids) // 2, len(self.ids) - 1}):
            if self._content_digest(position) != self._content_digest(position):
                raise DataError(
                    f"the data set gives a different sample {shown(self.ids[position])} each time: turn off its "
                    "random transforms"
                )

    def _content_digest(self, position: int, sample: Any = None) -> str:
        sample = self._samples([position])[0] if sample is None else sample
        if isinstance(sample, Failed):
            return sample.reason
        try:
            batch = self._batch(np.array([position]), [sample])
        except BadSample as error:  # reading will name it, or leave it out where that is asked for
            return str(error)
        return digest([batch.inputs, batch.targets, batch.metadata])

    @cached_property
    def _fingerprint(self) -> str:
        if self._name is not None:
            return digest(["named", self._name, hash_names(self.ids)])
        contents: list[str] = []
        for start in range(0, len(self.ids), _BLOCK):
            places = range(start, min(start + _BLOCK, len(self.ids)))
            contents += map(self._content_digest, places, self._samples(places))
        return digest([hash_names(self.ids), hash_names(contents)])

    def fingerprint(self) -> str:
        """Of the name you vouch for, or of every sample as it is read; and of the ids."""
        return self._fingerprint


class LoaderSource(DatasetSource):
    """A `DataLoader` as it is: its data set, transforms, collate function and worker processes.

    Samples come in the order of the data set: shuffling and dropping the last batch make no sense here, and `remarks`
    says so. A sampler that chooses or weights samples, and a loader without batches, are refused.

    loader: over a map-style data set.
    inputs, targets, metadata: parts of a batch.

    Other options are those of `DatasetSource`.
    """

    def __init__(
        self,
        loader: "DataLoader[Any]",
        *,
        inputs: Part = 0,
        targets: Part | None = 1,
        metadata: Sequence[str] = (),
        ids: Ids = None,
        classes: Sequence[str] | None = None,
        channels: ChannelsAt = "first",
        mode: Mode = "RGB",
        name: str | None = None,
    ):
        self._loader = _in_order(loader)
        super().__init__(
            loader.dataset,
            inputs=inputs,
            targets=targets,
            metadata=metadata,
            ids=ids,
            classes=classes,
            channels=channels,
            mode=mode,
            collate=None if loader.collate_fn is default_collate else loader.collate_fn,
            name=name,
            workers=loader.num_workers,
        )
        shuffled = ["the loader shuffles; samples are read in the order of its data set"]
        dropped = ["the loader drops the last batch; all samples are read"]
        self.remarks = (
            *(shuffled if isinstance(loader.sampler, RandomSampler) else []),
            *(dropped if loader.drop_last and len(self.ids) % (loader.batch_size or 1) else []),
        )

    def _start(self, workers: int) -> WorkerProcesses:
        loader = self._loader
        return WorkerProcesses(
            self._dataset,
            workers,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            timeout=loader.timeout,
        )


def _map_style(dataset: Any) -> Any:
    if isinstance(dataset, IterableDataset) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise ConfigError(
            f"{type(dataset).__name__} is not a map-style data set: weakspot reads samples by index, so "
            "dataset[i] and len(dataset) must work; collect a stream in a list first"
        )
    if not len(dataset):
        raise DataError("the data set has no samples")
    return dataset


def _in_order(loader: "DataLoader[Any]") -> "DataLoader[Any]":
    """The loader, if reading its data set from beginning to end means the same samples."""
    if not isinstance(loader, DataLoader):
        raise ConfigError(f"expected a torch DataLoader, got {type(loader).__name__}")
    _map_style(loader.dataset)
    sampler = loader.sampler
    plain = isinstance(sampler, SequentialSampler) or (
        isinstance(sampler, RandomSampler) and not sampler.replacement and sampler.num_samples == len(loader.dataset)  # type: ignore[arg-type]
    )
    if type(loader.batch_sampler) is not BatchSampler or not plain:
        chooser = loader.batch_sampler if type(loader.batch_sampler) is not BatchSampler else sampler
        raise ConfigError(
            f"the loader's {type(chooser).__name__} chooses or groups samples, and weakspot reads each once, in order: "
            "choose samples with torch.utils.data.Subset, or give DatasetSource(loader.dataset) for all of them"
        )
    return loader


def _ids(dataset: Any, ids: Ids) -> tuple[str, ...]:
    count = len(dataset)
    if ids is None:
        return numbered(count)
    if isinstance(ids, str):
        if not hasattr(dataset, ids):
            raise ConfigError(f"ids={ids!r}: {type(dataset).__name__} has no such attribute")
        ids = [str(name) for name in getattr(dataset, ids)]
    elif callable(ids):
        ids = [str(ids(index)) for index in range(count)]
    if len(ids) != count:
        raise DataError(f"there are {count} samples but {len(ids)} ids: expected one id per sample")
    return unique_ids(ids)


def _classes(dataset: Any, classes: Sequence[str] | None) -> tuple[str, ...] | None:
    names = getattr(dataset, "classes", None) if classes is None else classes
    named = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return tuple(names) if named else None  # type: ignore[arg-type]
