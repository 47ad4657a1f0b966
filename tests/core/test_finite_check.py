"""NaN and infinity from inside a model are named, and nothing of that shard is kept."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.core.helpers import Tally
from weakspot import ExecutionOptions, Plan, Run, Step, Subject, examine
from weakspot.core.errors import SubjectError
from weakspot.core.finite_check import FiniteCheck, finite_rows
from weakspot.core.sections import section_numbers
from weakspot.coverage.neuron_probes import ActivationRanges, KMultisection, NeuronCoverage
from weakspot.data.sources import ArraySource


class Breaks(nn.Module):
    """Gives `value` in one channel for inputs whose first pixel is above 90."""

    def __init__(self, value: float, inside: bool):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 3, 1, bias=False), nn.Linear(3, 2, bias=False)
        self.value, self.inside = value, inside
        for layer in (self.first, self.last):
            nn.init.ones_(layer.weight)

    def forward(self, images):
        broken = torch.where(images[:, :, :1, :1] > 90, self.value, 0.0)
        hidden = self.first(images + broken if self.inside else images)
        answer = self.last(torch.nan_to_num(hidden.mean((2, 3)), posinf=0.0, neginf=0.0))
        return answer if self.inside else answer + broken[:, :, 0, 0]


def source(count: int = 100) -> ArraySource:
    images = np.broadcast_to(np.arange(count, dtype=np.float32)[:, None, None, None], (count, 1, 2, 2))
    return ArraySource(images.copy(), ids=[f"s{place:02d}" for place in range(count)])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_answer_that_is_no_number_names_the_sample(value):
    kind = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(
        SubjectError, match=f"gives {kind} for sample 's91' in its output: no number computed from it can be trusted"
    ):
        examine(Subject(Breaks(value, inside=False)), source(), [Tally()])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("probe", [NeuronCoverage(layers=("first",)), ActivationRanges(layers=("first",))])
def test_an_activation_that_is_no_number_names_the_layer_too(value, probe):
    with pytest.raises(SubjectError, match="for sample 's91' in layer first, channel 0"):
        examine(Subject(Breaks(value, inside=True)), source(), [probe])


def test_what_nobody_looks_at_may_be_anything():
    assert examine(Subject(Breaks(float("nan"), inside=True)), source(), [Tally()])


def test_finished_shards_stay_and_the_bad_one_leaves_nothing(tmp_path):
    run = Run.create(tmp_path / "run")
    execution = ExecutionOptions(batch_size=10, shard_size=40, workers=0)
    with pytest.raises(SubjectError):
        Plan.of([Step.of(Tally)]).run(
            Subject(Breaks(float("nan"), inside=False)), {"test": source()}, run, execution=execution
        )
    assert sorted(path.name for path in run.folder.glob("work/*/*")) == ["shard-000000", "shard-000001"]


def test_the_test_data_are_checked_against_sound_ranges():
    subject = Subject(Breaks(float("nan"), inside=True))
    ranges = examine(subject, source(80), [ActivationRanges(layers=("first",))])[0]
    with pytest.raises(SubjectError, match="'s91'"):
        examine(subject, source(), [KMultisection(layers=("first",), ranges=ranges, sections=4)])


def test_sections_of_nan_point_nowhere_outside():
    values = torch.tensor([[float("nan")], [float("inf")], [-float("inf")]])
    assert section_numbers(values, torch.zeros(1), torch.ones(1), 4).tolist() == [[0], [5], [0]]


def test_finite_values_whose_sum_is_infinite_are_sound():
    values = torch.full((2, 4), 3e38)
    assert finite_rows(values).all()
    FiniteCheck().note(values, ["a", "b"], str)
    assert finite_rows(torch.full((2, 4), 6e4, dtype=torch.float16)).all()


def test_on_a_device_that_must_not_wait_several_passes_are_asked_at_once():
    finite_check = FiniteCheck()
    values = torch.zeros(2, 3)
    values[1, 2] = float("nan")
    finite_check._held.append((values.sum(), values, ["a", "b"], lambda column: f"column {column}"))
    with pytest.raises(SubjectError, match="sample 'b' in column 2"):
        finite_check.check()
    finite_check.check()
