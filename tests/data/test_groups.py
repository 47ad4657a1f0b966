"""Samples that belong together: where the groups come from, what keeps them, and what suggests them."""

import re

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from weakspot.attacks import attacked
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, groups_of, limited
from weakspot.core.subject import Subject
from weakspot.data.groups import suggested_groups
from weakspot.data.sources import ArraySource, DatasetSource, Grouped, WithMetadata
from weakspot.repair import CachedSource, held_out

TRACKS = ["a", "b", "a", "c", "b", "a"]


def images(count=6, ids=None, **metadata):
    return ArraySource(
        np.arange(count * 4, dtype=np.float32).reshape(count, 1, 2, 2) / 100,
        np.arange(count) % 2,
        ids=ids or [f"n{number}" for number in range(count)],
        metadata=metadata,
    )


class Frames(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, place):
        return {"image": torch.full((1, 2, 2), place / 10), "label": place % 2, "track": TRACKS[place]}


@pytest.mark.parametrize(
    "source",
    [
        lambda: Grouped(images(track=TRACKS), "track"),
        lambda: Grouped(images(), TRACKS),
        lambda: Grouped(WithMetadata(images(), {"id": [f"n{i}" for i in range(6)], "track": TRACKS}), "track"),
        lambda: Grouped(DatasetSource(Frames(), inputs="image", targets="label", metadata=["track"]), "track"),
    ],
)
def test_groups_come_from_metadata_or_by_themselves(source):
    grouped = source()
    assert groups_of(grouped).names.tolist() == TRACKS
    assert groups_of(grouped).count == 3
    assert grouped.read(np.array([3])).targets.tolist() == [1]


def test_what_is_made_of_a_source_keeps_its_groups():
    grouped = Grouped(images(track=TRACKS), "track")
    assert groups_of(Subset(grouped, [5, 1])).names.tolist() == ["a", "b"]
    assert len(groups_of(limited(grouped, 4)).names) == 4
    assert groups_of(CachedSource(grouped)).names.tolist() == TRACKS
    subject = Subject(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)), scores="logits", bounds=(0, 1))
    made = attacked(grouped, subject, {"attack": "fgsm", "epsilon": 0.1})
    assert groups_of(made).names.tolist() == TRACKS
    assert made.outcome.groups.names.tolist() == TRACKS
    assert groups_of(images()) is None


def test_the_fingerprint_knows_the_groups():
    prints = {Grouped(images(), names).fingerprint() for names in (TRACKS, TRACKS[::-1])}
    assert len({*prints, images().fingerprint()}) == 3


def test_wrong_groups_are_refused_by_name():
    with pytest.raises(ConfigError, match=r"group is 'trak'.*did you mean 'track'"):
        Grouped(images(track=TRACKS), "trak")
    with pytest.raises(DataError, match=r"sample 'n1' has no track \(2 of 6 have none\): give each"):
        Grouped(images(track=["a", "", "b", "b", "", "a"]), "track")
    with pytest.raises(DataError, match="one group per sample"):
        Grouped(images(), ["a", "b"])


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (images(track=TRACKS), "column 'track'"),
        (images(patient_id=TRACKS), "column 'patient_id'"),
        (images(ids=[f"film{n // 3}_{n:04d}.png" for n in range(6)]), "ids begin alike.*'film0'"),
        (images(ids=[f"x/{n // 2:05d}_{n:05d}.ppm" for n in range(6)]), "'x/00000'"),
        (images(90, ids=[f"train/{chr(65 + n // 3)}da Lovelace_{n}.jpg" for n in range(90)]), "'train/Ada Lovelace'"),
        (images(90, ids=[f"{n // 9:02d}/n{n // 9:08d}_{n}.jpg" for n in range(90)]), None),
        (images(ids=[f"cat_{n}.jpg" if n % 2 else f"dog_{n}.jpg" for n in range(6)]), None),
        (images(ids=[f"img_{n:04d}.png" for n in range(6)]), None),
        (images(ids=[f"{n:04d}" for n in range(6)]), None),
        (images(ids=[f"cat{n}" for n in range(6)]), None),
        (images(track=[f"t{n}" for n in range(6)]), None),
        (images(brightness=[1, 1, 2, 2, 3, 3]), None),
        (Grouped(images(track=TRACKS), "track"), None),
    ],
)
def test_what_suggests_groups_is_named(source, named):
    if named is None:
        assert suggested_groups(source) == ""
    else:
        assert re.search(named, suggested_groups(source))


def test_held_out_samples_share_no_group_with_the_others():
    names = [f"g{number % 9}" for number in range(90)]
    source = images(90, track=names)
    for seed in range(5):
        rest, judged = held_out(Grouped(source, "track"), 0.3, seed=seed)
        assert not set(rest.groups.names) & set(judged.groups.names)
        assert len(judged.ids) == 30 and len(rest.ids) == 60
    plain, _ = held_out(source, 0.3)
    assert plain.groups is None and len(plain.ids) == 63
    with pytest.raises(DataError, match="all samples belong to 'one'"):
        held_out(Grouped(source, ["one"] * 90), 0.3)
