import numpy as np
import pytest
import torch

from tests.causes.conftest import CLASSES, TinyNet, images
from tests.references import causes as reference
from weakspot import Plan, Subject, examine
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.clusters import ClusterRecipe
from weakspot.causes.distances import HeatMapRows, square
from weakspot.causes.error_probes import Errors
from weakspot.causes.probes import RootCauses
from weakspot.causes.reclustering import recluster
from weakspot.causes.room import steps
from weakspot.causes.unsafe_probes import UnsafeSet
from weakspot.causes.unsafe_selection import (
    cluster_limits,
    cluster_quotas,
    distance_limit,
    nearest_members,
    one_class_clusters,
    unsafe_set,
)
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.run import Run
from weakspot.data.sources import ArraySource
from weakspot.relevance import hudd, relevance


def test_quotas_are_in_proportion_and_add_up():
    assert cluster_quotas([50, 30, 20], 10).tolist() == [5, 3, 2]
    for budget in range(12):
        assert cluster_quotas([7, 5, 3, 1], budget).sum() == budget


def test_the_unsafe_set_is_that_of_the_plain_algorithm():
    rng = np.random.default_rng(0)
    distances, clusters, sizes = rng.random(200), rng.integers(1, 4, 200), [30, 20, 10]
    found = unsafe_set(distances, clusters, sizes, budget=30, limit=0.8)
    assert found.tolist() == reference.unsafe_set(distances, clusters.tolist(), cluster_quotas(sizes, 30), 0.8)


def test_what_a_cluster_cannot_fill_the_others_do_but_never_beyond_the_limit():
    distances, clusters = np.array([0.1, 0.2, 0.3, 0.4, 5.0]), np.array([1, 1, 1, 1, 2])
    assert unsafe_set(distances, clusters, [1, 1], budget=4, limit=1.0).tolist() == [0, 1, 2, 3]
    assert unsafe_set(distances, clusters, [1, 1], budget=2, limit=9.0).tolist() == [0, 4]
    assert unsafe_set(distances, clusters, [1, 1], budget=2, limit=0.05).tolist() == []


def test_nearest_members_and_the_limit_by_hand():
    maps, members = np.random.default_rng(1).random((2, 12, 5))
    place, far = nearest_members(HeatMapRows.of(maps), HeatMapRows.of(members[:7]))
    full = np.array(reference.heat_map_distances(np.concatenate([maps, members[:7]])))[:12, 12:]
    assert place.tolist() == full.argmin(1).tolist()
    assert far == pytest.approx(full.min(1), abs=1e-6)
    points = np.array([0.0, 1.0, 3.0, 10.0, 14.0, 99.0])
    between = np.abs(points[:, None] - points)
    assert distance_limit(between, np.array([1, 1, 1, 2, 2, 0]), 0.5) == 2.0  # of 1, 1, 2, 4, 4


def test_each_cluster_may_have_its_own_limit(net, splits, examined):
    points = np.array([0.0, 1.0, 3.0, 10.0, 14.0, 99.0])
    between, numbers = np.abs(points[:, None] - points), np.array([1, 1, 1, 2, 2, 3])
    limits = cluster_limits(between, numbers, 1.0, 3)
    assert limits.tolist() == [2.0, 4.0, 4.0]  # of 1, 1, 2; of 4, 4; one member alone: that of all
    assert unsafe_set(np.array([3.0, 3.0]), np.array([1, 2]), [1, 1], budget=2, limit=limits).tolist() == [1]
    causes = examined["causes.root_causes"]
    subject = Subject(net, classes=CLASSES, scores="logits")
    found = examine(subject, splits["pool"], [UnsafeSet(causes=causes, limit=0.5, limit_by="cluster")])[0]
    images_of = ErrorImages.of_finding(causes)
    members = np.asarray(causes.arrays["image_cluster"])[images_of.landmarks]
    full = square(images_of.distances[int(causes.arrays["best_layer"])])
    np.fill_diagonal(full, np.inf)
    for row in found.table.to_pylist():
        own = np.flatnonzero(members == row["cluster"])
        if len(own) > 1:
            assert row["distance"] <= np.quantile(full[np.ix_(own, own)].min(1), 0.5)


def heat_maps(net, source, layer, start=None):
    inputs = source.read(np.arange(len(source.ids))).inputs
    found = relevance(net, inputs, method=hudd(), layers=[f"{layer}:input"], **({"start": start} if start else {}))
    return found.layers[f"{layer}:input"].detach().flatten(1).double().numpy()


