"""Who may use the viewer: browsers on this machine that know the token.

A page of another origin must not read a Run (Host and Sec-Fetch-Site are checked against DNS rebinding and other ports
of this machine) nor change anything in it (Origin), and nothing that a Run holds can run as a script (content policy).
"""

import asyncio
import hmac
import secrets
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weakspot.viewer import connections
from weakspot.viewer.responses import NO_STORE, as_json, failed

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
MOST_ADDRESS = 16 << 10
"""Characters of a path with its query."""
MOST_BODY = 8 << 20
"""Bytes of a request."""
_TOO_LARGE = f"the request has more than {MOST_BODY} bytes: send less at once"
_SAFE = frozenset({"GET", "HEAD"})
_STYLES = "".join(
    f'<link rel="stylesheet" href="/static/{name}.css">' for name in ("palette", "controls", "token")
)  # fmt: skip


class Guard:
    """Lets through what may pass, answers the rest itself, and adds the headers to every answer.

    token: what a browser must know, and a program sends as `Authorization: Bearer TOKEN`. A browser that knows it gets
        a cookie of another value: cookies go to every port of a machine.
    hosts: what may stand in the header Host, as `127.0.0.1:8765`.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: frozenset[str]):
        self.app, self._token, self._hosts = app, token, hosts
        self._session = new_token()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        guarded = _with_headers(send)
        refusal = self.refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        await _answered(self.app, scope, _limited(receive), guarded)

    def refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass; None for one that may."""
        headers, path, query = Headers(scope=scope), str(scope["path"]), scope["query_string"].decode("latin-1")
        if len(path) + len(query) > MOST_ADDRESS:
            return _error(414, f"the address has more than {MOST_ADDRESS} characters: ask for less at once")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _error(421, "this viewer does not serve that host name: use the address that it printed")
        if not _own_page(headers, scope["method"], path, hosts[0]):
            return _error(403, "the request comes from another page: open the viewer by the address that it printed")
        if int_or(headers.get("content-length"), 0) > MOST_BODY:
            return _error(413, _TOO_LARGE)
        if path.startswith("/static/"):
            return None
        return self._without_token(scope, headers, path, query)

    def _without_token(self, scope: Scope, headers: Headers, path: str, query: str) -> Response | None:
        name = cookie_name(headers["host"])
        if _same(_cookie(headers, name), self._session) or self.knows(_bearer(headers)):
            return _plain_address(path, query) if _given(query) and _is_page(path) else None
        if not _is_page(path) or scope["method"] not in _SAFE:
            return _error(403, "the token is missing: open the viewer by the address that it printed")
        tokens = _given(query)
        if not any(self.knows(value.rpartition("token=")[2].strip()) for value in tokens):
            return HTMLResponse(_form(path, query, wrong=bool(tokens)), 403, NO_STORE)
        answer = _plain_address(path, query)
        answer.set_cookie(name, self._session, httponly=True, samesite="lax", path="/")
        return answer

    def knows(self, token: str) -> bool:
        """Whether that is the token."""
        return _same(token, self._token)


def _same(token: str, wanted: str) -> bool:
    """Takes equally long however much is correct."""
    return hmac.compare_digest(token.encode("utf-8", "replace"), wanted.encode())


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def cookie_name(host: str) -> str:
    """The cookie of the viewer on that port: cookies of one machine are shared by all its ports."""
    port = host.rpartition(":")[2]
    return f"weakspot-{port if port.isdecimal() else '80'}"


def int_or(text: str | None, otherwise: int) -> int:
    """The number that a header gives."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else otherwise


def _own_page(headers: Headers, method: str, path: str, host: str) -> bool:
    """Whether a browser asks on behalf of the viewer itself; links from elsewhere may lead to its pages."""
    site = headers.get("sec-fetch-site", "none")
    if method not in _SAFE:
        return headers.get("origin") == f"http://{host}" and site in ("same-origin", "none")
    linked = headers.get("sec-fetch-mode") == "navigate" and _is_page(path)
    return linked or site in ("same-origin", "none")


def _is_page(path: str) -> bool:
    return not path.startswith("/api")


def _given(query: str) -> list[str]:
    return [value for key, value in parse_qsl(query) if key == "token"]


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        cookie = None
    return cookie.value if cookie else ""


def _bearer(headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _plain_address(path: str, query: str) -> RedirectResponse:
    """Back to the same page, without the token in its address."""
    kept = urlencode([(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if key != "token"])
    address = "/" + path.lstrip("/\\")  # two slashes would lead to another machine
    return RedirectResponse(address + (f"?{kept}" if kept else ""), 303, NO_STORE)


def _form(path: str, query: str, *, wrong: bool) -> str:
    """A page that asks for the token and leads on to what was asked for."""
    kept = [(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if key != "token"]
    hidden = "".join(f'<input type="hidden" name="{escape(key)}" value="{escape(value)}">' for key, value in kept)
    note = "<p>That is another token.</p>" if wrong else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>weakspot viewer</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{_STYLES}</head><body><main><h1>weakspot viewer</h1>"
        f"{note}<p>This page needs the token that <code>weakspot view</code> printed in its terminal.</p>"
        f'<form action="{escape("/" + path.lstrip("/"))}">{hidden}'
        '<label for="token">Token, or the whole address</label> '
        '<input id="token" name="token" type="password" autocomplete="off" autofocus required> '
        "<button>Open</button></form></main></body></html>"
    )


def _error(status: int, message: str) -> Response:
    return as_json({"error": message}, status)


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return guarded


def _limited(receive: Receive) -> Receive:
    """No more than so many bytes, and none that keep anybody waiting; who waits for the end of it all may do so."""
    seen, whole = 0, False

    async def limited() -> Message:
        nonlocal seen, whole
        try:
            message = await (receive() if whole else asyncio.wait_for(receive(), connections.PATIENCE))
        except TimeoutError:
            raise HTTPException(408, "the rest of the request did not arrive in time: send it again") from None
        seen += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if seen > MOST_BODY:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return limited


async def _answered(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Whatever happens, an answer in the usual form, unless one has begun."""
    begun = False

    async def noted(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, noted)
    except Exception as error:
        answer = failed(scope["path"], error)
        if not begun:
            await answer(scope, receive, send)
