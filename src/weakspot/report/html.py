"""One self-contained HTML file from a Run: opens offline, asks for nothing, and is the same bytes for the same Run."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from weakspot.core.files import write_text, writing
from weakspot.core.run import Run
from weakspot.report.page import build_page
from weakspot.report.wording import counted, label, number, short, split_label


def write_report(run: Run, path: Path) -> Path:
    """Write the report of a Run, whole or not at all; gives back where it lies."""
    text = render(run)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def render(run: Run) -> str:
    """The report of a Run as HTML text."""
    style, script = page_style(), _resource("templates", "page.js")
    page = _environment().get_template("page.html")
    return page.render(page=build_page(run), style=style, script=script, policy=content_policy(style, script))


def content_policy(style: str, script: str) -> str:
    """A Content-Security-Policy under which nothing works but this style, this script and embedded pictures."""
    return (
        f"default-src 'none'; style-src '{_source_hash(style)}'; script-src '{_source_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_style() -> str:
    """The style of the report; the viewer has the same palette."""
    return _resource("shared", "palette.css") + _resource("templates", "page.css")


def _resource(folder: str, name: str) -> str:
    return (files("weakspot.report") / folder / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("weakspot.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(counted=counted, label=label, number=number, short=short, split_label=split_label)
    return environment
