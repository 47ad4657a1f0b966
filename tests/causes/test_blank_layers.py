"""Layers whose heat maps say nothing are never clustered: they would win, being perfectly tight."""

import numpy as np
import pytest
import torch
from torch import nn

from weakspot import Plan, Run, Subject
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.blank_layers import blank, listed
from weakspot.causes.clusters import best_layer, cluster_layer
from weakspot.causes.distances import HeatMapRows, heat_map_distances
from weakspot.causes.reclustering import recluster
from weakspot.causes.room import steps
from weakspot.core.errors import ConfigError, RunError
from weakspot.data.sources import ArraySource

CLASSES = ("x", "y", "z")
QUERIES_AND_KEYS = ("query", "key")


class Attending(nn.Module):
    """Four tokens of an 8 × 8 image that attend to one another; queries and keys only weigh."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Conv2d(1, 6, 4, stride=4)
        self.query, self.key, self.value = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, images):
        tokens = self.embed(images).flatten(2).mT
        weights = (self.query(tokens) @ self.key(tokens).mT).softmax(-1)
        return self.last((weights @ self.value(tokens)).mean(1))


def told(maps):
    rows = HeatMapRows.of(np.asarray(maps, dtype=np.float32))
    return blank(rows, heat_map_distances(rows))


def test_zero_and_equal_heat_maps_tell_nothing():
    some = np.random.default_rng(0).random((5, 7))
    assert told(np.zeros((5, 7))) == "all 5 heat maps are zero: no relevance reaches it"
    assert told(np.zeros((1, 7))) == "all 1 heat maps are zero: no relevance reaches it"
    assert told(some * np.array([[0], [0], [0], [1], [1]])) == "3 of 5 heat maps are zero: no relevance reaches it"
    assert told(some[:1].repeat(5, 0) * (1 + 1e-8 * np.arange(5)[:, None])) == "all 5 heat maps are equal"
    assert told(some) == told(some[:1]) == told(some[[0, 0, 0, 1]]) == ""
    assert told(some * np.array([[0], [0], [1], [1], [1]])) == ""


def test_many_layers_are_named_by_their_reason():
    many = {f"l{number}": "zero" for number in range(10)}
    assert listed({**many, "other": "equal"}) == "l0, l1, l2, l3, l4, l5, l6, l7 and 2 more (zero); other (equal)"


def test_a_layer_without_distances_is_never_the_best():
    spread = cluster_layer(heat_map_distances(np.random.default_rng(0).random((6, 3))))
    assert np.isnan(cluster_layer(np.zeros(15)).score) and best_layer([cluster_layer(np.zeros(15)), spread]) == 1


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    return ArraySource(rng.random((40, 1, 8, 8), dtype=np.float32), rng.integers(0, 3, 40))


def root_causes(model, data, folder, output=None, **options):
    subject = Subject(model.eval(), classes=CLASSES, scores="logits", output=output)
    run = Run.create(folder)
    return Plan.of(steps({"replicates": 0, "slices": False, **options})).run(subject, {"test": data, "pool": data}, run)


def test_queries_and_keys_are_left_out_and_named(data, tmp_path):
    _, found = root_causes(Attending(), data, tmp_path / "run")
    assert found.summary["layer"].value not in QUERIES_AND_KEYS and found.summary["layer_score"].value > 0
    assert not set(found.arrays["layers"].tolist()) & set(QUERIES_AND_KEYS)
    told = found.summary["layers_left_out"]
    assert told.value == 2 and "query, key (all" in told.about and "no relevance reaches it" in told.about
    with pytest.raises(ConfigError, match=r"'query' cannot be clustered: all .* heat maps are zero"):
        recluster(found, layer="query")
    assert recluster(found).summary["layers_left_out"] == told
    assert set(ErrorImages.of_finding(found).left_out) == set(QUERIES_AND_KEYS)


def test_a_layer_that_says_nothing_cannot_be_asked_for(data, tmp_path):
    with pytest.raises(ConfigError, match="'key' cannot be clustered"):
        root_causes(Attending(), data, tmp_path / "run", layer="key")


def test_where_no_layer_says_anything_the_finding_explains_it(data, tmp_path):
    errors, found, unsafe = root_causes(Attending(), data, tmp_path / "run", layers=["query", "key"], select={})
    assert found.summary["clusters"].value == 0 and found.table is None
    assert "no layer has heat maps that differ between images" in found.summary["clusters"].about
    assert found.summary["errors"].value == errors.summary["errors"].value > 0
    assert found.summary["layers_left_out"].value == 2 and unsafe.summary["unsafe"].value == 0
    with pytest.raises(RunError, match="layers that relevance reaches"):
        recluster(found)


def test_a_vision_transformer_of_hugging_face(data, tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4,
        num_channels=1, num_labels=3,
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    _, found = root_causes(model, data, tmp_path / "run", output="logits")
    silent = found.arrays["left_out"].tolist()
    assert len(silent) == 4 and all(name.endswith(("q_proj", "k_proj", "query", "key")) for name in silent)
    assert found.summary["layer"].value not in silent and found.summary["layer_score"].value > 0
    assert found.summary["clusters"].value > 1
