"""What people keep for a Run besides labels: views by name, and keys of their own; and whether the Run has changed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from weakspot.core.errors import ConfigError, RunError
from weakspot.core.files import write_text, writing
from weakspot.core.guarded_open import read_json
from weakspot.core.locks import lock
from weakspot.core.run import Run
from weakspot.viewer.library import Chosen
from weakspot.viewer.pages import PAGES
from weakspot.viewer.responses import as_json
from weakspot.viewer.splits import asked

router = APIRouter(prefix="/api")
FILE = "viewer.json"
MOST_VIEWS = 200
_FORMAT = {"format": "weakspot-viewer", "version": 1}
_MOST_BYTES = 4 << 20
_PATHS = {page.path for page in PAGES}


class SavedView(BaseModel):
    """A view by its name; `address` is that of a page of the viewer, null to remove the view."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    address: Annotated[str, Field(max_length=8000)] | None


class OwnKeys(BaseModel):
    """The label that each key gives, in the place of all keys there were."""

    keys: Annotated[
        dict[Annotated[str, Field(max_length=8)], Annotated[str, Field(max_length=1000)]], Field(max_length=100)
    ]


@router.get("/settings")
def settings(run: Chosen) -> Response:
    """The views and keys that are kept."""
    return as_json(kept(run.run))


@router.put("/settings/views")
def keep_view(run: Chosen, view: SavedView) -> Response:
    """Keep a view under its name, or remove it; all views afterwards."""
    if view.address is not None and not is_page(view.address):
        raise ConfigError(f"{view.address[:80]!r} is no page of the viewer: expected one such as /samples?sort=id")

    def changed(before: dict[str, Any]) -> dict[str, Any]:
        others = [one for one in before["views"] if one["name"] != view.name]
        if view.address is None:
            return {**before, "views": others}
        if len(others) >= MOST_VIEWS:
            raise ConfigError(f"there are {MOST_VIEWS} views already: remove one first")
        return {**before, "views": [*others, {"name": view.name, "address": view.address}]}

    return as_json(_change(run.run, changed))


@router.put("/settings/keys")
def keep_keys(run: Chosen, given: OwnKeys) -> Response:
    """Keep these keys for labels; each is a single character."""
    odd = next((key for key in given.keys if not _is_key(key)), None)
    if odd is not None:
        raise ConfigError(f"{odd!r} cannot be a key: expected a single letter, digit or sign other than ?")
    return as_json(_change(run.run, lambda before: {**before, "keys": given.keys}))


@router.get("/state")
def state(run: Chosen) -> Response:
    """By what a page sees that the Run has changed, and how far its examination is."""
    manifest = run.manifest()
    wanted, there = asked(manifest), run.names()
    return as_json(
        {
            "findings": dict(manifest["findings"]),
            "asked": len(wanted),
            "answered": sum(name in there for name in wanted),
            "running": (run.run.folder / "work").is_dir(),
        }
    )


def is_page(address: str) -> bool:
    """Whether it is the address of a page here, and leads nowhere else."""
    return address.partition("?")[0] in _PATHS and address.isprintable() and "#" not in address


def _is_key(key: str) -> bool:
    return len(key) == 1 and key.isprintable() and key not in " ?"


def kept(run: Run) -> dict[str, Any]:
    """What the file holds: the views in the order in which they were kept, and the keys."""
    path = run.folder / FILE
    try:
        content = read_json(path, most=_MOST_BYTES, links=False)
        views = [{"name": one["name"], "address": one["address"]} for one in content["views"]]
        keys = dict(content["keys"].items())
    except FileNotFoundError:
        return {"views": [], "keys": {}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is damaged ({error}): restore or remove it; it holds saved views and keys") from error
    texts = [*(text for one in views for text in one.values()), *keys, *keys.values()]
    if not all(isinstance(text, str) for text in texts):
        raise RunError(f"{path} is damaged (a name is no text): restore or remove it; it holds saved views and keys")
    own = {key: label for key, label in keys.items() if _is_key(key)}
    return {"views": [one for one in views if is_page(one["address"])], "keys": own}


def _change(run: Run, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """On disk when this returns; nobody else changes it meanwhile."""
    with _alone(run):
        after = change(kept(run))
        write_text(run.folder / FILE, dumps({**_FORMAT, **after}, indent=1) + "\n")
    return after


@contextmanager
def _alone(run: Run) -> Iterator[None]:
    """The folder itself is locked: the file is replaced whenever it changes."""
    with writing(run.folder / FILE):
        folder = os.open(run.folder, os.O_RDONLY)
    try:
        lock(folder, wait=True)
        yield
    finally:
        os.close(folder)
