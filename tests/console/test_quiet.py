"""Every page says while the installation is quiet, and no longer."""

from __future__ import annotations

import httpx
from playwright.async_api import Page, expect

from tests.console.browser import Visitor
from tests.console.journeys import open_page
from tests.support.product import Product


def _order(http: httpx.Client, *, quiet: bool) -> None:
    body = {"quiet": quiet, "reason": "a drill <b>of today</b>" if quiet else None}
    http.put("/api/quiet/", json=body).raise_for_status()


async def test_a_note_is_above_every_page_while_the_installation_is_quiet(
    signed_in: Page, guest: Visitor, product: Product, http: httpx.Client
) -> None:
    note = signed_in.locator(".quiet-note")
    await open_page(signed_in, "events")
    await expect(signed_in.locator("main h1").first).to_be_visible()
    await expect(note).to_have_count(0)
    _order(http, quiet=True)
    try:
        await expect(note).to_contain_text("This installation is quiet")
        await expect(note).to_contain_text("Reason: a drill <b>of today</b>")
        await signed_in.goto(f"{product.address}/console/jobs")
        await expect(note).to_be_visible()
    finally:
        _order(http, quiet=False)
    await expect(note).to_have_count(0)
