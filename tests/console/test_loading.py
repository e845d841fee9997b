"""Pages whose code comes late, does not come, or is gone after an update of the server."""

from __future__ import annotations

import asyncio
import re
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import Page, Route, expect

from tests.console.browser import Visitor
from tests.console.journeys import open_page

CODE: Final = "**/console/assets/JobsPage-*.js"
ENTRY: Final = re.compile(r"/console/assets/index-[\w-]+\.js")
STYLE: Final = re.compile(r"/console/assets/JobsPage-[\w-]+\.css")


async def _to_jobs(page: Page) -> None:
    await page.get_by_role("link", name="Jobs", exact=True).click()


async def test_a_page_that_comes_late_says_that_it_is_loading(signed_in: Page) -> None:
    release = asyncio.Event()

    async def late(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await open_page(signed_in, "events")
    await signed_in.route(CODE, late)
    await _to_jobs(signed_in)
    await expect(signed_in.get_by_role("heading", name="Jobs")).to_be_visible()
    await expect(signed_in.get_by_role("status", name="Loading")).to_be_visible()
    release.set()
    await expect(signed_in.get_by_role("tab", name="Running")).to_be_visible()


async def test_a_page_that_could_not_be_loaded_is_tried_again(signed_in: Page, guest: Visitor) -> None:
    """Its code is refused first, then its style; each time the page loads later without a restart of the console."""
    guest.expected += ["Failed to load resource", "Failed to fetch", "Unable to preload"]
    for part in (CODE, STYLE):
        await signed_in.goto(f"{_origin(signed_in)}/console/events")
        await signed_in.evaluate("window.isTheSame = true")
        await signed_in.route(part, lambda route: route.abort())
        await _to_jobs(signed_in)
        await expect(signed_in.get_by_text("This part of the console could not be loaded")).to_be_visible()
        await signed_in.unroute(part)
        await signed_in.get_by_role("button", name="Try again").click()
        await expect(signed_in.get_by_role("tab", name="Running")).to_be_visible()
        await expect(signed_in.locator(".jobs-list")).not_to_have_css("min-height", "0px")
        assert await signed_in.evaluate("window.isTheSame")


async def test_a_page_that_is_gone_says_so_where_the_server_has_no_other(signed_in: Page, guest: Visitor) -> None:
    guest.expected += ["status of 404"]
    await open_page(signed_in, "events")
    await signed_in.evaluate("window.isTheSame = true")
    await signed_in.route(CODE, lambda route: route.fulfill(status=404))
    await _to_jobs(signed_in)
    await expect(signed_in.get_by_text("This part of the console could not be loaded")).to_be_visible()
    assert await signed_in.evaluate("window.isTheSame")
    await signed_in.unroute(CODE)
    await expect(signed_in.get_by_role("tab", name="Running")).to_be_visible()


async def test_after_an_update_of_the_server_the_console_is_loaded_again_at_the_same_address(
    signed_in: Page, guest: Visitor
) -> None:
    """The page of the server names another entry than the one that the browser has. It is not loaded again for ever."""
    guest.expected += ["status of 404"]

    async def newer(route: Route) -> None:
        answer = await route.fetch()
        if route.request.resource_type != "fetch":
            await route.fulfill(response=answer)
            return
        await route.fulfill(response=answer, body=ENTRY.sub("/console/assets/index-newer.js", await answer.text()))

    await signed_in.route("**/console/", newer)
    await signed_in.goto(f"{_origin(signed_in)}/console/events?search=some")
    await expect(signed_in.get_by_role("heading", name="Events")).to_be_visible()
    loads: list[str] = []
    signed_in.on("domcontentloaded", lambda page: loads.append(page.url))
    await signed_in.route(CODE, lambda route: route.fulfill(status=404))
    await signed_in.get_by_role("link", name="Jobs", exact=True).click()
    await expect(signed_in.get_by_text("This part of the console could not be loaded")).to_be_visible()
    assert [urlsplit(url).path for url in loads] == ["/console/jobs"]
    await signed_in.unroute(CODE)
    await expect(signed_in.get_by_role("tab", name="Running")).to_be_visible()
    assert len(loads) == 1


def _origin(page: Page) -> str:
    parts = urlsplit(page.url)
    return f"{parts.scheme}://{parts.netloc}"
