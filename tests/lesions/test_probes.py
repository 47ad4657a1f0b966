"""The room's probes: lesions of a case, a model that learns from them, and what it says of others."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.data.niftis import data_set
from tests.lesions import toy
from tests.references import lesions as reference
from weakspot import ExecutionOptions, Subject, examine
from weakspot.core.errors import BadSample, ConfigError, DataError, SubjectError
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.core.source import Subset
from weakspot.data.metadata import WithMetadata
from weakspot.data.nifti import NiftiFolder
from weakspot.data.sources import ArraySource
from weakspot.lesions.analysis import FIT, LESIONS, SCORES, evaluation_finding, scores_finding
from weakspot.lesions.lesion_model import PROVENANCE, LesionModel, calibrate, fold_of
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.model_files import load_model, save_model
from weakspot.lesions.probes import LesionFit, Lesions, Scores
from weakspot.looks import McDropout
from weakspot.registry import steps_of
from weakspot.report.drawings import draw
from weakspot.report.finding_view import FindingView

ONE = ExecutionOptions(batch_size=4, workers=0)


@pytest.fixture(scope="module")
def subject():
    return toy.subject()


def test_every_lesion_as_in_the_reference(subject):
    source = toy.source(3)
    finding = examine(subject, source, [Lesions(looks=5, seed=2, standardise=False)])[0]
    batch, look = source.read(np.arange(3)), McDropout(2)
    with torch.no_grad():
        draws = [look.outputs(subject.forward, batch.inputs, batch.ids, number) for number in range(1, 6)]
    samples = torch.stack([draw.softmax(1) for draw in draws]).double().numpy()
    table, rows = finding.table.to_pylist(), 0
    for case, name in enumerate(batch.ids):
        mean = samples[:, case].mean(0)
        mask, truth = mean[1] > 0.5, batch.targets[case].numpy() > 0
        large = np.zeros_like(mask)
        for part in reference.components(mask):
            large[tuple(np.array(part).T)] = len(part) >= 3
        expected_iou = reference.adjusted_iou(large, truth)
        for number, part in enumerate(reference.components(large)):
            row = table[rows]
            assert (row["case"], row["lesion"], row["voxels"]) == (name, number + 1, len(part))
            assert [row["z"], row["y"], row["x"]] == pytest.approx(np.mean(part, axis=0).tolist())
            assert row["adjusted_iou"] == pytest.approx(expected_iou[number])
            assert row["true_positive"] == (expected_iou[number] >= 0.1)
            values = [
                reference.voxel_measures(samples[(slice(None), case, slice(None), *voxel)], (1,)) for voxel in part
            ]
            for measure in ("entropy", "variance", "pcs", "mutual_information"):
                assert row[measure] == pytest.approx(np.mean([own[measure] for own in values]), abs=1e-6)
            rows += 1
    assert rows == len(table) > 5
    first = LesionSet.of(finding).chosen([0])
    ordered, _ = reference.graph(reference.components(large_of(samples[:, 0]))[0], mask.shape, 1)
    assert list(map(tuple, first.nodes.places.tolist())) == ordered
    np.testing.assert_allclose(first.features[:, 0], [batch.inputs[0, 0][voxel].item() for voxel in ordered])


def large_of(samples):
    mask = samples.mean(0)[1] > 0.5
    for part in reference.components(mask):
        if len(part) < 3:
            mask[tuple(np.array(part).T)] = False
    return mask


def test_slices_have_two_coordinates_and_spacing_gives_their_size():
    images, masks = toy.volumes(2)
    flat = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.Dropout2d(0.2), torch.nn.Conv2d(2, 2, 1))
    with torch.no_grad():
        flat[0].weight.fill_(1)
        flat[0].bias.zero_()
        flat[2].weight.copy_(torch.tensor([[-4.0, -4], [4, 4]])[..., None, None])
        flat[2].bias.copy_(torch.tensor([3.0, -3]))
    source = ArraySource(images[:, :, 4], masks[:, 4], ids=["a", "b"])
    placed = WithMetadata(source, {"id": ["a", "b"], "spacing_y": [0.5, 2.0], "spacing_x": [0.5, 1.0]})
    subject = Subject(flat, task="segmentation", classes=2, scores="logits")
    table = examine(subject, placed, [Lesions(looks=3, smallest=1)])[0].table.to_pylist()
    assert {row["case"] for row in table} == {"a", "b"} and "z" not in table[0]
    assert all(row["volume_mm3"] == row["voxels"] * (0.25 if row["case"] == "a" else 2) for row in table)


def test_without_masks_lesions_are_listed_all_the_same(subject):
    images, _ = toy.volumes(2)
    finding = examine(subject, ArraySource(images, ids=["a", "b"]), [Lesions(looks=2)])[0]
    assert "adjusted_iou" not in finding.table.column_names and finding.table.num_rows > 2
    assert np.isnan(finding.table["volume_mm3"].to_numpy()).all()  # the spacing is not known
    with pytest.raises(DataError, match="cut without the true masks"):
        LesionSet.of(finding).false_positive  # noqa: B018


def test_masks_that_mean_something_else_are_refused_by_the_case(subject):
    images, masks = toy.volumes(2)
    with pytest.raises(BadSample, match="case b: the true mask holds 0 to 255, expected class numbers from 0 to 1"):
        examine(subject, ArraySource(images, np.stack([masks[0], 255 * masks[1]]), ids=["a", "b"]), [Lesions(looks=2)])
    channel = ArraySource(images, masks[:, None], ids=["a", "b"])
    with_channel, without = (
        examine(subject, own, [Lesions(looks=2)])[0].table["adjusted_iou"]
        for own in (channel, ArraySource(images, masks, ids=["a", "b"]))
    )
    assert with_channel.equals(without)
    with pytest.raises(BadSample, match=r"case a: the truth has shape \(14, 14, 13\)"):
        examine(subject, ArraySource(images, masks[..., 1:], ids=["a", "b"]), [Lesions(looks=2)])


def test_no_lesion_anywhere_is_no_error(subject):
    finding = examine(subject, toy.source(2), [Lesions(looks=2, threshold=1.0)])[0]
    assert finding.table.num_rows == 0 and finding.summary["lesions"].value == 0
    assert finding.summary["missed_lesions"].value == 4 and finding.summary["dice"].value == 0


def test_several_classes_make_a_lesion_together():
    """Three classes of which two are lesions: their probabilities are added before the threshold."""
    net = torch.nn.Sequential(torch.nn.Dropout3d(0.0), torch.nn.Conv3d(1, 3, 1))
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([0.0, 1, 1]).reshape(3, 1, 1, 1, 1))
        net[1].bias.zero_()
    net[0].p = 0.5
    volume = np.zeros((1, 1, 4, 4, 4), dtype=np.float32)
    subject = Subject(net, task="segmentation", classes=3, scores="logits")
    source = ArraySource(volume, np.full((1, 4, 4, 4), 2), ids=["a"])
    both = examine(subject, source, [Lesions(looks=2, foreground=(1, 2))])[0]  # 2/3 everywhere
    one = examine(subject, source, [Lesions(looks=2, foreground=1)])[0]
    assert both.table["voxels"].to_pylist() == [64] and both.table["true_positive"].to_pylist() == [True]
    assert one.table.num_rows == 0


@pytest.fixture(scope="module")
def study(subject, tmp_path_factory):
    """A Run with a model fitted on validation cases, and the scored test cases."""
    data = {"validation": toy.source(40, split="v", seed=1), "test": toy.source(16, seed=2)}
    run = Run.create(tmp_path_factory.mktemp("study") / "run")
    steps = steps_of("lesions", {"fit": "validation", "looks": 4, "epochs": 12, "folds": 3})
    Plan.of(steps).run(subject, data, run, execution=ONE)
    return run


def test_the_names_of_the_findings_are_those_of_the_probes(study):
    assert (Lesions.name(), LesionFit.name(), Scores.name()) == (LESIONS, FIT, SCORES)
    assert set(study.names()) == {LESIONS, FIT, SCORES}


def test_a_fitted_model_tells_true_from_false(study):
    fitted, scored = study[FIT], study[SCORES]
    assert fitted.summary["calibrated"].value is True and fitted.summary["brier"].value < 0.2
    assert scored.summary["area"].value > 0.85 and scored.summary["brier"].value < 0.2
    area = scored.summary["area"]
    assert area.low < area.value <= area.high
    table = scored.table.to_pylist()
    assert list(table[0])[:8] == ["case", "lesion", "z", "y", "x", "voxels", "volume_mm3", "false_positive_probability"]
    order = sorted(table, key=lambda row: row["rank"])
    assert [row["uncertainty"] for row in order] == sorted((row["uncertainty"] for row in table), reverse=True)
    expected = scored.summary["expected_false_positives"]
    assert expected.value == pytest.approx(sum(row["false_positive_probability"] for row in table))
    assert expected.low is expected.high is expected.confidence is None, "lesions of a patient are not independent"
    assert expected.about.endswith(f"by the true masks there are {sum(not row['true_positive'] for row in table)}")


def test_held_out_patients_were_held_out(study):
    """The calibration rests on scores of models that did not see the patient: they differ from the final model's."""
    fitted = study[FIT]
    model = LesionModel.of_finding(fitted)
    cases = fitted.table["case"].to_pylist()
    parts = fold_of(np.array(cases), 3, 0)
    assert all(len({parts[i] for i, case in enumerate(cases) if case == own}) == 1 for own in set(cases))
    assert set(parts) == {0, 1, 2}
    assert model.cases == tuple(sorted(set(cases)))


