"""The samples behind a number: those that it counts, or of which it is the share."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as Parameter
from fastapi.responses import Response

from weakspot.core.finding import Finding
from weakspot.viewer.library import Chosen
from weakspot.viewer.reading import NotThereError
from weakspot.viewer.responses import as_json
from weakspot.viewer.sample_table import column_called, sample_table
from weakspot.viewer.splits import split_of

router = APIRouter(prefix="/api")
_NOT = "not "


def flags_of(head: Finding, number: str) -> list[str]:
    """The truth values that hold for the samples behind a number, as it declares them; none where there are no such."""
    declared = head.outputs.number(number)
    if declared.counts:
        return declared.counts.split(", ")
    column = declared.mean_of.removeprefix(_NOT)
    return [declared.mean_of] if column and head.outputs.column(column).unit == "flag" else []


@router.get("/behind")
def samples_behind(
    run: Chosen, number: Annotated[str, Parameter(max_length=300, description="A Finding, a slash, and its number.")]
) -> Response:
    """The split and the filters that list the samples behind a number."""
    name, _, of_finding = number.partition("/")
    head = run.head(name)
    flags, split = flags_of(head, of_finding) if of_finding in head.summary else [], split_of(run, head)
    if not flags or split is None:
        raise NotThereError(f"{number[:80]!r} is no number of single samples: expected one that the first page links")
    table = sample_table(run, split)
    filters = []
    for flag in flags:
        column = flag.removeprefix(_NOT)
        found = table.columns.get(f"{name}.{column}") or column_called(table, column)
        if found is None:
            raise NotThereError(f"the samples have no column {column!r}: examine again")
        filters.append(f"{found.name}:is:{'no' if flag.startswith(_NOT) else 'yes'}")
    return as_json({"split": split, "filter": filters})
