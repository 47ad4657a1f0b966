"""What a Finding holds, declared by the probe that makes it: numbers, columns, arrays, figures and sentences.

A declaration is plain data. It is written into the Finding's index, so report, viewer, compare and gate read it from
there and need neither the probe nor torch. A name may hold one star, as in "apfd_*": it then declares every output
whose name fits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from weakspot.core.digest import canonical
from weakspot.core.errors import ProbeError
from weakspot.core.figures import Figure, figure_from_json
from weakspot.core.templates import SLOT, slots

if TYPE_CHECKING:
    from weakspot.core.finding import Estimate, Finding

Better = Literal["higher", "lower"]
Role = Literal[
    "", "id", "prediction", "target", "correct", "coordinate", "rank", "code", "interval", "metadata", "group"
]
"""What a column is: a sample's id; the model's prediction; its target; whether that is correct; a coordinate of a
projection; a place in a ranking; a number that stands for a thing; an end of an interval; what came with the data; what
the sample belongs to."""
UNUSABLE = "unusable"
"""The label of an input that shows nothing that could be labelled: it is kept, and nothing is trained on it."""


@dataclass(frozen=True)
class ValueSpec:
    """One number of a summary, or one column of a table.

    about: what it is, in a few words.
    unit: "share" (printed in percent), "count", "number", "flag", "text", or a unit such as "seconds".
    better: which way is better; None where neither is.
    role: of a column, what it is.
    mean_of: of a number, the column whose mean over the rows it is; "not correct" where it is 1 less that mean.
    counts: of a number, the truth values that hold for the samples it counts, as "weak, not correct".
    optional: whether it may be missing, for instance without labels.
    """

    about: str
    unit: str = "number"
    better: Better | None = None
    role: Role = ""
    mean_of: str = ""
    counts: str = ""
    optional: bool = False

    @property
    def higher_is_better(self) -> bool | None:
        """True, False, or None where neither way is better."""
        return None if self.better is None else self.better == "higher"

    def __canonical__(self) -> dict[str, Any]:
        return _set_entries(self)


def share(about: str, **settings: Any) -> ValueSpec:
    """A number from 0 to 1 that is printed in percent."""
    return ValueSpec(about, "share", **settings)


def count(about: str, **settings: Any) -> ValueSpec:
    """How many there are of something."""
    return ValueSpec(about, "count", **settings)


def number(about: str, **settings: Any) -> ValueSpec:
    """A number without a unit."""
    return ValueSpec(about, "number", **settings)


def flag(about: str, **settings: Any) -> ValueSpec:
    """True or false."""
    return ValueSpec(about, "flag", **settings)


def text(about: str, **settings: Any) -> ValueSpec:
    """Text."""
    return ValueSpec(about, "text", **settings)


def interval_end(about: str, **settings: Any) -> ValueSpec:
    """The low or high end of another column's interval."""
    return ValueSpec(about, settings.pop("unit", "number"), role="interval", **settings)


def interval(of: str, name: str = "", **settings: Any) -> dict[str, ValueSpec]:
    """Both ends of an interval: the columns `low` and `high`, or, with a name, `<name>_low` and `<name>_high`."""
    prefix = f"{name}_" if name else ""
    return {f"{prefix}{end}": interval_end(f"{end} end of {of}", **settings) for end in ("low", "high")}


def sample_id() -> ValueSpec:
    """The column that names the sample of each row."""
    return ValueSpec("the sample", "text", role="id")


def prediction(about: str = "the model's prediction", **settings: Any) -> ValueSpec:
    """The column of predictions."""
    return ValueSpec(about, "text", role="prediction", **settings)


def target(about: str = "the label", **settings: Any) -> ValueSpec:
    """The column of labels."""
    return ValueSpec(about, "text", role="target", **settings)


def correct(about: str = "whether the prediction is correct", **settings: Any) -> ValueSpec:
    """The column that says of each prediction whether it is correct."""
    return ValueSpec(about, "flag", "higher", role="correct", **settings)


@dataclass(frozen=True)
class ArraySpec:
    """One array: what it holds, and what each axis counts."""

    about: str
    axes: tuple[str, ...] = ()
    optional: bool = False

    def __canonical__(self) -> dict[str, Any]:
        return _set_entries(self)


