"""`weakspot view`: what it says when all is well, and when something is not."""

import builtins
import logging
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from tests.cli.conftest import weakspot as _weakspot
from weakspot.core.errors import ConfigError
from weakspot.core.run import Run
from weakspot.viewer import serving

weakspot = _weakspot


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run").folder


def test_a_port_that_is_taken_is_told(weakspot, run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = weakspot("view", run, "--no-browser", "--port", port)
    assert (code, out) == (2, "")
    taken = f"port {port} is taken, perhaps by another viewer"
    assert err == f"weakspot: {taken}: choose another with --port, or 0 for any free one\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--port", "70000"], "should be less than or equal to 65535"),
        (["--port", "many"], "should be a valid integer"),
        (["--host", "no such host."], "cannot listen on 'no such host.', port 8765"),
        (["--host", "203.0.113.1"], "cannot listen on '203.0.113.1'"),
    ],
)
def test_what_cannot_be_listened_on_is_told(weakspot, run, arguments, told):
    code, _, err = weakspot("view", run, "--no-browser", *arguments)
    assert code == 2
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("which", [0, 1])
def test_a_folder_that_is_no_run_is_told_before_anything_starts(weakspot, run, tmp_path, which):
    folders = [run, run]
    folders[which] = tmp_path / "none"
    code, _, err = weakspot("view", *folders, "--no-browser")
    assert code == 2
    assert "is this a weakspot run?" in err


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_extra_it_says_how_to_get_it(weakspot, run, monkeypatch, missing):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *rest)

    monkeypatch.setattr("weakspot.viewer", import_module("weakspot.viewer"))  # so that the package comes back, too
    for name in [name for name in sys.modules if name.startswith("weakspot.viewer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    code, _, err = weakspot("view", run)
    assert (code, err) == (2, f"weakspot: the viewer needs {missing}: pip install 'weakspot[viewer]'\n")


@pytest.fixture
def started(monkeypatch):
    """What the server would be started with, and which page the browser."""
    seen = {"opened": []}

    def run_server(server, sockets):
        seen["config"], seen["sockets"] = server.config, sockets
        server._ready()
        raise KeyboardInterrupt

    monkeypatch.setattr(serving._Server, "run", run_server)
    monkeypatch.setattr(serving, "_beside", lambda work, *arguments: work(*arguments))
    monkeypatch.setattr(serving.webbrowser, "open", lambda url: seen["opened"].append((url, *looked_at(url))))
    return seen


def looked_at(url):
    """The content of a file as a browser finds it, and who may read it and its folder."""
    path = Path(url2pathname(urlsplit(url).path))
    return path.read_text(), path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777


def test_the_address_is_printed_and_opened(weakspot, run, started, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    code, out, err = weakspot("view", run, "--port", 0)
    address = out.splitlines()[0].removeprefix("viewer: ")
    assert (code, err) == (0, "weakspot: viewer ended\n")
    assert out == f"viewer: {address}\nstop it with Ctrl-C\n"
    ((opened, page, mode, folder),) = started["opened"]
    assert opened.startswith("file://")
    assert f'content="0; url={address}"' in page
    assert (mode, folder) == (0o600, 0o700)
    assert not Path(urlsplit(opened).path).parent.exists(), "it is gone when the viewer ends"
    assert address.startswith("http://127.0.0.1:")
    token = address.partition("token=")[2]
    assert token not in opened, "everybody can see with which arguments a browser is started"
    assert len(token) >= 32
    assert weakspot("view", run, "--port", 0, "--no-browser")[1].partition("token=")[2][:32] != token[:32]
    assert len(started["opened"]) == 1
    assert not started["config"].access_log


def test_without_a_screen_no_browser_is_opened(weakspot, run, started, monkeypatch):
    """A text browser would take over the terminal."""
    monkeypatch.setattr(serving.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert "token=" in weakspot("view", run, "--port", 0)[1]
    assert started["opened"] == []


def test_log_handlers_of_the_process_stay_open(weakspot, run, started):
    """Some close the stream that they write to, which may be somebody else's: absl's, for one, which Keras loads."""
    with Watched() as handler:
        assert weakspot("view", run, "--port", 0, "--no-browser")[0] == 0
        assert not handler.closed


class Watched(logging.Handler):
    """Knows whether it was closed; as a context, it is closed at the end."""

    closed = False

    def close(self):
        self.closed = True
        super().close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def test_errors_of_the_server_are_printed_where_nobody_logs():
    code = (
        "import logging, fastapi, weakspot.viewer.serving as serving\n"
        "serving.server_config(fastapi.FastAPI())\n"
        "logging.getLogger('uvicorn.error').info('a page was asked for')\n"
        "logging.getLogger('uvicorn.error').error('no page could be given')\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == ("", "no page could be given\n")


def test_others_are_warned_of(weakspot, run, started):
    _, out, err = weakspot("view", run, "--port", 0, "--no-browser", "--host", "0.0.0.0")
    assert err.startswith("weakspot: 0.0.0.0 can be reached from other machines")
    assert "token=" in out, "and the token is wanted all the same"
    assert "can be reached" not in weakspot("view", run, "--port", 0, "--no-browser", "--host", "localhost")[2]


def test_a_port_of_the_system_is_refused_with_a_hint():
    message = serving._why(PermissionError(13, "Permission denied"), "127.0.0.1", 80)
    assert message == "port 80 needs rights that you do not have: choose one above 1023 with --port"
    with pytest.raises(ConfigError, match="cannot listen"):
        serving.listen("\udcff", 1)
