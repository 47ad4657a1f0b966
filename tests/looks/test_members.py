"""Samples from anywhere: ensembles, stored volumes, flips and sliding windows, each against the plain way."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from weakspot.core.driver import examine
from weakspot.core.errors import BadSample, ConfigError, DataError, SubjectError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.look import Original
from weakspot.core.needs import Needs
from weakspot.core.probe import Probe, Rows
from weakspot.core.subject import Subject
from weakspot.data.arrays import ArraySource
from weakspot.looks import Ensemble, Flips, McDropout, Members, SlidingWindow, StoredSamples, sampling
from weakspot.looks.dropout import StatelessDropout

SHAPE = (4, 5, 6)


def net(seed, dropout=False):
    torch.manual_seed(seed)
    layers = [nn.Conv3d(1, 3, 3, padding=1), nn.ReLU(), *([nn.Dropout3d(0.5)] if dropout else []), nn.Conv3d(3, 2, 1)]
    return nn.Sequential(*layers).eval()


def volumes(count=3):
    return torch.randn((count, 1, *SHAPE), generator=torch.Generator().manual_seed(1))


class Draws(Probe):
    """Keeps every look at every sample."""

    tasks = ("segmentation",)
    look: object
    samples: int = 2

    kept = Rows()

    @property
    def needs(self):
        return Needs(looks={self.look: self.samples})

    def observe(self, seen):
        self.kept.append(seen.ids, number=np.full(len(seen.ids), seen.number), output=seen.probabilities.numpy())

    def finish(self) -> Finding:
        rows = self.kept.read()
        return self.finding(arrays={"number": np.asarray(rows["number"]), "output": np.asarray(rows["output"])})


def draws(subject, look, samples, inputs=None, batch_size=2):
    """By look and sample, (samples, volumes, classes, …)."""
    source = ArraySource(volumes().numpy() if inputs is None else inputs, ids=["a", "b", "c"])
    probe = Draws(look=look, samples=samples)
    finding = examine(subject, source, [probe], execution=ExecutionOptions(batch_size=batch_size))[0]
    numbers, outputs = finding.arrays["number"], finding.arrays["output"]
    return np.stack([outputs[numbers == number + look.first] for number in range(samples)])


def test_members_are_looked_at_one_after_another():
    members = [net(seed) for seed in range(3)]
    subject = Subject(Ensemble(members), task="segmentation", scores="logits")
    found = draws(subject, Members(), 3)
    with torch.no_grad():
        expected = torch.stack([member(volumes()).softmax(1) for member in members])
        mean = torch.stack([member(volumes()) for member in members]).mean(0)
        assert torch.allclose(Ensemble(members)(volumes()), mean, atol=1e-6)
    assert np.allclose(found, expected, atol=1e-6)
    assert not np.allclose(found[0], found[1])


def test_what_cannot_be_sampled_by_members():
    subject = Subject(Ensemble([net(0), net(1)]), task="segmentation", scores="logits")
    with pytest.raises(SubjectError, match="sample 3 was asked for, and there are 2 members"):
        draws(subject, Members(), 3)
    with pytest.raises(SubjectError, match="the model has no members"):
        draws(Subject(net(0), task="segmentation", scores="logits"), Members(), 2)
    with pytest.raises(ConfigError, match="two members or more"):
        Ensemble([net(0)])
    odd = nn.Sequential(net(0), Pair())
    with pytest.raises(SubjectError, match="only tensors have a mean"):
        Ensemble([odd, odd])(volumes())


class Pair(nn.Module):
    def forward(self, inputs):
        return inputs, inputs


def store(folder, case, values, key="probabilities"):
    folder.mkdir(exist_ok=True)
    np.savez_compressed(folder / f"{case}.npz", **{key: values})


def stored(tmp_path, folds=3, key="probabilities", dtype=np.float16):
    probabilities = np.random.default_rng(0).dirichlet([1, 1], (folds, 3, *SHAPE)).transpose(0, 1, 5, 2, 3, 4)
    folders = [tmp_path / f"fold_{number}" for number in range(folds)]
    for folder, own in zip(folders, probabilities, strict=True):
        for case, values in zip("abc", own, strict=True):
            store(folder, case, values.astype(dtype), key)
    return folders, probabilities


@pytest.mark.parametrize("key", ["probabilities", "softmax"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_stored_volumes_stand_for_a_network(tmp_path, key, batch_size):
    folders, probabilities = stored(tmp_path, key=key)
    samples = StoredSamples(folders)
    assert samples.cases() == ("a", "b", "c")
    found = draws(samples.subject(names=["background", "lesion"]), Members(), 3, batch_size=batch_size)
    assert np.array_equal(found, probabilities.astype(np.float16).astype(np.float32))


def test_stored_volumes_are_known_by_their_content(tmp_path):
    folders, probabilities = stored(tmp_path, folds=2)
    first = StoredSamples(folders).fingerprint()
    assert StoredSamples(folders).fingerprint() == first != StoredSamples(folders[::-1]).fingerprint()
    store(folders[0], "b", probabilities[1, 0])
    assert StoredSamples(folders).fingerprint() != first


def test_nobody_answers_where_no_sample_is_asked_for(tmp_path):
    folders, _ = stored(tmp_path)
    with pytest.raises(SubjectError, match="NaN"):
        draws(StoredSamples(folders).subject(), Original(), 1)
    with pytest.raises(SubjectError, match="flips mean nothing"):
        draws(StoredSamples(folders).subject(), Flips((0,), Members()), 2)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "b.npz").unlink(), "case b has no stored sample .*save_probabilities"),
        (lambda f: (f / "b.npz").write_bytes(b"PK"), "case b: .*b.npz cannot be read"),
        (lambda f: (f / "b.npz").write_bytes((f / "b.npz").read_bytes()[:-40]), "case b: .*b.npz cannot be read"),
        (lambda f: store(f, "b", np.full((2, *SHAPE), 0.5), "logits"), "case b: .*has logits, expected probabilities"),
        (lambda f: store(f, "b", np.full((2, 4, 5, 5), 0.5)), r"shape \(2, 4, 5, 5\), expected \(2, 4, 5, 6\)"),
        (lambda f: store(f, "b", np.full((2, *SHAPE), 0.6)), "no probabilities that sum to 1"),
        (lambda f: store(f, "b", np.full((2, *SHAPE), np.nan)), "no probabilities that sum to 1"),
        (lambda f: store(f, "b", np.stack([np.full(SHAPE, 1.5), np.full(SHAPE, -0.5)])), "no probabilities"),
    ],
)  # fmt: skip
def test_damaged_stored_volumes_are_named_by_their_case(tmp_path, damage, message):
    folders, _ = stored(tmp_path)
    damage(folders[1])
    with pytest.raises(BadSample, match=message) as caught:
        draws(StoredSamples(folders).subject(), Members(), 3)
    assert caught.value.sample == "b"


def test_stored_samples_that_are_none(tmp_path):
    folders, _ = stored(tmp_path)
    for wrong, message in [
        ([], "a list of folders"),
        ([tmp_path / "no"] * 2, "no folder"),
    ]:
        with pytest.raises((ConfigError, DataError), match=message):
            StoredSamples(wrong)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SubjectError, match="holds no stored samples"):
        StoredSamples([tmp_path / "empty", folders[0]]).fingerprint()


def test_one_folder_is_one_look_and_tells_its_classes(tmp_path):
    folders, probabilities = stored(tmp_path, folds=1)
    for folder in (folders[0], str(folders[0]), folders):
        found = draws(StoredSamples(folder).subject(), Members(), 1)
        assert np.array_equal(found, probabilities.astype(np.float16).astype(np.float32))
    for case in "abc":
        store(folders[0], case, np.full((3, *SHAPE), 1 / 3))
    assert StoredSamples(folders).classes == 3 and StoredSamples(folders).shape(folders[0], "a") == (3, *SHAPE)


def test_flips_are_undone_on_the_output():
    """All eight, against flipping by hand; and a network that is blind to direction gives one answer eight times."""
    subject = Subject(net(0), task="segmentation", scores="logits")
    found = draws(subject, Flips(), 8)
    expected = []
    with torch.no_grad():
        for axes in [s for n in range(4) for s in itertools.combinations((2, 3, 4), n)]:
            expected.append(net(0)(volumes().flip(axes)).softmax(1).flip(axes).numpy())
    for one in expected:
        assert sum(np.allclose(one, other, atol=1e-6) for other in found) == 1
    pointwise = nn.Conv3d(1, 2, 1)
    same = draws(Subject(pointwise, task="segmentation", scores="logits"), Flips(), 8)
    assert np.allclose(same, same[:1], atol=1e-6)


def test_flips_of_dropout_and_of_members():
    wet = Subject(net(0, dropout=True), task="segmentation", scores="logits")
    found = draws(wet, Flips((0,), McDropout(5)), 4)
    with torch.no_grad(), StatelessDropout(("a", "b", "c"), 5, 2):
        expected = net(0, dropout=True)(volumes().flip(2)).softmax(1).flip(2).numpy()
    assert np.allclose(found[3], expected, atol=1e-6)  # the second draw, flipped
    members = [net(0), net(1)]
    found = draws(Subject(Ensemble(members), task="segmentation", scores="logits"), Flips((0, 1), Members()), 8)
    with torch.no_grad():
        assert np.allclose(found[4], members[1](volumes()).softmax(1).numpy(), atol=1e-6)


def test_what_cannot_be_flipped():
    subject = Subject(net(0), task="segmentation", scores="logits")
    with pytest.raises(SubjectError, match="flips along 1 axes give 2"):
        draws(subject, Flips((0,)), 3)
    with pytest.raises(SubjectError, match="the inputs have 3 spatial ones"):
        draws(subject, Flips((3,)), 2)
    with pytest.raises(ConfigError, match="different spatial axes"):
        Flips((1, 1))
    with pytest.raises(SubjectError, match="flips are for segmentation"):
        Flips().outputs(lambda x: x.flatten(1), volumes(), ("a",), 1)


@pytest.mark.parametrize("size", [(3, 3, 3), (4, 5, 6), (2, 5, 4), (6, 5, 9)])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.75])
def test_a_window_gives_what_the_whole_gives_where_the_network_sees_one_voxel(size, overlap):
    pointwise = nn.Conv3d(1, 2, 1)
    with torch.no_grad():
        windowed = SlidingWindow(size, overlap)(pointwise, volumes())
        assert torch.allclose(windowed, pointwise(volumes()), atol=1e-5)


def test_windows_are_joined_by_the_gaussian():
    """Two windows of 4 on a line of 6, by hand."""
    window = SlidingWindow((4,), 0.5, sigma=0.25)
    line = torch.arange(6.0).reshape(1, 1, 6)
    calls = []

    def model(part):
        calls.append(part)
        return torch.full_like(part, float(len(calls)))

    joined = window(model, line)[0, 0]
    weight = np.exp(-(((np.arange(4) - 1.5) / (0.25 * 4)) ** 2) / 2)
    assert [call.flatten().tolist() for call in calls] == [[0, 1, 2, 3], [2, 3, 4, 5]]
    shared = [(weight[2 + i] * 1 + weight[i] * 2) / (weight[2 + i] + weight[i]) for i in range(2)]
    assert joined.tolist() == pytest.approx([1, 1, *shared, 2, 2])


@pytest.mark.parametrize(("length", "side", "overlap"), [(110, 64, 0.5), (64, 64, 0.5), (100, 9, 0.3), (7, 3, 0.9)])
def test_windows_cover_everything_and_overlap_enough(length, side, overlap):
    starts = SlidingWindow((side,), overlap)._starts(length, side)
    assert starts[0] == 0 and starts[-1] == length - side
    assert all(after - before <= max(1, side * (1 - overlap)) + 1 for before, after in itertools.pairwise(starts))


def test_dropout_and_members_through_a_window():
    window = SlidingWindow((4, 4, 4))
    subject = Subject(net(0, dropout=True), task="segmentation", scores="logits", forward=window)
    together = draws(subject, McDropout(), 2, batch_size=3)
    assert np.allclose(together, draws(subject, McDropout(), 2, batch_size=1), atol=1e-6)
    assert not np.allclose(together[0], together[1])
    both = Subject(Ensemble([net(0), net(1)]), task="segmentation", scores="logits", forward=window)
    with torch.no_grad():
        alone = window(net(1), volumes()).softmax(1)
    assert np.allclose(draws(both, Members(), 2)[1], alone, atol=1e-6)


def test_windows_that_cannot_be():
    for wrong in [((0,), 0.5), ((4,), 1.0), ((4,), -0.1), ((), 0.5)]:
        with pytest.raises(ConfigError, match="window sizes"):
            SlidingWindow(*wrong)
    with pytest.raises(SubjectError, match="has 2 axes, the inputs 3"):
        SlidingWindow((4, 4))(net(0), volumes())
    with pytest.raises(SubjectError, match="a segmentation on the grid of its input"):
        SlidingWindow((4, 4, 4))(nn.Flatten(), volumes())


def test_samplings_as_a_configuration_writes_them():
    assert sampling("members") == Members() and sampling("flips") == Flips()
    assert sampling({"flips": [2], "of": "dropout"}, seed=4) == Flips((2,), McDropout(4))
    assert sampling(Members()) == Members()
    for wrong in ["dropuot", 3, {"flips": "z"}, {"flips": [0], "of": "flips"}, {"flip": [0]}, {"flips": []}, None]:
        with pytest.raises(ConfigError, match="expected"):
            sampling(wrong)
    with pytest.raises(ConfigError, match="did you mean 'dropout'"):
        sampling("dropuot")