_Output = TypeVar("_Output", ValueSpec, ArraySpec)


def optional(outputs: Mapping[str, _Output]) -> dict[str, _Output]:
    """Numbers, columns or arrays, each of which may be missing."""
    return {name: replace(spec, optional=True) for name, spec in outputs.items()}


@dataclass(frozen=True)
class Headline:
    """A sentence that answers a question; `{name}` stands for that number of the summary, with its interval.

    text: the sentence.
    rank: of a room's sentences, the one of the lowest rank whose numbers are all there is shown.
    further: shown after the answer, not as the answer.
    """

    text: str
    rank: int = 0
    further: bool = False

    def names(self) -> list[str]:
        """The numbers that the sentence names, in their order."""
        return list(dict.fromkeys(name for name in SLOT.findall(self.text) if name != "finding"))

    def __canonical__(self) -> dict[str, Any]:
        return _set_entries(self)


@dataclass(frozen=True)
class Advice:
    """A next step; shown if all numbers that its text names are there and none of them is zero.

    text: what to do, with `{name}` for numbers of the summary.
    command: the command that does it; RUN stands for the Run's folder.
    rank: the lower, the earlier it is shown.
    """

    text: str
    command: str = ""
    rank: int = 0

    def __canonical__(self) -> dict[str, Any]:
        return _set_entries(self)


@dataclass(frozen=True)
class Outputs:
    """Everything a probe's Finding holds.

    summary, columns, arrays: by name, or by a pattern with one star.
    pictures: what the pictures show; empty where there are none.
    by_sample: columns about samples that lie in arrays, since the rows of the table are something else: by the column's
        name, the array of the samples' ids and the array of their values.
    figures: what is drawn from arrays and columns; each figure whose outputs are all there is drawn.
    headlines: sentences that answer the room's question.
    advice: next steps that follow from the numbers.
    """

    summary: Mapping[str, ValueSpec] = field(default_factory=dict)
    columns: Mapping[str, ValueSpec] = field(default_factory=dict)
    arrays: Mapping[str, ArraySpec] = field(default_factory=dict)
    pictures: str = ""
    by_sample: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    figures: Sequence[Figure] = ()
    headlines: Sequence[Headline] = ()
    advice: Sequence[Advice] = ()

    def __canonical__(self) -> dict[str, Any]:
        return _set_entries(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Outputs":
        """A declaration as it was written; entries that this version does not know are left out."""
        return cls(
            summary={str(name): _read(ValueSpec, one) for name, one in entry.get("summary", {}).items()},
            columns={str(name): _read(ValueSpec, one) for name, one in entry.get("columns", {}).items()},
            arrays={str(name): _read(ArraySpec, one) for name, one in entry.get("arrays", {}).items()},
            pictures=str(entry.get("pictures", "")),
            by_sample={
                str(name): (str(ids), str(values)) for name, (ids, values) in entry.get("by_sample", {}).items()
            },
            figures=[figure for one in entry.get("figures", ()) for figure in figure_from_json(one)],
            headlines=[_read(Headline, one) for one in entry.get("headlines", ())],
            advice=[_read(Advice, one) for one in entry.get("advice", ())],
        )

    def number(self, name: str) -> ValueSpec:
        """The declaration of a number of the summary; one without unit or direction where there is none."""
        return fitting(name, self.summary) or ValueSpec("")

    def column(self, name: str) -> ValueSpec:
        """The declaration of a column of the table; one without unit or direction where there is none."""
        return fitting(name, self.columns) or ValueSpec("")

    def array(self, name: str) -> ArraySpec:
        """The declaration of an array."""
        return fitting(name, self.arrays) or ArraySpec("")

    def described(self, summary: "Mapping[str, Estimate]") -> "dict[str, Estimate]":
        """The numbers, each with the declared words about it where it has none of its own."""
        return {
            name: estimate if estimate.about else replace(estimate, about=self.number(name).about)
            for name, estimate in summary.items()
        }

    def columns_of_role(self, finding: "Finding", role: Role) -> list[str]:
        """The columns of a Finding's table that have a role."""
        names = [] if finding.table is None else finding.table.column_names
        return [name for name in names if self.column(name).role == role]

    def problems(self, finding: "Finding") -> list[str]:
        """How a Finding differs from what is declared; empty where it is as declared."""
        return [*_unlike(self, finding), *_wrong_figures(self), *_wrong_sentences(self)]

    def check(self, finding: "Finding") -> None:
        """Raise if a Finding is not as declared."""
        problems = self.problems(finding)
        if problems:
            raise ProbeError(f"{finding.name} is not what it declares in `outputs`: {'; '.join(problems)}")


_Declared = TypeVar("_Declared", ValueSpec, ArraySpec, Headline, Advice)


def fitting(name: str, declared: Mapping[str, _Declared]) -> _Declared | None:
    """What is declared under a name, or under a pattern that it fits.

    >>> fitting("apfd_nc", {"apfd_*": share("area under the curve")}).unit
    'share'
    """
    if name in declared:
        return declared[name]
    return next((one for key, one in declared.items() if "*" in key and fnmatchcase(name, key)), None)


def _read(kind: type[_Declared], entry: Mapping[str, Any]) -> _Declared:
    names = {field.name for field in fields(kind)}
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name in names
    }
    return kind(**options)


