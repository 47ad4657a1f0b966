"""Every probe that is offered keeps every law, for every task it examines; probes that break one are caught."""

import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import ClassVar

import numpy as np
import pytest
import torch

from weakspot import Estimate, Finding, Needs, Probe, Rows, Sum, Tap
from weakspot.core.groups import COLUMN, NUMBER
from weakspot.core.observation import Observation
from weakspot.core.outputs import Outputs, count
from weakspot.data.sources import Grouped
from weakspot.laws import LAWS, LawBroken, Trial, check
from weakspot.looks import Quantity, Range, Variation
from weakspot.registry import offered_probes
from weakspot.rooms import declared


@dataclass(frozen=True)
class Roll(Variation):
    """Columns move to the right and come in again on the left: whole numbers stay whole, so that sums are exact.

    pixels: how far.
    """

    pixels: Range = 4
    quantities = (Quantity("roll", "pixels"),)

    def change(self, images, parameters, bounds):
        moves = parameters[:, 0].round().long().tolist()
        return torch.stack([image.roll(move, -1) for image, move in zip(images, moves, strict=True)])


SMALL_DETECTOR = {
    "variation": Roll(),
    "looks": 6,
    "queries": 3,
    "threshold": 0.3,
    "tolerance": 1.0,
    "epochs": 2,
    "folds": 2,
    "hidden": (8,),
}
SMALL_LESIONS = {"looks": 4, "threshold": 0.5, "smallest": 1}
SMALL_FIT = {"sampling": SMALL_LESIONS, "epochs": 2, "folds": 2, "hidden": 4}
SMALL = {
    "k_multisection": {"sections": 7},
    "next_inputs": {"sections": 7},
    "criteria_agreement": {"sections": 7, "subsets": 8, "most_inputs": 30},
    "neighbour_accuracy": {"looks": 6},
    "neighbour_diversity": {"looks": 6},
    "neighbour_tolerance": {"looks": 6},
    "weak_detector": SMALL_DETECTOR,
    "weak_inputs": {"training": SMALL_DETECTOR},
    "detector_evaluation": {"training": SMALL_DETECTOR, "looks": 6},
    "prediction_guard": {"least": 3},
    "guard_evaluation": {"training": {"least": 3}},
    "guarded_inputs": {"training": {"least": 3}},
    "label_plan": {"labels": 20},
    "weak_places": {"looks": 6, "variation": Roll()},
    "class_robustness": {"looks": 6},
    "variation_effects": {"looks": 6},
    "tolerance_effects": {"looks": 6},
    "common_corruptions": {"kinds": ("pixelate", "contrast", "impulse_noise"), "severities": (1, 4)},
    "robust_accuracy": {"epsilons": (0.5, 1.5), "attacks": ({"attack": "square", "queries": 4},)},
    "weak_strips": {"looks": 6, "shown": 3},
    "lesions": SMALL_LESIONS,
    "lesion_fit": SMALL_FIT,
    "case_volumes": {"sampling": SMALL_LESIONS},
    "scores": {"sampling": SMALL_LESIONS, "training": {key: SMALL_FIT[key] for key in SMALL_FIT if key != "sampling"}},
    "error_slices": {"smallest": 3, "depth": 2},
    "root_causes": {"method": "gradient", "replicates": 5},  # exact on whole numbers, as rules that divide are not
    "rule_set": {"by": "random", "budget": 7},  # of the law's few images no rule is confirmed
    "unsafe_set": {"clustering": {"method": "gradient", "replicates": 0}, "budget": 7},
}
OF_CASES = {"lesions", "lesion_fit", "case_volumes", "scores"}
CASES = [(name, probe, task) for name, probe in offered_probes().items() for task in probe.tasks]


class Comparing(Trial):
    """Examined as usual once for all laws that compare something else with that."""

    usual: ClassVar[dict[tuple, Finding]] = {}

    def examine(self, **how):
        if how:
            return super().examine(**how)
        key = (self.probe, self.bench.subject.task)
        if key not in self.usual:
            self.usual.clear()
            self.usual[key] = super().examine()
        return self.usual[key]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("name", "probe", "task"), CASES, ids=[f"{name}-{task}" for name, _, task in CASES])
