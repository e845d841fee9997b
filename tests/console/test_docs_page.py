"""The page `/docs` in a real browser: operations are tried out with what the page fills in, and a key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.console.browser import Visitor, chromium
from tests.console.conftest import KEY


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A browser that optimises scripts: the page draws some 280 operations, and takes seconds for each step without."""
    async with chromium(switches=()) as started:
        yield started


async def _authorised(guest: Visitor) -> Page:
    guest.expected.append("Could not find component: JsonSchema")  # Swagger UI has no widget of its own for a format
    page = await guest.open("/docs")
    await page.get_by_role("button", name="Authorize").first.click()
    dialog = page.locator(".modal-ux")
    await dialog.locator("input[type=text]").first.fill(KEY)
    await dialog.get_by_role("button", name="Apply credentials").first.click()
    await dialog.get_by_role("button", name="Close", exact=True).first.click()
    return page


async def _opened(page: Page, tag: str, operation: str) -> Locator:
    """The block of an operation, found by the filter, ready to be tried out."""
    await page.locator(".operation-filter-input").fill(tag)
    section = page.locator(f"#operations-tag-{tag.replace(' ', '_')}")
    await expect(page.locator(".opblock-tag")).to_have_count(1)
    if await section.get_attribute("data-is-open") != "true":
        await section.click()
    block = page.locator(f"#operations-{tag.replace(' ', '_')}-{operation}")
    await block.locator(".opblock-summary-control").click()
    await block.get_by_role("button", name="Try it out").click()
    return block


async def _executed(block: Locator) -> str:
    await block.get_by_role("button", name="Execute").click()
    status = block.locator(".live-responses-table .response-col_status").nth(1)
    await expect(status).to_be_visible()
    return (await status.inner_text()).split()[0]


def _event(http: httpx.Client) -> str:
    return str(http.post("/api/event/", json={"title": f"Tried out {uuid4()}"}).json()["id"])


def _state(http: httpx.Client, event: str) -> str:
    return str(http.get(f"/api/event/{event}").json()["stateString"])


async def test_operations_work_as_the_page_fills_them_in(guest: Visitor, http: httpx.Client) -> None:
    event = _event(http)
    page = await _authorised(guest)
    for tag, operation, status in (
        ("Events", "listEvents", "200"),
        ("Events", "addOrUpdateEvent", "200"),
        ("Rooms", "addRoom", "201"),
        ("Health", "getServiceHealth", "200"),
    ):
        assert await _executed(await _opened(page, tag, operation)) == status, operation
    change = await _opened(page, "Events", "changeEventState")
    await change.locator("tr[data-param-name=id] input").fill(event)
    await change.locator("textarea").fill('{"state": "LIVE_PUBLISHED"}')
    assert await _executed(change) == "200"
    assert _state(http, event) == "LIVE_PUBLISHED"
