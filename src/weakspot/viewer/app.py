"""The web app: its routes, and the checks that every request passes first."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

from weakspot._version import __version__
from weakspot.core.run import Run
from weakspot.rooms import rooms
from weakspot.viewer import behind, compare, findings, media, overview, pages, pictures, samples, settings
from weakspot.viewer.library import Library
from weakspot.viewer.responses import ERRORS, add_error_answers
from weakspot.viewer.security import Guard

ROUTERS = (
    pages.router,
    overview.router,
    samples.router,
    pictures.router,
    media.router,
    findings.router,
    compare.router,
    settings.router,
    behind.router,
)


def create_app(runs: Sequence[str | Path | Run], *, token: str, hosts: Iterable[str]) -> FastAPI:
    """The viewer of one Run, or of two side by side.

    token: what a browser must know.
    hosts: what may stand in the header Host, as `127.0.0.1:8765`.
    """
    app = FastAPI(
        title="weakspot viewer", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json"
    )
    app.state.library = Library(runs)
    brought = [import_module(f"weakspot.{name}.pages").router for name, room in rooms().items() if room.pages]
    for router in (*ROUTERS, *brought):
        app.include_router(router, responses=ERRORS)
    app.mount("/static", _Static(packages=[("weakspot.viewer", "static"), ("weakspot.report", "shared")]))
    add_error_answers(app)
    app.add_middleware(Guard, token=token, hosts=frozenset(host.lower() for host in hosts))
    return app


class _Static(StaticFiles):
    """Asked for anew each time: else a browser runs modules of two versions together after an upgrade."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file, unless the browser has this very one."""
        answer = super().file_response(*args, **kwargs)
        answer.headers["Cache-Control"] = "no-cache"
        return answer
