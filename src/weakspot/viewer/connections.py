"""Time limits for connections that stay silent or send half a request."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0
"""Seconds within which a whole request must arrive, and within which the other side must take what is sent."""


class Patient(H11Protocol):
    """uvicorn's own protocol, which waits for the first request and for the rest of one without end."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A browser is there."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._watch()

    def on_response_complete(self) -> None:
        """The next request may come."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _watch(self) -> None:
        if self.transport.is_closing():
            return
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and self.loop.time() - self._idle_since >= PATIENCE:
            self.transport.abort()
        else:
            self.loop.call_later(PATIENCE / 4, self._watch)


def let_go_of_the_dead(listening: socket.socket) -> None:
    """Let the system close connections, which inherit it, whose other side is gone without having said so."""
    seconds = max(1, int(PATIENCE))
    options: list[tuple[int, Any, int]] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    of_linux = {"TCP_KEEPIDLE": seconds, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 1000 * seconds}
    options += [(socket.IPPROTO_TCP, getattr(socket, name, None), value) for name, value in of_linux.items()]
    for level, option, value in options:
        with suppress(OSError):
            if option is not None:
                listening.setsockopt(level, option, value)
