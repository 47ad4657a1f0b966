"""The viewer in a real browser: a server of its own, what axe says of a page, and whether it looks as it should.

Takes the pictures of the documentation too:
python -m tests.viewer.driving runs/demo "/clusters?heat=1" picture.png 1280x800 [light|dark]
"""

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from PIL import Image

from tests.report.browser import Browser, Page, installed, running
from weakspot.viewer.app import create_app
from weakspot.viewer.serving import host_names, listen, server_config

CHROMIUM = installed()
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
DESKTOP, PHONE = (1280, 800), (390, 844)
TOKEN = "a-token-that-nobody-guesses"
LAYOUTS = Path(__file__).parent / "layouts"
RENEW = "WEAKSPOT_RENEW_LAYOUTS"
CELL = 16
"""Pixels of the page that are averaged into one of a kept layout: letters vanish, places and sizes stay."""
TOLERANCE, ODD = 20, 0.06
"""By how much of 255 such a pixel may differ, and which share of them by more: fonts are not alike everywhere."""


@contextmanager
def serving(*runs: Path) -> Iterator[str]:
    """The address of a viewer of these Runs, as long as the block lasts."""
    socket = listen("127.0.0.1", 0)
    port = socket.getsockname()[1]
    app = create_app(list(runs), token=TOKEN, hosts=host_names("127.0.0.1", port))
    config = server_config(app)
    config.lifespan = "off"  # tests share their Runs: no labels are kept when one of them ends
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()  # pytest's own limit ends it where this takes too long
        socket.close()


def opened(browser: Browser, address: str, path: str = "/", *, size=DESKTOP, scheme: str = "light") -> Page:
    """A page of the viewer, with the token given; without scrollbars, which are not alike everywhere."""
    separator = "&" if "?" in path else "?"
    url = f"{address}{path}{separator}token={TOKEN}"
    return browser.open(url, width=size[0], height=size[1], scheme=scheme, scrollbars=False)


def settled(page: Page) -> None:
    """Until the page is quiet: nothing is asked for, every picture is there."""
    page.wait("document.querySelector('main')?.hasAttribute('aria-busy') === false")
    page.run("new Promise(done => setTimeout(done, 30))")
    page.wait(
        "!document.querySelector('main').hasAttribute('aria-busy')"
        " && [...document.images].every(image => image.complete)"
        " && [...document.querySelectorAll('.cell')].every(cell => cell.dataset.ready !== '0')"
    )


def beyond(page: Page, address: str) -> list[str]:
    """What was asked of anybody else."""
    own = (f"{address}/", f"blob:{address}/", "data:")
    return [url for url in page.requests() if not url.startswith(own)]


def violations(page: Page) -> list[object]:
    """What axe finds that shuts anybody out."""
    pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install --no-deps axe-playwright-python")
    page.run((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8") + ";0")
    told = page.run(
        "axe.run(document, {resultTypes: ['violations']}).then(told => ({passes: told.passes.length,"
        " violations: told.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))])}))"
    )
    assert told["passes"] > 10, "axe looked at nothing"
    return list(told["violations"])


def layout_of(page: Page) -> np.ndarray:
    """The page in grey, so small that only places and sizes are left."""
    shown = Image.open(io.BytesIO(page.picture())).convert("L")
    small = shown.resize((shown.width // CELL, shown.height // CELL), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.uint8)


def differing(one: np.ndarray, other: np.ndarray) -> float:
    """The share of the pixels of two layouts that differ clearly."""
    if one.shape != other.shape:
        return 1.0
    return float((np.abs(one.astype(int) - other) > TOLERANCE).mean())


def assert_same_layout(page: Page, name: str) -> None:
    """The page lies as in tests/viewer/layouts/<name>.png; $WEAKSPOT_RENEW_LAYOUTS=1 writes that anew instead."""
    found, path = layout_of(page), LAYOUTS / f"{name}.png"
    if os.environ.get(RENEW):
        LAYOUTS.mkdir(exist_ok=True)
        Image.fromarray(found).save(path, optimize=True)
    assert path.exists(), f"there is no {path.name}: look at the page, then run again with {RENEW}=1"
    share = differing(found, np.asarray(Image.open(path)))
    assert share <= ODD, f"{share:.0%} of the page {name} look different: if that is meant, run again with {RENEW}=1"


def photograph(run: str, path: str, picture: str, size: str = "1280x800", scheme: str = "light") -> None:
    """Keep what a window of that size shows of a Run's page."""
    assert CHROMIUM, "needs chromium"
    width, height = map(int, size.split("x"))
    with serving(Path(run)) as address, running(CHROMIUM) as browser:
        page = opened(browser, address, path, size=(width, height), scheme=scheme)
        settled(page)
        Path(picture).write_bytes(page.picture())


if __name__ == "__main__":
    photograph(*sys.argv[1:])
