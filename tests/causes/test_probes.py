import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Subject, examine
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.clusters import ClusterRecipe
from weakspot.causes.distances import heat_map_distances
from weakspot.causes.error_probes import Errors
from weakspot.causes.heat_maps import stored, summed_positions
from weakspot.causes.probes import RootCauses
from weakspot.causes.reclustering import recluster
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.plan import Plan
from weakspot.core.run import Run
from weakspot.data.sources import ArraySource, WithMetadata
from weakspot.registry import steps_for
from weakspot.relevance import hudd, relevance
from weakspot.report.drawings import figures
from weakspot.report.headlines import answer
from weakspot.slices import chance_corrected_agreement

COUNT = 60


class SmallNet(nn.Sequential):
    def __init__(self, outputs=3):
        torch.manual_seed(0)
        super().__init__(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24, 8),
            nn.ReLU(),
            nn.Linear(8, outputs),
        )


def data(targets):
    rng = np.random.default_rng(1)
    return ArraySource(rng.random((COUNT, 1, 8, 8), dtype=np.float32), targets, ids=[f"i{n:02d}" for n in range(COUNT)])


@pytest.fixture(scope="module")
def net():
    return SmallNet().eval()


@pytest.fixture(scope="module")
def subject(net):
    return Subject(net, classes=("x", "y", "z"), scores="logits")


@pytest.fixture(scope="module")
def test_data():
    return data(np.random.default_rng(2).integers(0, 3, COUNT))


@pytest.fixture(scope="module")
def errors(subject, test_data):
    return examine(subject, test_data, [Errors()])[0]


def found(subject, source, errors, *, execution=None, **options):
    probe = RootCauses(errors=errors, **{"replicates": 5, **options})
    return examine(subject, source, [probe], execution=execution)[0]


@pytest.fixture(scope="module")
def finding(subject, test_data, errors):
    return found(subject, test_data, errors, keep="all")


def wrong_inputs(errors, source):
    rows = np.flatnonzero(~errors.table["correct"].to_numpy(zero_copy_only=False))
    return rows, source.read(rows).inputs


def test_heat_maps_are_the_relevance_of_the_inputs_of_every_layer(net, finding, errors, test_data):
    rows, inputs = wrong_inputs(errors, test_data)
    assert 10 < len(rows) < COUNT
    expected = relevance(net, inputs, method=hudd(), layers=["0:input", "3:input", "6:input", "8:input"])
    images = ErrorImages.of_finding(finding)
    assert images.layers == ("0", "3", "6", "8")
    assert images.ids.tolist() == [test_data.ids[row] for row in rows]
    for number, name in enumerate(images.layers):
        maps = expected.layers[f"{name}:input"].numpy()
        assert np.allclose(images.heat_maps[number].values(), maps.reshape(len(rows), -1), atol=1e-5)
        assert np.allclose(images.distances[number], heat_map_distances(maps), atol=1e-4)


def test_only_wrong_images_pass_the_model(net, test_data, errors):
    seen = []
    handle = net[0].register_forward_hook(lambda module, args, output: seen.append(len(output)))
    try:
        found(Subject(net, scores="logits"), test_data, errors)
    finally:
        handle.remove()
    tried, again, *passes = seen  # a few samples twice, to see the layers and whether the model is deterministic
    assert tried == again and sum(passes) == errors.summary["errors"].value


def test_the_rules_agree_for_any_batches_to_rounding(subject, test_data, errors, finding):
    other = found(subject, test_data, errors, keep="all", execution=ExecutionOptions(batch_size=7, shard_size=11))
    for number in range(4):
        name = f"distances-{number:02d}"
        assert np.allclose(other.arrays[name], finding.arrays[name], rtol=1e-4)
    assert other.arrays["image_cluster"].tolist() == finding.arrays["image_cluster"].tolist()


