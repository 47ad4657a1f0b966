"""What is sent to other processes: sources and models that are open here are opened again there."""

import io
import pickle
import threading
import zipfile
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from tests.engines import helpers
from weakspot import Subject
from weakspot.attacks import Attacked, Fgsm
from weakspot.core.digest import digest_file
from weakspot.data.sources import ArraySource, DatasetSource, ImageZip
from weakspot.engines.travelling import cannot_travel, made_again, unmade, unpicklable, users_modules
from weakspot.models import load_exported


def again(source):
    return pickle.loads(pickle.dumps(source))


def equal(first, second):
    one, other = (source.read(np.arange(len(source.ids))) for source in (first, second))
    same = torch.equal(one.inputs, other.inputs) and one.ids == other.ids
    return same and first.fingerprint() == second.fingerprint()


def test_a_memory_mapped_file_travels_by_its_path(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((2000, 30), dtype=np.float32))
    source = ArraySource.npy(tmp_path / "x.npy")
    assert len(pickle.dumps(source)) < 30_000
    assert equal(source, again(source))
    assert isinstance(again(source)._inputs, np.memmap)


def test_an_archive_is_opened_again(tmp_path):
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for number in range(4):
            held = io.BytesIO()
            Image.fromarray(np.full((8, 8, 3), number * 10, np.uint8)).save(held, "png")
            archive.writestr(f"class{number % 2}/{number}.png", held.getvalue())
    source = ImageZip(tmp_path / "images.zip")
    assert equal(source, again(source))


def test_a_data_set_that_is_asked_by_one_thread_at_a_time():
    source = DatasetSource(TensorDataset(torch.rand(6, 3), torch.arange(6)))
    assert equal(source, again(source))


def test_an_attacked_set_is_not_made_again_and_leaves_the_model_behind():
    net = torch.nn.Linear(3, 2)
    source = ArraySource(np.random.default_rng(0).random((8, 3), dtype=np.float32), np.arange(8) % 2)
    attacked = Attacked(source, Subject(net, scores="logits", bounds=(0, 1)), Fgsm(epsilon=0.1))
    there = again(attacked)
    assert there._subject is None
    assert equal(attacked, there)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_an_exported_model_is_read_again_and_gets_its_weights(tmp_path):
    model, inputs = load_exported(helpers.exported(tmp_path, free=True)), torch.rand(4, 3)
    model.load_state_dict({name: values + 1.0 for name, values in model.state_dict().items()})  # trained further
    assert torch.equal(made_again(again(unmade(model)))(inputs), model(inputs))


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
def test_an_exported_model_of_a_fixed_batch_size_is_read_again(tmp_path):
    model, inputs = load_exported(helpers.exported(tmp_path, free=False)), torch.rand(4, 3)
    assert torch.equal(again(model)(inputs), model(inputs))


def test_the_innermost_part_that_cannot_travel_is_found():
    lock = threading.Lock()
    thing = {"deep": [1, partial(print, lock)]}
    path, item, _ = unpicklable("it", thing, pickle.dumps)
    assert path == "it['deep'][1].args[0]"
    assert item is lock
    assert unpicklable("it", {"plain": 1}, pickle.dumps) is None


def test_what_a_function_holds_is_looked_through():
    lock = threading.Lock()

    def preprocess(images):
        with lock:
            return images

    cloudpickle = pytest.importorskip("ray.cloudpickle")
    subject = Subject(torch.nn.Identity(), preprocess=preprocess)
    path, item, _ = unpicklable("the model", subject, cloudpickle.dumps)
    assert path == "the model._preprocess:lock"
    assert item is lock


def test_the_message_says_what_to_do():
    told = str(cannot_travel("the data", {"a": threading.Lock()}, pickle.dumps, TypeError("first")))
    assert told.startswith("the data cannot be sent to Ray's workers: the data['a'] is a _thread.lock")
    assert "__getstate__" in told
    assert "engine local" in told


def test_the_users_own_modules_are_told_from_installed_ones():
    found = users_modules()
    assert helpers in found
    assert not {torch, np, pickle, digest_file.__module__} & {*found, *(module.__name__ for module in found)}
