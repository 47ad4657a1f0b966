"""Pictures of lesions in the report: the right slice, outline and sentence, and none where they would mislead."""

import io
from dataclasses import replace

import numpy as np
from PIL import Image

from tests.viewer.lesion_runs import case_volume, lesion_run, scores_finding, volumes_finding
from weakspot.core.finding import table_of
from weakspot.lesions.lesion_pictures import MOST, lesion_pictures
from weakspot.lesions.outputs import ROOM
from weakspot.lesions.slices import UNKNOWN, ramp
from weakspot.report.html import render
from weakspot.sharing import Sharing, shared_run

CASES = [case_volume(number) for number in range(3)]


def shown(picture):
    return np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB"))


def with_outputs(finding):
    return replace(finding, outputs=ROOM.findings[finding.name])


def test_every_lesion_has_its_slice_its_outline_and_its_sentence():
    scores, volumes = scores_finding(CASES), volumes_finding(CASES)
    (made,) = lesion_pictures([scores, volumes]).values()
    rows = scores.table.to_pylist()
    assert [name for name, _ in made] == [f"{row['case']} lesion {row['lesion']}" for row in rows]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(row["case"] for row in rows))}
    for row, (_, picture) in zip(rows, made, strict=True):
        labels = CASES[numbers[row["case"]]][1]
        z = int((labels == row["lesion"]).sum((1, 2)).argmax())
        truth = "a true lesion" if row["true_positive"] else "a false positive by the true mask"
        chance = f"probability of being false {row['false_positive_probability']:.2f}"
        told = f"{row['case']}, lesion {row['lesion']}: {row['volume_mm3']:g} mm³, {chance}, {truth}."
        assert picture.caption == f"{told} Axial slice {z + 1} of 12."
        own = (shown(picture) == ramp(np.array(row["false_positive_probability"]))).all(-1)
        assert own.sum() > 20, "the outline in the colour of its probability"
        where = np.argwhere(labels[z] == row["lesion"])
        low, high = where.min(0), where.max(0) + 1
        first = np.maximum(low - np.maximum(16, high - low), 0)
        last = np.minimum(high + np.maximum(16, high - low), labels.shape[1:])
        assert max(shown(picture).shape) == 240
        scale = 240 / max(last - first)
        drawn = np.argwhere(own)
        expected = [(last - high) * scale, (last - low) * scale]  # turned round
        assert np.abs(drawn.min(0) - expected[0]).max() <= scale
        assert np.abs(drawn.max(0) + 1 - expected[1]).max() <= scale


def test_without_probability_size_and_truth_nothing_is_made_up():
    lesions = scores_finding(CASES[:1], scored=False, truth=False)
    lesions = replace(lesions, table=lesions.table.drop_columns(["volume_mm3"]))
    (made,) = lesion_pictures([lesions, volumes_finding(CASES[:1])]).values()
    voxels = lesions.table["voxels"][0].as_py()
    assert made[0][1].caption.startswith(f"case-a, lesion 1: {voxels} voxels. Axial slice")
    assert (shown(made[0][1]) == UNKNOWN).all(-1).any()


def test_scores_come_before_lesions_and_other_data_or_other_lesions_have_no_picture():
    scores, lesions = scores_finding(CASES), scores_finding(CASES, scored=False)
    volumes = volumes_finding(CASES)
    assert set(lesion_pictures([lesions, scores, volumes])) == {"lesions.scores"}
    assert (
        lesion_pictures([scores]) == lesion_pictures([replace(scores, name="lesions.scores-validation"), volumes]) == {}
    )
    assert lesion_pictures([replace(scores, provenance={"data": "other"}), volumes]) == {}
    cut = table_of({name: scores.table[name].to_numpy(zero_copy_only=False) for name in scores.table.column_names})
    cut = cut.set_column(cut.column_names.index("voxels"), "voxels", [[1] * len(cut)])
    assert lesion_pictures([replace(scores, table=cut), volumes]) == {}


def test_the_most_likely_false_ones_are_shown_of_many():
    many = [case_volume(number, lesions=30) for number in range(3)]
    scores = scores_finding(many)
    order = np.random.default_rng(0).permutation(len(scores.table))
    at = scores.table.column_names.index("rank")
    scores = replace(scores, table=scores.table.set_column(at, "rank", [order + 1]))
    made = lesion_pictures([scores, volumes_finding(many)])["lesions.scores"]
    rows = scores.table.sort_by("rank").slice(0, MOST).to_pylist()
    assert len(scores.table) > MOST == len(made)
    assert [name for name, _ in made] == [f"{row['case']} lesion {row['lesion']}" for row in rows]


def test_the_report_has_them_unless_pictures_are_left_out(tmp_path):
    run = lesion_run(tmp_path / "run")
    for name in ("lesions.scores", "lesions.case_volumes"):
        run.save(with_outputs(run[name]))
    assert "case-a, lesion 1: " in render(run)
    copy = shared_run(run, tmp_path / "copy", Sharing(pictures=False))
    assert not [name for name in copy["lesions.case_volumes"].arrays if name.startswith(("image", "maps"))]
    assert "case-a, lesion 1: " not in render(copy)
