"""One self-contained HTML file from a Run: opens offline, asks for nothing, and is the same bytes for the same Run."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from weakspot.core.files import make_folder, write_text, writing
from weakspot.core.run import Run
from weakspot.formatting import counted, label, number, short, split_label
from weakspot.report.drawings import DrawnFigure
from weakspot.report.page import build_page
from weakspot.report.view_models import ShownVerdict

_SVG = re.compile(r"<svg ([^>]*)>")
_SVG_NAMESPACE = "http://www.w3.org/2000/svg"


def write_report(run: Run, path: Path, verdict: ShownVerdict | None = None) -> Path:
    """Write the report of a Run, whole or not at all; gives back where it lies.

    verdict: what a policy says of the Run; it is shown first.
    """
    text = render(run, verdict)
    with writing(path):
        make_folder(path.parent)
    write_text(path, text)
    return path


def render(run: Run, verdict: ShownVerdict | None = None) -> str:
    """The report of a Run as HTML text."""
    style, script = page_style(), _resource("templates", "page.js")
    page = _environment().get_template("page.html")
    text = page.render(page=build_page(run, verdict), style=style, script=script, policy=content_policy(style, script))
    return text.encode("utf-8", "backslashreplace").decode()  # an array may hold text that is none


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
    return _resource("shared", "palette.css") + _resource("shared", "figures.css") + _resource("templates", "page.css")


def figure_files(figure: DrawnFigure) -> list[str]:
    """The drawings of a figure as SVG files of their own, with the colours of the page."""
    style = _resource("shared", "palette.css") + _resource("shared", "figures.css")
    head = f"<style>{style} :root {{ color: var(--ink); background: var(--paper) }}</style>"
    return [_SVG.sub(rf'<svg xmlns="{_SVG_NAMESPACE}" \1>{head}', drawing, 1) for drawing in figure.drawings]


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