def _set_entries(declared: Any) -> dict[str, Any]:
    """The entries that differ from the defaults: an index stays short."""
    entries = {field.name: (getattr(declared, field.name), field) for field in fields(declared)}
    return {name: canonical(value) for name, (value, field) in entries.items() if value or field.name == "about"}


def _unlike(outputs: Outputs, finding: "Finding") -> Iterator[str]:
    columns = [] if finding.table is None else finding.table.column_names
    kinds: tuple[tuple[str, Iterable[str], Mapping[str, Any]], ...] = (
        ("number", finding.summary, outputs.summary),
        ("column", columns, outputs.columns),
        ("array", finding.arrays, outputs.arrays),
    )
    for kind, made, declared in kinds:
        present = list(made)
        yield from (f"{kind} {name!r} is not declared" for name in present if fitting(name, declared) is None)
        for pattern, one in declared.items():
            if not one.optional and not any(name == pattern or fnmatchcase(name, pattern) for name in present):
                yield f"{kind} {pattern!r} is declared and not there"
    for name, array in finding.arrays.items():
        axes = outputs.array(name).axes
        if axes and len(axes) != array.ndim:
            yield f"array {name!r} has {array.ndim} axes, declared are {', '.join(axes)}"
    for name, estimate in finding.summary.items():
        if not _fits(estimate.value, outputs.number(name).unit):
            yield f"number {name!r} is {estimate.value!r}, declared as {outputs.number(name).unit}"
    if finding.media and not outputs.pictures:
        yield "pictures are not declared"
    yield from _wrong_columns(outputs, finding)


def _wrong_columns(outputs: Outputs, finding: "Finding") -> Iterator[str]:
    """Columns whose type does not fit their unit."""
    if finding.table is None:
        return
    for entry in finding.table.schema:
        unit, kind = outputs.column(entry.name).unit, str(entry.type)
        numeric = kind.startswith(("int", "uint", "float", "double", "halffloat"))
        if (unit == "flag" and kind != "bool") or (unit in ("share", "count", "number") and not numeric):
            yield f"column {entry.name!r} is {kind}, declared as {unit}"


def _fits(value: Any, unit: str) -> bool:
    if value is None:
        return True
    if unit == "text":
        return isinstance(value, str)
    if unit == "flag":
        return isinstance(value, bool)
    if isinstance(value, bool | str):
        return False
    return isinstance(value, int) if unit == "count" else -1e-9 <= value <= 1 + 1e-9 if unit == "share" else True


def _wrong_figures(outputs: Outputs) -> Iterator[str]:
    for figure in outputs.figures:
        for name in figure.inputs():
            column = name.removeprefix("table.")
            declared: Mapping[str, Any] = outputs.columns if name.startswith("table.") else outputs.arrays
            if fitting(column, declared) is None and not any(fnmatchcase(other, column) for other in declared):
                yield f"a figure needs {name!r}, which is not declared"


def _wrong_sentences(outputs: Outputs) -> Iterator[str]:
    texts = [one.text for one in outputs.headlines] + [one.text for one in outputs.advice]
    for words in texts:
        lost = [name for name in sorted(slots(words)) if fitting(name, outputs.summary) is None]
        yield from (f"a sentence needs the number {name!r}, which is not declared" for name in lost)
