"""A headless Chromium, driven through its DevTools pipe with nothing but the standard library.

Takes the pictures of the documentation too:
python -m tests.report.browser report.html picture.png 1200x1500 [light|dark] [id]
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip

PATIENCE = 60
"""Seconds after which a browser that says nothing, or shows not what it should, counts as stuck."""
MODIFIERS = {"Alt": 1, "Ctrl": 2, "Meta": 4, "Shift": 8}
CODES = {
    "Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "PageUp": 33, "PageDown": 34, "End": 35,
    "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
}  # fmt: skip
"""What the browser calls the keys that print nothing."""


def installed() -> str | None:
    """The browser of this machine, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def until(holds: Callable[[], bool], told: str) -> None:
    """Wait for something that comes soon, or a good deal later on a busy machine."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"never came true within {PATIENCE} s: {told}"
        time.sleep(0.01)


class LeftError(AssertionError):
    """The page went to another address before it answered."""


class Browser:
    """Commands go in through one pipe, answers and events come out of another, each ended by a zero byte.

    A browser that ends or gets stuck fails the test at hand: the next page is opened in a new one.
    """

    def __init__(self, executable: str):
        self.executable, self.profile = executable, tempfile.mkdtemp()
        self._start()

    def _start(self) -> None:
        self.count, self.rest, self.events, self.stuck = 0, b"", [], False  # type: ignore[var-annotated]
        self.session: str | None = None
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        # the browser reads from descriptor 3 and writes to 4, wherever the pipes lie here
        shell = f'exec "$@" 3<&{to_read} 4>&{from_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "browser", self.executable, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.input, self.output = os.fdopen(to_write, "wb", 0), os.fdopen(from_read, "rb", 0)

    def _stop(self) -> None:
        self.input.close()
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=PATIENCE)
        self.process.kill()  # where it has not ended by itself
        self.process.wait()
        self.output.close()

    def close(self) -> None:
        self._stop()
        shutil.rmtree(Path(self.profile), ignore_errors=True)

    def message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            self.stuck = not select.select([self.output], [], [], PATIENCE)[0]
            assert not self.stuck, f"the browser said nothing for {PATIENCE} s"
            more = self.output.read(1 << 16)
            self.stuck = not more
            assert more, "the browser ended"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        told: dict[str, Any] = json.loads(text)
        if "method" in told:
            self.events.append(told)
        if told.get("method") == "Page.javascriptDialogOpening":  # a page that would rather not be left
            self._write("Page.handleJavaScriptDialog", accept=True)
        return told

    def _write(self, method: str, **parameters: Any) -> int:
        self.count += 1
        session = {"sessionId": self.session} if self.session else {}
        command = {"id": self.count, "method": method, "params": parameters, **session}
        self.input.write(json.dumps(command).encode() + b"\0")
        return self.count

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        number = self._write(method, **parameters)
        while (told := self.message()).get("id") != number:
            pass
        if "navigated or closed" in str(told.get("error")):
            raise LeftError(method)
        assert "error" not in told, f"{method}: {told['error']}"
        result: dict[str, Any] = told["result"]
        return result

    def open(
        self, url: str, *, width: int, height: int = 900, scheme: str = "light", scrollbars: bool = True
    ) -> "Page":
        """A page of that width, in that colour scheme, once it is loaded; it takes the place of the one before."""
        if self.stuck or self.process.poll() is not None:
            self._stop()
            self._start()
        if self.session is None:
            self._begin()
        page = Page(self)
        page.go("about:blank")  # so that the page before sees and asks for nothing more
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        self.send("Emulation.setScrollbarsHidden", hidden=not scrollbars)
        page.go(url)
        return page

    def _begin(self) -> None:
        """The one window that there is: to open another each time takes longer than most pages."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.setLifecycleEventsEnabled", enabled=True)


