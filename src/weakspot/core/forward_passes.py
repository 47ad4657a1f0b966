"""The forward passes that all probes together need over each batch, each done once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from torch import Tensor, nn

from weakspot.core.digest import digest
from weakspot.core.finite_check import FiniteCheck
from weakspot.core.layers import Point
from weakspot.core.look import Forward, Look
from weakspot.core.needs import Attributed, Attribution, RelevanceRequest
from weakspot.core.observation import Batch, LookResult, PredictionArrays, Setting
from weakspot.core.probe import Probe
from weakspot.core.subject import Subject
from weakspot.core.taps import Captured, Recorder, wanted
from weakspot.core.tasks import correct

_TOGETHER = {"cuda": 1 << 24}
"""Numbers of all inputs of one forward pass up to which looks share it; on a CPU that brings nothing."""


@dataclass(frozen=True)
class ForwardPass:
    """One look at a batch, with the union of what its probes want from inside the model."""

    look: Look
    number: int
    probes: tuple[int, ...]
    recorder: Recorder
    attribution: Attribution | None = None
    attributed: tuple[Point, ...] = ()

    def of(
        self, subject: Subject, forward: Forward, batch: Batch, setting: Setting, finite_check: FiniteCheck
    ) -> LookResult:
        """Run the forward pass, and the backward pass where relevance is wanted."""
        if self.attribution is None:
            forward = self.quick(subject)

        def looked_at(inputs: Tensor) -> Tensor:
            with self.recorder.watching():  # after relevance, which replaces the operations that are watched
                return self.look.outputs_of(subject, forward, replace(batch, inputs=inputs), self.number)

        relevance: dict[Point, Tensor] = {}
        start: Tensor | None = None
        with self.recorder.recording(len(batch)) as captured:
            if self.attribution is None:
                outputs = looked_at(batch.inputs)
            else:
                outputs, relevance, start = self._attributed(self.attribution, subject, looked_at, batch)
        self.recorder.check(captured)
        outputs = outputs.detach()
        predictions, number = PredictionArrays(outputs, batch, setting), self.number
        seen = LookResult(
            batch, self.look, number, setting, outputs, captured, relevance, predictions, 0, finite_check, start
        )
        seen.note_finite_check()
        return seen

    def quick(self, subject: Subject) -> Forward:
        """The fastest forward for what is taken: compiled or recorded where that is possible."""
        forward = subject.quick(compiled=self.look.plain and not self.recorder.key)
        if subject.replays is None or not self.look.plain:
            return forward
        return subject.replays.of(forward, self.recorder)

    def joins(self, other: "ForwardPass") -> bool:
        """Whether both can be had in one forward pass: outputs alone, of looks that can be made together."""
        taken = self.recorder.key or other.recorder.key or self.attribution or other.attribution
        return self.look.joint and self.look == other.look and self.probes == other.probes and not taken

    def _attributed(
        self, attribution: Attribution, subject: Subject, forward: Forward, batch: Batch
    ) -> tuple[Tensor, dict[Point, Tensor], Tensor | None]:
        def rows(outputs: Tensor) -> Tensor:
            is_correct = correct(outputs, batch.known_targets, subject.task, subject.scores)
            return is_correct if attribution.where == "correct" else ~is_correct

        request = RelevanceRequest(
            cast(nn.Module, subject.model),
            forward,
            batch.inputs,
            self.attributed,
            rows=None if attribution.where == "all" else rows,
            task=subject.task,
            targets=batch.targets,
        )
        found = Attributed(*attribution.attribute(request))
        maps = {point: values.detach() for point, values in zip(self.attributed, found.relevance, strict=True)}
        return found.outputs, maps, None if found.start is None else found.start.detach()


def together(forward_passes: Sequence[ForwardPass], batch: Batch) -> list[list[ForwardPass]]:
    """Groups of looks that share one run of the model, in order, as many as the device has room for."""
    most = _TOGETHER.get(batch.inputs.device.type, 0) // max(1, batch.inputs.numel())
    groups: list[list[ForwardPass]] = []
    for forward_pass in forward_passes:
        if groups and len(groups[-1]) < most and groups[-1][0].joins(forward_pass):
            groups[-1].append(forward_pass)
        else:
            groups.append([forward_pass])
    return groups


def passes(
    group: Sequence[ForwardPass],
    subject: Subject,
    forward: Forward,
    batch: Batch,
    setting: Setting,
    finite_check: FiniteCheck,
) -> Iterator[LookResult]:
    """What each forward_pass of a group shows; where there are several, of one forward pass."""
    if len(group) == 1:
        yield group[0].of(subject, forward, batch, setting, finite_check)
        return
    look, numbers = group[0].look, [forward_pass.number for forward_pass in group]
    shared = look.several(group[0].quick(subject), batch.inputs, batch.ids, numbers).detach()
    finite_check.note(shared, batch.ids * len(group), lambda column: "its output")
    predictions = PredictionArrays(shared, batch, setting)
    for index, (number, outputs) in enumerate(zip(numbers, shared.split(len(batch)), strict=True)):
        yield LookResult(batch, look, number, setting, outputs, Captured(), {}, predictions, index, finite_check)


def schedule(probes: Sequence[Probe], subject: Subject, setting: Setting) -> list[ForwardPass]:
    """The fewest forward passes per batch that give every probe what it needs.

    Probes that ask for the same look share it; each different attribution of the same look is a pass of its own, and
    probes without one join the first.
    """
    asked: dict[tuple[Look, int], list[int]] = {}
    needs = [probe.needs for probe in probes]
    for index, need in enumerate(needs):
        for look, count in need.looks.items():
            for number in look.numbers(count):
                asked.setdefault((look, number), []).append(index)
    forward_passes = []
    for (look, number), members in asked.items():
        for attribution, group in _by_attribution([(index, needs[index].attribution) for index in members]):
            taps = [(tap, setting.layout(tap).points) for index in group for tap in needs[index].taps]
            points = setting.layout(attribution.tap).points if attribution else ()
            recorder = Recorder(cast(nn.Module, subject.model), wanted(taps))
            forward_passes.append(
                ForwardPass(look.within(subject.bounds), number, tuple(group), recorder, attribution, points)
            )
    return sorted(forward_passes, key=lambda forward_pass: forward_pass.number)


def _by_attribution(
    members: Sequence[tuple[int, Attribution | None]],
) -> list[tuple[Attribution | None, list[int]]]:
    """The members that want the same attribution, each group with it; those that want none join the first group."""
    groups: dict[str, tuple[Attribution | None, list[int]]] = {}
    for index, attribution in sorted(members, key=lambda member: member[1] is None):
        first = next(iter(groups), "")
        groups.setdefault(digest(attribution) if attribution else first, (attribution, []))[1].append(index)
    return list(groups.values())
