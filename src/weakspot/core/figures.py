"""Figures as declarations: which kind, and the arrays and columns it is drawn from. Drawn by `weakspot.report`.

Names without a prefix are arrays; `table.` before a name means a column of the table. A star in a name stands for any
text, where a figure says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Literal

from weakspot.core.digest import canonical

Format = Literal["number", "percent", "hundredths", "tenths", "decimal"]
"""How a cell or axis is printed: as a number, in percent with a sign, in hundredths (0.25 is "25"), in hundredths with
a decimal, or with one decimal."""
KINDS: dict[str, type["Figure"]] = {}
"""Every kind of figure by its name."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure with its caption. Fields in `NAMES` hold names of arrays or columns."""

    NAMES: ClassVar[tuple[str, ...]] = ()

    caption: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        KINDS[cls.__name__] = cls

    def inputs(self) -> list[str]:
        """The arrays and columns that must be there; patterns with their star."""
        return [name for entry in self.NAMES for name in _names(getattr(self, entry))]

    def __canonical__(self) -> dict[str, Any]:
        entries = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        changed = {entry.name: entries[entry.name] for entry in fields(self) if entries[entry.name] != _default(entry)}
        return {"kind": type(self).__name__, **{name: canonical(value) for name, value in changed.items()}}


@dataclass(frozen=True, kw_only=True)
class Curves(Figure):
    """Lines over a common x.

    x: an array of shape (points,).
    lines: an array or a pattern; or arrays by the name of their line, of which only the first must be there.
    prefix: what the names of lines lose of the names of their arrays.
    rows: the names of the rows, where `lines` is one array of shape (rows, points).
    verbatim: whether these names are printed as they are, such as names of layers.
    relative: whether each line is divided by its last value.
    """

    NAMES = ("x", "lines", "rows")

    x: str
    lines: str | Mapping[str, str]
    x_label: str
    y_label: str
    prefix: str = ""
    rows: str = ""
    verbatim: bool = False
    relative: bool = False
    log_x: bool = False
    x_format: Format = "number"
    y_format: Format = "number"

    def inputs(self) -> list[str]:
        """The x and the lines; of several named lines the first."""
        lines = [self.lines] if isinstance(self.lines, str) else list(self.lines.values())[:1]
        return [self.x, *lines, *_names(self.rows)]


@dataclass(frozen=True, kw_only=True)
class CurvePanels(Figure):
    """One curve with its interval for each value of a column: x is the middle of `start` and `end`."""

    NAMES = ("by", "unit", "start", "end", "value", "low", "high")

    by: str
    unit: str
    start: str
    end: str
    value: str
    low: str
    high: str
    y_label: str
    y_format: Format = "number"


@dataclass(frozen=True, kw_only=True)
class Distributions(Figure):
    """Histograms over 0 to 1 as lines; `counts` is a pattern of arrays of shape (bins,)."""

    NAMES = ("counts",)

    counts: str
    x_label: str
    y_label: str
    prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class ReliabilityCurve(Figure):
    """Probabilities against observed frequencies.

    curves: a pattern of arrays of shape (3, bins): predicted, observed, count; drawn as lines beside the diagonal.
    predicted, observed, counts: without it, arrays of shape (bins,); drawn as a row per bin with count and interval.
    """

    NAMES = ("curves", "predicted", "observed", "counts")

    curves: str = ""
    predicted: str = ""
    observed: str = ""
    counts: str = ""


@dataclass(frozen=True, kw_only=True)
class Scatter(Figure):
    """Points; `marked` is a column or array of flags, or `marked_rows` holds the numbers of the marked points.

    mark_known: whether points are drawn without marks where `marked` is not there.
    """

    NAMES = ("x", "y", "marked", "marked_rows")

    x: str
    y: str
    x_label: str
    y_label: str
    marked: str = ""
    marked_rows: str = ""
    names: Sequence[str] = ("", "")
    log_x: bool = False
    mark_known: bool = False

    def inputs(self) -> list[str]:
        """Without the marks where they may be missing."""
        return [name for name in super().inputs() if not (self.mark_known and name == self.marked)]


