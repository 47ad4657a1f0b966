"""Connections on which nothing comes, or half of something: they end, and nobody waits for them for good."""

import socket
import threading

import pytest
import uvicorn

from tests.viewer.runs import TOKEN
from weakspot.core.run import Run
from weakspot.viewer import connections
from weakspot.viewer.app import create_app
from weakspot.viewer.serving import host_names, listen

HALVES = {
    "nothing": b"",
    "half a line": b"GET / HT",
    "half of the headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a request after a whole one": b"GET /static/page.css HTTP/1.1\r\nHost: HERE\r\n\r\nGET /api",
    "half a body": b"PUT /api/label HTTP/1.1\r\nHost: HERE\r\nOrigin: http://HERE\r\nAuthorization: Bearer "
    + TOKEN.encode() + b"\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{",
}  # fmt: skip


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A viewer that is not patient."""
    monkeypatch.setattr(connections, "PATIENCE", 0.4)
    listening = listen("127.0.0.1", 0)
    here = listening.getsockname()
    app = create_app([Run.create(tmp_path / "run")], token=TOKEN, hosts=host_names(*here))
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none", http=connections.Patient)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield here
    server.should_exit = True
    thread.join(timeout=20)
    listening.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_a_request_ends(served, half):
    with socket.create_connection(served, timeout=30) as browser:
        browser.sendall(half.replace(b"HERE", b"%s:%d" % (served[0].encode(), served[1])))
        answer = b""
        while piece := browser.recv(65536):  # would wait, and fail, where the connection were kept
            answer += piece
    assert (b" 408 " in answer) == (b"Content-Length" in half), answer[:200]


def test_a_whole_request_is_answered_as_ever(served):
    with socket.create_connection(served, timeout=30) as browser:
        here = f"{served[0]}:{served[1]}"
        browser.sendall(f"GET /api/run HTTP/1.1\r\nHost: {here}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        assert browser.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_the_system_is_asked_to_notice_who_is_gone():
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
