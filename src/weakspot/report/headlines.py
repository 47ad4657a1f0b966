"""The questions that were asked, each answered in a sentence with its numbers and their intervals."""

from collections.abc import Mapping, Sequence

from weakspot.core.finding import Finding
from weakspot.core.outputs import Headline
from weakspot.core.templates import SLOT
from weakspot.formatting import label, with_interval
from weakspot.report.view_models import Answer, SentencePart
from weakspot.rooms import QUESTIONS


def answer(room: str, findings: Sequence[Finding]) -> Answer:
    """The sentence of the lowest rank whose numbers a Finding of the room has; else its first number.

    What is said further stands alone where nothing else was asked, such as how the model does under corruptions.
    """
    fitting = [(headline, finding) for finding in findings for headline in finding.answers()]
    if not fitting:
        return Answer(room, QUESTIONS[room], _first_number(findings))
    told, shown = min(fitting, key=lambda pair: (pair[0].further, pair[0].rank))
    more = [pair for pair in fitting if pair[0].further and not (told.further and pair[1] is shown)]
    parts = [[SentencePart(" "), *_filled(headline, finding)] for headline, finding in [(told, shown), *more[:1]]]
    whole = [part for sentence in parts for part in sentence][1:]
    return Answer(room, QUESTIONS[room], whole, shown.name)


def by_room(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """The Findings of each question that was asked."""
    rooms = {room: [finding for finding in findings if finding.name.startswith(f"{room}.")] for room in QUESTIONS}
    return {room: of_room for room, of_room in rooms.items() if of_room}


def _filled(headline: Headline, finding: Finding) -> list[SentencePart]:
    pieces = SLOT.split(headline.text)  # text and names of numbers by turns
    return [
        _number(piece, finding) if index % 2 else SentencePart(piece) for index, piece in enumerate(pieces) if piece
    ]


def _number(name: str, finding: Finding) -> SentencePart:
    if name == "finding":
        return SentencePart(label(finding.name).lower(), f"#finding-{finding.name}")
    text = with_interval(finding.summary[name], finding.outputs.number(name).unit)
    return SentencePart(text, f"#origin-{finding.name}", name)


def _first_number(findings: Sequence[Finding]) -> list[SentencePart]:
    """The first number of the first Finding that has one."""
    first = next((finding for finding in findings if finding.summary), None)
    if first is None:
        return [SentencePart("No number answers it; see the Findings below.")]
    name, estimate = next(iter(first.summary.items()))
    about = estimate.about or first.outputs.number(name).about or label(name).lower()
    return [SentencePart(f"{label(first.name)}: "), _number(name, first), SentencePart(f", {about}.")]
