"""Volumes and stored samples as nnU-Net, MONAI and BIDS lay them out, from the file on."""

import nibabel
import numpy as np
import pytest
import torch
from torch import nn

from tests.data.niftis import affine, data_set, save
from weakspot import Subject
from weakspot.asking.config import Config, SubjectEntry
from weakspot.asking.loading import load, load_subject
from weakspot.asking.session import answered, prepare
from weakspot.cli.init import begin, summary_lines
from weakspot.core.errors import BadSample, ConfigError, DataError, SubjectError
from weakspot.data.nifti import NiftiFolder
from weakspot.lesions.export import export_cases
from weakspot.lesions.probes import Lesions
from weakspot.looks import ReversedAxes, SlidingWindow

SHAPE = (6, 7, 8)
ASK = {"lesions": {"sampling": "members", "smallest": 1}}
SUBJECT = {"model": "weakspot.looks:StoredSamples", "task": "segmentation", "scores": "probabilities"}


def softmax(shape, seed, classes=2):
    """Random probabilities (classes, z, y, x) for a file of this shape (x, y, z)."""
    drawn = np.random.default_rng(seed).dirichlet([0.3] * classes, shape[::-1])
    return np.moveaxis(drawn, -1, 0).astype(np.float16)


def stored(folder, cases=("a", "b"), folds=2, shape=SHAPE, classes=2):
    made = {}
    for fold in range(folds):
        place = folder / f"fold_{fold}"
        place.mkdir()
        for number, case in enumerate(cases):
            made[fold, case] = softmax(shape, 10 * fold + number, classes)
            np.savez_compressed(place / f"{case}.npz", probabilities=made[fold, case])
    return made


def config(folder, *, folders=None, data=None, ask=None, **more):
    names = [str(path) for path in sorted(folder.glob("fold_*"))] if folders is None else folders
    subject = {**SUBJECT, "arguments": {"folders": names}}
    return Config.model_validate({"subject": subject, "data": data or {"test": "set"}, "ask": ask or ASK, **more})


def examined(folder, asked):
    loaded, planned = prepare(asked, folder)
    run, findings = answered(planned, loaded.subject, loaded.data, folder / "run", execution=asked.execution)
    return run, {finding.name: finding for finding in findings}


# nnU-Net


def test_class_names_and_looks_follow_from_the_files(tmp_path):
    data_set(tmp_path / "set")
    stored(tmp_path, folds=3)
    asked = config(tmp_path)
    assert load(asked, tmp_path).subject.classes == ("background", "lesion")
    (probe,) = (step.build({}) for step in prepare(asked, tmp_path)[1].steps if step.probe is Lesions)
    assert probe.looks == 3
    (probe,) = (
        step.build({}) for step in prepare(config(tmp_path, folders=str(tmp_path / "fold_0")), tmp_path)[1].steps
        if step.probe is Lesions
    )  # fmt: skip
    assert probe.looks == 1
    fewer = config(tmp_path, ask={"lesions": {**ASK["lesions"], "looks": 2}})
    assert next(s for s in prepare(fewer, tmp_path)[1].steps if s.probe is Lesions).options["looks"] == 2


def test_predictions_of_another_task_are_refused(tmp_path):
    data_set(tmp_path / "set")
    stored(tmp_path, classes=3)
    with pytest.raises(ConfigError, match="stored samples have 3 classes, and the data name 2"):
        load(config(tmp_path), tmp_path)


def test_one_folder_of_averages_has_lesions_without_variance(tmp_path):
    data_set(tmp_path / "set")
    stored(tmp_path, folds=1)
    _, findings = examined(tmp_path, config(tmp_path, folders=str(tmp_path / "fold_0")))
    table = findings["lesions.lesions"].table
    assert table.num_rows and not table["variance"].to_numpy().any() and table["entropy"].to_numpy().all()


