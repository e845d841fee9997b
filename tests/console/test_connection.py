"""Messages of the pages about a server that freezes, is killed and returns, and about a single read that fails."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, Route, StorageState, expect

from tests.console.addresses import ADDRESSES, filled
from tests.console.browser import WIDE, sign_in
from tests.console.conftest import KEY
from tests.support.product import Product, Products, client, migrated_home, products

OPENED: Final = {**ADDRESSES, "/": "/?hours=6", "/schedule": "/schedule"}
KILLED: Final = ("/", "/events/:id")
"""The pages that are open when the server is killed. It is frozen under all pages: `console/src/kernel/changes.test.ts` proves that
both lead to the same state."""
OF_THE_FRAME: Final = "/api/quiet/"
"""The read of the frame around every page, which fails on one page."""
SILENT: Final = 5000
"""Milliseconds after which a page says that it is not connected, by its own clock."""
LOST: Final = re.compile(r"Not connected since \d\d:\d\d:\d\d: this page is outdated")
COLOURS: Final = """() => {
    const probe = document.body.appendChild(document.createElement('span'))
    const colours = new Set(['--ok', '--live', '--live-ground'].map(name => {
        probe.style.color = `var(${name})`
        return getComputedStyle(probe).color
    }))
    probe.remove()
    return [...colours]
}"""
LOOKS_HEALTHY: Final = """(colours) => [...document.body.querySelectorAll('*')].filter(one => {
    if (!one.checkVisibility()) return false
    const style = getComputedStyle(one)
    const edges = ['Top', 'Left'].filter(edge => parseFloat(style[`border${edge}Width`]) > 0)
        .map(edge => style[`border${edge}Color`])
    return [style.color, style.backgroundColor, style.fill, style.stroke, ...edges].some(each => colours.includes(each))
}).map(one => one.outerHTML.slice(0, 200))"""
BARE: Final = """() => [...document.querySelectorAll('.bar, .block')]
    .filter(one => getComputedStyle(one).backgroundImage === 'none').map(one => one.textContent)"""


@dataclass
class Observation:
    """The texts of one page in its states. Texts are those of the whole page. `asked` are paths of the API."""

    url: str
    login: StorageState
    asked: set[str] = field(default_factory=set)
    asked_again: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    healthy: dict[str, list[str]] = field(default_factory=dict)
    moved: dict[str, tuple[str, str]] = field(default_factory=dict)
    bare: dict[str, list[str]] = field(default_factory=dict)
    colours: list[str] = field(default_factory=list)


@dataclass
class Opened:
    page: Page
    observation: Observation
    asks: set[str]


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Products, Product]]:
    """A product of these tests alone, and what it is started from again."""
    home = migrated_home(tmp_path_factory.mktemp("mortal") / "home")
    with products() as started:
        yield started, _started(started, home, "0")


def _started(started: Products, home: Path, port: str) -> Product:
    return started.start(home, admin_api_key=KEY, port=port, outbound_allow="127.0.0.0/8").until_ready()


@pytest.fixture(scope="module")
async def observed(browser: Browser, mortal: tuple[Products, Product]) -> dict[str, Observation]:
    """Every page, each in a browser of its own: a browser opens few connections to one server."""
    started, product = mortal
    with client(product, KEY) as http:
        ids = filled(http)
    async with AsyncExitStack() as stack:
        first = await browser.new_context()
        stack.push_async_callback(first.close)
        login = await first.new_page()
        await login.goto(f"{product.address}/console/")
        await sign_in(login, KEY)
        state = await first.storage_state()
        pages: dict[str, Opened] = {}
        for path, address in OPENED.items():
            context = await browser.new_context(
                viewport={"width": WIDE[0], "height": WIDE[1]}, storage_state=state, timezone_id="Europe/Berlin"
            )
            stack.push_async_callback(context.close)
            pages[path] = await _opened(await context.new_page(), f"{product.address}/console{address.format(**ids)}", state)
        product.signal(signal.SIGSTOP)
        await _each(pages, "frozen")
        product.signal(signal.SIGCONT)
        await _back(pages, again=True)
        observations = {path: entry.observation for path, entry in pages.items()}
        for path in pages.keys() - set(KILLED):
            await pages.pop(path).page.context.close()
        product.kill()
        await _each(pages, "killed")
        _started(started, product.home, str(urlsplit(product.address).port))
        await _back(pages, again=False)
    return observations


async def _opened(page: Page, address: str, login: StorageState) -> Opened:
    """Open a page with a clock that the test can move forward."""
    page.set_default_timeout(60_000)
    await page.clock.install()
    asks: set[str] = set()
    page.on("request", lambda request: asks.add(urlsplit(request.url).path))
    await page.goto(address)
    await expect(page.locator("main h1")).to_be_visible()
    await expect(page.locator(".skeleton")).to_have_count(0)
    await expect(page.locator(".live-badge")).to_have_text("Up to date")
    observation = Observation(address, login, colours=await page.evaluate(COLOURS))
    observation.healthy["connected"] = await page.evaluate(LOOKS_HEALTHY, observation.colours)
    observation.asked = {each for each in asks if each.startswith(("/api/", "/engine/")) and not each.endswith("/stream")}
    return Opened(page, observation, asks)


async def _each(pages: dict[str, Opened], state: str) -> None:
    """Five seconds later, and ten more."""
    for page in pages.values():
        await page.page.clock.fast_forward(SILENT)
        seen = page.observation
        seen.texts[state] = await page.page.locator("body").inner_text()
        seen.healthy[state] = await page.page.evaluate(LOOKS_HEALTHY, seen.colours)
        seen.bare[state] = await page.page.evaluate(BARE)
        await page.page.clock.fast_forward(2 * SILENT)
        seen.moved[state] = seen.texts[state], await page.page.locator("body").inner_text()
        page.asks.clear()


async def _back(pages: dict[str, Opened], *, again: bool) -> None:
    for page in pages.values():
        await expect(page.page.locator(".band")).to_have_count(0)
        await expect(page.page.locator(".live-badge")).to_have_text("Up to date")
        await expect(page.page.locator(".skeleton, .failure, .unread, .old")).to_have_count(0)
        page.observation.asked_again |= page.asks if again else set()


@pytest.mark.parametrize("path", OPENED)
async def test_a_page_says_that_the_server_is_gone_and_nothing_on_it_looks_current(
    observed: dict[str, Observation], path: str
) -> None:
    seen = observed[path]
    assert seen.healthy["connected"] != [], "the check finds what looks healthy"
    assert set(seen.texts) == ({"frozen", "killed"} if path in KILLED else {"frozen"})
    for state in seen.texts:
        assert LOST.search(seen.texts[state]), seen.texts[state]
        assert seen.healthy[state] == []
        assert seen.bare[state] == []
        before, after = (text.splitlines() for text in seen.moved[state])
        assert [line for line in before if line not in after] == [], "something goes on as if it knew"
    assert seen.asked - seen.asked_again == set(), "after its return everything is read again"


@pytest.mark.parametrize("path", OPENED)
async def test_a_read_that_fails_alone_is_said_on_its_page(browser: Browser, observed: dict[str, Observation], path: str) -> None:
    """Each read fails in turn. The page says that its data are unknown, and shows nothing in their place."""
    seen = observed[path]
    context = await browser.new_context(storage_state=seen.login)
    page = await context.new_page()
    for failing in sorted(seen.asked - ({OF_THE_FRAME} if path != "/" else set())):
        await page.route(lambda url, path=failing: urlsplit(url).path == path, _broken)  # type: ignore[misc]
        await page.goto(seen.url)
        await expect(page.locator(".failure, .no-answer, .unread").first, failing).to_be_visible()
        await page.unroute_all()
    await context.close()


async def _broken(route: Route) -> None:
    await route.fulfill(status=500, json={"status": 500, "detail": "It is broken."})
