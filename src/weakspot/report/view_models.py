"""What the page shows, as plain values: the parts that the templates print."""

import base64
import struct
from dataclasses import dataclass

import numpy as np

from weakspot.core.errors import BadSample
from weakspot.core.finding import Picture
from weakspot.core.room import NextStep
from weakspot.data.images import decode
from weakspot.formatting import ShownEstimate
from weakspot.report.drawings import DrawnFigure
from weakspot.report.provenance import ProvenanceLine
from weakspot.report.tables import ShownTable

_LEAST_HEIGHT = 72
_BLACK, _DARK = 0.07, 0.16
"""Where a picture counts as near-black, and as dark: the median of its brightest channel, from 0 to 1."""
_HEADER = 24
"""Bytes of a PNG up to and with its width and height."""


@dataclass(frozen=True)
class SentencePart:
    """A piece of a sentence; a number, whose name is given, leads to how it was computed."""

    text: str
    link: str = ""
    number: str = ""


@dataclass(frozen=True)
class ShownPicture:
    """A picture that carries its own bytes.

    size: width and height in pixels of the page, where it is known.
    light: "brighter" or "brightest" where it is too dark to be judged as it is; the page shows it so.
    """

    name: str
    source: str
    caption: str
    size: tuple[int, int] | None
    light: str = ""


def show_picture(name: str, picture: Picture) -> ShownPicture:
    """A picture for the page; a tiny one is drawn several times its size, so that its pixels can be seen."""
    source = "data:image/png;base64," + base64.b64encode(picture.png).decode()
    return ShownPicture(name, source, picture.caption, _size(picture.png), _light(picture.png))


def _light(png: bytes) -> str:
    """How much brighter a picture must be to be judged, by the median of what is not white, as gaps are."""
    try:
        pixels = decode(png, sample="a picture").max(axis=0)
    except BadSample:
        return ""
    shown = pixels[pixels < 1]
    middle = float(np.median(shown)) if shown.size else 1.0
    return "brightest" if middle < _BLACK else "brighter" if middle < _DARK else ""


def _size(png: bytes) -> tuple[int, int] | None:
    if len(png) < _HEADER or png[12:16] != b"IHDR":
        return None
    width, height = struct.unpack(">II", png[16:_HEADER])
    times = max(1, -(-_LEAST_HEIGHT // max(height, 1)))
    return width * times, height * times


@dataclass(frozen=True)
class Answer:
    """One question with its answer in a sentence."""

    room: str
    question: str
    sentence: list[SentencePart]
    finding: str = ""
    """The Finding whose sentence it is."""


@dataclass(frozen=True)
class WorstCard:
    """One of the worst findings: what it is, how sure that is, and what it looks like."""

    title: str
    text: str
    finding: str
    pictures: list[ShownPicture]


@dataclass(frozen=True)
class Split:
    """A part of the data."""

    name: str
    samples: int | None
    fingerprint: str
    skipped: int = 0
    """Samples that could not be used and were left out."""
    made: str = ""
    """How they came about, where they are not simply all that there are."""


@dataclass(frozen=True)
class ShownSubject:
    """The model under test, as the Run's manifest describes it."""

    model: str
    task: str
    fingerprint: str
    classes: str
    splits: list[Split]
    weights: str = ""
    written: str = ""
    """When the Run was last written, by its manifest on this disk."""


@dataclass(frozen=True)
class FindingSection:
    """One Finding, ready to print."""

    name: str
    title: str
    about: str
    where: list[str]
    warnings: list[str]
    summary: list[ShownEstimate]
    figures: list[DrawnFigure]
    pictures: list[ShownPicture]
    table: ShownTable | None
    table_file: str
    origins: list[ProvenanceLine]
    used_by: list[str]
    open: bool = False
    """Whether it is shown at once, and not folded."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.summary or self.figures or self.pictures or self.table)


@dataclass(frozen=True)
class RoomSection:
    """The Findings that answer one question."""

    name: str
    question: str
    caution: str
    sections: list[FindingSection]
    lead: bool = False
    """Whether it comes before all else."""


@dataclass(frozen=True)
class ShownVerdict:
    """What a policy says of the Run, in a sentence for those who decide, and rule by rule where rules do not hold."""

    sentence: str
    lines: list[str]


@dataclass(frozen=True)
class ReportPage:
    """The whole report."""

    subject: ShownSubject
    answers: list[Answer]
    not_asked: list[str]
    outdated: list[str]
    """Questions that were only asked of another model or of other data."""
    worst: list[WorstCard]
    steps: list[NextStep]
    rooms: list[RoomSection]
    findings: int
    manifest_digest: str
    verdict: ShownVerdict | None = None

    @property
    def leads(self) -> list[str]:
        """The rooms that come before all else."""
        return [room.name for room in self.rooms if room.lead]