def test_the_table_tells_of_every_cluster(finding, errors):
    table = finding.table.to_pydict()
    assert table["images"] == sorted(table["images"], reverse=True)
    assert min(table["images"]) > 1
    assert sum(table["images"]) + finding.summary["alone"].value == errors.summary["errors"].value
    numbers, ids = finding.arrays["image_cluster"], finding.arrays["image_id"]
    for cluster, medoid in zip(table["cluster"], table["medoid"], strict=True):
        assert medoid in ids[numbers == cluster]
    assert all(0 <= value <= 1 for value in table["stability"])
    assert table["stable"] == [value >= 0.6 for value in table["stability"]]
    kinds = dict(zip(errors.table["id"].to_pylist(), errors.table["kind"].to_pylist(), strict=True))
    assert all(kinds[medoid] for medoid in table["medoid"])
    assert len(finding.media) == min(12, len(table["cluster"]))


def test_clustered_again_from_a_saved_finding_it_is_the_same(finding, tmp_path):
    finding.save(tmp_path / "finding")
    again = recluster(Finding.load(tmp_path / "finding"), replicates=5)
    assert again.table.equals(finding.table)
    for name, array in finding.arrays.items():
        assert np.array_equal(again.arrays[name], array, equal_nan=array.dtype.kind == "f"), name
    assert again.provenance["reclustered"]["from"] == finding.digest


def test_clustered_again_in_another_way_and_saved_in_its_place(subject, test_data, tmp_path):
    run = Run.create(tmp_path / "run")
    Plan.of(steps_for({"causes": {"replicates": 5}})).run(subject, {"test": test_data}, run)
    other = recluster(run, ClusterRecipe(linkage="complete", clusters=2), layer="3", replicates=0)
    run.save(other)
    run.verify()
    kept = run["causes.root_causes"]
    assert kept.summary["layer"].value == "3"
    assert set(kept.arrays["image_cluster"]) <= {0, 1, 2}
    with pytest.raises(ConfigError, match="no heat maps of 'conv'"):
        recluster(run, layer="conv")


def test_the_best_layers_heat_maps_are_kept_unless_said_otherwise(subject, test_data, errors):
    def kept(**options):
        made = found(subject, test_data, errors, **options)
        return [name for name in made.arrays if name.startswith("heat_maps")], int(made.arrays["best_layer"])

    names, best = kept()
    assert names == [f"heat_maps-{best:02d}"]
    assert kept(keep="none")[0] == []


def test_a_sample_of_many_images_is_clustered_and_the_others_join(subject, test_data, errors, finding):
    sampled = found(subject, test_data, errors, most_images=15, clusters=3)
    assert sampled.summary["clustered"].value == 15
    assert len(sampled.arrays["distances-00"]) == 15 * 14 // 2
    numbers = sampled.arrays["image_cluster"]
    assert len(numbers) == finding.summary["errors"].value
    assert len(recluster(sampled, ClusterRecipe(clusters=2), layer=str(sampled.summary["layer"].value)).table) <= 2
    other = next(name for name in ("0", "3", "6", "8") if name != sampled.summary["layer"].value)
    with pytest.raises(ConfigError, match="examine again with keep: all"):
        recluster(sampled, layer=other)


def test_where_labels_and_predictions_agree_by_chance_clusters_say_nothing_of_causes(finding, errors):
    table = errors.table
    agreed = chance_corrected_agreement(table["target"].to_numpy(), table["prediction"].to_numpy())
    assert agreed < 0.2 and finding.summary["agreement_near_chance"].value == agreed
    said = "".join(part.text for part in answer("causes", [errors, finding]).sentence)
    assert said.startswith("The model agrees with the labels hardly better than chance") and "may have" not in said


def test_clusters_by_density_make_a_whole_finding(subject, test_data, errors):
    made = found(subject, test_data, errors, linkage="density")
    assert made.outputs.problems(made) == [] and made.arrays["score"].shape[1] == 0
    assert not any(drawn.problem for drawn in figures(made, []))
    grouped = made.arrays["image_cluster"]
    assert made.summary["alone"].value == (grouped == 0).sum()
    again = recluster(made, ClusterRecipe(linkage="density"), replicates=0)
    assert again.arrays["image_cluster"].tolist() == grouped.tolist()


