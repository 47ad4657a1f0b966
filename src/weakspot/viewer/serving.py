"""The server: port, address, browser, and a clean end on Ctrl-C."""

import errno
import ipaddress
import os
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.viewer.app import create_app
from weakspot.viewer.connections import Patient, let_go_of_the_dead
from weakspot.viewer.library import Library
from weakspot.viewer.sample_table import sample_table
from weakspot.viewer.security import new_token
from weakspot.viewer.splits import chosen_split

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def serve(
    runs: Sequence[Path], *, host: str, port: int, browser: bool, say: Callable[[str], None], token: str | None = None
) -> None:
    """Serve until Ctrl-C; the address with its token is said once the server answers there."""
    listening = listen(host, port)
    taken = listening.getsockname()[1]
    token = token or new_token()
    app = create_app(runs, token=token, hosts=host_names(host, taken))
    address = f"http://{shown_host(host)}:{taken}/?token={token}"
    library: Library = app.state.library
    with tempfile.TemporaryDirectory(prefix="weakspot-view-") as scratch:
        page = _leading_page(Path(scratch), address) if browser and _has_screen() else None
        server = _Server(server_config(app), lambda: _ready(address, page, say, library))
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:  # uvicorn raises it again once it has ended well
            pass
        finally:
            listening.close()


def _leading_page(folder: Path, address: str) -> Path:
    """A page that leads on to the viewer and that only this user can read.

    A browser is a program that is started with an address, and everybody on the machine can see with which.
    """
    page = folder / "open.html"
    link = escape(address)
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="0; url={link}">'
        f'<title>weakspot viewer</title></head><body><p><a href="{link}">Open the viewer</a></p></body></html>'
    )
    with os.fdopen(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return page


def server_config(app: FastAPI) -> uvicorn.Config:
    """How the viewer is served. Its errors go where this process logs, else to standard error.

    Without `log_config=None`, uvicorn closes every log handler of the process, and some close their stream with it.
    """
    return uvicorn.Config(
        app, log_config=None, log_level="error", access_log=False, server_header=False, date_header=False,
        lifespan="on", ws="none", timeout_graceful_shutdown=2, http=Patient,
    )  # fmt: skip


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def _ready(address: str, page: Path | None, say: Callable[[str], None], library: Library) -> None:
    say(f"viewer: {address}\nstop it with Ctrl-C")
    _beside(_warm, library)
    if page is not None:
        _beside(webbrowser.open, page.as_uri())


def _beside(work: Callable[..., object], *arguments: object) -> None:
    """Do it in a thread of its own; the process ends after it, since Python aborts where a thread still reads then.

    Only a browser is not waited for: some systems are told of it when it is closed.
    """
    threading.Thread(target=work, args=arguments, daemon=work is webbrowser.open).start()


def _has_screen() -> bool:
    """Whether a browser can show itself: without a screen, a text browser would take over the terminal."""
    named = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in named)


def _warm(library: Library) -> None:
    """Join the samples that are shown first while the browser opens."""
    for reader in library.readers:
        with suppress(WeakspotError):
            sample_table(reader, chosen_split(reader, None))


def listen(host: str, port: int) -> socket.socket:
    """A socket on that port; 0 for any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=128)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # passed on to connections: no waiting for more
        let_go_of_the_dead(listener)
        return listener
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(_why(error, host, port)) from error


def _why(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        return f"port {port} is taken, perhaps by another viewer: choose another with --port, or 0 for any free one"
    if code == errno.EACCES:
        return f"port {port} needs rights that you do not have: choose one above 1023 with --port"
    return f"cannot listen on {host!r}, port {port}: {error}; choose others with --host and --port"


def host_names(host: str, port: int) -> list[str]:
    """What may stand in the header Host: the given name or address; on this machine, all of its own names."""
    names = LOOPBACK if is_loopback(host) else (*LOOPBACK, shown_host(host), *_own_addresses(host))
    return [f"{name}:{port}" for name in dict.fromkeys(names)]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def shown_host(host: str) -> str:
    """As it stands in an address."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _own_addresses(host: str) -> list[str]:
    """Where it listens everywhere, the names and addresses of this machine."""
    if host not in ("0.0.0.0", "::"):
        return []
    name = socket.gethostname()
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except OSError:
        addresses = set()
    return [name.lower(), *map(shown_host, sorted(addresses))]
