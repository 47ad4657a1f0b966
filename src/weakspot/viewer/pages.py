"""The pages: one shell for each address; what stands in it comes from the API, and all state is in the address."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from weakspot.core.errors import RunError
from weakspot.rooms import rooms
from weakspot.viewer.library import Library, RunNumber
from weakspot.viewer.reading import RunReader
from weakspot.viewer.responses import NO_STORE
from weakspot.viewer.splits import sampled_splits

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Page:
    """One address: what it shows, and which Findings a Run must have for it (any of them)."""

    name: str
    title: str
    about: str
    findings: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Its address."""
        return "/" if self.name == "overview" else f"/{self.name}"


FIRST = (
    Page("overview", "Overview", "The questions with their answers, and every Finding."),
    Page("samples", "Samples", "Every input with all its values: filter, sort, search, export."),
)
LAST = (
    Page("findings", "Findings", "Every Finding: numbers, figures, pictures and the first rows of its table."),
    Page("compare", "Compare", "The same samples in two Runs."),
)
PAGES = (
    *FIRST,
    *(Page(one.name, one.title, one.about, one.findings) for room in rooms().values() for one in room.pages),
    *LAST,
)
"""In the order of the menu: those of every Run, those that rooms bring along, and two Runs side by side."""
BY_NAME = {page.name: page for page in PAGES}


def shown_pages(library: Library, run: RunReader) -> list[Page]:
    """The pages that have something to show for a Run."""
    conditions: dict[str, Callable[[], bool]] = {
        "overview": lambda: True,
        "samples": lambda: bool(sampled_splits(run)),
        "findings": lambda: bool(run.names()),
        "compare": lambda: len(library) > 1,
    }
    there = {name.partition("-")[0] for name in run.names()}
    return [page for page in PAGES if conditions.get(page.name, lambda p=page: bool(there & set(p.findings)))()]


def render_page(library: Library, page: Page, number: int) -> str:
    """The shell of a page."""
    try:
        shown = shown_pages(library, library.run(number))
    except RunError:
        shown = [BY_NAME["overview"]]  # the API says what is wrong
    state = {"page": page, "pages": shown, "runs": library.names, "run": number}
    return _environment().get_template("page.html").render(**state, modules=imported_modules(page.name))


@cache
def imported_modules(page: str) -> list[str]:
    """The modules that a page's script imports, directly or not: the browser asks for all at once, not one by one."""
    modules = [f"{page}.js"]
    for name in modules:  # grows on the way
        text = (files("weakspot.viewer") / "static" / name).read_text(encoding="utf-8")
        modules += [other for other in re.findall(r'from "\./(\w+\.js)"', text) if other not in modules]
    return modules[1:]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("weakspot.viewer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _add(page: Page) -> None:
    def shell(request: Request, run: RunNumber = 0) -> HTMLResponse:
        library: Library = request.app.state.library
        return HTMLResponse(render_page(library, page, min(run, len(library) - 1)), headers=NO_STORE)

    router.add_api_route(page.path, shell, methods=["GET", "HEAD"], name=page.name)


for _page in PAGES:
    _add(_page)
