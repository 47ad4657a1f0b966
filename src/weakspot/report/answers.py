"""The questions that were asked, each answered in one sentence with its numbers and their intervals."""

import re
from collections.abc import Mapping, Sequence

from weakspot.core.finding import Estimate, Finding
from weakspot.questions import QUESTIONS
from weakspot.report.shown import Answer, Part
from weakspot.report.wording import is_share, label, percent, roughly, value_text

SENTENCES = {
    "coverage": (
        "Nobody can say from coverage alone. Test inputs reach {coverage} of what {finding} counts, as many training "
        "inputs {coverage_of_training}; more inputs of the same kind would add {unseen}.",
        "Nobody can say from coverage alone. Test inputs reach {coverage} of what {finding} counts; more inputs of the "
        "same kind would add {unseen}.",
        "Nobody can say from coverage alone. Test inputs reach {coverage} of what {finding} counts.",
    ),
    "robustness": (
        "{weak_share} of the inputs are weak: small variations of them are answered wrongly too often. {lucky} of "
        "these are answered rightly as they are, by luck; the accuracy of {accuracy} does not show it.",
        "{weak_share} of the inputs are weak: small variations of them are answered wrongly too often.",
    ),
    "classes": (
        "{confused} of {pairs} pairs of classes activate the network so alike that it may mix them up, "
        "{surely_confused} of them surely; {biased} pairs are treated unequally.",
        "{confused} of {pairs} pairs of classes look so alike to the network that it may mix them up; {biased} pairs "
        "are treated unequally.",
        "The largest difference in accuracy between groups is {largest_difference}; {sure_differences} are sure.",
    ),
    "causes": (
        "{errors} errors fall into {clusters} clusters, each with one likely cause; {stable_clusters} of them come "
        "back when the images are drawn anew. {images_to_inspect} images are enough to look at.",
        "{error_share} of the inputs are answered wrongly, {errors} in all.",
    ),
    "lesions": (
        "Of {lesions} lesions in {cases} cases, about {expected_false_positives} are expected to be false positives; "
        "the probability of each stands in the table.",
        "False positives come apart from true lesions with an area of {area}; the best rival, {best_rival}, chosen "
        "on the same cases, is the one to beat.",
        "{lesions} lesions are found in {cases} cases.",
    ),
}
"""By room, the most telling first: a Finding that has all the numbers of a sentence gives the answer."""
FURTHER = {"causes": "Retrained on what was chosen, the model is {verdict}: {before} before, {after} after."}
"""By room, what is said besides where a Finding has the numbers."""
_PREFERRED = ("importance_driven", "k_multisection", "neuron_coverage")
_SLOT = re.compile(r"\{(\w+)\}")


def answer(room: str, findings: Sequence[Finding]) -> Answer:
    """The answer that the Findings of a room give; the general one where no sentence fits."""
    ordered = sorted(findings, key=_rank)
    for sentence in SENTENCES.get(room, ()):
        for finding in ordered:
            if _slots(sentence) <= _known(finding):
                return Answer(room, QUESTIONS[room], [*_filled(sentence, finding), *_besides(room, findings)])
    return Answer(room, QUESTIONS[room], _in_general(findings))


def _besides(room: str, findings: Sequence[Finding]) -> list[Part]:
    """The further sentence of a room, if a Finding has its numbers."""
    sentence = FURTHER.get(room, "")
    fitting = [finding for finding in findings if sentence and _slots(sentence) <= _known(finding)]
    return [Part(" "), *_filled(sentence, fitting[0])] if fitting else []


def with_interval(name: str, estimate: Estimate) -> str:
    """A number with its interval, as it stands in a sentence.

    >>> print(with_interval("weak_share", Estimate(0.5, 0.4, 0.6, 0.95)))
    50 % (95 % interval 40 % to 60 %)
    """
    share = is_share(name, estimate)
    value, low, high = (_text(number, share) for number in (estimate.value, estimate.low, estimate.high))
    sure = f"{percent(estimate.confidence)} interval" if estimate.confidence else "interval"
    return f"{value} ({sure} {low} to {high})" if estimate.low is not None and estimate.high is not None else value


def _text(value: object, share: bool) -> str:
    return roughly(value) if share and isinstance(value, float) else value_text(value)


def _rank(finding: Finding) -> int:
    return next((place for place, part in enumerate(_PREFERRED) if part in finding.name), len(_PREFERRED))


def _known(finding: Finding) -> set[str]:
    """The numbers that it has a value of."""
    return {name for name, estimate in finding.summary.items() if estimate.value is not None}


def _slots(sentence: str) -> set[str]:
    return set(_SLOT.findall(sentence)) - {"finding"}


def _filled(sentence: str, finding: Finding) -> list[Part]:
    pieces = _SLOT.split(sentence)  # text and names of numbers by turns
    return [_number(piece, finding) if place % 2 else Part(piece) for place, piece in enumerate(pieces) if piece]


def _number(name: str, finding: Finding) -> Part:
    if name == "finding":
        return Part(label(finding.name).lower(), f"#finding-{finding.name}")
    return Part(with_interval(name, finding.summary[name]), f"#origin-{finding.name}")


def _in_general(findings: Sequence[Finding]) -> list[Part]:
    """The first number of the first Finding that has one."""
    told = next((finding for finding in findings if finding.summary), None)
    if told is None:
        return [Part("No number answers it; see what was found.")]
    name, estimate = next(iter(told.summary.items()))
    about = estimate.about or label(name).lower()
    return [Part(f"{label(told.name)}: "), _number(name, told), Part(f", {about}.")]


def by_room(findings: Sequence[Finding]) -> Mapping[str, list[Finding]]:
    """The Findings of each question that was asked."""
    rooms = {room: [finding for finding in findings if finding.name.startswith(f"{room}.")] for room in QUESTIONS}
    return {room: own for room, own in rooms.items() if own}
