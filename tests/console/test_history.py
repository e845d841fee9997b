"""The history of an aggregate: who changed what, the slider, links, erased content; as an auditor in a real browser."""

from __future__ import annotations

import re
from datetime import datetime
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from tests.console.browser import violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.console.journeys import goes_to_version, title_row
from tests.support.product import Product

BERLIN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\+[12]")


def make(http: httpx.Client, title: str, **more: object) -> str:
    answer = http.post("/api/event/", json={"title": title, "scheduledStart": "2031-01-02T20:00:00Z", **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def make_room(http: httpx.Client) -> str:
    return http.post("/api/room/", json={"name": f"Hall {uuid4()}"}).headers["location"].rpartition("/")[2]


def go_live(http: httpx.Client, event: str) -> None:
    http.put(f"/api/event/state/{event}", json={"state": 2}).raise_for_status()


def erase(http: httpx.Client, event: str, reason: str) -> None:
    http.post("/api/audit/redact", json={"aggregate": "event", "id": event, "reason": reason}).raise_for_status()


def change(http: httpx.Client, event: str, field: str, value: str, *, request: str) -> None:
    http.patch(
        f"/api/event/{event}",
        json=[{"op": "replace", "path": f"/{field}", "value": value}],
        headers={"Content-Type": "application/json-patch+json", "X-Transaction-ID": request},
    ).raise_for_status()


def entries(http: httpx.Client, event: str) -> list[dict[str, object]]:
    result: list[dict[str, object]] = http.get(f"/api/audit/event/{event}/").json()
    return result


async def test_an_auditor_finds_who_changed_a_title_and_goes_to_that_moment(
    signed_in: Page, http: httpx.Client, product: Product
) -> None:
    request = f"desk-{uuid4()}"
    event = make(http, "Cup final tonight")
    change(http, event, "roomId", make_room(http), request="room")
    change(http, event, "title", "Cup semi-final tonight", request=request)
    go_live(http, event)
    reported = entries(http, event)
    newest = len(reported)
    version = next(index for index, entry in enumerate(reported, 1) if entry["transactionId"] == request)
    await signed_in.goto(f"{product.address}/console/events/{event}/history")
    await expect(signed_in.get_by_role("heading", name="Cup semi-final tonight")).to_be_visible()
    row = signed_in.get_by_role("row", name=re.compile("^State"))
    await expect(row.locator(".before .badge")).to_have_text("Planned")
    await expect(row.locator(".after .badge")).to_have_text("Live")
    await expect(row.locator(".diff-who")).to_contain_text("admin")

    await goes_to_version(signed_in, version, newest=newest)
    title = title_row(signed_in)
    await expect(title.locator("del")).to_have_text("final")
    await expect(title.locator("ins")).to_have_text("semi-final")
    await expect(title.locator(".diff-who")).to_contain_text(BERLIN)
    await expect(title.get_by_role("link", name="Request")).to_have_attribute("href", re.compile(f"transaction={request}$"))

    await signed_in.get_by_label("Compare version").fill("0")
    await signed_in.get_by_label("Compare version").press("Enter")
    room_row = signed_in.get_by_role("row", name=re.compile("^Room"))
    await expect(room_row.locator(".after")).to_contain_text("Hall")
    await expect(signed_in).to_have_url(re.compile(r"[?&]with=0\b"))
    address = signed_in.url
    await signed_in.get_by_role("slider", name="Version").press("End")
    await expect(signed_in.locator(".slider-text")).to_contain_text(f"Version {newest} of {newest}")
    await signed_in.goto(address)
    await expect(signed_in.locator(".slider-text")).to_contain_text(f"Version {version} of {newest}")
    await expect(signed_in.get_by_label("Compare version")).to_have_value("0")

    before = datetime.fromisoformat(str(reported[version - 1]["recordedAt"])).timestamp() - 0.001
    at = datetime.fromtimestamp(before).astimezone().isoformat().replace("+", "%2B")
    await signed_in.goto(f"{product.address}/console/events/{event}/history?at={at}&tab=state")
    await expect(signed_in.locator(".slider-text")).to_contain_text(f"Version {version - 1} of {newest}")
    await expect(signed_in.get_by_role("region", name="State", exact=True)).to_contain_text("Cup final tonight")


async def test_new_versions_appear_and_erased_ones_say_so(signed_in: Page, http: httpx.Client, product: Product) -> None:
    event = make(http, "Secret guest")
    await signed_in.goto(f"{product.address}/console/events/{event}/history")
    text = signed_in.locator(".slider-text")
    await expect(text).to_contain_text("Version 1 of 1")
    await expect(signed_in.locator(".live-badge")).to_have_text("Up to date")
    change(http, event, "title", "Another guest", request=f"live-{uuid4()}")
    newest = len(entries(http, event))
    await expect(text).to_contain_text(f"Version {newest} of {newest}")
    reason = f"She asked for it {uuid4()}"
    erase(http, event, reason)
    notice = signed_in.get_by_role("region", name="Erased content")
    await expect(notice).to_contain_text(reason)
    await expect(notice).to_contain_text(f"versions 1–{newest}")
    await expect(signed_in.locator("main")).not_to_contain_text("guest")
    await notice.get_by_role("link", name="Redaction").click()
    await expect(signed_in.locator(".page-line")).to_contain_text("History of log")


async def test_the_history_is_accessible_and_hostile_texts_are_text(browser: Browser, product: Product, http: httpx.Client) -> None:
    hostile = "<img src=x onerror=\"document.title='broken in'\"> \u202edesrever " + "A" * 400
    event = make(http, hostile, description="{{7*7}}" + "B" * 10_000)
    change(http, event, "title", "plain", request=f"hostile-{uuid4()}")
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open(f"/console/events/{event}/history?with=0")
        for tab in ("Changes", "State at that moment", "Versions"):
            await page.get_by_role("tab", name=re.compile(tab)).click()
            await expect(page.get_by_role("tabpanel")).not_to_be_empty()
            await expect(page.get_by_label("Loading")).to_have_count(0)
            assert await violations_in_all_sizes(page) == []
        assert await page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert came.complaints == []
        assert came.strangers == []
