"""The embedded gaze detector: what it lacks is known, so what is found can be checked."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from weakspot import Plan, Run, Subject
from weakspot.causes.room import steps
from weakspot.data import eye_net


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    subject = Subject(eye_net.model(), classes=eye_net.CLASSES, scores="logits")
    data = {"test": eye_net.test(), "pool": eye_net.pool()}
    asked = steps(
        {"replicates": 0, "angles": ("gaze_angle",), "layers": "conv*", "select": {"from": "pool", "budget": 100}}
    )
    run = Run.create(tmp_path_factory.mktemp("eyes") / "run")
    return dict(zip(("errors", "slices", "causes", "unsafe"), Plan.of(asked).run(subject, data, run), strict=True))


def test_clusters_agree_with_the_planted_kinds(found):
    arrays = found["causes"].arrays
    kinds, numbers = [name.partition("-")[0] for name in arrays["image_id"].tolist()], arrays["image_cluster"]
    assert len(kinds) > 200
    assert adjusted_rand_score(kinds, numbers) > 0.3
    assert adjusted_rand_score(kinds, np.random.default_rng(0).permutation(numbers)) < 0.05


def test_clusters_at_the_border_of_two_classes_are_told_by_the_gaze(found):
    told = [words for words in found["causes"].table["shared"].to_pylist() if "gaze_angle near" in words]
    assert told
    arrays, table = found["causes"].arrays, found["errors"].table
    gaze = dict(zip(table["id"].to_pylist(), table["metadata.gaze_angle"].to_pylist(), strict=True))
    for cluster, words in enumerate(found["causes"].table["shared"].to_pylist(), start=1):
        if "gaze_angle near" in words:
            own = [gaze[name] for name in arrays["image_id"][arrays["image_cluster"] == cluster].tolist()]
            near = float(words.split("gaze_angle near ")[1].split("°")[0])
            off = (np.array(own) - near + 180) % 360 - 180
            assert abs(off.mean()) < 20
            assert np.abs(off).mean() < 75  # 90 for any gaze


def test_images_near_the_causes_are_wrong_more_often(found):
    pool = eye_net.pool()
    batch = pool.read(np.arange(len(pool.ids)))
    with torch.no_grad():
        wrong = (eye_net.model()(batch.inputs).argmax(1) != batch.targets).numpy()
    chosen = [wrong[pool.ids.index(name)] for name in found["unsafe"].table["id"].to_pylist()]
    assert len(chosen) == 100
    assert np.mean(chosen) > 1.5 * wrong.mean()