def test_each_image_belongs_to_the_cluster_of_the_nearest_error(net, splits, examined):
    causes, unsafe = examined["causes.root_causes"], examined["causes.unsafe"]
    layer = str(causes.summary["layer"].value)
    numbers, ids = causes.arrays["image_cluster"], causes.arrays["image_id"].tolist()
    test = heat_maps(net, splits["test"], layer)[[splits["test"].ids.index(name) for name in ids]]
    new = heat_maps(net, splits["pool"], layer)
    far = np.sqrt(np.square(new[:, None] - test[numbers > 0]).sum(2))
    assert unsafe.arrays["image_id"].tolist() == list(splits["pool"].ids)
    assert unsafe.arrays["image_distance"] == pytest.approx(far.min(1), rel=1e-3, abs=1e-5)
    assert unsafe.arrays["image_cluster"].tolist() == numbers[numbers > 0][far.argmin(1)].tolist()
    rows = unsafe.table.to_pylist()
    assert len(rows) == unsafe.summary["unsafe"].value == 12
    assert max(row["distance"] for row in rows) <= unsafe.summary["limit"].value
    with torch.no_grad():
        answers = net(splits["pool"].read(np.arange(50)).inputs).argmax(1)
    for row in rows:
        assert row["prediction"] == CLASSES[answers[splits["pool"].ids.index(row["id"])]]
    assert len(unsafe.arrays["thumbnails"]) == 12


def test_after_clustering_again_images_are_chosen_for_the_new_clusters(net, splits, examined, tmp_path):
    subject = Subject(net, classes=CLASSES, scores="logits")
    again = recluster(
        examined,
        ClusterRecipe(clusters=2),
        replicates=0,
        layer=str(examined["causes.root_causes"].summary["layer"].value),
    )
    found = examine(subject, splits["pool"], [UnsafeSet(causes=again)])[0]
    assert set(found.arrays["image_cluster"]) <= {1, 2}


def test_targets_of_the_pool_are_not_looked_at(net, splits, examined):
    subject, causes = Subject(net, classes=CLASSES, scores="logits"), examined["causes.root_causes"]
    targets = np.zeros(50, dtype=np.int64)
    found = examine(subject, images("u", 50, targets, seed=3), [UnsafeSet(causes=causes, budget=12)])[0]
    assert found.table.equals(examined["causes.unsafe"].table)


@pytest.mark.parametrize(("task", "outputs"), [("regression", 3), ("keypoints", 4)])
def test_without_targets_heat_maps_start_at_what_is_most_often_worst(task, outputs):
    targets = np.random.default_rng(3).normal(size=(80, outputs)).astype(np.float32)
    net, test, pool = TinyNet(outputs).eval(), images("i", 80, targets), images("u", 40, seed=3)
    subject = Subject(net, task=task)
    errors = examine(subject, test, [Errors(quantile=0.5)])[0]
    causes = examine(subject, test, [RootCauses(errors=errors, replicates=0, layers="6", clusters=4)])[0]
    found = examine(subject, pool, [UnsafeSet(causes=causes, limit=1.0)])[0]
    kinds = causes.arrays["image_kind"][causes.arrays["image_cluster"] > 0].tolist()
    commonest = max(sorted(set(kinds)), key=kinds.count)
    number = int(commonest.split()[1])
    columns = [number] if task == "regression" else [2 * number, 2 * number + 1]
    members = (causes.arrays["image_kind"] == commonest) & (causes.arrays["image_cluster"] > 0)
    near = ErrorImages.of_finding(causes).heat_maps[0].values()[members]
    far = np.sqrt(np.square(heat_maps(net, pool, "6", _Only(columns))[:, None] - near).sum(2)).min(1)
    assert found.arrays["image_distance"] == pytest.approx(far, rel=1e-3, abs=1e-4)
    numbers = [float(part) for part in found.table["prediction"][0].as_py().split()]
    assert len(numbers) == outputs
    with pytest.raises(ConfigError, match="output is 9"):
        examine(subject, pool, [UnsafeSet(causes=causes, output=9)])


class _Only:
    def __init__(self, columns):
        self._columns = columns

    def weights(self, outputs):
        chosen = torch.zeros_like(outputs)
        chosen[:, self._columns] = 1
        return chosen