def test_law(name, probe, task, law):
    kind = Trial if law.__name__ == "model_untouched" else Comparing  # that one looks at the examination itself
    law(kind(probe, task, SMALL.get(name, {})))


NOT_OF_SAMPLES = {
    "explained_clusters": "a share of clusters",
    "reduced_clusters": "a share of clusters",
    "*_with_errors": "over random subsets, which are drawn independently",
    "apfd_random": "where random orders lie, not how sure a measurement is",
    "low": "percentiles of random subsets",
    "high": "percentiles of random subsets",
}
"""Intervals that do not rest on samples being independent, where a probe keeps them as they are."""


def intervals(finding):
    """Both ends of every interval, by name: of the summary, and of tables whose rows are no samples."""
    found = {name: (one.low, one.high) for name, one in finding.summary.items() if one.low is not None}
    if finding.table is not None and not finding.outputs.columns_of_role(finding, "id"):
        for name in finding.outputs.columns_of_role(finding, "interval"):
            values = finding.table[name].to_numpy()
            found[f"column {name}"] = tuple(values[np.isfinite(values)].tolist())
    inner = {name: tuple(end for end in ends if end not in (0, 1)) for name, ends in found.items()}
    return {name: ends for name, ends in inner.items() if ends}


@pytest.mark.parametrize(("name", "probe", "task"), CASES, ids=[f"{name}-{task}" for name, _, task in CASES])
def test_no_interval_takes_samples_that_belong_together_for_independent(name, probe, task):
    """Where samples are copies in all but name, every interval goes by group, or is not there."""
    if name in OF_CASES:
        pytest.skip("these resample whole cases, whatever the data say of groups")
    trial = Trial(probe, task, SMALL.get(name, {}))
    data = {}
    for split, source in trial.bench.data.items():
        data[split] = Grouped(source, [str(place % 6) for place in range(len(source.ids))])
    plain, grouped = trial.examine(), trial.examine(data=data)
    assert grouped.summary[NUMBER].value == 6
    assert grouped.outputs.problems(grouped) == []
    before, after = intervals(plain), intervals(grouped)
    for number, ends in after.items():
        bare = number.removeprefix("column ")
        if ends == before.get(number) and not any(fnmatch(bare, kept) for kept in NOT_OF_SAMPLES):
            raise AssertionError(f"{probe.__name__}: the interval of {number} does not go by group")
    if grouped.table is not None and COLUMN in grouped.table.column_names:
        group_of = {name: str(place % 6) for place, name in enumerate(data[probe.split].ids)}
        ids = grouped.table[grouped.outputs.columns_of_role(grouped, "id")[0]].to_pylist()
        if set(ids) <= set(group_of):
            assert grouped.table[COLUMN].to_pylist() == [group_of[name] for name in ids]


@pytest.mark.parametrize("probe", offered_probes().values(), ids=lambda probe: probe.__name__)
def test_built_in_probes_cite_their_paper(probe):
    text = f"{probe.__doc__} {sys.modules[probe.__module__].__doc__}"
    assert re.search(r"(19|20)\d\d", text) or "DeepGauge" in text


@pytest.mark.parametrize("probe", offered_probes().values(), ids=lambda probe: probe.__name__)
def test_built_in_probes_declare_what_their_findings_hold(probe):
    """In the room's torch-free module, where readers of older Runs find it, too."""
    assert probe.outputs != Outputs()
    assert declared(probe.name()) == probe.outputs


class Tally(Probe):
    """Counts inputs."""

    tasks = ("classification",)

    seen = Sum()

    def observe(self, seen: Observation) -> None:
        self.seen = self.seen + len(seen.ids)

    def finish(self) -> Finding:
        return self.finding(summary={"inputs": Estimate(int(self.seen))})


def test_a_probe_that_keeps_the_laws_passes():
    check(Tally)


