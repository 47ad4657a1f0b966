"""Torch data sets and loaders: parts, collate functions, ids, worker processes, and what users' code raises."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from weakspot.core.errors import BadSample, ConfigError, DataError
from weakspot.data.sources import ArraySource, DatasetSource, LoaderSource

INPUTS = torch.randn(10, 3, 4, 5, generator=torch.Generator().manual_seed(0))
TARGETS = torch.arange(10) % 4


def whole(source):
    return source.read(np.arange(len(source.ids)))


class Listed(Dataset):
    """A data set over a list; `Broken` entries raise."""

    def __init__(self, samples, **attributes):
        self.samples = samples
        vars(self).update(attributes)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, place):
        sample = self.samples[place]
        if isinstance(sample, Exception):
            raise sample
        return sample


def test_the_data_sets_own_classes_in_another_order_are_refused():
    samples = list(zip(INPUTS, TARGETS.tolist(), strict=True))
    with pytest.raises(ConfigError, match="numbers its classes a, b, c, d, and they were given as d, c, b, a"):
        DatasetSource(Listed(samples, classes=[*"abcd"]), classes=[*"dcba"])
    assert DatasetSource(Listed(samples, classes=[*"abcd"]), classes=[*"wxyz"]).classes == (*"wxyz",)
    by_name = Listed([(x, "abcd"[y]) for x, y in samples], classes=[*"abcd"])
    assert whole(DatasetSource(by_name, classes=[*"dcba"])).targets.tolist() == [3 - y for _, y in samples]


@dataclass
class Sample:
    picture: torch.Tensor
    label: int


def dicts():
    return [
        {"image": x, "label": int(y), "site": f"s{i}"} for i, (x, y) in enumerate(zip(INPUTS, TARGETS, strict=True))
    ]


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (TensorDataset(INPUTS, TARGETS), {}),
        (Listed(list(zip(INPUTS.numpy(), TARGETS.tolist(), strict=True))), {}),
        (Listed(list(zip(INPUTS.double(), TARGETS.numpy(), strict=True))), {}),
        (list(zip(TARGETS, INPUTS, strict=True)), {"inputs": 1, "targets": 0}),
        (list(zip(TARGETS, INPUTS, strict=True)), {"inputs": -1, "targets": 0}),
        (Listed(dicts()), {"inputs": "image", "targets": "label"}),
        (
            Listed([Sample(x, y) for x, y in zip(INPUTS, TARGETS, strict=True)]),
            {"inputs": "picture", "targets": "label"},
        ),
        (Listed(list(zip(INPUTS.permute(0, 2, 3, 1), TARGETS, strict=True))), {"channels": "last"}),
        (Listed([(x, "dcba"[3 - y]) for x, y in zip(INPUTS, TARGETS, strict=True)]), {"classes": [*"abcd"]}),
        (Listed([(x, "dcba"[3 - y]) for x, y in zip(INPUTS, TARGETS, strict=True)], classes=[*"abcd"]), {}),
    ],
)
def test_samples_of_every_form(dataset, options):
    source = DatasetSource(dataset, **options)
    batch = source.read(np.array([7, 2, 2]))
    assert batch.ids == ("7", "2", "2")
    assert torch.equal(batch.inputs, INPUTS[[7, 2, 2]])
    assert batch.inputs.is_contiguous()
    assert (batch.targets.dtype, batch.targets.tolist()) == (torch.int64, TARGETS[[7, 2, 2]].tolist())


@pytest.mark.parametrize("dataset", [TensorDataset(INPUTS), list(INPUTS), Listed(list(INPUTS.numpy()))])
def test_samples_without_targets(dataset):
    batch = whole(DatasetSource(dataset))
    assert torch.equal(batch.inputs, INPUTS)
    assert batch.targets is None


def test_images_and_bytes_are_scaled():
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3), dtype=np.uint8)
    for dataset, options in (
        ([(Image.fromarray(one), 0) for one in pixels], {}),
        ([(one, 0) for one in pixels], {"channels": "last"}),
        ([(torch.from_numpy(one.transpose(2, 0, 1).copy()), 0) for one in pixels], {}),
    ):
        found = whole(DatasetSource(dataset, **options)).inputs
        assert np.array_equal(found, pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255)
    assert whole(DatasetSource([(Image.fromarray(one), 0) for one in pixels], mode="L")).inputs.shape == (2, 1, 4, 6)


def test_targets_of_other_kinds():
    labels, numbers, points = torch.tensor([0.0, 1.0]), 0.5, np.zeros((2, 2))
    for target, shape in ((labels, (1, 2)), (numbers, (1,)), (points, (1, 2, 2))):
        batch = whole(DatasetSource([(INPUTS[0], target)]))
        assert (batch.targets.shape, batch.targets.dtype) == (shape, torch.float32)
    mask = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8))
    assert whole(DatasetSource([(INPUTS[0], mask)])).targets.tolist() == [[[0, 1, 2]]]


def test_the_type_of_a_target_does_not_depend_on_the_batch():
    source = DatasetSource([(INPUTS[0], 0.5), (INPUTS[1], 1)])
    assert source.read(np.array([1])).targets.dtype == torch.float32
    with pytest.raises(BadSample, match=r"sample 1 .* its target is 0.5, that of 0 a whole number: make all floats"):
        DatasetSource([(INPUTS[0], 0), (INPUTS[1], 0.5)]).read(np.array([1]))


def test_large_numbers_of_a_mask_stay_what_they_are():
    masks = [np.array([1], dtype=np.uint8), np.array([300], dtype=np.int64)]
    source = DatasetSource([(INPUTS[0], mask) for mask in masks])
    assert whole(source).targets.tolist() == [[1], [300]]


def test_ids_and_metadata():
    named = Listed(dicts(), names=[f"n{i}" for i in range(10)])
    parts = {"inputs": "image", "targets": "label", "metadata": ["site", "label"]}
    for ids in ("names", lambda place: f"n{place}", [f"n{i}" for i in range(10)]):
        batch = DatasetSource(named, ids=ids, **parts).read(np.array([3]))
        assert (batch.ids, batch.metadata["site"].tolist(), batch.metadata["label"].tolist()) == (("n3",), ["s3"], [3])


@pytest.mark.parametrize(
    ("dataset", "options", "error", "message"),
    [
        (Listed(dicts()), {}, ConfigError, "inputs=0: a sample has the parts 'image', 'label', 'site'"),
        (
            Listed(dicts()),
            {"inputs": "image"},
            ConfigError,
            "targets=1: a sample has the parts 'image', 'label', 'site'",
        ),
        (
            TensorDataset(INPUTS, TARGETS),
            {"targets": 2},
            ConfigError,
            "targets=2: a sample has 2 parts, counted from 0",
        ),
        (TensorDataset(INPUTS, TARGETS), {"inputs": "x"}, ConfigError, "inputs='x': a sample is a tuple without such"),
        (list(INPUTS), {"targets": 3}, ConfigError, "targets=3: a sample is a single Tensor"),
        ([(INPUTS[0], "cat")], {}, ConfigError, "the target 'cat' is a name: give the classes in the order"),
        (TensorDataset(INPUTS, TARGETS), {"ids": "names"}, ConfigError, "ids='names': TensorDataset has no such"),
        (TensorDataset(INPUTS, TARGETS), {"ids": ["a"]}, DataError, "there are 10 samples but 1 ids"),
        (TensorDataset(INPUTS, TARGETS), {"ids": lambda place: "a"}, DataError, "two samples have the id 'a'"),
        ([], {}, DataError, "the data set has no samples"),
        (iter([1]), {}, ConfigError, "list_iterator is not a map-style data set: .*collect a stream in a list first"),
    ],
)
def test_what_does_not_fit_is_said_at_once(dataset, options, error, message):
    with pytest.raises(error, match=message):
        DatasetSource(dataset, **options)


class Endless(IterableDataset):
    def __iter__(self):
        yield INPUTS[0]


def test_streams_are_refused():
    for make in (DatasetSource, lambda stream: LoaderSource(DataLoader(stream))):
        with pytest.raises(ConfigError, match="Endless is not a map-style data set"):
            make(Endless())


BAD = {
    "raised": (ValueError("no such file"), "ValueError: no such file"),
    "shape": ((INPUTS[0, :, :2], 1), r"its input is \(3, 2, 5\), that of s0 is \(3, 4, 5\)"),
    "target": ((INPUTS[0], [1, 2]), r"its target is \(2,\), that of s0 is \(\)"),
    "text": (("words", 1), "expected numbers, got str"),
    "none": ((None, 1), "expected numbers, got NoneType"),
    "no target": ((INPUTS[0], None), "expected numbers, got NoneType"),
    "alone": (INPUTS[0], "only one has a target"),
}


@pytest.mark.parametrize(
    ("name", "first"),
    [(name, first) for name in BAD for first in (False, True) if not first or name in ("raised", "text", "none")],
)
def test_a_bad_sample_is_named_and_the_others_can_be_read(name, first):
    sample, message = BAD[name]
    good = list(zip(INPUTS[:3], [0, 1, 2], strict=True))
    samples = [sample, *good] if first else [good[0], good[1], sample, good[2]]
    names = ["bad", "s0", "s1", "s2"] if first else ["s0", "s1", "bad", "s2"]
    source = DatasetSource(Listed(samples), ids=names)
    with pytest.raises(BadSample, match=message) as told:
        whole(source)
    assert told.value.sample == "bad"
    assert source.read(np.array([i for i, n in enumerate(names) if n != "bad"])).targets.tolist() == [0, 1, 2]
    source.fingerprint()


def doubled(samples):
    return {"x": 2 * torch.stack([x for x, _ in samples]), "y": [int(y) for _, y in samples]}


def test_the_users_collate_function_makes_the_batch():
    source = DatasetSource(TensorDataset(INPUTS, TARGETS), collate=doubled, inputs="x", targets="y")
    batch = source.read(np.array([4, 1]))
    assert torch.equal(batch.inputs, INPUTS[[4, 1]] * 2)
    assert batch.targets.tolist() == TARGETS[[4, 1]].tolist()


def picky(samples):
    if any(int(y) == 3 for _, y in samples):
        raise KeyError("three")
    return torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples])


def test_a_collate_function_that_fails_names_the_sample():
    source = DatasetSource(TensorDataset(INPUTS, TARGETS), collate=picky)
    with pytest.raises(
        BadSample, match=r"sample 3 .*collate function cannot make a batch of it: KeyError: 'three'"
    ) as told:
        whole(source)
    assert told.value.sample == "3"
    lonely = DatasetSource(TensorDataset(INPUTS, TARGETS), collate=lambda s: picky(s[:1]) if len(s) == 1 else 1 / 0)
    with pytest.raises(DataError, match="the collate function cannot make a batch of 0 … 1: ZeroDivisionError"):
        lonely.read(np.array([0, 1]))
    short = DatasetSource(TensorDataset(INPUTS, TARGETS), collate=lambda s: picky(s[:1]))
    with pytest.raises(DataError, match="cannot make a batch of 0 … 1: ValueError: 1 inputs for 2 samples"):
        short.read(np.array([0, 1]))


class Random(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, place):
        return torch.rand(3), place


def test_random_transforms_are_noticed():
    with pytest.raises(DataError, match="gives a different sample 0 each time: turn off its random transforms"):
        DatasetSource(Random())


def test_fingerprints():
    def made(inputs=INPUTS, targets=TARGETS, **options):
        return DatasetSource(TensorDataset(inputs, targets), **options).fingerprint()

    assert made() == made()
    changed = INPUTS.clone()
    changed[6, 0, 0, 0] += 1
    others = [made(changed), made(targets=TARGETS.flip(0)), made(ids=[*"abcdefghij"]), made(name="x"), made(name="y")]
    assert len({made(), *others}) == 6
    assert made(name="x") == made(changed, name="x"), "the user vouches for it"


def test_one_thread_at_a_time_unless_it_is_said():
    class Alone(Listed):
        inside = most = 0

        def __getitem__(self, place):
            self.inside += 1
            self.most = max(self.most, self.inside)
            threading.Event().wait(0.002)
            self.inside -= 1
            return super().__getitem__(place)

    class Together(Listed):
        def __getitem__(self, place):
            if threading.current_thread() is not threading.main_thread():
                meeting.wait()  # nobody goes on before all three are here
            return super().__getitem__(place)

    def read_by_three(dataset, **options):
        source = DatasetSource(dataset, name="watched", **options)
        with ThreadPoolExecutor(3) as pool:
            return [batch.result() for batch in [pool.submit(whole, source) for _ in range(3)]]

    meeting, listed = threading.Barrier(3, timeout=60), list(zip(INPUTS, TARGETS, strict=True))
    alone = Alone(listed)
    read_by_three(alone)
    assert alone.most == 1
    assert all(torch.equal(batch.inputs, INPUTS) for batch in read_by_three(Together(listed), threads=True))


class Telling(Dataset):
    """Says which process reads, and fails at place 7."""

    def __len__(self):
        return 10

    def __getitem__(self, place):
        if place == 7:
            raise OSError("seven is gone")
        assert get_worker_info() is not None
        return {"x": INPUTS[place], "y": TARGETS[place], "process": os.getpid()}


def test_worker_processes_read_and_name_what_fails():
    before = torch.get_rng_state()
    loader = DataLoader(Telling(), 4, num_workers=2)
    source = LoaderSource(loader, inputs="x", targets="y", metadata=["process"], name="telling")
    batch = source.read(np.array([0, 1, 2, 9, 8]))
    assert torch.equal(batch.inputs, INPUTS[[0, 1, 2, 9, 8]])
    processes = set(batch.metadata["process"].tolist())
    assert len(processes) == 2
    assert os.getpid() not in processes
    again = source.read(np.array([3, 4]))
    assert set(again.metadata["process"].tolist()) == processes, "they stay"
    with pytest.raises(BadSample, match=r"sample 7 .*OSError: seven is gone") as told:
        source.read(np.array([6, 7]))
    assert told.value.sample == "7"
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"drop_last": True},
        {"collate_fn": lambda samples: tuple(map(torch.stack, zip(*samples, strict=True)))},
    ],
)
def test_a_loader_is_read_in_the_order_of_its_data_set(options):
    source = LoaderSource(DataLoader(TensorDataset(INPUTS, TARGETS), 4, **options))
    batch = whole(source)
    assert torch.equal(batch.inputs, INPUTS)
    assert batch.targets.tolist() == TARGETS.tolist()
    told = {"shuffle": "the loader shuffles", "drop_last": "the loader drops the last batch"}
    assert [remark.partition(";")[0] for remark in source.remarks] == [told[key] for key in options if key in told]
    assert source.fingerprint() == DatasetSource(TensorDataset(INPUTS, TARGETS)).fingerprint()


@pytest.mark.parametrize(
    ("options", "chooser"),
    [
        ({"sampler": SubsetRandomSampler([1, 2])}, "SubsetRandomSampler"),
        ({"sampler": WeightedRandomSampler([1.0] * 10, 10)}, "WeightedRandomSampler"),
        ({"sampler": RandomSampler(range(10), replacement=True)}, "RandomSampler"),
        ({"batch_sampler": [[0, 1], [2]]}, "list"),
        ({"batch_size": None}, "NoneType"),
    ],
)
def test_loaders_that_choose_are_refused(options, chooser):
    with pytest.raises(ConfigError, match=f"the loader's {chooser} chooses or groups samples.*Subset"):
        LoaderSource(DataLoader(TensorDataset(INPUTS, TARGETS), **options))
    with pytest.raises(ConfigError, match="expected a torch DataLoader, got list"):
        LoaderSource([1, 2])


def test_a_subset_is_the_way_to_choose():
    chosen = Subset(TensorDataset(INPUTS, TARGETS), [8, 3])
    assert torch.equal(whole(LoaderSource(DataLoader(chosen))).inputs, INPUTS[[8, 3]])


def test_a_data_set_is_as_good_as_its_arrays():
    mine, arrays = whole(DatasetSource(TensorDataset(INPUTS, TARGETS))), whole(ArraySource(INPUTS, TARGETS))
    assert (mine.ids, mine.targets.tolist()) == (arrays.ids, arrays.targets.tolist())
    assert torch.equal(mine.inputs, arrays.inputs)


class Deadly(Telling):
    def __getitem__(self, place):
        if place == 3:
            os._exit(3)
        return super().__getitem__(place)


class Unsendable(Telling):
    def __getitem__(self, place):
        return {**super().__getitem__(place), "extra": (lambda: place) if place == 4 else 0}


def test_a_worker_that_dies_is_said():
    source = DatasetSource(Deadly(), inputs="x", targets="y", name="deadly", workers=1)
    with pytest.raises(DataError, match=r"the worker processes cannot read the data set: .*exited"):
        source.read(np.array([2, 3]))


def test_a_sample_that_cannot_be_sent_is_named():
    source = DatasetSource(Unsendable(), inputs="x", targets="y", name="unsendable", workers=1)
    with pytest.raises(BadSample, match="cannot be sent from its worker process") as told:
        source.read(np.array([3, 4]))
    assert told.value.sample == "4"