def test_where_nothing_is_wrong_nothing_is_chosen(net, splits, tmp_path):
    with torch.no_grad():
        answers = net(splits["test"].read(np.arange(80)).inputs).argmax(1).numpy()
    data = {"test": images("i", 80, answers), "pool": splits["pool"]}
    plan = Plan.of(steps({"select": {}}))
    found = plan.run(Subject(net, scores="logits"), data, Run.create(tmp_path / "run"))[-1]
    assert found.summary["unsafe"].value == 0


def test_what_cannot_work_is_refused(net, splits, examined):
    subject, causes = Subject(net, classes=CLASSES, scores="logits"), examined["causes.root_causes"]
    with pytest.raises(ConfigError, match="budget of 1 or more"):
        UnsafeSet(causes=causes, budget=0)
    other = next(name for name in ("0", "4", "6") if name != causes.summary["layer"].value)
    moved = recluster(causes, layer=other, replicates=0)
    with pytest.raises(ProbeError, match="holds no heat maps of layer"):
        examine(subject, splits["pool"], [UnsafeSet(causes=moved)])
    for options, told in (
        ({"select": 5}, "expected a split, and how many images at most"),
        ({"select": {}, "keep": "none"}, "keep: none holds none"),
        ({"select": {"clustering": {"linkage": "average"}}}, "select takes no clustering"),
    ):
        with pytest.raises(ConfigError, match=told):
            steps(options)


def test_heat_maps_of_unit_length_are_compared_on_both_sides(net, splits, tmp_path):
    asked = steps({"unit_length": True, "layer": "0", "keep": "all", "select": {"from": "pool", "budget": 10}})
    subject = Subject(net, classes=CLASSES, scores="logits")
    *_, causes, unsafe = Plan.of(asked).run(subject, splits, Run.create(tmp_path / "run"))
    images = ErrorImages.of_finding(causes)
    assert images.unit_length
    wrong, new = (
        maps / np.maximum(np.linalg.norm(maps, axis=1, keepdims=True), 1e-30)
        for maps in (heat_maps(net, splits[split], "0") for split in ("test", "pool"))
    )
    errors = wrong[[list(splits["test"].ids).index(name) for name in images.ids.tolist()]]
    apart = np.linalg.norm(errors[:, None] - errors, axis=2)
    assert images.distances[0] == pytest.approx(apart[np.triu_indices(len(errors), 1)], abs=1e-5)
    members = errors[np.asarray(causes.arrays["image_cluster"]) != 0]
    far = np.linalg.norm(new[:, None] - members, axis=2).min(1)
    assert unsafe.arrays["image_distance"] == pytest.approx(far, abs=1e-5)


def test_clusters_of_one_class_are_counted():
    assert one_class_clusters(np.array([2, 1, 2, 1, 3, 4, 4]), list("abacdee")) == [2, 4]
    assert one_class_clusters(np.array([], dtype=int), []) == []


@pytest.mark.parametrize("labelled", [True, False])
def test_a_set_that_shows_half_of_a_mistake_is_warned_of(net, splits, examined, labelled):
    whole = splits["pool"].read(np.arange(50))
    truth = np.zeros(50, dtype=np.int64) if labelled else None
    source = ArraySource(whole.inputs.numpy(), truth, ids=list(splits["pool"].ids))
    subject = Subject(net, classes=CLASSES, scores="logits")
    found = examine(subject, source, [UnsafeSet(causes=examined["causes.root_causes"], budget=12)])[0]
    assert found.table.to_pylist() == examined["causes.unsafe"].table.to_pylist()  # labels choose nothing
    told, members = found.summary["one_class_clusters"], {}
    for row in found.table.to_pylist():
        members.setdefault(row["cluster"], []).append("true" if labelled else row["prediction"])
    alike = sorted(cluster for cluster, own in members.items() if len(own) > 1 and len(set(own)) == 1)
    assert told.value == len(alike) > 0
    assert f"one {'true' if labelled else 'predicted'} class: {', '.join(map(str, alike))};" in told.about


def test_images_are_chosen_from_the_split_that_is_named(net, splits, tmp_path):
    """And their Finding has the same name, by which labels are found."""
    run = Run.create(tmp_path / "run")
    data = {"test": splits["test"], "more": splits["pool"]}
    asked = steps({"replicates": 0, "clusters": 6, "select": {"from": "more", "budget": 5}})
    Plan.of(asked).run(Subject(net, classes=CLASSES, scores="logits"), data, run)
    assert set(run["causes.unsafe"].table["id"].to_pylist()) <= set(splits["pool"].ids)
    assert "causes.unsafe-more" not in run
    with pytest.raises(ConfigError, match="expected the name of a split"):
        steps({"select": {"from": 3}})
