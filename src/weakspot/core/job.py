"""A job: some probes over one source, cut into shards. All that an engine needs to know."""

import copy
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from weakspot._version import __version__
from weakspot.core.answers import FirstSamples, OutputCheck, too_large, try_model
from weakspot.core.batch_size import chosen_batch_size, usual_shard_size
from weakspot.core.digest import digest
from weakspot.core.errors import ConfigError, DataError, SubjectError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.inference_options import InferenceOptions, disagreement
from weakspot.core.observation import Batch, Setting
from weakspot.core.options import shortened
from weakspot.core.probe import Probe
from weakspot.core.recording import recording
from weakspot.core.sample_check import CheckedSource, ValidSubset
from weakspot.core.source import Source, batch_limit, check_ids, groups_of
from weakspot.core.subject import Subject

_COMPARED = 256
"""Samples on which a faster way is compared with float32."""


@dataclass(frozen=True)
class Shard:
    """A fixed slice of the samples, and the probes that have not seen it yet."""

    number: int
    start: int
    stop: int
    missing: tuple[int, ...]


class Job:
    """Probes over a source, with a folder for the shards of each probe."""

    def __init__(
        self,
        subject: Subject,
        source: Source,
        probes: Sequence[Probe],
        execution: ExecutionOptions,
        work: Path,
        *,
        device: torch.device | None = None,
        answers: OutputCheck | None = None,
        first: FirstSamples | None = None,
    ):
        check_ids(source)
        self.subject = subject
        self.device = device or subject.device
        """Where the work is done: other machines may have GPUs where this one has none."""
        limit = batch_limit(source)
        first = first or try_model(subject, source, execution.batch_size or limit, answers)
        outputs, layers, self.answers, self.first = first.outputs, first.layers, first.answers, first
        chosen = chosen_batch_size(subject.model, first.inputs, layers, self.device)
        self.batch_size = execution.batch_size or min(chosen, limit or chosen)
        """As asked for or chosen, until the GPU's memory turns out too small for it."""
        self.execution = replace(execution, batch_size=self.batch_size)
        self.shard_size = execution.shard_size or usual_shard_size(self.batch_size, self.device)
        self.recording = recording(subject, first.inputs, layers, self.batch_size)
        self.setting = Setting(
            subject.task, subject.scores, subject.classes, layers, source.ids, groups_of(source), self.device
        )
        classes = subject.class_count(outputs)
        _check_classes(subject, source, classes)
        self.source = CheckedSource(source, subject.task, classes, bounds=subject.bounds)
        self._skipped = source.skipped if isinstance(source, ValidSubset) else None
        self.probes = [_fresh(probe, self.setting) for probe in probes]
        for probe in self.probes:
            _check_fits(probe, subject)
        self._work = work

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Which model and which data; None for a black box that was given no fingerprint."""
        model: dict[str, Any] = {"subject": None}
        with suppress(ConfigError):
            model = {"subject": self.subject.fingerprint()}
            if self.subject.identity().fingerprint != model["subject"]:
                model["code_and_weights"] = self.subject.identity().fingerprint
        return {**model, "data": self.source.fingerprint(), "samples": len(self.source.ids)}

    def _cut(self, batch_size: int | None) -> dict[str, Any]:
        """What must agree for results to be equal to the last bit."""
        return {
            "batch_size": batch_size,
            "shard_size": self.shard_size,
            "device": self.device.type,
            "threads": self.execution.threads or torch.get_num_threads(),
            **({"recorded": True} if self.recording.chosen else {}),
        }

    def probe_folder(self, index: int) -> Path:
        """Where the shards of a probe go: the name says what they depend on, so another plan never meets them."""
        return self._folders[index]

    @cached_property
    def _folders(self) -> list[Path]:
        common = [self.identity, __version__, self._cut(self.execution.batch_size)]
        return [self._work / digest([*common, probe.identity()])[:24] for probe in self.probes]

    def read(self, positions: np.ndarray) -> Batch:
        """The samples at these places, for a GPU in memory from which it can copy while it computes."""
        batch = self.source.read(positions)
        return batch.pinned() if self.device.type == "cuda" else batch

    @property
    def work(self) -> Path:
        """The folder in which the folders of the probes lie."""
        return self._work

    def shell(self) -> "Job":
        """The job without model and data, which may have been sent to another machine before."""
        shell = copy.copy(self)
        shell._folders = list(self._folders)  # worked out here, where the code of the probes lies
        shell.subject = shell.source = shell.first = None  # type: ignore[assignment]
        return shell

    def filled(self, subject: Subject, source: CheckedSource, work: Path) -> "Job":
        """A shell with model and data, whose shards go to a folder of another name."""
        whole = copy.copy(self)
        whole.subject, whole.source, whole._work = subject, source, work
        whole._folders = [work / folder.name for folder in self._folders]
        return whole

    def shard_folder(self, index: int, number: int) -> Path:
        """Where one shard of a probe goes; it exists if and only if the shard is finished."""
        return self.probe_folder(index) / f"shard-{number:06d}"

    def shards(self) -> list[Shard]:
        """All shards, each with the probes that still miss it."""
        size, total = self.shard_size, len(self.source.ids)
        finished = [{path.name for path in folder.iterdir()} if folder.exists() else set() for folder in self._folders]
        return [
            Shard(
                number,
                start,
                min(start + size, total),
                tuple(i for i, names in enumerate(finished) if f"shard-{number:06d}" not in names),
            )
            for number, start in enumerate(range(0, total, size))
        ]

    @cached_property
    def disagreement(self) -> dict[str, Any] | None:
        """How the model is run faster than as it is, and how far that lies from float32 on the first samples."""
        subject = self.subject
        if subject.inference_options == InferenceOptions():
            return None
        places = np.arange(min(_COMPARED, len(self.source.ids)))
        pieces = np.split(places, range(self.batch_size, len(places), self.batch_size))
        with subject.borrowed() as plain, torch.no_grad():
            inputs = (self.source.read(piece).inputs.to(subject.device) for piece in pieces)
            quick = subject.quick(compiled=True)
            measured = disagreement(inputs, plain, quick, subject.task, subject.scores)
        return {**asdict(subject.inference_options), "against_float32": measured}

    def halve_batches(self, reason: Exception) -> None:
        """Go on with batches of half the size; where that cannot be, say what the user can do."""
        if self.batch_size == 1:
            raise too_large(self.subject, reason) from reason
        self.batch_size //= 2
        self.subject.forget_replays()

    def provenance(self, probe: Probe) -> dict[str, Any]:
        """Everything a reader needs to know how a Finding came about. No time and no place: equal work, equal bytes."""
        return {
            **probe.identity(),
            **self.identity,
            **({} if self._skipped is None else {"skipped": self._skipped}),
            **({} if self.disagreement is None else {"inference_options": self.disagreement}),
            **({} if self.answers.digest else {"answers": {"same_each_time": False, **self.answers.record()}}),
            "execution": self._cut(self.batch_size),
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """What computed the numbers."""
    installed = {name: version(name) for name in ("torch", "numpy")}
    return {"weakspot": __version__, "python": platform.python_version(), **installed}


def _check_classes(subject: Subject, source: Source, count: int | None) -> None:
    """Refuse data that number other classes than the model answers with, as a folder in which one is missing does."""
    data_classes = tuple(getattr(source, "classes", None) or ())
    if not data_classes or count is None or subject.task == "segmentation":
        return
    turned = (
        subject.classes is not None and data_classes != subject.classes and set(data_classes) == set(subject.classes)
    )
    if len(data_classes) != count or turned:
        named = shortened(list(subject.classes)) if turned and subject.classes else f"{count} scores per sample"
        raise DataError(
            f"the data number the classes {shortened(list(data_classes))}, and the model has {named}: name all classes "
            "for the source, in the order of the outputs (classes=)"
        )


def _fresh(probe: Probe, setting: Setting) -> Probe:
    """A copy to fill, so that the caller's probe can be used again."""
    copied = copy.copy(probe)
    copied.setting = setting
    return copied


def check_call(subject: object, probes: object) -> None:
    """Say what is missing where a model or a probe's class is given as it is."""
    if not isinstance(subject, Subject):
        raise ConfigError(f"expected a Subject, got {type(subject).__name__}: wrap the model, Subject(model, task=…)")
    if not isinstance(probes, Sequence):
        raise ConfigError(f"expected a list of probes, got {type(probes).__name__}: write [probe]")
    for probe in probes:
        if not isinstance(probe, Probe):
            named = f"the class {probe.__name__} itself" if isinstance(probe, type) else type(probe).__name__
            raise ConfigError(f"expected probes such as NeuronCoverage(), got {named}")


def _check_fits(probe: Probe, subject: Subject) -> None:
    probe.check_task(subject.task, vars(probe))
    needs = probe.needs
    if not subject.white_box and (needs.taps or needs.attribution):
        raise SubjectError(
            f"{probe.name()} looks inside the model, which a black box or a windowed forward does not allow: give the "
            "nn.Module itself, or ask something that needs its outputs only"
        )
