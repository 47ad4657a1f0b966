"""Any Finding, as it declares itself: numbers, figures, pictures and the first rows of its table."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as Part
from fastapi.responses import Response

from weakspot.core.finding import Finding
from weakspot.report.drawings import figures
from weakspot.report.html import figure_files
from weakspot.report.tables import show_table
from weakspot.viewer.library import Chosen
from weakspot.viewer.media import media_of
from weakspot.viewer.overview import summarised
from weakspot.viewer.reading import NotThereError, RunReader
from weakspot.viewer.responses import NO_STORE, Svg, as_json
from weakspot.viewer.splits import class_names

router = APIRouter(prefix="/api/findings")
Name = Annotated[str, Part(max_length=200)]
Number = Annotated[int, Part(ge=0, le=10**4)]
_COLUMNS = 40
_ROWS = 100


@router.get("/{name}")
def finding(run: Chosen, name: Name) -> Response:
    """A Finding: its numbers, how many figures there are, its pictures, and the first rows of its table."""
    whole = run.finding(name)
    return as_json(
        {
            **summarised(run, whole),
            "figures": [{"caption": figure.caption, "problem": figure.problem, "drawings": len(files)}
                        for figure, files in _figures(run, whole)],
            "media": list(media_of(whole).values()),
            "table": _table(whole),
        }
    )  # fmt: skip


@router.get("/{name}/figure/{figure}/{drawing}", response_class=Svg)
def drawing(run: Chosen, name: Name, figure: Number, drawing: Number) -> Response:
    """A drawing of a figure as SVG."""
    drawn = _figures(run, run.finding(name))
    if figure >= len(drawn) or drawing >= len(drawn[figure][1]):
        raise NotThereError(f"{name} has no such drawing: it has {len(drawn)} figures")
    return Svg(drawn[figure][1][drawing], headers=NO_STORE)


def _figures(run: RunReader, whole: Finding) -> list[tuple[Any, list[str]]]:
    return [(figure, figure_files(figure)) for figure in figures(whole, class_names(run.manifest()))]


def _table(whole: Finding) -> dict[str, Any] | None:
    if whole.table is None:
        return None
    shown = show_table(whole.table, whole.outputs, rows=_ROWS, columns=_COLUMNS)
    return {
        "extent": shown.extent,
        "columns": [
            {"name": column.name, "numeric": column.numeric, "about": column.declared.about} for column in shown.columns
        ],
        "rows": [[cell.text for cell in row] for row in shown.rows],
    }
