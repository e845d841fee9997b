"""The pages On air and Event in a real browser: the operator's way from the lane to the film, and what may go wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, expect

from domain.kernel.clock import iso, system_clock
from tests.console.browser import violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.console.hostile_strings import HOSTILE_STRINGS
from tests.console.journeys import bar, goes_on_air_from_the_lane, marks_a_chapter, states_of, stops_and_sees_the_film
from tests.e2e.on_air import Station
from tests.support.product import Product

MINUTE = timedelta(minutes=1)
LIVE, SUSPENDED, STOPPED = 2, 3, 4


def _made(http: httpx.Client, path: str, **fields: object) -> str:
    answer = http.post(path, json=fields)
    assert answer.is_success, answer.text
    return str({name.lower(): value for name, value in answer.json().items()}["id"])


def _event(http: httpx.Client, start: datetime, length: timedelta = 30 * MINUTE, **fields: object) -> str:
    return _made(http, "/api/event/", scheduledStart=iso(start), scheduledEnd=iso(start + length), **fields)


def _put(http: httpx.Client, path: str, **fields: object) -> None:
    http.put(path, json=fields).raise_for_status()


def _got(http: httpx.Client, path: str) -> Any:
    return http.get(path).raise_for_status().json()


def _described(http: httpx.Client, event: str, description: str) -> None:
    steps = json.dumps([{"op": "replace", "path": "/Description", "value": description}])
    headers = {"content-type": "application/json-patch+json"}
    http.patch(f"/api/event/{event}", content=steps, headers=headers).raise_for_status()


def _reader(http: httpx.Client) -> str:
    """The key of a client that may only read."""
    answer = http.post("/api/client/", json={"name": f"reader-{uuid4().hex[:8]}", "roles": ["viewer"]}).raise_for_status()
    return str(answer.json()["key"])


async def test_an_operator_goes_live_marks_a_chapter_and_watches_the_film(signed_in: Page, http: httpx.Client) -> None:
    """The journey goes from the lane to the film."""
    station = Station(http, f"console-{uuid4().hex[:8]}")
    now = system_clock()
    event = station.event(
        title="Journey", scheduledStart=iso(now - 5 * MINUTE), scheduledEnd=iso(now + 60 * MINUTE), autoPublish=True
    )
    page = signed_in
    await goes_on_air_from_the_lane(page, event, condition="Late", points=2)
    await marks_a_chapter(page, http, event, title="Journey")
    await stops_and_sees_the_film(page)
    assert states_of(http, event)[:3] == [1, 2, 4]


async def test_who_was_faster_is_told_and_the_change_is_offered_again(
    signed_in: Page, http: httpx.Client, product: Product
) -> None:
    """The state that another one set stays until the operator has seen it."""
    event = _event(http, system_clock() + 5 * MINUTE, title="Contended")
    page = signed_in
    await page.goto(f"{product.address}/console/?{urlencode({'event': event})}")
    await page.get_by_role("button", name="Go live", exact=True).click()
    dialog = page.get_by_role("dialog", name="Go live", exact=True)
    await expect(dialog).to_contain_text("Contended")
    _put(http, f"/api/event/state/{event}", state=SUSPENDED)
    async with page.expect_response("**/api/event/state/*") as refused:
        await dialog.get_by_role("button", name="Go live", exact=True).click()
    assert (await refused.value).status == 412
    await expect(dialog.get_by_role("alert")).to_contain_text("admin was faster")
    await expect(dialog.get_by_role("alert")).to_contain_text("State: Planned → Suspended")
    assert states_of(http, event) == [SUSPENDED]
    await dialog.get_by_role("button", name="Go live anyway").click()
    await expect(dialog).to_have_count(0)
    assert states_of(http, event) == [SUSPENDED, LIVE]


async def test_lanes_show_what_overlaps_and_what_is_missed_and_are_worked_by_keys(
    signed_in: Page, http: httpx.Client, product: Product
) -> None:
    page, start = signed_in, datetime(2001, 3, 4, 12, tzinfo=UTC)
    room = _made(http, "/api/room/", name=f"Hall {uuid4().hex[:6]}", referenceId=uuid4().hex)
    events = [_event(http, start + number * 40 * MINUTE, 60 * MINUTE, title=f"Part {number}", roomId=room) for number in range(3)]
    await page.goto(f"{product.address}/console/?from=2001-03-04T11:00:00Z&hours=6")
    await expect(bar(page, events[0])).to_contain_text("Did not start")
    await expect(bar(page, events[1])).to_have_accessible_name("Part 1 Did not start Overlaps , Planned, 13:40 to 14:40")
    tops = [await bar(page, event).evaluate("bar => bar.getBoundingClientRect().top") for event in events]
    assert tops[0] == tops[2] != tops[1], "what overlaps has a row of its own"

    await bar(page, events[0]).focus()
    await page.keyboard.press("ArrowRight")
    await expect(bar(page, events[1])).to_be_focused()
    await page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Event", exact=True)
    await expect(drawer.get_by_role("link", name="Part 2")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(drawer).to_have_count(0)

    await page.keyboard.press("+")
    await expect(page.get_by_role("button", name="2 h")).to_have_attribute("aria-pressed", "true")
    box = await page.locator(".timeline").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 900, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 400, box["y"] + 20, steps=4)
    await page.mouse.up()
    await page.wait_for_url("**from=2001-03-04T14*")
    await page.reload()
    await expect(bar(page, events[2])).to_be_visible()
    await page.get_by_role("button", name="Channels").click()
    await expect(page.get_by_role("heading", name="No channel")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator(".now-time")).to_be_visible()
    await page.goto(f"{product.address}/console/?from=1971-03-04T11:00:00Z&hours=6")
    await expect(page.get_by_text("Nothing is scheduled in these hours")).to_be_visible()


async def test_an_event_is_edited_deleted_and_restored(signed_in: Page, http: httpx.Client, product: Product) -> None:
    event = _event(http, datetime(2032, 1, 1, 12, 0, 30, tzinfo=UTC), title="Draft", refId="r-1")
    page = signed_in
    await page.goto(f"{product.address}/console/events/{event}")
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("DVR window in seconds").fill("-5")
    await page.get_by_label("Title").fill("Final")
    await page.get_by_label("Tags").fill("cup, final ,cup")
    _described(http, event, "Of another")
    save = page.get_by_role("dialog").locator("button[type=submit]")
    await save.click()
    await expect(page.get_by_label("DVR window in seconds")).to_have_attribute("aria-invalid", "true")
    await page.get_by_label("DVR window in seconds").fill("600")
    await save.click()
    await expect(page.get_by_role("dialog")).to_contain_text("Description: – → Of another")
    await save.click()
    await expect(page.get_by_role("heading", name="Final")).to_be_visible()
    shown = _got(http, f"/api/event/{event}")
    assert (shown["title"], shown["dvrLength"], shown["description"], shown["refId"]) == ("Final", 600, "Of another", "r-1")
    assert shown["scheduledStart"] == "2032-01-01T12:00:30.000Z", "a time that nobody touched keeps its seconds"
    assert sorted(each["name"] for each in _got(http, f"/api/tag/event/{event}")) == ["cup", "final"]

    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("This Event is deleted")).to_be_visible()
    await page.get_by_role("button", name="Restore").click()
    await page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    await expect(page.get_by_role("button", name="Edit")).to_be_visible()
    types = [each["type"] for each in _got(http, f"/api/audit/event/{event}/")]
    assert types[-2:] == ["event.deleted", "event.restored"]


async def test_who_may_only_read_gets_no_buttons(browser: Browser, product: Product, http: httpx.Client) -> None:
    event = _event(http, system_clock() + 3 * MINUTE, title="Seen")
    key = _reader(http)
    async with visitor(browser, product.address, key=key) as came:
        page = await came.open(f"/console/?{urlencode({'event': event})}")
        await expect(page.get_by_text("To change its state you need the role operator.")).to_be_visible()
        await page.goto(f"{product.address}/console/events/{event}")
        await expect(page.get_by_role("heading", name="Seen")).to_be_visible()
        for name in ("Go live", "Edit", "Delete"):
            await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        assert came.complaints == []


TABS = (
    "overview",
    "playback",
    "chapters",
    "assets",
    "captions",
    "jobs",
    "sessions",
    "publications",
    "provisioning",
    "deliveries",
    "json",
)


async def test_both_pages_are_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    start = datetime(2003, 5, 6, 12, tzinfo=UTC)
    events = [_event(http, start + number * 20 * MINUTE, title=f"One of several {number}") for number in range(3)]
    live = _event(http, system_clock(), title="On air")
    _made(http, "/api/chapterpoint/", eventId=live, title="First", startTime="00:00:01")
    _put(http, f"/api/event/state/{live}", state=LIVE)
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open(f"/console/?from=2003-05-06T11:30:00Z&hours=2&event={events[0]}")
        await expect(page.get_by_role("dialog").get_by_role("button", name="Go live", exact=True)).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.keyboard.press("Escape")
        await expect(bar(page, events[2])).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        for tab in TABS:
            await page.goto(f"{product.address}/console/events/{live}?tab={tab}")
            await expect(page.get_by_role("tab", selected=True)).to_have_text(tab, ignore_case=True)
            await expect(page.locator(".skeleton")).to_have_count(0)
            assert await violations_in_all_sizes(page) == []
        assert came.complaints == []
    _put(http, f"/api/event/state/{live}", state=STOPPED)


async def test_hostile_texts_and_500_events_are_shown_as_they_are(signed_in: Page, http: httpx.Client, product: Product) -> None:
    """The fixture fails the test when the page complains or loads from elsewhere."""
    page, start, mark = signed_in, datetime(2041, 7, 8, 0, tzinfo=UTC), uuid4().hex
    room = _made(http, "/api/room/", name=f"<img src=x onerror=\"document.title='broken in'\">{mark}", referenceId=mark)
    titles = [*HOSTILE_STRINGS, *(f"Ordinary {number}" for number in range(300))]
    events = [
        _event(http, start + number * MINUTE * 2, 25 * MINUTE, title=title, roomId=room) for number, title in enumerate(titles)
    ]
    await page.goto(f"{product.address}/console/?from=2041-07-08T00:00:00Z&hours=24")
    await expect(page.locator(".bar")).to_have_count(len(events), timeout=120_000)
    shown = await page.evaluate(
        "[...document.querySelectorAll('.bar')].map(bar => [bar.dataset.event, bar.querySelector('bdi').textContent])"
    )
    expected = dict(zip(events, titles, strict=True))
    wrong = {event: text for event, text in shown if text != expected[event][:200] and text not in expected[event]}
    assert wrong == {}
    assert await page.evaluate("document.querySelectorAll('main img, main script, main iframe').length") == 0
    for index in (0, 2, 96, 99, 150, 177, 199):
        await page.goto(f"{product.address}/console/events/{events[index]}")
        await expect(page.get_by_role("button", name="Edit")).to_be_enabled()
        assert await page.locator("h1 bdi").evaluate("one => one.textContent") == titles[index]
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not (await page.title()).startswith("broken in")
