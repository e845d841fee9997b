"""The frame of the console in a real browser: login, policy, addresses, keyboard, accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import Visitor, sign_in, violations_in_all_sizes, visitor
from tests.console.conftest import KEY, Axe
from tests.support.product import Product
from tests.support.waiting import ROOT

KIB = 1024


def _event(http: httpx.Client, title: str, description: str = "") -> str:
    answer = http.post("/api/event/", json={"title": title, "description": description, "scheduledStart": "2031-01-02T20:00:00Z"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def _to_state(http: httpx.Client, event: str, state: int) -> None:
    http.put(f"/api/event/state/{event}", json={"state": state}).raise_for_status()


async def test_a_wrong_key_is_told_and_a_right_one_opens_the_page_that_was_asked_for(guest: Visitor, http: httpx.Client) -> None:
    event = _event(http, "Cup final")
    page = await guest.open(f"/console/events/{event}")
    await page.get_by_label("API key").fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("This key is wrong")
    await sign_in(page, KEY)
    await expect(page.get_by_role("heading", name="Cup final")).to_be_visible()
    await expect(page.locator(".who")).to_contain_text("admin")
    assert await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])") == '[{},{},""]'
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_the_list_follows_changes_of_others(signed_in: Page, http: httpx.Client) -> None:
    name = f"Live {uuid4()}"
    await signed_in.goto(f"{_origin(signed_in)}/console/events?search={name.split()[1]}")
    await expect(signed_in.get_by_text("No Events")).to_be_visible()
    await expect(signed_in.locator(".live-badge")).to_have_text("Up to date")
    event = _event(http, name)
    await expect(signed_in.get_by_role("link", name=name)).to_be_visible()
    _to_state(http, event, 2)
    await expect(signed_in.locator("tbody .badge")).to_have_text("Live")


async def test_who_types_a_filter_may_pause_while_the_list_follows(signed_in: Page) -> None:
    """The address changes at each pause. Neither the focus nor what is typed meanwhile is lost."""
    await signed_in.goto(f"{_origin(signed_in)}/console/events")
    search = signed_in.get_by_role("searchbox", name="Search")
    await search.focus()
    for typed in ("Cup", "Cup final", "Cup final at night"):
        await signed_in.keyboard.type(typed.removeprefix(await search.input_value()))
        await expect(signed_in).to_have_url(re.compile(rf"[?&]search={typed.replace(' ', '[+]')}$"))
    await expect(search).to_have_value("Cup final at night")
    await expect(search).to_be_focused()
    await signed_in.get_by_role("button", name="Clear").click()
    await expect(search).to_have_value("")


async def test_another_list_is_shown_from_its_top(signed_in: Page, http: httpx.Client) -> None:
    """The page stays, and its table with it: a list that is sorted anew is not read from where the one before was left."""
    mark = uuid4().hex[:8]
    for number in range(40):
        _event(http, f"{mark} {number:02}")
    await signed_in.goto(f"{_origin(signed_in)}/console/events?search={mark}")
    await expect(signed_in.get_by_role("link", name=f"{mark} 39")).to_be_attached()
    table = signed_in.locator(".table-frame")
    await table.evaluate("frame => frame.scrollTo(0, frame.scrollHeight)")
    assert await table.evaluate("frame => frame.scrollTop") > 0
    await signed_in.get_by_role("columnheader", name="Title").get_by_role("button").click()
    await expect(signed_in).to_have_url(re.compile(r"[?&]sort=Title"))
    await expect(signed_in.locator("tbody tr").first).to_be_in_viewport()
    assert await table.evaluate("frame => frame.scrollTop") == 0


async def test_the_frame_works_with_the_keyboard_alone(signed_in: Page, http: httpx.Client) -> None:
    name = f"Keys {uuid4()}"
    for place in range(3):
        _event(http, f"{name} {place}")
    await signed_in.goto(f"{_origin(signed_in)}/console/events?search={name.split()[1]}&sort=Title&order=asc")
    await expect(signed_in.locator("tbody tr")).to_have_count(3)
    await signed_in.keyboard.press("Tab")
    await expect(signed_in.get_by_role("link", name="Skip to the content")).to_be_focused()
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.locator("main")).to_be_focused()
    await signed_in.keyboard.press("?")
    await expect(signed_in.get_by_role("dialog", name="Keys")).to_be_visible()
    await signed_in.keyboard.press("Escape")
    await expect(signed_in.get_by_role("dialog")).to_have_count(0)
    await signed_in.keyboard.press("/")
    await expect(signed_in.get_by_role("searchbox", name="Search")).to_be_focused()
    await signed_in.locator("tbody tr").first.focus()
    await signed_in.keyboard.press("ArrowDown")
    await expect(signed_in.locator("tbody tr").nth(1)).to_be_focused()
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.get_by_role("heading", name=f"{name} 1")).to_be_visible()
    await signed_in.evaluate(  # within a second of each other, on a busy machine too
        "for (const key of ['g', 'e']) document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
    )
    await expect(signed_in.get_by_role("heading", name="Events", exact=True)).to_be_visible()


async def test_every_page_is_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    """The login, the list, an Event, the keys; narrow and wide."""
    event = _event(http, "Accessible")
    async with visitor(browser, product.address) as came:
        page = await came.open("/console/events")
        await expect(page.get_by_label("API key")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await sign_in(page, KEY)
        await expect(page.locator("tbody tr").first).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.goto(f"{product.address}/console/events/{event}")
        await expect(page.get_by_role("heading", name="Accessible")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        assert came.complaints == []


async def test_what_is_not_there_is_said(signed_in: Page, axe: Axe) -> None:
    await signed_in.goto(f"{_origin(signed_in)}/console/nowhere")
    await expect(signed_in.get_by_text("This page does not exist")).to_be_visible()
    await axe(signed_in)
    await signed_in.goto(f"{_origin(signed_in)}/console/events/{uuid4()}")
    await expect(signed_in.get_by_role("alert")).to_contain_text("Not found")


async def test_a_session_that_ends_asks_for_the_key_and_goes_on_at_the_same_page(signed_in: Page, guest: Visitor) -> None:
    await signed_in.goto(f"{_origin(signed_in)}/console/events")
    await expect(signed_in.get_by_role("heading", name="Events")).to_be_visible()
    await signed_in.get_by_role("searchbox", name="Search").fill("anything")
    await expect(signed_in).to_have_url(re.compile("search=anything"))
    await guest.context.route("**/api/event/?*", lambda route: route.fulfill(status=401, json={"status": 401, "detail": "no"}))
    await signed_in.reload()
    await expect(signed_in.get_by_text("Your session has ended")).to_be_visible()
    await guest.context.unroute("**/api/event/?*")
    await sign_in(signed_in, KEY)
    await expect(signed_in.get_by_role("searchbox", name="Search")).to_have_value("anything")


async def test_the_first_page_is_small(guest: Visitor) -> None:
    """All that is loaded until the list of Events is shown, compressed by gzip, without the answers of the API."""
    page = await guest.open("/console/events")
    await sign_in(page, KEY)
    await expect(page.get_by_role("heading", name="Events")).to_be_visible()
    files = {url.partition("/console/")[2] for url in guest.requests if "/console/assets/" in url} | {"index.html"}
    assert len(files) > 3
    assert sum((ROOT / "console/dist" / f"{name}.gz").stat().st_size for name in files) <= 200 * KIB


def _origin(page: Page) -> str:
    result = re.match(r"https?://[^/]+", page.url)
    assert result is not None
    return result[0]


def test_functions_without_a_browser_are_tested_too(run_npm: Callable[[Sequence[str]], str]) -> None:
    assert "passed" in run_npm(["run", "test"])