def test_cases_may_be_oriented_differently_where_no_network_sees_them(tmp_path):
    data_set(tmp_path / "set")
    for path in (tmp_path / "set").glob("*Tr/b*"):
        image = nibabel.load(path)
        save(path, np.asarray(image.dataobj), affine(axes="LPS"))
    stored(tmp_path)
    run, findings = examined(tmp_path, config(tmp_path))
    assert findings["lesions.lesions"].summary["cases"].value == 2
    with pytest.raises(BadSample, match="case b is oriented LPS"):
        NiftiFolder(tmp_path / "set").read(np.array([1]))
    loaded = load(config(tmp_path), tmp_path)
    export_cases(run["lesions.lesions"], loaded.subject, loaded.data["test"], tmp_path / "out",
                 sampling=Lesions(**prepare(config(tmp_path), tmp_path)[1].steps[0].options).case_sampling)  # fmt: skip
    assert nibabel.load(tmp_path / "out" / "b" / "lesions.nii.gz").affine[0, 0] == -1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "fold_1" / "b.npz").write_bytes(b""), r"case b: .*fold_1.b.npz cannot be read"),
        (lambda f: (f / "fold_1" / "b.npz").unlink(), "case b has no stored sample .*--save_probabilities"),
        (lambda f: np.savez(f / "fold_1" / "b.npz", logits=np.ones(3)), "has logits, expected probabilities"),
        (
            lambda f: np.savez(f / "fold_1" / "b.npz", probabilities=softmax(SHAPE[::-1], 1)),
            r"shape \(2, 6, 7, 8\), expected \(2, 8, 7, 6\)",
        ),
        (lambda f: (f / "set" / "labelsTr" / "b.nii.gz").unlink(), "case b has no mask"),
        (lambda f: (f / "set" / "imagesTr" / "b_0001.nii.gz").unlink(), "case b has no sequence 0001"),
    ],
)
def test_every_file_is_checked_first_and_what_cannot_be_used_can_be_left_out(tmp_path, monkeypatch, damage, message):
    data_set(tmp_path / "set", cases=("a", "b", "c"))
    stored(tmp_path, cases=("a", "b", "c"))
    damage(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(NiftiFolder, "read", lambda *_: pytest.fail("a volume was read before all files were checked"))
        with pytest.raises(BadSample, match=message):
            prepare(config(tmp_path), tmp_path)
    run, findings = examined(tmp_path, config(tmp_path, execution={"on_bad_sample": "skip"}))
    assert findings["lesions.lesions"].arrays["cases"].tolist() == ["a", "c"]
    assert list(run.manifest()["data"]["test"]["skipped"]) == ["b"]


def test_a_softmax_that_is_none_is_left_out_too(tmp_path):
    data_set(tmp_path / "set", cases=("a", "b"))
    stored(tmp_path)
    np.savez(tmp_path / "fold_0" / "a.npz", probabilities=np.full((2, *SHAPE[::-1]), 0.7))
    _, findings = examined(tmp_path, config(tmp_path, execution={"on_bad_sample": "skip"}))
    assert findings["lesions.lesions"].arrays["cases"].tolist() == ["b"]


def test_every_bad_case_is_named_at_once(tmp_path):
    data_set(tmp_path / "set", cases=("a", "b", "c"))
    stored(tmp_path, cases=("b",))
    with pytest.raises(BadSample, match=r"case a has no stored.*\(2 of 3 cases of test cannot be used: a, c\)"):
        prepare(config(tmp_path), tmp_path)


def test_a_segmentation_beside_the_softmax_must_agree_with_it(tmp_path):
    data_set(tmp_path / "set")
    made = stored(tmp_path)
    right = made[1, "a"].argmax(0).transpose().astype(np.uint8)
    save(tmp_path / "fold_1" / "a.nii.gz", right, affine())
    prepare(config(tmp_path), tmp_path)
    save(tmp_path / "fold_1" / "a.nii.gz", right[::-1], affine())
    with pytest.raises(BadSample, match=r"\d\d% of the lesion voxels of .*a.nii.gz have another class"):
        prepare(config(tmp_path), tmp_path)


# BIDS, and other shapes of files


def bids(folder, cases=("sub-01", "sub-02_ses-pre"), shape=SHAPE):
    rng, made = np.random.default_rng(0), {}
    for case in cases:
        places = [*case.split("_"), "anat"]
        for name in ("FLAIR", "T1w"):
            made[case, name] = rng.normal(100, 20, shape).astype(np.float32)
            save(folder.joinpath(*places) / f"{case}_{name}.nii.gz", made[case, name], affine())
        made[case, "mask"] = (rng.random(shape) > 0.8).astype(np.uint8)
        masks = (folder / "derivatives" / "raters").joinpath(*places)
        save(masks / f"{case}_space-orig_desc-lesion_mask.nii.gz", made[case, "mask"], affine())
        save(masks / f"{case}_desc-brain_mask.nii.gz", np.ones(shape, dtype=np.uint8), affine())
    return made


def test_a_bids_data_set_with_masks_among_its_derivatives(tmp_path):
    made = bids(tmp_path / "set")
    source = NiftiFolder(tmp_path / "set")
    assert source.ids == ("sub-01", "sub-02_ses-pre")
    for position, case in enumerate(source.ids):
        batch = source.read(np.array([position]))
        for channel, name in enumerate(("FLAIR", "T1w")):
            assert np.array_equal(batch.inputs[0, channel], made[case, name].transpose())
        assert np.array_equal(batch.targets[0], made[case, "mask"].transpose())
    assert "sequences 0 FLAIR, 1 T1w" in source.remarks
    assert NiftiFolder(tmp_path / "set", sequences=[1], cases=["sub-01"]).read(np.array([0])).inputs.shape[1] == 1
    stored(tmp_path, cases=source.ids)
    assert load(config(tmp_path), tmp_path).data["test"].ids == source.ids


def test_bids_sequences_and_masks_that_some_cases_lack(tmp_path):
    bids(tmp_path / "set")
    (tmp_path / "set" / "sub-01" / "anat" / "sub-01_T1w.nii.gz").unlink()
    source = NiftiFolder(tmp_path / "set")
    assert source.sequences == (0,) and any("left out" in remark and "T1w" in remark for remark in source.remarks)
    mask = next((tmp_path / "set" / "derivatives").rglob("sub-01*lesion_mask.nii.gz"))
    mask.unlink()
    with pytest.raises(BadSample, match="case sub-01 has no mask"):
        source = NiftiFolder(tmp_path / "set")
        source.check_files("sub-01")
    save(mask.with_name("sub-02_ses-pre_desc-lesion2_mask.nii.gz"), np.zeros(SHAPE, np.uint8), affine())
    save(mask.with_name("sub-01_dseg.nii.gz"), np.zeros(SHAPE, np.uint8), affine())
    with pytest.raises(DataError, match="sub-02_ses-pre has several masks"):
        NiftiFolder(tmp_path / "set")


def test_a_slice_and_a_volume_with_an_axis_of_one(tmp_path):
    rng = np.random.default_rng(0)
    flat, long = rng.random((5, 4), np.float32), rng.random((5, 4, 3, 1), np.float32)
    image = nibabel.Nifti1Image(flat, None)
    image.header["sform_code"], image.header["srow_x"], image.header["srow_y"] = 1, [2, 0, 0, 0], [0, 3, 0, 0]
    (tmp_path / "flat" / "imagesTr").mkdir(parents=True)
    nibabel.save(image, tmp_path / "flat" / "imagesTr" / "a_0000.nii.gz")
    save(tmp_path / "long" / "imagesTr" / "a_0000.nii.gz", long, affine((1, 2, 3)))
    batch = NiftiFolder(tmp_path / "flat").read(np.array([0]))
    assert np.array_equal(batch.inputs[0, 0, 0], flat.transpose())
    assert [batch.metadata[f"spacing_{axis}"][0] for axis in "zyx"] == [1, 3, 2]
    batch = NiftiFolder(tmp_path / "long").read(np.array([0]))
    assert np.array_equal(batch.inputs[0, 0], long[..., 0].transpose())
    save(tmp_path / "long" / "imagesTr" / "b_0000.nii.gz", np.zeros((5, 4, 3, 2), np.float32), affine())
    with pytest.raises(BadSample, match=r"shape \(5, 4, 3, 2\), expected a volume \(x, y, z\) or a slice"):
        NiftiFolder(tmp_path / "long").read(np.array([1]))


# MONAI

MODULE = '''
import numpy as np, torch

class Placed(torch.Tensor):
    """A tensor that carries its affine, as a MetaTensor does."""

def dicts():
    rng = np.random.default_rng(0)
    samples = []
    for side in (6, 9):  # cases differ in shape, axes are x, y, z
        scan = torch.from_numpy(rng.random((1, side, 5, 4), np.float32)).as_subclass(Placed)
        scan.affine = torch.diag(torch.tensor([-2.0, 3, 5, 1]))
        samples.append({"scan": scan, "other": torch.zeros(1), "seg": (scan.as_subclass(torch.Tensor) > 0.7).long()})
    return samples
class Half(torch.nn.Module):
    def forward(self, x):
        return torch.cat([1 - x, x], 1).as_subclass(torch.Tensor)
'''


def monai(folder, monkeypatch, **entry):
    (folder / "dict_sets.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    subject = {"model": "dict_sets:Half", "task": "segmentation", "scores": "probabilities"}
    data = {"test": {"path": "dict_sets:dicts", **entry}}
    ask = {"lesions": {"looks": 1, "smallest": 1, "sampling": {"flips": [0]}}}
    return Config.model_validate({"subject": subject, "data": data, "ask": ask})


def test_keys_of_dictionaries_and_the_affine_of_a_meta_tensor(tmp_path, monkeypatch):
    asked = monai(tmp_path, monkeypatch, inputs="scan", targets="seg")
    _, findings = examined(tmp_path, asked)
    rows = findings["lesions.lesions"].table.to_pylist()
    assert rows and all(row["volume_mm3"] == 30 * row["voxels"] for row in rows)
    assert findings["lesions.lesions"].summary["dice"].value > 0.5
    source = load(asked, tmp_path).data["test"]
    grid = source.grid("1")
    assert grid.working_shape == (9, 5, 4) and grid.working_axes[::-1] == "LAS"
    assert grid.millimetres(np.array([[1, 2, 3]])).tolist() == [[-2, 6, 15]]
    with pytest.raises(DataError, match=r"which of these is the input cannot be told: .*by inputs: and targets:"):
        load(monai(tmp_path, monkeypatch), tmp_path)


def test_axes_of_a_network_that_was_trained_on_x_y_z(tmp_path):
    """A network that looks one voxel along its first axis."""

    class Along(nn.Module):
        def forward(self, inputs):
            shifted = torch.roll(inputs, 1, 2)
            return torch.cat([-shifted, shifted], 1)

    volume = torch.from_numpy(np.random.default_rng(0).random((1, 1, 4, 5, 6), np.float32))
    plain = Subject(Along(), task="segmentation", scores="logits").forward(volume)
    turned = Subject(Along(), task="segmentation", scores="logits", forward=ReversedAxes()).forward(volume)
    assert torch.equal(plain[:, 1], torch.roll(volume, 1, 2)[:, 0])
    assert torch.equal(turned[:, 1], torch.roll(volume, 1, 4)[:, 0])
    window = ReversedAxes(SlidingWindow((6, 5, 4)))
    assert torch.allclose(window(Along(), volume), turned)
    entry = {"model": "torch.nn:Identity", "task": "segmentation", "axes": "xyz", "window": [6, 5, 4]}
    subject, _ = load_subject(Config.model_validate({"subject": entry, "data": {"test": "x"}}), tmp_path)
    assert torch.allclose(subject.forward(volume), volume)
    with pytest.raises(SubjectError, match=r"the window \(6, 5, 4\)|gave"):
        subject.forward(volume[..., 0])


POINTWISE = """
import torch
class Pointwise(torch.nn.Module):
    def __init__(self, side):
        super().__init__()
        self.side, self.level = side, torch.nn.Parameter(torch.tensor(120.0))
    def forward(self, inputs):
        assert list(inputs.shape[2:]) == self.side
        lesion = inputs[:, :1] - self.level
        return torch.cat([-lesion, lesion], 1)
"""


def test_lesions_in_a_box_are_those_of_the_original_volume(tmp_path, monkeypatch):
    """A network that knows one size: padded along z and y, and cropped along x, where no lesion is."""
    matrix = affine((1, 2, 3), axes="LPS", origin=(5, -7, 9))
    made = data_set(tmp_path / "set", sequences=1, matrix=matrix)
    for case in ("a", "b"):
        voxels = made[f"{case}_0000"].copy()
        voxels[[0, -1]] = 50
        save(tmp_path / "set" / "imagesTr" / f"{case}_0000.nii.gz", voxels, matrix)
    (tmp_path / "pointwise_nets.py").write_text(POINTWISE)
    monkeypatch.syspath_prepend(tmp_path)
    tables = []
    for side, box in (([8, 7, 6], None), ([11, 8, 4], [11, 8, 4])):
        subject = {"model": "pointwise_nets:Pointwise", "task": "segmentation", "scores": "logits", "box": box}
        ask = {"lesions": {"sampling": "flips", "looks": 2, "smallest": 1}}
        asked = config(tmp_path, folders=[], ask=ask)
        asked = asked.model_copy(update={"subject": SubjectEntry(**subject, arguments={"side": side})})
        loaded, planned = prepare(asked, tmp_path)
        run, _ = answered(planned, loaded.subject, loaded.data, tmp_path / f"run{len(tables)}")
        tables.append(run["lesions.lesions"].table.to_pydict())
        (probe,) = (step.build({}) for step in planned.steps if step.probe is Lesions)
        export_cases(
            run["lesions.lesions"], loaded.subject, loaded.data["test"], tmp_path / f"out{len(tables)}",
            sampling=probe.case_sampling,
        )  # fmt: skip
    whole, boxed = tables
    assert len(whole["lesion"]) > 5 and max(whole["x"]) > 3 and whole.keys() == boxed.keys()
    for name, values in whole.items():
        assert boxed[name] == (pytest.approx(values, rel=1e-5, nan_ok=True) if isinstance(values[0], float) else values)
    assert boxed["volume_mm3"] == [6 * voxels for voxels in boxed["voxels"]]
    first, second = (nibabel.load(tmp_path / out / "a" / "lesions.nii.gz") for out in ("out1", "out2"))
    assert np.array_equal(first.get_fdata(), second.get_fdata()) and np.array_equal(second.affine, matrix)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"model": "torch.nn:Identity", "scores": "logits"}, "box is for a segmentation .* got task classification"),
        ({"model": "torch.nn:Identity", "task": "segmentation"}, "scores None: write task: segmentation and scores"),
        ({**SUBJECT, "arguments": {"folders": ["fold_0"]}}, "stored samples lie on the grid .*: leave out box"),
    ],
)
def test_a_box_that_cannot_be_is_refused(tmp_path, monkeypatch, entry, message):
    stored(tmp_path, folds=1)
    monkeypatch.chdir(tmp_path)
    asked = Config.model_validate({"subject": {**entry, "box": [4, 4, 4]}, "data": {"test": "x"}})
    with pytest.raises(ConfigError, match=message):
        load_subject(asked, tmp_path)


