"""A Run's record of its models' outputs for a few samples, compared with those of now before anything is reused."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from weakspot.core.answers import OutputCheck, answers, first_inputs, settings
from weakspot.core.errors import ConfigError
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.files import write_text
from weakspot.core.job import Job
from weakspot.core.progress import Progress, say
from weakspot.core.source import Source
from weakspot.core.subject import Subject
from weakspot.core.threads import torch_threads

_NOTE = "answers.json"
_VARIES = "differently each time"


class AnswerBook:
    """What is noted of a model's answers, by fingerprint, data and settings; changed answers make it another model.

    noted: as `record` gave it.
    progress: gets the messages; without one, there is a warning where a model answers differently each time.

    Used in `with`, the subject is the other model as long as that lasts.
    """

    def __init__(self, subject: Subject, options: ExecutionOptions, noted: Any, progress: Progress | None):
        self._subject, self._progress = subject, progress
        self._threads, self._most = options.threads, options.batch_size
        self._known: str | None = None
        with suppress(ConfigError):  # a black box without a name: nothing of it is kept
            self._known = subject.identity().fingerprint
        self._on = settings(subject.device, options.threads or 1)
        self._seen, self._marks = _seen(noted), _marks(noted)
        self._reported: set[str] = set()

    def __enter__(self) -> "AnswerBook":
        self._subject.tell_apart(self._marks.get(self._known or ""))
        return self

    def __exit__(self, *_: object) -> None:
        self._subject.tell_apart(None)

    def check(self, data: Mapping[str, Source]) -> None:
        """Ask the model again what it was asked before, where data and settings are the same."""
        for split, source in data.items():
            noted = self.of(source)
            if noted is not None and noted.trouble is not None:
                self._say(noted.trouble)
                return
            inputs = None if noted is None else first_inputs(source, min(noted.samples, self._most or noted.samples))
            if noted is not None and inputs is not None and len(inputs) == noted.samples:
                with torch_threads(self._threads):
                    now = answers(self._subject, inputs, before=noted.digest or "")
                if now.digest != noted.digest:
                    self._tell_apart(split, now)
                return

    def of(self, source: Source) -> OutputCheck | None:
        """What is noted for these data and the settings of now."""
        if not self._seen:
            return None
        key = self._key(source.fingerprint())
        noted = next((entry for entry in self._seen if key.items() <= entry.items()), None)
        if noted is None:
            return None
        return OutputCheck(noted["samples"], noted.get("digest"), float(noted.get("largest_difference", 0.0)))

    def note(self, job: Job) -> None:
        """Keep what a job found its model to answer, and say it where that is not the same each time."""
        key = self._key(job.identity["data"])
        others = [entry for entry in self._seen if not key.items() <= entry.items()]
        self._seen = sorted([*others, {**key, **job.answers.record()}], key=lambda entry: (entry["of"], entry["data"]))
        if job.answers.trouble is not None:
            self._say(job.answers.trouble)

    def record(self) -> dict[str, Any]:
        """All that is noted, as JSON."""
        return {"seen": self._seen, **({"told_apart": self._marks} if self._marks else {})}

    def _key(self, data: str) -> dict[str, Any]:
        return {"of": self._known or "", "data": data, "on": self._on}

    def _tell_apart(self, split: str, now: OutputCheck) -> None:
        """From here on it is another model: nothing that bears the fingerprint so far is used again."""
        fingerprint, unknown = self._subject.identity()
        because = f" (not fingerprinted: {unknown[0]})" if unknown else ""
        self._seen = [entry for entry in self._seen if entry["of"] != fingerprint]
        self._marks[fingerprint] = now.digest or _VARIES
        self._subject.tell_apart(self._marks[fingerprint])
        self._say(
            f"the model answers {now.samples} samples of {split} otherwise than before, with the same weights and "
            f"code{because}: nothing that was found of it is used again"
        )

    def _say(self, message: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            say(self._progress, message)


def known_as(subject: Subject, manifest: Mapping[str, Any]) -> str:
    """The fingerprint of a model in a Run, where one of the same weights and code may have answered otherwise."""
    subject.tell_apart(_marks(manifest.get("answers")).get(subject.identity().fingerprint))
    try:
        return subject.fingerprint()
    finally:
        subject.tell_apart(None)


def _seen(noted: Any) -> list[dict[str, Any]]:
    """The entries that can be read; what is damaged was never noted."""
    kinds = {"of": str, "data": str, "on": dict, "samples": int}
    noted_entries = noted.get("seen") if isinstance(noted, Mapping) else None
    entries = [entry for entry in noted_entries if isinstance(entry, dict)] if isinstance(noted_entries, list) else []
    return [entry for entry in entries if all(isinstance(entry.get(name), kind) for name, kind in kinds.items())]


def _marks(noted: Any) -> dict[str, str]:
    marks = noted.get("told_apart") if isinstance(noted, Mapping) else None
    return dict(marks) if isinstance(marks, Mapping) else {}


def noted_answers(work: Path) -> Any:
    """What is noted in a folder of unfinished work; None where it cannot be read."""
    with suppress(OSError, ValueError):
        return json.loads((work / _NOTE).read_text(encoding="utf-8"))
    return None


def note_answers(work: Path, record: Mapping[str, Any]) -> None:
    """Keep them in a folder of unfinished work."""
    if noted_answers(work) != record:
        write_text(work / _NOTE, json.dumps(record))
