"""Every page in a real browser: opens without complaint, asks nobody else, shuts nobody out, lies as it should."""

import pytest

from tests.report.samples import HOSTILE
from tests.viewer.driving import (
    DESKTOP,
    ODD,
    PHONE,
    assert_same_layout,
    beyond,
    differing,
    layout_of,
    opened,
    serving,
    settled,
    violations,
)  # fmt: skip
from tests.viewer.runs import retrain
from tests.viewer.whole_run import damage

PAGES = ("overview", "samples", "causes", "clusters", "pairs", "weak", "map", "holes", "compare")
SIZES = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture(scope="module")
def address(whole_run, tmp_path_factory):
    after = retrain(whole_run, tmp_path_factory.mktemp("pages") / "after")
    with serving(whole_run, after) as served:
        yield served


def path(page: str) -> str:
    return "/" if page == "overview" else f"/{page}"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size, scheme", [("desktop", "light"), ("phone", "light"), ("phone", "dark")])
def test_a_page_opens_cleanly_lies_as_it_should_and_shuts_nobody_out(chromium, address, name, size, scheme):
    page = opened(chromium, address, path(name), size=SIZES[size], scheme=scheme)
    settled(page)
    assert beyond(page, address) == []
    assert page.complaints() == []
    assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0, "wider than the screen"
    assert page.run("document.scripts.length") == 2, "a name became a script"
    assert HOSTILE in page.run("document.body.textContent") or name in ("map", "holes")
    if scheme == "light":
        assert_same_layout(page, f"{name}-{size}")
    if (size, scheme) != ("phone", "light"):
        assert violations(page) == []


def test_a_broken_layout_is_seen(chromium, address):
    """The comparison can fail: a panel that is gone, and a page that is moved by a cell's height."""
    page = opened(chromium, address, "/samples")
    settled(page)
    whole = layout_of(page)
    for selector, change in (
        (".panel", "display: none"),
        ("main", "padding-top: 64px"),
        (".grid", "flex: none; width: 50%"),
    ):
        page.run(f"document.querySelector('{selector}').style.cssText = '{change}'")
        assert differing(layout_of(page), whole) > ODD, selector
        page.run(f"document.querySelector('{selector}').style.cssText = ''")
    settled(page)
    assert differing(layout_of(page), whole) <= ODD


def test_every_control_is_reached_with_the_tab_key(chromium, address):
    page = opened(chromium, address, "/samples")
    settled(page)
    page.run("document.activeElement.blur()")
    reached = set()
    for _ in range(45):
        page.press("Tab")
        reached.add(page.run("document.activeElement.outerHTML.slice(0, 60)"))
    wanted = page.run(
        "[...document.querySelectorAll('a[href], button:enabled, input, select, [tabindex=\"0\"]')]"
        ".filter(node => node.offsetParent).slice(0, 40).map(node => node.outerHTML.slice(0, 60))"
    )
    assert len(wanted) > 15 and set(wanted) <= reached


def test_keys_are_listed_and_escape_closes_the_list(chromium, address):
    page = opened(chromium, address, "/samples")
    settled(page)
    page.press("?")
    page.wait("document.querySelector('dialog.help[open]')")
    told = page.run("document.querySelector('dialog.help').innerText")
    assert all(words in told for words in ("select or deselect", "enlarge", "undo", "search"))
    assert violations(page) == []
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    page.click("#help")
    page.wait("document.querySelector('dialog.help[open]')")


def test_a_damaged_finding_is_told_and_the_rest_works(chromium, whole_run, tmp_path):
    with serving(damage(whole_run, tmp_path / "damaged")) as address:
        page = opened(chromium, address, "/clusters")
        page.wait("document.querySelector('#trouble .warning')")
        assert "damaged" in page.run("document.querySelector('#trouble').innerText")
        page.click("#trouble button")
        page.wait("!document.querySelector('#trouble .warning')")
        page = opened(chromium, address, "/samples")
        settled(page)
        assert page.run("document.querySelectorAll('.cell').length") > 20 and page.complaints() == []


def test_after_an_upgrade_no_module_of_the_old_version_is_left(chromium, address):
    page = opened(chromium, address, "/holes")
    kept = "fetch('/static/dom.js', {cache: 'no-store'}).then(answer => answer.headers.get('cache-control'))"
    assert page.run(kept) == "no-cache"


def test_without_the_token_a_deep_link_asks_for_it_and_leads_on(chromium, address):
    plain = chromium.open(address.replace("127.0.0.1", "localhost") + "/samples?sample=7", width=1280)
    plain.wait("document.querySelector('#token')")
    assert violations(plain) == []
    plain.run("document.querySelector('#token').focus()")
    plain.type("a-token-that-nobody-guesses")
    plain.press("Enter")
    plain.wait("document.querySelector('.panel h2')?.textContent === 'shape-0007'")
    assert "token" not in plain.run("location.href")


def test_when_the_server_is_gone_the_page_says_so(chromium, whole_run):
    with serving(whole_run) as address:
        page = opened(chromium, address, "/samples")
        settled(page)
    page.click("input[type=search]")
    page.type("x")
    page.wait("document.querySelector('#trouble').innerText.includes('weakspot view')")
