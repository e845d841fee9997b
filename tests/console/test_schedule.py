"""The schedule in a real browser: moving by pointer and keys, undo, conflicts, who was faster, CSV out and in, bulk changes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, Route, expect

from tests.console.browser import violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.support.product import Product

DAY = "2031-05-01"
HOSTILE = "<img src=x onerror=\"document.title='broken in'\"> \u202edesrever =1+1"


def _room(http: httpx.Client, name: str) -> str:
    answer = http.post("/api/room/", json={"name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["Id"])


def _event(http: httpx.Client, **fields: object) -> str:
    answer = http.post("/api/event/", json=fields)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def _get(http: httpx.Client, path: str, **query: str) -> dict[str, Any]:
    result: dict[str, Any] = http.get(path, params=query).raise_for_status().json()
    return result


def _read(http: httpx.Client, event: str) -> dict[str, Any]:
    return _get(http, f"/api/event/{event}")


def _types(http: httpx.Client, event: str) -> list[str]:
    result = http.get("/api/audit/events/", params={"aggregate": "event", "id": event, "order": "ASC", "pageSize": 50}).json()
    return [each["type"] for each in result["results"]]


async def _open(page: Page, query: str) -> None:
    origin = re.match(r"https?://[^/]+", page.url)
    assert origin is not None
    await page.goto(f"{origin[0]}/console/schedule?{query}")
    await expect(page.get_by_role("heading", name="Schedule")).to_be_visible()


async def test_an_event_is_moved_by_pointer_and_keys_and_moved_back(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    first, second = _room(http, f"A {mark}"), _room(http, f"B {mark}")
    times = {"scheduledStart": f"{DAY}T08:00:00Z", "scheduledEnd": f"{DAY}T09:00:00Z"}
    event = _event(http, title=f"Final {mark}", roomId=first, **times)
    _event(http, title=f"Other {mark}", roomId=second, scheduledStart=f"{DAY}T09:30:00Z", scheduledEnd=f"{DAY}T11:00:00Z")
    await _open(signed_in, f"date={DAY}&search={mark}")
    block = signed_in.get_by_role("button", name=re.compile(f"^Final {mark}"))
    await expect(block).to_contain_text("10:00–11:00")  # the reader is in Berlin
    box = await block.bounding_box()
    lane = await signed_in.get_by_role("group", name=f"B {mark}").locator(".lane-time").bounding_box()
    assert box is not None
    assert lane is not None
    await signed_in.mouse.move(box["x"] + 30, box["y"] + 15)
    await signed_in.mouse.down()
    await signed_in.mouse.move(box["x"] + 60, box["y"] + 20)
    await signed_in.mouse.move(box["x"] + 30 + 72, lane["y"] + 20)
    await signed_in.mouse.up()
    await expect(signed_in.locator(".undo")).to_contain_text("11:00")
    moved = _read(http, event)
    assert (moved["scheduledStart"], moved["scheduledEnd"]) == (f"{DAY}T09:00:00.000Z", f"{DAY}T10:00:00.000Z")
    assert moved["roomId"] == second
    await expect(block).to_have_accessible_name(re.compile(f"Overlaps Other {mark}"))
    await signed_in.get_by_role("button", name="Undo").click()
    await expect(block).to_contain_text("10:00–11:00")
    assert _read(http, event)["roomId"] == first
    await block.focus()
    await signed_in.keyboard.press("Alt+Shift+ArrowRight")
    await signed_in.keyboard.press("Enter")
    await expect(signed_in.locator(".undo")).to_be_visible()
    assert _read(http, event)["scheduledEnd"] == f"{DAY}T09:05:00.000Z"
    moves = ["event.rescheduled", "event.room_assigned"]
    assert _types(http, event) == ["event.registered", *moves, *moves, "event.rescheduled"]


async def test_who_was_faster_wins(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    event = _event(http, title=f"Race {mark}", scheduledStart=f"{DAY}T08:00:00Z", scheduledEnd=f"{DAY}T09:00:00Z")
    await _open(signed_in, f"date={DAY}&search={mark}")
    await signed_in.get_by_role("button", name=re.compile(f"^Race {mark}")).click()
    drawer = signed_in.get_by_role("dialog", name="Event")
    await expect(drawer.get_by_label("Title")).to_have_value(f"Race {mark}")
    _event(http, id=event, title=f"Theirs {mark}")
    await drawer.get_by_label("Title").fill("Mine")
    await drawer.get_by_role("button", name="Save").click()
    await expect(drawer.get_by_role("alert")).to_contain_text("admin was faster")
    assert _read(http, event)["title"] == f"Theirs {mark}"


async def test_a_schedule_goes_out_and_comes_in_as_csv(signed_in: Page, http: httpx.Client, tmp_path: Path) -> None:
    mark = uuid4().hex[:8]
    existing = _event(http, title=f"{HOSTILE} {mark}", refId=f"{mark}-1", scheduledStart=f"{DAY}T08:00:00Z")
    await _open(signed_in, f"date={DAY}&view=table&search={mark}")
    await expect(signed_in.locator("tbody tr")).to_have_count(1)
    async with signed_in.expect_download() as started:
        await signed_in.get_by_role("button", name="CSV").click()
    file = tmp_path / "schedule.csv"
    await (await started.value).save_as(file)
    head, row = file.read_text(encoding="utf-8").splitlines()
    again = row.replace(f"{DAY}T08:00:00.000Z", f"{DAY}T10:00:00+02:00")
    lines = [head, again, f"{mark}-2,New {mark},{DAY} 20:00,{DAY} 21:00,,,,,", f"{mark}-3,Bad,{DAY} 20:00,{DAY} 19:00,Nowhere,,,,"]
    file.write_text("\n".join(lines), encoding="utf-8")
    for expected in ("1 to add, 0 to change, 1 as they are, 1 with errors", "0 to add, 0 to change, 2 as they are, 1 with errors"):
        await signed_in.get_by_role("button", name="Import").click()
        drawer = signed_in.get_by_role("dialog")
        await drawer.get_by_label("CSV file").set_input_files(file)
        await expect(drawer.get_by_text(expected)).to_be_visible()
        await expect(drawer.get_by_text("room: there is none named Nowhere")).to_be_visible()
        if expected.startswith("1"):
            assert _get(http, "/api/event/", search=mark)["totalCount"] == 1
            await drawer.get_by_role("button", name="Write 1 row").click()
            await expect(drawer.get_by_text("1 done, 0 failed")).to_be_visible()
        await drawer.get_by_role("button", name="Close").click()
    made = _get(http, "/api/event/reference", id=f"{mark}-2")
    assert (made["title"], made["scheduledStart"]) == (f"New {mark}", f"{DAY}T18:00:00.000Z")
    assert len(_types(http, existing)) == 1
    await expect(signed_in.locator("tbody tr")).to_have_count(2)
    await signed_in.get_by_role("button", name="Choose all 2").click()
    await signed_in.get_by_label("Minutes").fill("30")
    await signed_in.get_by_role("button", name="Apply").click()
    await expect(signed_in.get_by_text("2 done, 0 failed")).to_be_visible()
    assert _read(http, made["id"])["scheduledEnd"] == f"{DAY}T19:30:00.000Z"


async def test_a_change_of_many_goes_on_and_is_told_after_its_page_was_left(signed_in: Page, http: httpx.Client) -> None:
    """The rows leave the list as they are deleted, and the user leaves the page before the last one is."""
    mark = uuid4().hex[:8]
    events = [_event(http, title=f"Gone {mark}", scheduledStart=f"{DAY}T08:00:00Z") for _ in range(2)]
    await _open(signed_in, f"date={DAY}&view=table&search={mark}")
    await signed_in.get_by_role("button", name="Choose all 2").click()
    await signed_in.get_by_label("Change", exact=True).select_option("delete")
    release = asyncio.Event()

    async def late(route: Route) -> None:
        if route.request.method == "DELETE":
            await release.wait()
        await route.continue_()

    await signed_in.route("**/api/event/*", late)
    await signed_in.get_by_role("button", name="Apply").click()
    await signed_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(signed_in.get_by_role("region", name="Change of 2 Events")).to_be_visible()
    await signed_in.get_by_role("link", name="Jobs", exact=True).click()
    await expect(signed_in.get_by_role("heading", name="Jobs")).to_be_visible()
    messages = signed_in.get_by_role("region", name="Messages")
    await expect(messages.get_by_text("Change of 2 Events")).to_be_visible()
    await expect(messages.get_by_role("button", name="Stop")).to_be_visible()
    release.set()
    await expect(messages.get_by_text("Change of 2 Events: 2 done")).to_be_visible()
    assert all(_types(http, event)[-1] == "event.deleted" for event in events)
    await signed_in.get_by_role("link", name="Schedule", exact=True).click()
    await expect(signed_in.get_by_text("Change of 2 Events: 2 done, 0 failed.")).to_be_visible()
    await signed_in.get_by_role("button", name="Forget it").click()
    await expect(signed_in.get_by_role("region", name="Change of 2 Events")).to_have_count(0)


async def test_it_is_accessible(browser: Browser, product: Product, http: httpx.Client) -> None:
    room = _room(http, "Hall")
    for hour in ("08", "09"):
        _event(http, title=HOSTILE, roomId=room, scheduledStart=f"2031-06-01T{hour}:00:00Z", scheduledEnd="2031-06-01T11:00:00Z")
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open("/console/schedule?date=2031-06-01")
        await expect(page.locator(".block.conflict").first).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.get_by_role("tab", name="Table").click()
        await expect(page.locator("tbody tr").first).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.get_by_role("button", name="Add Event").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        assert came.complaints == []
