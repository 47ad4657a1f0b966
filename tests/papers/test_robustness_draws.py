"""The draws of the DeepRobust tables: what a detector sees never tells the truth about it."""

import numpy as np
import pytest


@pytest.fixture
def robustness(script):
    return script("robustness")


@pytest.mark.parametrize("seed", range(5))
def test_queries_and_truth_share_no_neighbour(robustness, seed):
    order = robustness.order_of_looks(seed)
    queries, truth = order[1 : robustness.QUERIES + 1], order[robustness.FRESH]
    assert order[0] == truth[0] == 0
    assert sorted(order) == list(range(51))
    assert len(queries) == 15 and len(truth) == 36 and not set(queries) & set(truth)


def test_seeds_draw_other_queries_and_other_training_images(robustness):
    drawn = {tuple(robustness.order_of_looks(seed)) for seed in range(5)}
    samples = {tuple(robustness.sampled(50_000, seed)) for seed in range(5)}
    assert len(drawn) == len(samples) == 5
    assert all(len(set(sample)) == robustness.SAMPLE for sample in samples)


def test_neighbours_are_asked_in_the_order_of_their_draws(robustness, monkeypatch):
    """A model that tells the angle: answers (images, neighbours) come as the parameters were given."""

    class Made:
        @staticmethod
        def warp(inputs, parameters):
            return parameters[:, :1] + inputs.flatten(1)[:, :1]

    monkeypatch.setattr(robustness, "neighbours", lambda: Made)
    drawn = np.random.default_rng(0).uniform(-30, 30, (600, 4, 3)).astype(np.float32)
    pixels = np.arange(600, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2)
    told = np.concatenate(list(robustness.asked(lambda made: made, pixels, drawn, "cpu")))
    np.testing.assert_allclose(told[..., 0], drawn[..., 0] + pixels[:, 0, :1] / 255, atol=1e-5)


def test_only_what_is_missing_is_made_again(robustness):
    row = {"net": "ResN-svhn", "seed": "1", "threshold": "0.75"}
    found = [{**row, "method": "together"}, {**row, "method": "black_box", "threshold": "0.5"}]
    wanted = robustness.missing("ResN-svhn", 1, found)
    assert wanted == [("sample", 0.5), ("whole", 0.75), ("whole", 0.5)]
    assert len(robustness.missing("ResN-svhn", 0, found)) == 4


def test_how_near_two_images_are_by_chance(script):
    first, second = np.random.default_rng(0).integers(0, 52, (2, 40)) / 51
    pairs = [abs(a - b) < 0.2 for a in first for b in second]
    assert script("robustness_study").near_by_chance(first, second) == pytest.approx(np.mean(pairs))


def test_the_papers_rule_calls_everything_weak_where_one_weak_image_is_always_answered_alike(robustness):
    """Five images are always right, one nearly so, three torn between two classes, one always taken for another."""
    said = np.zeros((10, 51), dtype=np.int64)
    said[5, 7], said[6:9, ::2], said[9] = 1, 1, 2
    case = robustness.Case.__new__(robustness.Case)
    case.said, case.labels = (dict.fromkeys(("train", "test"), values) for values in (said, np.zeros(10, int)))
    flagged = {name: np.flatnonzero(calls.flagged).tolist() for _, name, calls in robustness.all_shared(case, 0.5)}
    assert flagged == {"black_box": [5, 6, 7, 8], "black_box_paper_rule": list(range(10))}
