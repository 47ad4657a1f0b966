"""What people keep for a Run besides labels: views, keys, verdicts on lesions; and whether the Run has changed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field, TypeAdapter

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
MOST_VERDICTS = 10_000
_FORMAT = {"format": "weakspot-viewer", "version": 1}
_MOST_BYTES = 4 << 20
_HOLDS = "it holds saved views, keys and verdicts on lesions"
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


class LesionVerdict(BaseModel):
    """What a reader thinks of a lesion; without verdict and note it is taken back.

    blind: whether truth and probability were hidden.
    """

    split: Annotated[str, Field(max_length=200)]
    case: Annotated[str, Field(max_length=1000)]
    lesion: Annotated[int, Field(ge=0)]
    verdict: Literal["accepted", "rejected", ""]
    note: Annotated[str, Field(max_length=2000)]
    blind: bool

    @property
    def on(self) -> tuple[str, str, int]:
        """The lesion that it is about."""
        return self.split, self.case, self.lesion


_VERDICTS = TypeAdapter(list[LesionVerdict])


@router.get("/settings")
def settings(run: Chosen) -> Response:
    """The views and keys that are kept."""
    return _views_and_keys(kept(run.run))


def _views_and_keys(content: dict[str, Any]) -> Response:
    return as_json({name: content[name] for name in ("views", "keys")})


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

    return _views_and_keys(_change(run.run, changed))


@router.put("/settings/keys")
def keep_keys(run: Chosen, given: OwnKeys) -> Response:
    """Keep these keys for labels; each is a single character."""
    odd = next((key for key in given.keys if not _is_key(key)), None)
    if odd is not None:
        raise ConfigError(f"{odd!r} cannot be a key: expected a single letter, digit or sign other than ?")
    return _views_and_keys(_change(run.run, lambda before: {**before, "keys": given.keys}))


@router.get("/settings/verdicts")
def verdicts(run: Chosen, split: Annotated[str, Query(max_length=200)] = "test") -> Response:
    """The verdicts on the lesions of a split."""
    return as_json({"verdicts": [one for one in kept(run.run)["verdicts"] if one["split"] == split]})


@router.put("/settings/verdicts")
def keep_verdict(run: Chosen, given: LesionVerdict) -> Response:
    """Keep a verdict in the place of an earlier one on the lesion, or take that back; what was given."""

    def changed(before: dict[str, Any]) -> dict[str, Any]:
        others = [one for one in before["verdicts"] if LesionVerdict(**one).on != given.on]
        if not given.verdict and not given.note:
            return {**before, "verdicts": others}
        if len(others) >= MOST_VERDICTS:
            raise ConfigError(f"there are {MOST_VERDICTS} verdicts already: take one back first")
        return {**before, "verdicts": [*others, given.model_dump()]}

    _change(run.run, changed)
    return as_json(given.model_dump())


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
    """What the file holds: views and verdicts in the order in which they were kept, and the keys."""
    path = run.folder / FILE
    try:
        content = read_json(path, most=_MOST_BYTES, links=False)
        views = [{"name": one["name"], "address": one["address"]} for one in content["views"]]
        keys = dict(content["keys"].items())
        judged = [one.model_dump() for one in _VERDICTS.validate_python(content.get("verdicts", []))]
    except FileNotFoundError:
        return {"views": [], "keys": {}, "verdicts": []}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path} is damaged ({error}): restore or remove it; {_HOLDS}") from error
    texts = [*(text for one in views for text in one.values()), *keys, *keys.values()]
    if not all(isinstance(text, str) for text in texts):
        raise RunError(f"{path} is damaged (a name is no text): restore or remove it; {_HOLDS}")
    own = {key: label for key, label in keys.items() if _is_key(key)}
    return {"views": [one for one in views if is_page(one["address"])], "keys": own, "verdicts": judged}


def _change(run: Run, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """On disk when this returns; nobody else changes it meanwhile."""
    with _alone(run):
        after = change(kept(run))
        text = dumps({**_FORMAT, **after}, indent=1) + "\n"
        if len(text) > _MOST_BYTES:
            raise ConfigError(f"{FILE} would take over {_MOST_BYTES >> 20} MiB: shorten notes, or remove views")
        write_text(run.folder / FILE, text)
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
