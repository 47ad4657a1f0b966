"""A headless Chromium, driven through its DevTools pipe with nothing but the standard library.

Takes the pictures of the documentation too:
python -m tests.report.browser report.html picture.png 1200x1500 [light|dark] [id]
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip


def installed() -> str | None:
    """The browser of this machine, if there is one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """Commands go in through one pipe, answers and events come out of another, each ended by a zero byte."""

    def __init__(self, write: int, read: int):
        self.input, self.output = os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0)
        self.count, self.rest, self.events = 0, b"", []  # type: ignore[var-annotated]
        self.session: str | None = None

    def message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = self.output.read(1 << 16)
            assert more, "the browser ended"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        told: dict[str, Any] = json.loads(text)
        if "method" in told:
            self.events.append(told)
        return told

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        session = {"sessionId": self.session} if self.session else {}
        command = {"id": self.count, "method": method, "params": parameters, **session}
        self.input.write(json.dumps(command).encode() + b"\0")
        while (told := self.message()).get("id") != self.count:
            pass
        assert "error" not in told, f"{method}: {told['error']}"
        result: dict[str, Any] = told["result"]
        return result

    def open(self, url: str, *, width: int, height: int = 900, scheme: str = "light") -> "Page":
        """A page of that width, in that colour scheme, once it is loaded."""
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)
        self.events.clear()
        self.send("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.message()
        return Page(self)


class Page:
    """What a loaded page shows and does."""

    def __init__(self, browser: Browser):
        self.browser = browser

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        told = self.browser.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [event for event in self.browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[Any]:
        """Errors, warnings and whatever else stands in the console."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self.browser.events if event["method"] in kinds]


@contextmanager
def running(executable: str) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block."""
    profile = tempfile.mkdtemp()
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()

    # the browser reads from descriptor 3 and writes to 4, wherever the pipes lie here
    shell = f'exec "$@" 3<&{to_read} 4>&{from_write}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "browser", executable, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    browser = Browser(to_write, from_read)
    try:
        yield browser
    finally:
        browser.input.close()
        process.terminate()
        process.wait(timeout=20)
        browser.output.close()
        shutil.rmtree(Path(profile), ignore_errors=True)


def photograph(page: str, picture: str, size: str, scheme: str = "light", place: str = "") -> None:
    """Keep what a window of that size shows of a page, from the element of that id on."""
    width, height = map(int, size.split("x"))
    executable = installed()
    assert executable, "needs chromium"
    with running(executable) as browser:
        opened = browser.open(Path(page).resolve().as_uri(), width=width, height=height, scheme=scheme)
        browser.send("Emulation.setScrollbarsHidden", hidden=True)
        if place:
            opened.run(f"document.getElementById({json.dumps(place)}).scrollIntoView()")
        opened.run("new Promise(done => setTimeout(done, 200))")
        Path(picture).write_bytes(base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"]))


if __name__ == "__main__":
    photograph(*sys.argv[1:])
