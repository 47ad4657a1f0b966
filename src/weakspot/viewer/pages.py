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
from weakspot.viewer.answers import NO_STORE
from weakspot.viewer.library import Library, RunNumber
from weakspot.viewer.reading import RunReader
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


PAGES = (
    Page("overview", "Overview", "What was asked of the model, and what was found."),
    Page("samples", "Samples", "Every input with all that is known of it: filter, sort, search, export."),
    Page("clusters", "Root causes", "Errors with alike heat maps: likely one cause each.", ("causes.root_causes",)),
    Page(
        "pairs",
        "Confused pairs",
        "Classes that the model mixes up, with their images.",
        ("classes.class_pairs", "classes.output_pairs"),
    ),
    Page(
        "weak",
        "Weak inputs",
        "Inputs that small variations turn to a wrong answer, beside their neighbours.",
        ("robustness.weak_strips", "robustness.neighbour_accuracy"),
    ),
    Page("map", "Feature map", "Inputs where their features lie.", ("robustness.weak_places",)),
    Page(
        "holes",
        "Coverage holes",
        "What training inputs show and no test input does.",
        ("coverage.importance_driven_coverage",),
    ),
    Page("lesions", "Lesions", "Detected lesions by how likely each is false.", ("lesions.lesions", "lesions.scores")),
    Page("label", "Label", "Images to label next, cluster by cluster.", ("causes.unsafe",)),
    Page("compare", "Compare", "The same samples in two Runs."),
)
BY_NAME = {page.name: page for page in PAGES}


def shown_pages(library: Library, run: RunReader) -> list[Page]:
    """The pages that have something to show for a Run."""
    conditions: dict[str, Callable[[], bool]] = {
        "overview": lambda: True,
        "samples": lambda: bool(sampled_splits(run)),
        "compare": lambda: len(library) > 1,
    }
    there = set(run.names())
    return [page for page in PAGES if conditions.get(page.name, lambda p=page: bool(there & set(p.findings)))()]


def render_page(library: Library, page: Page, number: int) -> str:
    """The shell of a page."""
    try:
        shown = shown_pages(library, library.run(number))
    except RunError:
        shown = [BY_NAME["overview"]]  # what is wrong is told by the API
    told = {"page": page, "pages": shown, "runs": library.names, "run": number}
    return _environment().get_template("page.html").render(**told, modules=imported_modules(page.name))


@cache
def imported_modules(page: str) -> list[str]:
    """The modules that a page's script imports, directly or not: the browser asks for all at once, not one by one."""
    found = [f"{page}.js"]
    for name in found:  # grows on the way
        text = (files("weakspot.viewer") / "static" / name).read_text(encoding="utf-8")
        found += [other for other in re.findall(r'from "\./(\w+\.js)"', text) if other not in found]
    return found[1:]


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
