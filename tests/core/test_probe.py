"""Probes: options, state and its merges, names, steps."""

import numpy as np
import pytest
import torch

from tests.core.helpers import After, Counting, Tally, TrainTally, numbered
from weakspot.core.driver import examine
from weakspot.core.errors import ConfigError, ProbeError
from weakspot.core.finding import Finding
from weakspot.core.probe import Probe, Rows, complete_options
from weakspot.core.state import LogicalOr, Max, Min, Sum, declared, merge_states
from weakspot.core.step import Step
from weakspot.core.subject import Subject


class States(Probe):
    """One of each."""

    total = Sum()
    least = Min()
    most = Max()
    ever = LogicalOr()

    def observe(self, seen):
        """Nothing."""

    def finish(self):
        return self.finding()


def filled(total, least, most, ever):
    probe = States()
    probe.total, probe.least, probe.most = torch.tensor(total), torch.tensor(least), torch.tensor(most)
    probe.ever = torch.tensor(ever)
    return probe.state()


def test_merging_by_hand():
    merged = merge_states(
        States, filled([1, 2], [3.0, 5.0], [3.0, 5.0], [True, False]), filled([10, 20], [4.0, 1.0], [4.0, 1.0], [0, 0])
    )
    assert {name: values.tolist() for name, values in merged.items()} == {
        "total": [11, 22],
        "least": [3.0, 1.0],
        "most": [4.0, 5.0],
        "ever": [True, False],
    }


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_merging_with_a_probe_that_saw_nothing_changes_nothing(shape):
    values = torch.randn(shape)
    full = filled(values.tolist(), values.tolist(), values.tolist(), (values > 0).tolist())
    for merged in (merge_states(States, full, States().state()), merge_states(States, States().state(), full)):
        for name, array in merged.items():
            np.testing.assert_array_equal(array, full[name], strict=True)


def test_empty_states_are_the_identities():
    empty = States().state()
    assert {name: (array.shape, array.item()) for name, array in empty.items()} == {
        "total": ((), 0),
        "least": ((), float("inf")),
        "most": ((), float("-inf")),
        "ever": ((), False),
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.float32, torch.float64),
        (torch.bfloat16, torch.float64),
        (torch.int8, torch.int64),
        (torch.bool, torch.bool),
    ],
)
def test_states_are_kept_wide(given, kept):
    probe = States()
    probe.total = torch.ones(2, dtype=given)
    assert probe.total.dtype == kept


@pytest.mark.parametrize("number", [2**24 + 1, 2**31 + 1, 2**52 + 1])
def test_extremes_of_whole_numbers_are_exact(number):
    probe = States()
    probe.least = torch.minimum(probe.least, torch.tensor([number]))
    probe.most = torch.maximum(probe.most, torch.tensor([number]))
    assert (int(probe.least), int(probe.most)) == (number, number)


def test_sums_do_not_lose_small_numbers():
    probe = States()
    probe.total = torch.tensor([2.0**24])
    for _ in range(4):
        probe.total = probe.total + torch.ones(1)
    assert probe.total.item() == 2.0**24 + 4


def test_a_state_is_detached():
    probe = States()
    probe.total = torch.ones(2, requires_grad=True) * 2
    assert not probe.total.requires_grad


def test_a_state_takes_tensors_only():
    with pytest.raises(ProbeError, match=r"States.total is a state: give it a tensor, not <class 'int'>"):
        States().total = 3


def test_declared_states_and_rows_are_inherited():
    class More(States):
        """With one more."""

        extra = Sum()
        kept = Rows()

    assert list(declared(More)) == ["total", "least", "most", "ever", "extra"]
    assert More.row_names() == ["kept"]
    assert isinstance(More.total, Sum)
    assert isinstance(More.kept, Rows)


def test_two_probes_share_no_state():
    one, other = States(), States()
    one.total = torch.ones(1)
    assert other.total.item() == 0


def test_states_load_back():
    state = filled([1, 2], [3.0, 5.0], [3.0, 5.0], [True, False])
    probe = States()
    probe.load_state(state)
    assert all(np.array_equal(probe.state()[name], values) for name, values in state.items())


def test_options_are_keywords_only_and_checked():
    with pytest.raises(TypeError, match="positional"):
        Tally(2.0)
    with pytest.raises(ConfigError, match=r"tally has no option 'heft', 'size'; it has: weight"):
        complete_options(Tally, {"size": 1, "heft": 2, "weight": 3})
    with pytest.raises(ConfigError, match=r"states has no option 'x'; it has: none"):
        Step.of(States, x=1)


def test_options_are_completed_with_defaults():
    assert complete_options(Tally, {}) == {"weight": 1.0}
    assert Step.of(Tally).key == Step.of(Tally, weight=1.0).key


def test_a_default_can_be_made():
    from dataclasses import field

    class Lists(States):
        """Has a list."""

        names: list = field(default_factory=lambda: ["a"])

    assert complete_options(Lists, {}) == {"names": ["a"]}


def test_an_option_without_default_must_be_given():
    class Needy(States):
        """Needs to be told."""

        how_many: int
        where: str

    with pytest.raises(ConfigError, match=r"needy needs the option 'where': it has no default"):
        Step.of(Needy, how_many=3)
    assert Step.of(Needy, how_many=3, where="x").build({}).how_many == 3


def test_names_are_words():
    class HTTPServer2Probe(States):
        """Anything."""

    assert HTTPServer2Probe.name() == "http_server2_probe"
    assert Tally.name() == "tally"
    from weakspot.coverage.neuron_probes import NeuronCoverage

    assert NeuronCoverage.name() == "coverage.neuron_coverage"


def test_a_finding_says_what_it_is_about():
    assert Tally().finding().about == "Counts samples and adds up outputs."


def test_a_finding_as_an_option_stands_by_its_digest():
    before = Finding("x", arrays={"a": np.arange(3)})
    other = Finding("x", arrays={"a": np.arange(4)})
    assert After(before=before).parameters() == {"weight": 1.0, "before": before.digest}
    keys = {Step.of(After, before=finding).key for finding in (before, other)}
    assert len(keys) == 2
    assert Step.of(After, before=before).upstream == {}


def test_steps_know_what_comes_before():
    step = Step.of(After, weight=2.0)
    assert step.upstream["before"] == Step.of(TrainTally, weight=2.0)
    assert (step.split, step.upstream["before"].split, step.depth) == ("test", "train", 1)


@pytest.mark.parametrize(
    "other",
    [Step.of(Tally, weight=2.0), Step.of(Tally, split="train"), Step.of(TrainTally), Step.of(After)],
)
def test_different_steps_have_different_keys(other):
    assert Step.of(Tally).key != other.key


def test_probes_given_to_examine_are_not_changed_and_can_be_used_again():
    probe = Tally(weight=3.0)
    before = dict(vars(probe))
    first = examine(Subject(Counting()), numbered(5), [probe, probe])
    assert vars(probe) == before
    second = examine(Subject(Counting()), numbered(5), [probe])
    assert first[0].digest == first[1].digest == second[0].digest


def test_a_probe_that_finishes_with_something_else_is_told():
    class Wrong(States):
        """Gives a mapping."""

        def finish(self):
            return {"a": 1}

    with pytest.raises(ProbeError, match=r"wrong.finish\(\) gave dict, expected a Finding"):
        examine(Subject(Counting()), numbered(2), [Wrong()])
