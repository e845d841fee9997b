"""The three journeys on a fresh `medialedger up --demo`, with the keys that it prints and with what the demo brings."""

from __future__ import annotations

import csv
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.browser import visitor
from tests.console.journeys import (
    exports_as_table,
    finds_a_failed_delivery,
    finds_a_failed_job,
    goes_on_air_from_the_lane,
    goes_to_version,
    marks_a_chapter,
    open_page,
    resends,
    retries_the_job,
    seal,
    states_of,
    stops_and_sees_the_film,
    title_row,
    verifies_the_log_and_takes_it_away,
)
from tests.console.test_jobs import write_sound
from tests.support.product import Product, client, products

pytestmark = pytest.mark.long

HOOK = "https://hooks.broadcast.invalid/medialedger"
NOBODY = "No address was found for the name of the host"


@dataclass(frozen=True)
class Demo:
    """A product with the whole demo, the keys that it has printed, by role, and that of the file that it names."""

    product: Product
    keys: Mapping[str, str]

    def client(self, role: str) -> httpx.Client:
        return client(self.product, self.keys[role])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A running demo in a new home; only the folder above the home exists."""
    folder = tmp_path_factory.mktemp("demo")
    folder.chmod(0o755)
    with products() as started:
        product = started.start(folder / "home", "up --demo").until_ready()
        output = product.until_printed("demo: complete after", seconds=600)
        keys = dict(re.findall(r"client demo-(\w+) has the key (\S+)", output))
        yield Demo(product, {**keys, "admin": (product.home / "admin-api-key").read_text().strip()})


@asynccontextmanager
async def logged_in(browser: Browser, demo: Demo, role: str) -> AsyncIterator[Page]:
    async with visitor(browser, demo.product.address, key=demo.keys[role]) as came:
        page = await came.open()
        yield page
        assert came.complaints == []
        assert came.strangers == []


def event_named(http: httpx.Client, title: str, **filters: str) -> str:
    [event] = http.get("/api/event/", params={"search": title, **filters}).raise_for_status().json()["results"]
    return str(event["id"])


def jobs(http: httpx.Client) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = http.get("/engine/jobs", params={"items": 100}).raise_for_status().json()
    return result


def history(http: httpx.Client, event: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = http.get(f"/api/audit/event/{event}/").raise_for_status().json()
    return result


async def test_an_operator_puts_the_next_event_on_air_and_watches_its_film(browser: Browser, demo: Demo) -> None:
    with demo.client("operator") as http:
        event = event_named(http, "Committee of inquiry")
        async with logged_in(browser, demo, "operator") as page:
            await goes_on_air_from_the_lane(page, event, condition="Committee of inquiry", points=1)
            await marks_a_chapter(page, http, event, title="Committee of inquiry")
            await stops_and_sees_the_film(page)
    with demo.client("auditor") as http:
        assert states_of(http, event)[:3] == [1, 2, 4]


async def test_a_platform_operator_retries_the_failed_job_and_resends_a_delivery(browser: Browser, demo: Demo) -> None:
    """The operator is an admin, because the job belongs to another client."""
    with demo.client("admin") as http:
        [failed] = [job for job in jobs(http) if job["failed"]]
        captures = [job for job in jobs(http) if job["workflow"] == "vod_capture"]
    [recording] = [job for job in captures if job["queue_state"] in ("queued", "started")]
    async with logged_in(browser, demo, "admin") as page:
        content, _, file = failed["parameters"]["file"].partition("/")
        await finds_a_failed_job(page, failed["id"], content=content)
        write_sound(demo.product.home / "media" / content / content, file)
        await retries_the_job(page, failed["id"])
        badge = page.locator(".page-line .badge").first
        await expect(badge).to_have_text("Queued")
        await open_page(page, f"jobs/{recording['id']}")
        await expect(badge).to_have_text("Running")
        await page.get_by_role("button", name="Cancel", exact=True).click()
        await page.get_by_role("button", name=f"Cancel job {recording['id']}").click()
        await expect(badge).to_have_text("Cancelled")
        await open_page(page, f"jobs/{failed['id']}")
        await expect(badge).to_have_text("Completed")
        await expect(page.locator(".attempts li")).to_have_count(2)

        row = await finds_a_failed_delivery(page, HOOK, condition="Every attempt has failed since")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(page.get_by_role("dialog", name="The test was not delivered")).to_contain_text(NOBODY)
        await page.keyboard.press("Escape")
        await resends(page, row)
        await expect(page.locator(".delivery .badge")).to_have_text("Pending")


async def test_an_auditor_finds_who_changed_a_title_and_takes_the_log_away(browser: Browser, demo: Demo, tmp_path: Path) -> None:
    with demo.client("auditor") as http:
        event = event_named(http, "Live from", eventState="LIVE_PUBLISHED")
        reported = history(http, event)
    [(version, change)] = [(at, each) for at, each in enumerate(reported, 1) if "extended" in str(each["data"])]
    seal(demo.product.home)
    async with logged_in(browser, demo, "auditor") as page:
        await open_page(page, f"events/{event}")
        await page.get_by_role("link", name="History").click()
        await goes_to_version(page, version, newest=len(reported))
        await expect(title_row(page).locator("ins")).to_contain_text("extended")
        await expect(title_row(page).locator(".diff-who")).to_contain_text("lucia.ferrari")
        await title_row(page).get_by_role("link", name="Request").click()
        await expect(page.get_by_role("heading", name="Changes of one request")).to_be_visible()
        lines = list(csv.DictReader((await exports_as_table(page)).splitlines()))
        assert {line["transactionId"] for line in lines} == {change["transactionId"]}
        await verifies_the_log_and_takes_it_away(page, event, folder=tmp_path)
