"""An auditor in a real browser: the log with its filters, one request, an entry with its proof, files, and the integrity."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.browser import violations, violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.console.journeys import downloaded, exports_as_table, seal, verifies_the_log_and_takes_it_away
from tests.console.test_history import change, make
from tests.support.feeding import as_superuser
from tests.support.product import Product, client
from workers.adapters.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def sealed(product: Product, http: httpx.Client) -> str:
    """An Event with a hostile title, in a checkpoint that was signed for this test."""
    event = make(http, "=1+1 <img src=x onerror=\"document.title='broken in'\"> \u202edesrever")
    change(http, event, "title", "Film of the night", request=f"night-{event}")
    seal(product.home)
    return event


async def test_the_log_is_filtered_followed_and_saved(signed_in: Page, http: httpx.Client, product: Product, sealed: str) -> None:
    await signed_in.goto(f"{product.address}/console/audit?id={sealed}")
    rows = signed_in.locator(".audit-list tbody tr")
    await expect(rows.first).to_contain_text("Film of the night")
    before = await rows.count()
    await expect(signed_in.locator(".live-badge")).to_have_text("Up to date")
    change(http, sealed, "title", "Film of the week", request=f"week-{sealed}")
    await expect(rows.first).to_contain_text("Film of the week")
    assert await rows.count() > before
    await signed_in.get_by_label("Kind").select_option("event")
    await signed_in.get_by_label("What happened").select_option("event.registered")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("desrever")
    await signed_in.get_by_role("button", name="Save this search").click()
    await signed_in.get_by_label("Name").fill("Registered")
    await signed_in.get_by_role("button", name="Save", exact=True).click()
    await signed_in.goto(f"{product.address}/console/audit?transaction=night-{sealed}")
    await expect(signed_in.get_by_role("heading", name="Changes of one request")).to_be_visible()
    await expect(signed_in.get_by_role("region", name="The request")).to_contain_text("to 1 object.")
    await signed_in.get_by_role("link", name="Registered").click()
    await expect(signed_in).to_have_url(re.compile(f"id={sealed}"))
    await rows.first.locator(".what").click()
    drawer = signed_in.get_by_role("dialog")
    await expect(drawer.get_by_text("Path to the root")).to_be_visible()
    async with signed_in.expect_download() as proof:
        await drawer.get_by_role("link", name="Download the proof").click()
    assert '"leaf"' in await downloaded(await proof.value)
    await drawer.get_by_role("button", name="Close").click()
    [head, line] = csv.reader((await exports_as_table(signed_in)).splitlines())
    assert dict(zip(head, line, strict=True))["type"] == "event.registered"


async def test_an_auditor_verifies_the_log_and_takes_it_away(signed_in: Page, sealed: str, tmp_path: Path) -> None:
    await verifies_the_log_and_takes_it_away(signed_in, sealed, folder=tmp_path)


async def test_what_the_owner_of_the_database_has_edited_is_named(browser: Browser, spoilt: Product) -> None:
    with client(spoilt, KEY) as http:
        position = _position(http, make(http, "Cup final"))
        make(http, "What comes behind it")
    as_superuser(
        EmbeddedPostgres(spoilt.home).attach(), f"UPDATE events SET state = state || ' '::bytea WHERE position = {position}"
    )
    async with visitor(browser, spoilt.address, key=KEY) as came:
        page = await came.open("/console/integrity")
        await page.get_by_role("button", name="Verify now").click()
        run = page.get_by_role("region", name="Verification of now")
        await expect(run.locator(".verdict.tone-bad")).to_contain_text("The log is damaged at 1 position")
        result = run.get_by_role("list", name="Damaged positions")
        await expect(result.get_by_role("listitem")).to_have_count(1)
        await expect(result).to_contain_text(re.compile(f"Position {position:,}: .*{position}"))
        assert await violations(page) == []
        assert came.complaints == []


def _position(http: httpx.Client, event: str) -> int:
    """Return the position of the newest entry of an Event in the log."""
    asked: dict[str, str | int] = {"aggregate": "event", "id": event, "order": "DESC", "pageSize": 1}
    return int(http.get("/api/audit/events/", params=asked).json()["results"][0]["position"])


async def test_the_pages_are_accessible(browser: Browser, product: Product, sealed: str) -> None:
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open(f"/console/audit?id={sealed}")
        await expect(page.locator("tbody tr").first).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.locator("tbody tr .what").first.click()
        await expect(page.get_by_role("dialog").get_by_text("Leaf")).to_be_visible()
        await expect(page.get_by_label("Loading")).to_have_count(0)
        assert await violations_in_all_sizes(page) == []
        await page.goto(f"{product.address}/console/integrity")
        await expect(page.get_by_role("region", name="Newest checkpoint")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        assert await page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert came.complaints == []
        assert came.strangers == []