class Page:
    """What a loaded page shows and does."""

    def __init__(self, browser: Browser):
        self.browser = browser

    def go(self, url: str) -> None:
        """Load another address; what was asked for and complained of before is forgotten."""
        self.browser.events.clear()
        loader = self.browser.send("Page.navigate", url=url)["loaderId"]
        while not any(_loaded(event, loader) for event in self.browser.events):
            self.browser.message()

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        told = self.browser.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true, also on a page that a click leads to."""
        try:
            until(lambda: self._true(condition), condition)
        except AssertionError as error:
            shown = self.run("`${location.href}:\\n${document.body.innerText}`")
            raise AssertionError(f"{error}\nat {shown}") from error

    def _true(self, condition: str) -> bool:
        try:
            return bool(self.run(f"Boolean({condition})"))
        except LeftError:
            return False

    def press(self, *chords: str) -> None:
        """Keys one after the other, by the names that JavaScript gives them: `a`, `Enter`, `Shift+ArrowDown`."""
        for chord in chords:
            *held, key = chord.split("+") if chord != "+" else ["+"]
            modifiers = sum(MODIFIERS[name] for name in held)
            text = {"Space": " ", "Enter": "\r"}.get(key, key if len(key) == 1 else "")
            name = " " if key == "Space" else key
            code = CODES.get(key) or (ord(key.upper()) if key.isalnum() and len(key) == 1 else 0)
            told = {"key": name, "modifiers": modifiers, "windowsVirtualKeyCode": code}
            typed = {"text": text} if text and not modifiers & ~MODIFIERS["Shift"] else {}
            self.browser.send("Input.dispatchKeyEvent", type="keyDown", **told, **typed)
            self.browser.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, text: str) -> None:
        """Text into the control that has the focus, key by key."""
        self.press(*("Space" if letter == " " else letter for letter in text))

    def middle(self, selector: str) -> tuple[float, float]:
        """Where an element is, scrolled into view, once pictures that are still coming no longer move it."""
        place = self.run(
            f"(async () => {{ const node = document.querySelector({json.dumps(selector)}); if (!node) return null;"
            " const coming = () => [...document.images].some(image => image.loading !== 'lazy' && !image.complete);"
            " const frame = () => new Promise(requestAnimationFrame); const at = () => {"
            " node.scrollIntoView({block: 'nearest'}); const box = node.getBoundingClientRect();"
            " return [box.left + box.width / 2, box.top + box.height / 2, box.width * box.height]; };"
            " let place = at(), before; do { before = place; await frame(); place = at(); }"
            " while (coming() || String(before) !== String(place)); return place; })()"
        )
        assert place, f"there is no {selector}"
        assert place[2], f"{selector} is not to be seen"
        return place[0], place[1]

    def mouse(self, kind: str, x: float, y: float, *, held: str = "", clicks: int = 1, button: str = "left") -> None:
        """One event of the mouse: mousePressed, mouseMoved, mouseReleased."""
        modifiers = MODIFIERS[held] if held else 0
        buttons = {"mouseMoved": {}}.get(kind, {"button": button, "clickCount": clicks})
        self.browser.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifiers, **buttons)

    def click(self, selector: str, *, held: str = "", clicks: int = 1) -> None:
        """The middle of an element, once or several times."""
        x, y = self.middle(selector)
        self.mouse("mouseMoved", x, y)
        for count in range(1, clicks + 1):
            self.mouse("mousePressed", x, y, held=held, clicks=count)
            self.mouse("mouseReleased", x, y, held=held, clicks=count)

    def hover(self, x: float, y: float) -> None:
        """The mouse, without a button."""
        self.mouse("mouseMoved", x, y)

    def drag(self, path: Sequence[tuple[float, float]], *, held: str = "") -> None:
        """Along a path with the button held down."""
        self.mouse("mousePressed", *path[0], held=held)
        modifiers = MODIFIERS[held] if held else 0
        for x, y in path[1:]:
            moved = {"button": "left", "buttons": 1, "modifiers": modifiers}
            self.browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **moved)
        self.mouse("mouseReleased", *path[-1], held=held)

    def wheel(self, x: float, y: float, *, down: float) -> None:
        """Turn the wheel over a place."""
        self.browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.browser.send("Page.captureScreenshot", format="png")["data"])

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [event for event in self.browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[Any]:
        """Errors, warnings and whatever else stands in the console."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.browser.events if event["method"] in kinds]


def _loaded(event: dict[str, Any], loader: str) -> bool:
    """Whether that address is loaded, not one that was asked for before."""
    told = event["params"]
    return event["method"] == "Page.lifecycleEvent" and (told["name"], told["loaderId"]) == ("load", loader)


@contextmanager
def running(executable: str) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block."""
    browser = Browser(executable)
    try:
        yield browser
    finally:
        browser.close()


def photograph(page: str, picture: str, size: str, scheme: str = "light", place: str = "") -> None:
    """Keep what a window of that size shows of a page, from the element of that id on."""
    width, height = map(int, size.split("x"))
    executable = installed()
    assert executable, "needs chromium"
    with running(executable) as browser:
        opened = browser.open(
            Path(page).resolve().as_uri(), width=width, height=height, scheme=scheme, scrollbars=False
        )
        if place:
            opened.run(f"document.getElementById({json.dumps(place)}).scrollIntoView()")
        opened.run("new Promise(done => setTimeout(done, 200))")
        Path(picture).write_bytes(opened.picture())


if __name__ == "__main__":
    photograph(*sys.argv[1:])