class Untold(Tally):
    """Gives a number that it does not declare."""

    outputs = Outputs(summary={"samples": count("samples seen")})


class BatchMean(Tally):
    """Averages means of batches."""

    batches = Sum()

    def observe(self, seen: Observation) -> None:
        self.seen = self.seen + seen.outputs.double().mean()
        self.batches = self.batches + 1

    def finish(self) -> Finding:
        return self.finding(summary={"mean": Estimate(float(self.seen / self.batches))})


class LastWins(Tally):
    """Keeps what came last."""

    def observe(self, seen: Observation) -> None:
        self.seen = torch.tensor(float(seen.outputs[-1, 0]))

    def finish(self) -> Finding:
        return self.finding(summary={"inputs": Estimate(float(self.seen))})


class Secretive(Tally):
    """Counts beside its state."""

    def observe(self, seen: Observation) -> None:
        self.hidden = getattr(self, "hidden", 0) + len(seen.ids)

    def finish(self) -> Finding:
        return self.finding(summary={"inputs": Estimate(getattr(self, "hidden", 0))})


class Hoarder(Tally):
    """Keeps every output in its state."""

    def observe(self, seen: Observation) -> None:
        kept = self.seen if self.seen.ndim else self.seen.new_zeros(0)
        self.seen = torch.cat([kept, seen.outputs[:, 0]])

    def finish(self) -> Finding:
        return self.finding()


class Falling(Tally):
    """Counts downwards."""

    def observe(self, seen: Observation) -> None:
        self.seen = self.seen - len(seen.ids)


class Vandal(Tally):
    """Writes to the model through the values it is shown."""

    def observe(self, seen: Observation) -> None:
        super().observe(seen)
        VANDALISED[0].bias.data.add_(1)


VANDALISED: list[torch.nn.Module] = []


class Undocumented(Tally):
    """Has an option that nobody explains."""

    strength: int = 3


class RandomRows(Tally):
    """Keeps chance."""

    noise = Rows()

    def observe(self, seen: Observation) -> None:
        self.noise.append(seen.ids, value=torch.rand(len(seen.ids)))

    def finish(self) -> Finding:
        rows = self.noise.read()
        return self.finding(table={"id": rows.ids, "value": rows["value"]})


class Unmergeable(Tally):
    """Adds up what is not a sum: the largest output, wrongly declared."""

    @property
    def needs(self) -> Needs:
        return Needs(taps=(Tap("penultimate"),))

    def observe(self, seen: Observation) -> None:
        self.seen = torch.maximum(self.seen.double(), seen.outputs.double().amax())

    def finish(self) -> Finding:
        return self.finding(summary={"largest": Estimate(float(self.seen))})


@pytest.mark.parametrize(
    ("probe", "law"),
    [
        (BatchMean, "any_batch_size"),
        (LastWins, "any_order"),
        (Hoarder, "state_stays_small"),
        (Falling, "counts_never_fall"),
        (Undocumented, "options_documented"),
        (RandomRows, "any_batch_size"),
        (RandomRows, "interruption"),
        (Unmergeable, "any_shards"),
        (Secretive, "any_engine"),
        (Untold, "outputs_as_declared"),
    ],
)
def test_a_probe_that_breaks_a_law_is_caught(probe, law):
    broken = next(entry for entry in LAWS if entry.__name__ == law)
    with pytest.raises(LawBroken):
        broken(Trial(probe, "classification", {}))


def test_the_message_names_probe_law_and_task():
    with pytest.raises(
        LawBroken, match=r"undocumented breaks the law 'options_documented' \(classification\).*strength"
    ):
        check(Undocumented)


def test_a_probe_that_writes_to_the_model_is_caught():
    law = next(entry for entry in LAWS if entry.__name__ == "model_untouched")
    trial = Trial(Vandal, "classification", {})
    VANDALISED[:] = [trial.bench.subject.model.stem]
    with pytest.raises(LawBroken, match=r"stem\.bias differs"):
        law(trial)