def test_what_an_attack_did_explains_no_cluster(subject, test_data, errors):
    ids = list(test_data.ids)
    right = dict(zip(errors.table["id"].to_pylist(), errors.table["correct"].to_pylist(), strict=True))
    known = {"id": ids, "attack_success": [not right[name] for name in ids], "weather": ["fog", "sun"] * (COUNT // 2)}
    attacked = WithMetadata(test_data, known)
    made = found(subject, attacked, examine(subject, attacked, [Errors()])[0], replicates=0)
    assert made.arrays["parameter_names"].tolist() == ["weather"]


def test_a_model_without_errors_has_no_clusters(net, test_data):
    with torch.no_grad():
        answers = net(test_data.read(np.arange(COUNT)).inputs).argmax(1)
    right = data(answers.numpy())
    subject = Subject(net, scores="logits")
    errors = examine(subject, right, [Errors()])[0]
    assert found(subject, right, errors).summary["clusters"].value == 0


@pytest.mark.parametrize(("task", "outputs"), [("regression", 3), ("keypoints", 4)])
def test_numbers_and_keypoints(task, outputs):
    targets = np.random.default_rng(3).normal(size=(COUNT, outputs)).astype(np.float32)
    subject, source = Subject(SmallNet(outputs), task=task), data(targets)
    errors = examine(subject, source, [Errors(quantile=0.5)])[0]
    finding = found(subject, source, errors, keep="all", layers="8")
    assert finding.summary["errors"].value == COUNT // 2
    rows, inputs = wrong_inputs(errors, source)
    worst = [int(kind.split()[1]) for kind in finding.arrays["image_kind"].tolist()]
    columns = [[w] if task == "regression" else [2 * w, 2 * w + 1] for w in worst]
    maps = ErrorImages.of_finding(finding).heat_maps[0].values()
    assert maps.shape == (len(rows), 8)
    one_sided = relevance(
        subject.model, inputs, method=hudd(), layers=["8:input"], start=_Only(columns, outputs)
    ).layers["8:input"]
    assert np.allclose(maps, one_sided, atol=1e-5)


class _Only:
    """Explains the given columns of each row."""

    def __init__(self, columns, outputs):
        self.weights_ = torch.zeros(len(columns), outputs)
        for row, some in zip(self.weights_, columns, strict=True):
            row[some] = 1

    def weights(self, outputs):
        return self.weights_


def test_sixteen_bits_keep_distances_to_a_ten_thousandth_of_the_largest():
    maps = torch.randn(20, 8, 50, 50) ** 3 * 1e-6  # far too small for 16 bits as they are
    rounded, scale = (kept.numpy() for kept in stored(maps, "auto"))
    assert rounded.dtype == np.float16
    exact = heat_map_distances(maps.numpy())
    kept = heat_map_distances(rounded.astype(np.float64) * scale[:, None, None, None])
    assert np.abs(kept - exact).max() < 1e-4 * exact.max()
    assert stored(maps[:, :1], "auto")[0].dtype == torch.float32


def test_summing_positions_keeps_all_relevance():
    maps = torch.arange(2 * 7 * 5).reshape(1, 2, 7, 5).float()
    reduced = summed_positions(maps, 3)
    assert reduced.shape == (1, 2, 3, 3)
    assert reduced.sum((2, 3)).tolist() == maps.sum((2, 3)).tolist()
    assert reduced[0, 0, 0, 0] == maps[0, 0, :3, :2].sum()


def test_what_options_cannot_mean_is_refused(errors):
    with pytest.raises(ConfigError, match="method 'lrp' is not known"):
        RootCauses(errors=errors, method="lrp")
    with pytest.raises(ConfigError, match="most_images ≥ 3"):
        RootCauses(errors=errors, most_images=2)
