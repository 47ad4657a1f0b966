"""Who gets an answer, and what goes out with it."""

import asyncio
import json
import re
from html import unescape

import pytest
from fastapi.testclient import TestClient

from tests.viewer.runs import COOKIE, HOST, ORIGIN, TOKEN, client_of, signed_in
from weakspot.core.run import Run
from weakspot.viewer.app import create_app
from weakspot.viewer.pages import PAGES
from weakspot.viewer.security import MOST_ADDRESS, MOST_BODY, POLICY
from weakspot.viewer.serving import host_names, is_loopback


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A Run without Findings."""
    return Run.create(tmp_path_factory.mktemp("empty") / "run").folder


@pytest.fixture
def known(empty):
    """A browser with the cookie; it says no more of itself than curl does."""
    app = create_app([empty], token=TOKEN, hosts=[HOST])
    return signed_in(TestClient(app, base_url=ORIGIN, follow_redirects=False))


@pytest.fixture
def stranger(empty):
    """A browser without the cookie."""
    return TestClient(create_app([empty], token=TOKEN, hosts=[HOST]), base_url=ORIGIN, follow_redirects=False)


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger):
    answer = stranger.get("/samples", params={"sort": "-x", "token": TOKEN, "search": "a b&c"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/samples?sort=-x&search=a+b%26c")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert TOKEN not in cookie, "cookies go to every port of a machine, and the token must not"
    assert len(stranger.cookies[COOKIE]) >= 32
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert TOKEN not in answer.headers["location"]
    assert stranger.get("/samples").status_code == 200


def test_a_token_besides_the_cookie_leaves_the_address_too(known):
    assert known.get("/map?token=anything&colour=weak").headers["location"] == "/map?colour=weak"


def test_the_whole_address_may_be_pasted(stranger):
    assert stranger.get("/", params={"token": f" {ORIGIN}/?token={TOKEN} "}).status_code == 303


@pytest.mark.parametrize(
    "token", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "ü\udcff".encode("utf-8", "replace")]
)
def test_without_the_token_a_page_asks_for_it_and_shows_nothing(stranger, token):
    answer = stranger.get("/clusters", params={"number": "<3>", "token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert 'action="/clusters"' in answer.text
    assert 'name="number" value="&lt;3&gt;"' in answer.text, "the form leads on to what was asked for"
    assert ("That is another token" in answer.text) == bool(token)


def test_the_form_escapes_the_address(stranger):
    answer = stranger.get('/%22%3E%3Cscript%3Ealert(1)%3C/script%3E?"><script>=1')
    assert "<script>" not in answer.text
    assert '"><script>' in unescape(answer.text)


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "///evil.example/%2e%2e"])
def test_the_way_on_never_leads_to_another_machine(stranger, path):
    answer = stranger.get(f"{ORIGIN}{path}?token={TOKEN}")
    assert re.match(r"/[^/\\]", answer.headers["location"])


@pytest.mark.parametrize("path", ["/api/run", "/api/samples", "/api/openapi.json", "/api", "/api/nothing", "/apix"])
def test_without_the_token_the_api_says_no_in_json(stranger, path):
    answer = stranger.get(path, params={"token": TOKEN})
    assert (answer.status_code, set(answer.json())) == (403, {"error"})


def test_every_viewer_has_a_cookie_of_its_own(known, empty):
    other = signed_in(TestClient(create_app([empty], token=TOKEN, hosts=[HOST]), base_url=ORIGIN))
    assert other.cookies[COOKIE] != known.cookies[COOKIE]
    sent = {"Cookie": f"{COOKIE}={known.cookies[COOKIE]}"}
    assert TestClient(other.app, base_url=ORIGIN).get("/api/run", headers=sent).status_code == 403


@pytest.mark.parametrize(
    ("sent", "status"),
    [(f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN} ", 200), (TOKEN, 403), (f"Basic {TOKEN}", 403), ("Bearer x", 403)],
)
def test_a_program_sends_the_token_as_a_header(stranger, sent, status):
    assert stranger.get("/api/run", headers={"Authorization": sent}).status_code == status


@pytest.mark.parametrize("cookie", ["", TOKEN, "x", TOKEN + "x", '"', "=;=", "a" * 5000])
def test_another_cookie_is_none(stranger, cookie):
    assert stranger.get("/api/run", headers={"Cookie": f"{COOKIE}={cookie}"}).status_code == 403


def test_the_cookie_of_another_port_is_none(stranger):
    assert stranger.get("/api/run", headers={"Cookie": f"weakspot-9999={TOKEN}"}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:8766", "127.0.0.1.evil.example:8765", ""]
)
@pytest.mark.parametrize("path", ["/", "/api/run", "/static/page.css"])
def test_another_host_name_gets_no_answer(known, host, path):
    """A page whose name was bound anew to this machine sends its own name."""
    answer = known.get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert "address that it printed" in answer.json()["error"]


def test_host_names_are_those_of_this_machine():
    assert host_names("127.0.0.1", 80) == ["127.0.0.1:80", "localhost:80", "[::1]:80"]
    assert "[fe80::1]:5" in host_names("fe80::1", 5)
    assert [is_loopback(name) for name in ("127.0.0.9", "::1", "localhost", "0.0.0.0", "example.org", "10.0.0.1")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_other_pages_cannot_read(known, site):
    assert known.get("/api/run", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert known.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}).status_code == 403


def test_a_link_from_elsewhere_leads_to_a_page(known):
    """As one that stands in a ticket."""
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert known.get("/samples?sort=-x", headers=linked).status_code == 200
    assert known.get("/api/run", headers=linked).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": f"https://{HOST}"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_is_changed_for_other_pages(known, method, headers):
    for path in ("/api/samples.csv", "/api/label", "/"):
        assert known.request(method, path, headers=headers).status_code == 403


def test_the_viewers_own_page_may_send(known):
    assert known.post("/api/samples.csv", json={"positions": []}, headers={"Origin": ORIGIN}).status_code == 404
    assert known.delete("/api/run", headers={"Origin": ORIGIN}).status_code == 405


@pytest.mark.parametrize("path", ["/", "/samples", "/api/run", "/static/page.css", "/nowhere", "/api/nowhere"])
def test_every_answer_has_the_headers(known, stranger, path):
    for answer in (known.get(path), stranger.get(path), known.get(path, headers={"Host": "evil.example"})):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers
    assert "unsafe" not in POLICY


def test_sizes_are_limited(known):
    assert known.get("/api/run?" + "x" * MOST_ADDRESS).status_code == 414
    sent = {"Origin": ORIGIN}
    assert known.post("/api/samples.csv", content=b"x" * (MOST_BODY + 1), headers=sent).status_code == 413

    def pieces():
        for _ in range(MOST_BODY // 65536 + 2):
            yield b"[" * 65536

    endless = known.post("/api/samples.csv", content=pieces(), headers={**sent, "Content-Type": "application/json"})
    assert (endless.status_code, set(endless.json())) == (413, {"error"}), "no length was said beforehand"


def test_deep_json_is_refused(known):
    deep = b"[" * 200_000
    answer = known.post(
        "/api/samples.csv", content=deep, headers={"Origin": ORIGIN, "Content-Type": "application/json"}
    )
    assert 400 <= answer.status_code < 500


def raw(app, path):
    """The answer to a path as it is: clients tidy it up before they send it."""
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    asyncio.run(
        app({**scope, "headers": headers, "root_path": "", "scheme": "http", "http_version": "1.1"}, receive, send)
    )
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/..", "/static/../../viewer/app.py", "/static//etc/passwd", "/static/", "/static/\0",
     "/static/" + "x" * 5000, "/static/page.css/../../app.py"],
)  # fmt: skip
def test_static_files_are_those_of_the_viewer_alone(known, path):
    status, body = raw(known.app, path)
    assert (status, set(json.loads(body))) == (404, {"error"})
    assert raw(known.app, "/static/page.css")[0] == 200


def test_names_of_the_run_are_escaped_in_the_pages(tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    client = client_of(Run.create(folder).folder)
    for page in PAGES:
        text = client.get(page.path).text
        assert "<img src=x" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_pages_have_no_script_or_style_of_their_own(known):
    """The policy would stop them; none is there to be stopped."""
    for page in PAGES:
        text = known.get(page.path).text
        assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", text) == []
        assert re.findall(r"\s(?:style|on\w+)=", text) == []
        assert "<style" not in text
        assert re.findall(r"""(?:src|href)="(?!/|#)[^"]*""", text) == [], "nothing is asked of other machines"