# a first file


def test_init_asks_for_lesions_of_stored_samples(tmp_path):
    data_set(tmp_path / "set", cases=("a", "b", "c"))
    stored(tmp_path, cases=("a", "b", "c"))
    subject = {**SUBJECT, "arguments": {"folders": [str(tmp_path / "fold_0"), str(tmp_path / "fold_1")]}}
    data = {
        name: {"path": str(tmp_path / "set"), "cases": own} for name, own in {"validation": "a", "test": "c"}.items()
    }
    data = {name: {**entry, "cases": [entry["cases"]]} for name, entry in data.items()}
    begun = begin(subject, data, tmp_path / "weakspot.yaml")
    assert "\n  lesions: {sampling: members, looks: 2, fit: validation}" in begun.text
    assert "classes: [background, lesion]" in begun.text and not any("axes" in line for line in summary_lines(begun))


MODULE_ALONG = """
import torch
class Along(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.level = torch.nn.Parameter(torch.tensor(120.0))
    def forward(self, inputs):
        shifted = torch.roll(inputs, 1, 2) - self.level
        return torch.cat([-shifted, shifted], 1)
"""


def test_init_notices_axes_that_a_network_was_not_trained_on(tmp_path, monkeypatch):
    made = data_set(tmp_path / "set", cases=("a",), sequences=1)
    save(tmp_path / "set" / "labelsTr" / "a.nii.gz", (np.roll(made["a_0000"], 1, 0) > 120).astype(np.uint8), affine())
    (tmp_path / "along_nets.py").write_text(MODULE_ALONG)
    monkeypatch.syspath_prepend(tmp_path)
    subject = {"model": "along_nets:Along", "task": "segmentation", "scores": "logits"}
    data = {"test": {"path": str(tmp_path / "set")}}
    (warned,) = (
        line for line in summary_lines(begin(subject, data, tmp_path / "weakspot.yaml")) if "axes: xyz" in line
    )
    assert "but 1.00 with the axes" in warned
    told = summary_lines(begin({**subject, "axes": "xyz"}, data, tmp_path / "weakspot.yaml"))
    assert not any("axes: xyz" in line for line in told)
