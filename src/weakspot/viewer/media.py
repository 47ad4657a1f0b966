"""The pictures that a Finding itself carries."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as Part
from fastapi.responses import Response

from weakspot.core.finding import Finding
from weakspot.viewer.library import Chosen
from weakspot.viewer.pictures import Version
from weakspot.viewer.reading import NotThereError
from weakspot.viewer.responses import Png, picture

router = APIRouter(prefix="/api")


def media_of(finding: Finding) -> dict[str, dict[str, Any]]:
    """The pictures by their keys, each with the number under which `/api/media` gives it."""
    return {
        key: {"number": number, "caption": str(shown.caption), "version": finding.digest[:8]}
        for number, (key, shown) in enumerate(finding.media.items())
    }


@router.get("/media/{finding}/{number}", response_class=Png)
def one(
    run: Chosen,
    finding: Annotated[str, Part(max_length=200)],
    number: Annotated[int, Part(ge=0, le=10**6)],
    v: Version = "",
) -> Response:
    """A picture of a Finding as PNG."""
    held = run.finding(finding)
    if number >= len(held.media):
        raise NotThereError(f"{finding} has no picture {number}: it has {len(held.media)}")
    return picture(list(held.media.values())[number].png, versioned=bool(v) and v == held.digest[:8])
