"""The tables of the lesion studies on lesions whose areas are known."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "papers"))
import lesions_tables as tables

from weakspot.core.finding import Finding, table_of
from weakspot.lesions.gcn import Learning, joined
from weakspot.lesions.graphs import LesionNodes
from weakspot.lesions.lesion_set import LesionSet
from weakspot.lesions.methods import PAPER_METHODS as METHODS
from weakspot.lesions.metrics_evaluation import ScoredFold


def made_fold(rng, *, graph_shift, patients=6, lesions=30):
    """Every baseline guesses; the graph networks see part of the truth."""
    count = patients * lesions
    wrong = rng.random(count) < 0.4
    unsure = {method: rng.random(count) for method in METHODS}
    for method in tables.GRAPHS:
        unsure[method] = unsure[method] + graph_shift * wrong
    names = np.array([f"p{n}" for n in range(patients)])
    return ScoredFold(
        unsure, wrong, np.repeat(names, lesions), rng.integers(3, 99, count), names, np.full(patients, 0.7)
    )


def roc_area(uncertainty, wrong):
    """P(a false positive is less sure than a true one), pair by pair."""
    pairs = uncertainty[wrong][:, None] - uncertainty[~wrong][None]
    return float((pairs > 0).mean() + 0.5 * (pairs == 0).mean())


def test_areas_are_means_over_folds_and_seeds():
    rng = np.random.default_rng(0)
    runs = [[made_fold(rng, graph_shift=0.5) for _ in range(3)] for _ in range(2)]
    study = tables.OverSeeds.of(runs, replicates=50)
    by_seed = [np.mean([roc_area(f.uncertainty["gcn_regression"], f.false_positive) for f in run]) for run in runs]
    assert study.area("gcn_regression") == pytest.approx(np.mean(by_seed))
    assert study.spread("gcn_regression") == pytest.approx(np.std(by_seed, ddof=1))
    fold = np.mean([roc_area(run[1].uncertainty["size"], run[1].false_positive) for run in runs])
    assert study.per_fold("size")[1] == pytest.approx(fold)
    assert study.best_baseline() == max(tables.BASELINES, key=study.area)


def test_the_spread_of_a_difference_is_that_of_its_seeds():
    rng = np.random.default_rng(4)
    runs = [[made_fold(rng, graph_shift=0.5) for _ in range(2)] for _ in range(3)]
    study = tables.OverSeeds.of(runs, replicates=50)
    by_seed = [
        np.mean([roc_area(f.uncertainty[m], f.false_positive) for f in run])
        for run in runs
        for m in ("gcn_classification", "size")
    ]
    apart = np.subtract(by_seed[::2], by_seed[1::2])
    row = tables.difference_rows(study, {"size": "size"})[0]
    assert row["spread_over_seeds"] == pytest.approx(np.std(apart, ddof=1))
    assert row["difference"] == pytest.approx(apart.mean())


def test_a_planted_difference_is_confirmed_and_none_is_not():
    rng = np.random.default_rng(1)
    for shift, expected in ((0.6, "confirmed"), (0.0, "not shown"), (-0.6, "contradicted")):
        study = tables.OverSeeds.of([[made_fold(rng, graph_shift=shift) for _ in range(3)]], replicates=300)
        rows = tables.difference_rows(study, {"size": "size"})
        assert [row["verdict"] for row in rows] == [expected] * 2
        apart = [rows[0][f"fold_{k}"] for k in range(3)]
        assert rows[0]["difference"] == pytest.approx(np.mean(apart))
        assert rows[0]["over_folds"] == pytest.approx(4.302653 * np.std(apart, ddof=1) / 3**0.5, rel=1e-5)


def test_the_other_claims_are_differences_that_should_be_above_zero():
    rng = np.random.default_rng(5)
    folds = [made_fold(rng, graph_shift=0.6) for _ in range(3)]
    for fold in folds:
        fold.uncertainty["size"][:] = rng.random(len(fold.voxels)) - 0.8 * fold.false_positive
        fold.uncertainty["metaseg_regression"][:] = rng.random(len(fold.voxels)) + 0.8 * fold.false_positive
    rows = tables.claim_rows(tables.OverSeeds.of([folds], replicates=300))
    found = {row["claim"]: row for row in rows if "log-sums" not in row["claim"]}
    assert found["size is the worst"]["verdict"] == "confirmed" and found["size is the worst"]["less"] == "size"
    assert found["MetaSeg beats no simpler score"]["verdict"] == "contradicted"
    assert found["MetaSeg beats no simpler score"]["less"] == "metaseg_regression"
    assert found["classification beats regression"]["verdict"] == "not shown"
    assert [row["method"] for row in rows[:3]] == ["entropy_mean", "variance_mean", "pcs_mean"]


def test_the_baseline_is_chosen_by_the_lesions_learnt_from():
    low = dict.fromkeys(METHODS, 0.5)
    findings = [
        Finding(name="x", about="", provenance={tables.VALIDATION: {**low, **extra}})
        for extra in ({"size": 0.9, "gcn_regression": 1.0}, {"size": 0.5, "pcs_mean": 0.8})
    ]
    assert tables.baseline_on_validation(findings) == "size"


def made_lesions(rng, count=40):
    """Lesions of 5 to 9 nodes whose first feature tells which are wrong; two sequences of features."""
    sizes = rng.integers(5, 10, count)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    wrong = rng.random(count) < 0.5
    features = rng.normal(size=(starts[-1], 3)).astype(np.float32)
    features[:, 0] += 3 * np.repeat(wrong, sizes)
    places = np.concatenate([np.stack([np.zeros(n), np.arange(n), np.zeros(n)], 1) for n in sizes]).astype(np.int32)
    columns = {"voxels": sizes, "true_positive": ~wrong, "adjusted_iou": np.where(wrong, 0.0, 0.5)}
    return LesionSet(np.array(["c"] * count), columns, LesionNodes(places, starts), features)


def test_methods_without_a_graph_see_what_the_nodes_hold():
    rng = np.random.default_rng(2)
    learnt, other = made_lesions(rng), made_lesions(rng)
    for score in (tables.node_means(learnt), tables.without_edges(learnt, Learning(epochs=10))):
        assert roc_area(score(other), other.false_positive) > 0.95
    first = slice(*other.nodes.starts[:2])
    found = tables.pooled(other)[0]
    assert found[:3] == pytest.approx(other.features[first].mean(0), rel=1e-4)
    assert found[3:6] == pytest.approx(other.features[first].std(0), rel=1e-3)
    assert found[6] == pytest.approx(np.log(other.columns["voxels"][0]))


def test_without_edges_a_convolution_leaves_each_node_to_itself():
    graph = tables.edgeless(made_lesions(np.random.default_rng(3)).graphs[0])
    batch = joined([graph, graph])
    assert torch.equal(batch.adjacency.to_dense(), torch.eye(2 * len(graph.features)))


def test_false_positives_at_one_place_count_once():
    table = {
        "z": [0.0, 1, 50, 50, 9],
        "y": [0.0, 1, 50, 53, 9],
        "x": [0.0, 1, 50, 50, 9],
        "true_positive": [False, False, False, False, True],
    }
    finding = Finding(name="x", about="", table=table_of({key: np.array(own) for key, own in table.items()}))
    assert tables.distinct_places(finding) == 2
    assert tables.distinct_places(finding, apart=0.5) == 4


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0.01, 0.04, "confirmed"), (-0.01, 0.02, "not shown"), (-0.04, -0.01, "contradicted")]
)
def test_what_the_protocol_says_of_an_interval(low, high, expected):
    assert tables.verdict(low, high) == expected
