"""Greedy choice against plain greedy, the curve of errors found, and the ranking of new inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.references import criteria as reference
from weakspot import Plan, Run, Subject, examine
from weakspot.core.errors import ConfigError, DataError
from weakspot.core.source import Subset, limited
from weakspot.coverage.metrics_ranking import errors_found, greedy_order, random_spread, score_order
from weakspot.coverage.neuron_probes import NeuronCoverage
from weakspot.coverage.ranking_probes import NextInputs
from weakspot.coverage.reached_targets import Bits, Cells, one_each
from weakspot.coverage.room import steps
from weakspot.data import digits


@settings(max_examples=150, deadline=None)
@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 60), st.integers(1, 20))), st.integers(0, 2**32), st.booleans())
def test_lazy_greedy_is_plain_greedy(bits, seed, some_covered):
    generator = np.random.default_rng(seed)
    covered = generator.random(bits.shape[1]) < 0.3 if some_covered else np.zeros(bits.shape[1], dtype=bool)
    ranks = generator.permutation(len(bits))
    found = greedy_order(Bits.of(bits), covered=covered, rank=ranks)
    order, brings = reference.greedy(bits, covered, ranks)
    assert found.order.tolist() == order
    assert found.brings.tolist() == brings


def test_greedy_over_cells_is_greedy_over_their_bits():
    numbers = np.random.default_rng(1).integers(0, 6, (200, 9)).astype(np.int16)
    bits = np.zeros((200, 9, 4), dtype=bool)
    for place, neuron in np.ndindex(200, 9):
        if 1 <= numbers[place, neuron] <= 4:
            bits[place, neuron, numbers[place, neuron] - 1] = True
    flat = bits.reshape(200, -1)
    cells = Cells(numbers, 4)
    assert cells.targets == 36
    assert greedy_order(cells).order.tolist() == reference.greedy(flat, np.zeros(36, dtype=bool), range(200))[0]


def test_greedy_counts_few_gains_anew():
    class Counting(Bits):
        asked = 0

        def new(self, places, covered):
            type(self).asked += len(places)
            return super().new(places, covered)

    bits = np.random.default_rng(2).random((3000, 400)) < 0.02
    greedy_order(Counting.of(bits))
    assert Counting.asked < 20 * 3000  # plain greedy counts 3000²/2 of them


def test_shares_are_shapley_values():
    generator = np.random.default_rng(3)
    bits = generator.random((6, 12)) < 0.5
    shares = Bits.of(bits).shares(np.arange(6))
    assert shares.sum() == pytest.approx(bits.any(0).sum())
    np.testing.assert_allclose(shares, reference.shapley(bits, generator), atol=0.1)


@settings(max_examples=150, deadline=None)
@given(
    arrays.arrays(np.int16, st.tuples(st.integers(1, 30), st.integers(1, 12)), elements=st.integers(0, 6)),
    st.integers(0, 2**32),
)
def test_cells_are_counted_as_sets_are(numbers, seed):
    generator = np.random.default_rng(seed)
    places = generator.permutation(len(numbers))[: generator.integers(1, len(numbers) + 1)]
    targets = [reference.cell_targets(row, 5) for row in numbers[places]]
    cells = Cells(numbers, 5)
    assert cells.covered_by(places) == len(set.union(*targets))
    np.testing.assert_allclose(cells.shares(places), reference.shares(targets), rtol=1e-12)
    bits = np.zeros((len(numbers), cells.targets), dtype=bool)
    bits[cells.entries(np.arange(len(numbers)))] = True
    assert Bits.of(bits).covered_by(places) == cells.covered_by(places)
    np.testing.assert_allclose(Bits.of(bits).shares(places), cells.shares(places), rtol=1e-12)


def test_many_neurons_are_counted_in_blocks(monkeypatch):
    numbers = np.random.default_rng(5).integers(0, 6, (20, 300)).astype(np.int16)
    bits = np.random.default_rng(6).random((20, 300)) < 0.1
    places = np.arange(3, 18)
    whole = [
        Cells(numbers, 4).covered_by(places),
        Cells(numbers, 4).shares(places),
        Bits.of(bits).shares(places),
    ]
    monkeypatch.setattr("weakspot.coverage.reached_targets._BLOCK_BYTES", 5000)
    assert Cells(numbers, 4).covered_by(places) == whole[0]
    np.testing.assert_allclose(Cells(numbers, 4).shares(places), whole[1], rtol=1e-12)
    np.testing.assert_allclose(Bits.of(bits).shares(places), whole[2], rtol=1e-12)


def test_a_target_each():
    reach = one_each(np.array([[1, 2], [1, 3], [1, 2]]))
    assert (reach.targets, reach.covered_by(np.array([0, 2])), reach.covered_by(np.array([0, 1]))) == (2, 1, 2)


def test_errors_found_is_the_published_formula():
    generator = np.random.default_rng(4)
    wrong, order = generator.random(80) < 0.2, generator.permutation(80)
    found = errors_found(order, wrong)
    assert found.apfd == pytest.approx(reference.apfd(order, wrong))
    assert found.low < found.apfd < found.high
    assert errors_found(score_order(wrong), wrong).apfd == pytest.approx(found.curve.optimal_area)


def test_random_orders_lie_where_they_are_said_to():
    generator = np.random.default_rng(5)
    wrong = np.arange(60) < 9
    spread = random_spread(60, 9)
    inside = [abs(errors_found(generator.permutation(60), wrong).apfd - 0.5) < spread for _ in range(800)]
    assert 0.92 < np.mean(inside) < 0.98


def test_the_interval_covers_what_more_inputs_would_show():
    generator = np.random.default_rng(6)
    covered = []
    for _ in range(300):
        score = generator.normal(size=300)
        wrong = generator.random(300) < 1 / (1 + np.exp(3 - score))
        found = errors_found(score_order(score), wrong)
        covered.append(found.low < 0.729 < found.high)  # of 2,000,000 such inputs
    assert np.mean(covered) > 0.9


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="expected 2 covered targets and 1 ranks, got 3 and 1"):
        greedy_order(Bits.of(np.ones((1, 2), dtype=bool)), covered=[True] * 3)
    with pytest.raises(DataError, match="every one of 2 inputs once"):
        errors_found([0, 0], [True, False])
    with pytest.raises(DataError, match="boolean matrix"):
        Bits.of(np.ones((2, 2)))


def test_new_inputs_are_ranked_beyond_what_the_test_data_cover(tmp_path):
    subject = Subject(digits.model(), classes=10, scores="logits")
    data = {"train": limited(digits.train(), 60), "test": limited(digits.test(), 4)}
    data["pool"] = Subset(digits.test(), range(400, 599))
    asked = steps(
        {"criteria": ["nc", "kmnc"], "nc": {"threshold": 0.5}, "kmnc": {"sections": 9}, "select": {"from": "pool"}}
    )
    run = Run.create(tmp_path / "run")
    plan = Plan.of(asked)
    plan.run(subject, data, run)
    finding = run["coverage.next_inputs-pool"]
    table = {name: finding.table[name].to_pylist() for name in finding.table.column_names}
    assert sorted(table["place_nc"]) == list(range(1, 200))
    before = run["coverage.neuron_coverage"].arrays["counts"] > 0
    first = table["id"][table["place_nc"].index(1)]
    gains = [(_reached(subject, data["pool"], place) & ~before).sum() for place in range(199)]
    assert table["new_nc"][table["id"].index(first)] == max(gains) > 0
    both = examine(subject, data["pool"], [NeuronCoverage(threshold=0.5)])[0].arrays["counts"] > 0
    assert finding.arrays["gained_nc"][-1] == (both & ~before).sum() == sum(table["new_nc"])
    assert finding.summary["apfd_deep_gini"].value > finding.summary["apfd_random"].high
    assert finding.table["deep_gini"].to_pylist() == sorted(table["deep_gini"], reverse=True)
    assert finding.arrays["found_deep_gini"][-1] == 1
    name, chosen = next(iter(finding.summary.items()))
    assert name == "adding_nc" and chosen.value == sum(new > 0 for new in table["new_nc"])
    assert chosen.about == "inputs that together give all the neuron coverage that can be gained"


def test_a_budget_lists_the_first_of_every_ranking(tmp_path):
    subject = Subject(digits.model(), classes=10, scores="logits")
    data = {"train": limited(digits.train(), 60), "test": limited(digits.test(), 80)}
    tables = {}
    for budget in (None, 5):
        options = {"criteria": ["kmnc"], "kmnc": {"sections": 9}, "baseline": False}
        plan = Plan.of(steps({**options, "select": {"from": "test", "budget": budget}}))
        *_, finding = plan.run(subject, data, Run.create(tmp_path / f"run-{budget}"))
        tables[budget] = finding.table.to_pylist()
    places = [name for name in tables[5][0] if name.startswith("place_")]
    assert all(min(row[name] for name in places) <= 5 for row in tables[5])
    places.remove("place_diverse")  # a diverse order is one for a budget
    listed, of_all = ({row.pop("id"): row for row in tables[budget]} for budget in (5, None))
    first = {name for name, row in of_all.items() if min(row[place] for place in places) <= 5}
    assert first <= set(listed)
    assert len(listed) <= len(first) + 5
    for name, row in listed.items():
        assert {**row, "place_diverse": 0} == {**of_all[name], "place_diverse": 0}
    for name in places:
        assert sorted(row[name] for row in tables[5])[:5] == [1, 2, 3, 4, 5]
    assert len(tables[5]) < len(tables[None]) == 80


def test_what_select_cannot_be_is_refused():
    with pytest.raises(ConfigError, match=r"coverage: the option add is now select: expected \{from: SPLIT\}"):
        steps({"add": "pool"})
    with pytest.raises(ConfigError, match=r"coverage: select is 'pool': expected \{from: SPLIT\}"):
        steps({"select": "pool"})
    with pytest.raises(ConfigError, match="budget is 0: expected 1 or more"):
        NextInputs(ranges=None, budget=0)


def _reached(subject, source, place):
    return examine(subject, Subset(source, [place]), [NeuronCoverage(threshold=0.5)])[0].arrays["counts"] > 0


def test_inputs_without_labels_or_scores_are_ranked_all_the_same(tmp_path):
    subject = Subject(digits.model(), classes=10)
    test = limited(digits.test(), 40)
    plan = Plan.of(
        steps({"criteria": ["kmnc"], "kmnc": {"sections": 9}, "select": {"from": "test"}, "baseline": False})
    )
    *_, finding = plan.run(subject, {"train": test, "test": Unlabelled(test)}, Run.create(tmp_path / "run"))
    assert finding.name == "coverage.next_inputs"
    assert not [name for name in finding.summary if name.startswith("apfd")]
    assert "place_deep_gini" not in finding.table.column_names
    assert finding.table["place_kmnc"].to_pylist() == list(range(1, 41))


class Unlabelled:
    def __init__(self, source):
        self._source, self.ids = source, source.ids

    def read(self, positions):
        batch = self._source.read(positions)
        return type(batch)(batch.ids, batch.positions, batch.inputs)

    def fingerprint(self):
        return f"unlabelled {self._source.fingerprint()}"