def test_evaluation_over_folds(study):
    told = evaluation_finding([study[SCORES], study[SCORES]], replicates=50)
    table = {row["method"]: row for row in told.table.to_pylist()}
    assert len(table) == 17
    chosen = study[FIT].summary["method"].value
    assert chosen != "gcn_classification" and table[chosen]["difference"] == 0
    assert table["gcn_classification"]["difference"] != 0
    named = evaluation_finding([study[SCORES]], method="gcn_classification", replicates=50).table.to_pylist()
    assert {row["method"]: row["difference"] for row in named}["gcn_classification"] == 0
    other = {**study[SCORES].provenance, PROVENANCE: {**study[SCORES].provenance[PROVENANCE], "method": "size"}}
    with pytest.raises(ConfigError, match=f"by {' and '.join(sorted(['size', chosen]))}: expected one method"):
        evaluation_finding([study[SCORES], replace(study[SCORES], provenance=other)], replicates=5)
    assert table["size"]["spearman_with_size"] == pytest.approx(-1)
    assert table[study[FIT].summary["method"].value]["area"] == pytest.approx(study[SCORES].summary["area"].value)
    assert told.arrays["curve_true_positives"].shape == (17, 101)
    assert told.arrays["fold_true_positives"].tolist() == [study[SCORES].summary["true_positives"].value] * 2