@dataclass(frozen=True, kw_only=True)
class Histogram(Figure):
    """How the values of a column or array spread; the marked ones at the foot of each bar."""

    NAMES = ("values", "marked")

    values: str
    x_label: str
    marked: str = ""
    names: Sequence[str] = ("", "")


@dataclass(frozen=True, kw_only=True)
class SplitBoxes(Figure):
    """Quartiles, median, 5 % and 95 % of a column, for the rows where a flag is true and where it is false.

    names: of the rows where it is true, and where it is false; the second is marked.
    """

    NAMES = ("values", "by")

    values: str
    by: str
    names: Sequence[str]
    x_label: str


@dataclass(frozen=True, kw_only=True)
class Boxes(Figure):
    """A box for each row.

    labels: a column or array of names, or several of them, one for each of `quantiles`.
    quantiles: columns of the lower quartile, median and upper quartile; or, with `stacked`, arrays of shape (rows, 5).
    stacked: names of the arrays' groups; the first group is marked.
    """

    NAMES = ("labels", "quantiles")

    labels: str | Sequence[str]
    quantiles: Sequence[str]
    x_label: str
    stacked: Sequence[str] = ()
    format: Format = "number"


@dataclass(frozen=True, kw_only=True)
class Bars(Figure):
    """A bar for each row of the table, with its interval where there is one.

    labels: the columns that name a row, put into `label_text`.
    marked: a column of flags; "interval" marks rows whose interval excludes 0.
    where: only rows that hold these values; None stands for the value of the first row.
    most: how many rows at most; 0 for all.
    readable: whether labels are names of methods or numbers, printed with spaces.
    """

    NAMES = ("labels", "values", "low", "high")

    labels: Sequence[str]
    values: str
    x_label: str
    label_text: str = "{}"
    low: str = ""
    high: str = ""
    marked: str = ""
    where: Mapping[str, str | None] = field(default_factory=dict)
    most: int = 0
    readable: bool = False
    format: Format = "number"

    def inputs(self) -> list[str]:
        """What is drawn, and the columns that rows are chosen and marked by."""
        marked = [] if self.marked in ("", "interval") else [self.marked]
        return [*super().inputs(), *marked, *self.where]


@dataclass(frozen=True, kw_only=True)
class Matrix(Figure):
    """Rows by columns; the darker, the higher, or with darkest="low" the lower.

    rows: names of the rows.
    columns: names of the columns, where they are others.
    classes: an array of class numbers, in place of `rows`; their names are the subject's.
    row_text: names of the rows by their number from 1, as "cluster {}", in place of `rows`.
    order: an array with the order of rows and columns.
    clip: whether values are cut to 0 to 1.
    """

    NAMES = ("values", "rows", "columns", "classes", "order")

    values: str
    rows: str = ""
    columns: str = ""
    classes: str = ""
    row_text: str = ""
    order: str = ""
    signed: bool = False
    clip: bool = False
    darkest: Literal["high", "low"] = "high"
    format: Format = "number"


@dataclass(frozen=True, kw_only=True)
class Dendrogram(Figure):
    """Which classes are joined first; `tree` as scipy's `linkage` gives it, `order` from top to bottom."""

    NAMES = ("tree", "order", "classes")

    tree: str
    order: str
    classes: str
    x_label: str


@dataclass(frozen=True, kw_only=True)
class Strip(Figure):
    """For each row a band of cells from 0 to 1; counts of shape (rows, bins)."""

    NAMES = ("labels", "counts")

    labels: str
    counts: str
    x_label: str
    format: Format = "percent"


def figure_from_json(entry: Mapping[str, Any]) -> Iterator[Figure]:
    """A figure as it was declared; nothing where this version does not know the kind."""
    kind = KINDS.get(str(entry.get("kind")))
    if kind is None:
        return
    names = {entry.name for entry in fields(kind)}
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items() if name in names
    }
    yield kind(**options)


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    return list(value.values() if isinstance(value, Mapping) else value)


def _default(entry: Any) -> Any:
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default
