"""Runs one pass: from probes and data to Findings. `examine` and every pass of a plan use it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from weakspot.core.answer_book import AnswerBook, note_answers, noted_answers
from weakspot.core.engine import Engine, engine_at_work
from weakspot.core.examine import finish, run_job
from weakspot.core.execution_options import ExecutionOptions
from weakspot.core.finding import Finding
from weakspot.core.job import Job, check_call
from weakspot.core.probe import Probe
from weakspot.core.progress import Progress, Silent, say
from weakspot.core.sample_check import usable
from weakspot.core.source import Source, batch_limit
from weakspot.core.subject import Subject
from weakspot.core.threads import note_begun, pinned, torch_threads

_READ_AT_ONCE = 16
"""Samples, where all are read to find the bad ones and no batch size was chosen yet."""


def examine(
    subject: Subject,
    data: Source,
    probes: Sequence[Probe],
    *,
    execution: ExecutionOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    work: Path | None = None,
) -> list[Finding]:
    """Ask all probes of all samples in one pass over the data; one Finding per probe, in their order.

    work: a folder where finished shards are kept, so that an interrupted call resumes; without one they are kept in a
        temporary folder.
    """
    check_call(subject, probes)
    if work is not None:
        subject.fingerprint()  # what is kept must be known again: refuse a black box without a name
    with ExitStack() as stack:
        folder = work or Path(stack.enter_context(TemporaryDirectory(prefix="weakspot-")))
        driver = stack.enter_context(
            driving(subject, folder, execution, engine=engine, progress=progress, answers=noted_answers(folder))
        )
        source = driver.valid(data)
        driver.check_answers({"the data": source})
        findings = driver.findings(
            source, probes, f"{len(probes)} questions", note=lambda answers: note_answers(folder, answers)
        )
        return [finding for finding, _ in findings]


@contextmanager
def driving(
    subject: Subject,
    folder: Path,
    options: ExecutionOptions | None,
    *,
    engine: Engine | None,
    progress: Progress | None,
    answers: Any,
) -> Iterator["Driver"]:
    """A driver, to which the model is lent while this lasts.

    folder: where finished shards are kept, with what was chosen when the work was begun, so that it resumes alike.
    answers: what was noted of the model's outputs before.
    """
    asked = options or ExecutionOptions()
    with engine_at_work(asked, engine) as worker, subject.borrowed():
        chosen = pinned(asked, folder, worker.usual_threads)
        with AnswerBook(subject, replace(chosen, batch_size=asked.batch_size), answers, progress) as book:
            yield Driver(subject, folder, chosen, worker, progress, book)


@dataclass
class Driver:
    """Takes an engine through passes over data, one after the other."""

    subject: Subject
    folder: Path
    options: ExecutionOptions
    engine: Engine
    progress: Progress | None
    book: AnswerBook
    _told: bool = False

    def valid(self, source: Source) -> Source:
        """The source, without the samples that cannot be used where the user wants them skipped."""
        if self.options.on_bad_sample == "stop":
            return source
        size = self.options.batch_size or batch_limit(source) or _READ_AT_ONCE
        return usable(
            self.subject,
            source,
            batch_size=size,
            workers=self.options.reading_threads,
            progress=self.progress or Silent(),
        )

    def check_answers(self, data: Mapping[str, Source]) -> None:
        """Compute the outputs in the answer book again: Findings of a model that gives others are not reused."""
        self.book.check(data)

    def findings(
        self, source: Source, probes: Sequence[Probe], label: str, *, note: Callable[[Mapping[str, Any]], None]
    ) -> Iterator[tuple[Finding, Path]]:
        """One pass: the Finding of each probe in their order, with the folder of its shards.

        label: names the pass where progress is shown.
        note: keeps the outputs of the first samples, before the work begins.
        """
        device = self.engine.device(self.subject)
        with torch_threads(self.options.threads):
            job = Job(
                self.subject,
                source,
                probes,
                self.options,
                self.folder,
                device=device,
                answers=self.book.of(source),
            )
        self.options = job.execution
        if job.recording.trouble and not self._told:
            say(self.progress, job.recording.trouble)
            self._told = True
        note_begun(self.folder, self.options)
        self.book.note(job)
        note(self.book.record())
        run_job(job, engine=self.engine, progress=self.progress, label=label)
        for index in range(len(job.probes)):
            finding = finish(job, index, engine=self.engine, progress=self.progress)
            yield finding, job.probe_folder(index)