def test_a_model_comes_back_from_disk(study, tmp_path):
    model = LesionModel.of_finding(study[FIT])
    save_model(model, tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"model.safetensors", "model.json"}
    again = load_model(tmp_path / "model")
    lesions = LesionSet.of(study[LESIONS])
    for name, values in model.scores(lesions).items():
        np.testing.assert_array_equal(again.scores(lesions)[name], values)
    assert again.calibration == model.calibration and again.cases == model.cases
    table = scores_finding(study[LESIONS], again).table
    assert table["false_positive_probability"].equals(study[SCORES].table["false_positive_probability"])


def test_a_damaged_model_is_refused(study, tmp_path):
    save_model(LesionModel.of_finding(study[FIT]), tmp_path / "model")
    about = json.loads((tmp_path / "model" / "model.json").read_text())
    (tmp_path / "model" / "model.json").write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(DataError, match="version 99, expected"):
        load_model(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot read a lesion model"):
        load_model(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="holds no lesion model: choose another"):
        save_model(LesionModel.of_finding(study[FIT]), tmp_path / "other")


def test_too_few_lesions_give_ranks_and_say_so():
    told = calibrate(np.linspace(-1, 1, 25), np.arange(25) < 9)
    assert not told.calibrated and told.false == 9
    assert np.isnan(told.probability(np.zeros(3))).all()
    assert calibrate(np.linspace(-1, 1, 25), np.arange(25) >= 15).calibrated


@pytest.mark.parametrize(
    "method",
    [
        "entropy_mean",
        "metaseg_regression",
        "entropy_size",
        "node_means",
        "boosted_trees",
        "gcn_without_edges",
        "gcn_regression",
    ],
)
def test_any_method_can_give_the_probability(study, method):
    from weakspot.lesions.gcn import Learning
    from weakspot.lesions.lesion_model import fit_lesion_model

    lesions = LesionSet.of(study[LESIONS])
    lesions = replace(lesions, case=np.char.add("other-", lesions.case))  # a model judges other cases
    fitted = fit_lesion_model(lesions, lesions.case, method=method, learning=Learning(epochs=2), folds=3)
    assert fitted.model.calibration.calibrated and np.isfinite(fitted.held_out).all() and fitted.choice is None
    scored = scores_finding(study[LESIONS], fitted.model, replicates=20)
    said = scored.table["false_positive_probability"].to_numpy()
    assert 0 <= said.min() < said.max() <= 1


def test_cases_that_the_network_was_trained_on_are_refused(subject):
    known = {"looks": 2, "trained_on": ("v-001", "v-002", "x")}
    source = Subset(toy.source(4, split="v"), range(4))
    with pytest.raises(DataError, match=r"trained on case 'v-001' \(2 of 4 cases here: v-001, v-002\).*training_cases"):
        examine(subject, source, [LesionFit(sampling=known, epochs=1)], execution=ONE)
    marked = examine(subject, source, [Lesions(**known)], execution=ONE)[0]
    assert marked.arrays["case_trained_on"].tolist() == [False, True, True, False]
    allowed = LesionFit(sampling=known, epochs=1, folds=2, training_cases=True)
    assert examine(subject, source, [allowed], execution=ONE)[0].summary["lesions"].value > 0
    both = {"train": Subset(source, [2, 3]), "validation": source, "test": toy.source(1)}
    plan = Plan.of(steps_of("lesions", {"fit": "validation", "looks": 2}))
    with pytest.raises(DataError, match=r"trained on case 'v-002' \(2 of 4 cases here: v-002, v-003\)"):
        plan.check(both)
    Plan.of(steps_of("lesions", {"fit": "validation", "training_cases": True})).check(both)
    with pytest.raises(ConfigError, match="fit is 'train'"):
        steps_of("lesions", {"fit": "train"})
    assert steps_of("lesions", {"fit": "train", "training_cases": True})


def lesion_plan(**options):
    return Plan.of(steps_of("lesions", {"fit": "validation", "looks": 2, **options}))


def test_cases_that_are_learnt_from_and_judged_are_refused_before_anything_runs():
    cases = toy.source(4, split="p")
    ids = list(cases.ids)
    same = {"validation": Subset(cases, [0, 1, 2]), "test": Subset(cases, [2, 3])}
    with pytest.raises(DataError, match=rf"lesion model learnt from case '{ids[2]}' \(1 of 2 cases here: {ids[2]}\)"):
        lesion_plan().check(same)
    with pytest.raises(DataError, match=rf"lesion model learnt from case '{ids[3]}'"):
        lesion_plan(fit="test").check({"test": Subset(cases, [3])})
    apart = {"validation": Subset(cases, [0, 1]), "test": Subset(cases, [2, 3])}
    lesion_plan().check(apart)
    with pytest.raises(DataError, match=r"learnt from patient 'p-00' \(2 of 2 cases here: p-002, p-003\)"):
        lesion_plan(patient="p-00").check(apart)


def test_test_cases_that_the_network_was_trained_on_are_refused():
    data = {"validation": toy.source(3, split="v"), "test": toy.source(3, split="t")}
    for options, found in (
        ({"trained_on": ["t-001", "x"]}, r"case 't-001' \(1 of 3 cases here: t-001\).*test with other cases"),
        ({"trained_on": ["t-0-before", "x"], "patient": "[tv]-0"}, r"patient 't-0' \(3 of 3 cases"),
        ({"trained_on": ["v-0-before", "x"], "patient": "[tv]-0"}, r"patient 'v-0' \(3 of 3 cases .*training_cases"),
    ):
        with pytest.raises(DataError, match=f"the network was trained on {found}"):
            lesion_plan(**options).check(data)
    with pytest.raises(DataError, match="the network was trained on case 't-002'"):
        Plan.of(steps_of("lesions", {"trained_on": ["t-002"]})).check(data)
    with pytest.raises(DataError, match="the network was trained on case 't-000'"):
        lesion_plan().check({**data, "train": toy.source(1, split="t")})
    Plan.of(steps_of("lesions", {"trained_on": ["v-002"], "splits": ["validation"]})).check(data)


def test_no_other_way_leads_around_it(subject, study):
    """Probes and functions refuse by themselves, whoever calls them."""
    seen = Subset(toy.source(40, split="v", seed=1), range(3))
    with pytest.raises(DataError, match="lesion model learnt from case 'v-00"):
        examine(subject, seen, [Scores(sampling={"looks": 4}, model=study[FIT])], execution=ONE)
    how = {"sampling": {"looks": 4}, "model": study[FIT], "patient": "v-0"}
    with pytest.raises(DataError, match="lesion model learnt from patient 'v-0'"):
        examine(subject, toy.source(2, split="v-0x"), [Scores(**how)], execution=ONE)
    how = {"sampling": {"looks": 4, "trained_on": ("test-001",)}, "model": study[FIT]}
    with pytest.raises(DataError, match="the network was trained on case 'test-001'"):
        examine(subject, toy.source(2), [Scores(**how)], execution=ONE)
    model = LesionModel.of_finding(study[FIT])
    with pytest.raises(DataError, match="lesion model learnt from case 'test-003'"):
        scores_finding(study[LESIONS], replace(model, cases=("test-003",)))
    with pytest.raises(DataError, match="lesion model learnt from patient 'test-0'"):
        scores_finding(study[LESIONS], replace(model, cases=("test-0-before",), patient="test-0"))
    scored = study[SCORES]
    leaky = scored.with_provenance(lesion_model={**scored.provenance["lesion_model"], "cases": ["test-004"]})
    with pytest.raises(DataError, match="lesion model learnt from case 'test-004'"):
        evaluation_finding([scored, leaky], replicates=5)
    same_patient = scored.with_provenance(lesion_model={**scored.provenance["lesion_model"], "cases": ["test-9"]})
    with pytest.raises(DataError, match="lesion model learnt from patient 'test'"):
        evaluation_finding([same_patient], patient="test", replicates=5)
    marked = replace(scored, arrays={**scored.arrays, "case_trained_on": np.arange(16) == 5})
    with pytest.raises(DataError, match="the network was trained on case 'test-005'"):
        evaluation_finding([marked], replicates=5)


def test_lesions_cut_in_another_way_are_refused(subject, study):
    with pytest.raises(ConfigError, match=r"learnt from lesions with threshold 0\.5, and these have 0\.4"):
        examine(subject, toy.source(2), [Scores(sampling={"looks": 2, "threshold": 0.4}, model=study[FIT])])


def test_cases_without_a_lesion_and_without_truth_are_scored_all_the_same(subject, study):
    dark = ArraySource(np.zeros((2, 1, 14, 14, 14), dtype=np.float32), ids=["a", "b"])
    how = {"sampling": {"looks": 2}, "model": study[FIT]}
    scored = examine(subject, dark, [Scores(**how)])[0]
    assert scored.table.num_rows == 0 and scored.summary["without_lesion"].value == 2
    assert scored.summary["expected_false_positives"].value == 0 and "area" not in scored.summary
    images, _ = toy.volumes(2)
    unknown = examine(subject, ArraySource(images, ids=["a", "b"]), [Scores(**how)])[0]
    assert unknown.table.num_rows > 2 and "true_positive" not in unknown.table.column_names
    assert unknown.table["false_positive_probability"].null_count == 0
    assert "true masks" not in unknown.summary["expected_false_positives"].about


def test_one_kind_of_lesion_is_not_enough(subject):
    images, masks = toy.volumes(2)
    healthy = ArraySource(images, np.zeros_like(masks), ids=["a", "b"])
    with pytest.raises(DataError, match="lesions are false positives: a lesion model needs both kinds"):
        examine(subject, healthy, [LesionFit(sampling={"looks": 2}, epochs=1)])
    with pytest.raises(DataError, match="no lesion was found in these cases"):
        examine(subject, healthy, [LesionFit(sampling={"looks": 2, "threshold": 1.0}, epochs=1)])


def test_needs_probabilities_said_and_dropout():
    unsaid = Subject(toy.Blur(), task="segmentation")
    with pytest.raises(SubjectError, match="scores='logits' or"):
        examine(unsaid, toy.source(1), [Lesions(looks=2)])
    dry = Subject(torch.nn.Conv3d(1, 2, 1), task="segmentation", scores="logits")
    with pytest.raises(SubjectError, match="met no dropout"):
        examine(dry, toy.source(1), [Lesions()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"looks": 0}, "looks ≥ 1"),
        ({"foreground": ()}, "foreground"),
        ({"threshold": 1.5}, "threshold from 0 to 1"),
        ({"least_iou": 0.0}, "0 < least_iou"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Lesions(**options)


def test_a_patient_may_have_several_cases(subject):
    options = {"sampling": {"looks": 2}, "epochs": 1, "folds": 2}
    with pytest.raises(ConfigError, match="finds no patient in the id 'test-000'"):
        examine(subject, toy.source(6), [LesionFit(**options, patient="p[0-9]")], execution=ONE)
    with pytest.raises(ConfigError, match="is no regular expression"):
        examine(subject, toy.source(6), [LesionFit(**options, patient="(")], execution=ONE)


def differing(folder):
    """Four cases, of which the third has another shape."""
    shapes = [(10, 11, 12), (10, 11, 12), (10, 11, 9), (10, 11, 12)]
    for case, shape in zip("abcd", shapes, strict=True):
        data_set(folder, cases=(case,), sequences=1, shape=shape)
    return NiftiFolder(folder, normalise="volume")


@pytest.mark.parametrize("on_bad_sample", ["stop", "skip"])
def test_cases_of_different_shapes_need_no_option(subject, tmp_path, on_bad_sample):
    """A batch holds one case where nobody chose a size, also of a choice of cases."""
    cases = differing(tmp_path)
    options = ExecutionOptions(on_bad_sample=on_bad_sample)
    for source in (cases, Subset(cases, [0, 2])):
        finding = examine(subject, source, [Lesions(looks=2)], execution=options)[0]
        assert finding.summary["cases"].value == len(source.ids)
        assert finding.provenance["execution"]["batch_size"] == 1


def test_a_batch_of_cases_of_different_shapes_is_refused(subject, tmp_path):
    with pytest.raises(DataError, match=r"case c has shape .*cannot share a batch; use batches of 1"):
        examine(subject, differing(tmp_path), [Lesions(looks=2)], execution=ExecutionOptions(batch_size=4))


def test_a_first_case_of_another_shape_is_refused(subject, tmp_path):
    cases = Subset(differing(tmp_path), [2, 0, 1])
    with pytest.raises(DataError, match=r"the first sample has shape .*cannot share a batch; use batches of 1"):
        examine(subject, cases, [Lesions(looks=2)], execution=ExecutionOptions(batch_size=3))


def test_numbers_go_by_patient_where_a_pattern_names_them(subject, tmp_path):
    """Halves of two patients: Dice is the mean of each patient's, in every Finding, also where only the fit said so."""
    images, masks = toy.volumes(28, seed=4)
    validation = ArraySource(images[:24], masks[:24], ids=[f"v{n // 2}-{n % 2}" for n in range(24)])
    masks[24] = 0  # nothing is true in one half, so that halves and patients differ
    test = ArraySource(images[24:], masks[24:], ids=["p1-a", "p1-b", "p1-c", "p2-a"])
    ask = {"looks": 2, "fit": "validation", "method": "entropy_size", "patient": "[vp][0-9]+", "epochs": 1}
    planned = Plan.of(steps_of("lesions", ask))
    run = Run.create(tmp_path / "run")
    planned.run(subject, {"validation": validation, "test": test}, run, execution=ONE)
    lesions, scores = run[LESIONS], run[SCORES]
    assert (lesions.name, scores.name) == (LESIONS, SCORES)
    per_case = lesions.arrays["case_dice"].tolist()
    expected = np.mean([np.mean(per_case[:3]), per_case[3]])
    assert expected != pytest.approx(np.mean(per_case))
    evaluation = evaluation_finding([scores], replicates=5)
    again = evaluation_finding([scores, scores], replicates=5)
    for finding in (lesions, scores, evaluation, again):
        assert finding.summary["dice"].value == pytest.approx(expected)
        assert finding.summary["dice"].about.startswith("mean Dice over the patients")
        assert finding.summary["patients"].value == 2


def test_an_operating_point_is_set_on_patients_that_train_nothing(subject, tmp_path):
    data = {"validation": toy.source(36, split="v", seed=1), "test": toy.source(8, split="t", seed=2)}
    ask = {"looks": 2, "fit": "validation", "method": "structural", "epochs": 1, "keep_true": 0.9}
    run = Run.create(tmp_path / "run")
    Plan.of(steps_of("lesions", ask)).run(subject, data, run, execution=ONE)
    fit, scores = run[FIT], run[SCORES]
    point = LesionModel.of_finding(fit).operating
    unheard = np.isnan(fit.table["score"].to_numpy())
    assert set(np.asarray(fit.table["case"])[unheard]) == set(point.cases) and len(point.cases) == point.patients == 12
    kept, unsure = scores.table["kept"].to_numpy(), scores.table["uncertainty"].to_numpy()
    assert np.array_equal(kept, unsure <= point.threshold) and scores.summary["dropped"].value == (~kept).sum()
    save_model(LesionModel.of_finding(fit), tmp_path / "model")
    assert load_model(tmp_path / "model").operating == point
    with pytest.raises(ConfigError, match="keep_true is 2: expected a share"):
        steps_of("lesions", {"fit": "validation", "keep_true": 2})[-1].upstream["model"].build({})


def test_the_figure_of_sizes_tells_true_from_false_lesions_where_that_is_known(subject):
    images, masks = toy.volumes(3)
    for own, legend in ((masks, True), (None, False)):
        finding = examine(subject, ArraySource(images, own, ids=["a", "b", "c"]), [Lesions(looks=2, smallest=1)])[0]
        (figure,) = (figure for figure in finding.outputs.figures if "Size" in figure.caption)
        svg = draw(figure, FindingView(finding))
        assert "points: mean entropy against voxels" in svg and (">true</text>" in svg) == legend
