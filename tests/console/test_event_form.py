"""The form of an Event on the pages that show it: what it refuses, keeps, merges and warns of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
from playwright.async_api import Browser, Locator, Page, Request, expect

from api.kernel.wire import Label, wire_names
from api.media.event.requests import AddOrUpdateEventRequest
from domain.kernel.clock import iso, system_clock
from tests.console.addresses import HOUR, LIVE
from tests.console.browser import Visitor, visitor
from tests.domain.channel.texts_given import FLOW
from tests.support.product import Product

STOPPED: Final = 4
DAY: Final = "2031-05-01"
OWN: Final = frozenset({"id", "refId", "externalId", "eventState", "refreshIndex", "vodDrm"})
"""Members of a new Event that a copy does not get, and a second name of one that it gets."""
UNSEEN: Final = frozenset({"autoExpirePublishingPoints"})
"""No GET shows it, so nobody can copy it."""
DIFFERENT: Final = re.compile(r"^(id|contentId|refId|externalId|date\w+|documentUrl|tagUrl|thumbnailUrl|video|provisionInfo)$")


def _made(http: httpx.Client, path: str, **fields: object) -> str:
    answer = http.post(path, json=fields)
    assert answer.is_success, (path, answer.text)
    return str({name.lower(): value for name, value in answer.json().items()}["id"])


def _got(http: httpx.Client, path: str) -> Any:
    return http.get(path).raise_for_status().json()


def _goes_to(http: httpx.Client, event: str, state: int) -> None:
    http.put(f"/api/event/state/{event}", json={"state": state}).raise_for_status()


def _client_with(http: httpx.Client, role: str) -> str:
    """The key of a new one."""
    answer = http.post("/api/client/", json={"name": f"{role}-{uuid4().hex[:8]}", "roles": [role]}).raise_for_status()
    return str(answer.json()["key"])


def _origin(page: Page) -> str:
    result = re.match(r"https?://[^/]+", page.url)
    assert result is not None
    return result[0]


async def _schedule(page: Page, query: str) -> None:
    await page.goto(f"{_origin(page)}/console/schedule?{query}")
    await expect(page.get_by_role("heading", name="Schedule")).to_be_visible()


def _whole(http: httpx.Client, mark: str) -> Mapping[str, object]:
    """A value for each member of a new Event."""
    flow = {"configurationJson": json.dumps(FLOW)}
    resources = [{"name": "origin", "type": "origin", "ipAddress": "127.0.0.1"}]
    request = {"options": {"deploymentType": "static"}, "resources": resources}
    profile = {"configurationJson": json.dumps({"request": request, "workflow": {}})}
    times = ("scheduledChannelStart", "scheduledProvisionAt", "archiverStart", "publishedStart", "instantVodStart")
    ends = ("scheduledChannelEnd", "scheduledTerminateAt", "archiverEnd", "publishedEnd", "instantVodEnd")
    texts = [name for name, field in AddOrUpdateEventRequest.model_fields.items() if field.annotation == Label | None]
    return {
        **{alias: f"a {alias}" for name in texts if (alias := wire_names(AddOrUpdateEventRequest, name)[0]) not in OWN},
        "title": f"Final {mark}",
        "description": "All of it",
        "thumbnail": "https://pictures.example/a.jpg",
        "additionalStreamingOptions": "--a=1",
        "taskEngineJson": "{}",
        "drmJson": '{"drm_data": []}',
        "roomId": _made(http, "/api/room/", name=f"Hall {mark}"),
        "eventTypeId": _made(http, "/api/eventtype/", name=f"Match {mark}"),
        "categoryId": _made(http, "/api/category/", name=f"Sport {mark}", label=f"Sport {mark}"),
        "channelId": _made(http, "/api/channel/", name=f"One {mark}"),
        **{name: _made(http, "/api/flow/", name=f"{name} {mark}", **flow) for name in ("flowId", "remixflowId", "archiverflowId")},
        "infrastructureProfileId": _made(http, "/api/infrastructureprofile/", name=f"Two {mark}", **profile),
        "scheduledStart": f"{DAY}T08:00:00.000Z",
        "scheduledEnd": f"{DAY}T09:15:00.000Z",
        **dict.fromkeys(times, f"{DAY}T07:45:00.000Z"),
        **dict.fromkeys(ends, f"{DAY}T10:00:00.000Z"),
        **dict.fromkeys(("autoStart", "autoEnd", "autoPublish", "autoStartPublications", "vodEnableDrm"), True),
        **dict.fromkeys(("autoProvisionInfrastructure", "autoTerminateInfrastructure"), True),
        "tags": [{"name": f"a {mark}"}, {"name": f"b {mark}"}],
        "dvrLength": 120,
        "maxBitrate": 5_000_000,
        "minBitrate": 100_000,
    }


def _a_day_later(value: Any) -> Any:
    return value.replace(DAY, "2031-05-02") if isinstance(value, str) else value


@pytest.mark.parametrize("place", ["schedule", "page"])
async def test_a_clone_keeps_everything(signed_in: Page, http: httpx.Client, place: str) -> None:
    mark = uuid4().hex[:8]
    whole = _whole(http, mark)
    document = _got(http, "/openapi.json")["components"]["schemas"]["AddOrUpdateEventRequest"]["properties"]
    assert set(document) - OWN - UNSEEN == set(whole), "a new member is copied too, or is the Event's own"
    original = _made(http, "/api/event/", **whole, refId=mark)
    if place == "schedule":
        await _schedule(signed_in, f"date={DAY}&search={mark}")
        await signed_in.get_by_role("button", name=re.compile(f"^Final {mark}")).click()
    else:
        await signed_in.goto(f"{_origin(signed_in)}/console/events/{original}")
    await signed_in.get_by_role("button", name="Clone", exact=True).click()
    dialog = signed_in.get_by_role("dialog", name="Clone the Event")
    await dialog.get_by_label("Title").fill(f"Copy {mark}")
    await dialog.get_by_role("button", name="Clone", exact=True).click()
    await expect(dialog).to_have_count(0)
    [copy] = _got(http, f"/api/event/?search=Copy%20{mark}")["results"]
    before = _got(http, f"/api/event/{original}")
    expected = {name: _a_day_later(value) for name, value in before.items() if not DIFFERENT.match(name)}
    expected["title"] = f"Copy {mark}"
    shown = {name: value for name, value in copy.items() if not DIFFERENT.match(name)}
    assert shown == expected
    assert [each["name"] for each in _got(http, f"/api/tag/event/{copy['id']}")] == [f"a {mark}", f"b {mark}"]


async def test_the_forms_refuse_what_is_wrong_before_the_api_does(signed_in: Page, guest: Visitor, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    event = _made(http, "/api/event/", title=f"Final {mark}", scheduledStart=f"{DAY}T08:00:00Z", scheduledEnd=f"{DAY}T09:00:00Z")
    writes: list[str] = []

    def asked(request: Request) -> None:
        if request.method != "GET":
            writes.append(request.url)

    signed_in.on("request", asked)
    await _schedule(signed_in, f"date={DAY}&search={mark}")
    await signed_in.get_by_role("button", name="Add Event").click()
    new = signed_in.get_by_role("dialog", name="New Event")
    await expect(new.get_by_label("Scheduled start", exact=True)).to_have_value(f"{DAY}T12:00")
    await new.get_by_label("Scheduled end", exact=True).fill(f"{DAY}T11:00")
    await new.get_by_role("button", name="Add", exact=True).click()
    await expect(new.get_by_text("An Event needs a title.")).to_be_visible()
    await _refuses_the_end(new)
    await new.get_by_role("button", name="Back").click()
    await new.get_by_role("button", name="Leave it").click()
    await signed_in.get_by_role("button", name=re.compile(f"^Final {mark}")).click()
    await _spoils(signed_in.get_by_role("dialog", name="Event"))
    await signed_in.goto(f"{_origin(signed_in)}/console/events/{event}")
    await signed_in.get_by_role("button", name="Edit").click()
    await _spoils(signed_in.get_by_role("dialog", name="Edit the Event"))
    assert writes == []


async def _spoils(form: Locator) -> None:
    await form.get_by_label("Scheduled end", exact=True).fill(f"{DAY}T09:00")
    await form.get_by_label("DVR window").fill("-1.5")
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_text("It must be a whole number of seconds")).to_be_visible()
    await _refuses_the_end(form)


async def _refuses_the_end(form: Locator) -> None:
    end = form.get_by_label("Scheduled end", exact=True)
    await expect(end).to_have_attribute("aria-invalid", "true")
    await expect(form.get_by_text("The end must be after the start.")).to_be_visible()


async def test_what_others_changed_meanwhile_is_kept(signed_in: Page, http: httpx.Client) -> None:
    """Typed text is not lost, in the schedule and on the page of the Event, and only that text is sent."""
    mark = uuid4().hex[:8]
    event = _made(http, "/api/event/", title=f"Race {mark}", scheduledStart=f"{DAY}T08:00:00Z")
    for place in ("schedule", "page"):
        if place == "schedule":
            await _schedule(signed_in, f"date={DAY}&search={mark}")
            await signed_in.get_by_role("button", name=re.compile(f"{mark}")).first.click()
        else:
            await signed_in.goto(f"{_origin(signed_in)}/console/events/{event}")
            await signed_in.get_by_role("button", name="Edit").click()
        form = signed_in.get_by_role("dialog")
        await form.get_by_label("Title").fill(f"Mine {place} {mark}")
        _made(http, "/api/event/", id=event, description=f"Theirs {place}")
        await form.get_by_role("button", name="Save").click()
        await expect(form.get_by_role("alert")).to_contain_text("admin was faster")
        await expect(form.get_by_role("alert")).to_contain_text(f"Theirs {place}")
        await form.get_by_role("button", name="Save anyway").click()
        await expect(form).to_have_count(0)
        read = _got(http, f"/api/event/{event}")
        assert (read["title"], read["description"]) == (f"Mine {place} {mark}", f"Theirs {place}")


async def _drag(page: Page, block: Locator, *, by: int, grip: int) -> None:
    """`grip`: pixels from the left edge, or from the right one where it is negative."""
    box = await block.bounding_box()
    assert box is not None
    x = box["x"] + grip if grip >= 0 else box["x"] + box["width"] + grip
    await page.mouse.move(x, box["y"] + 15)
    await page.mouse.down()
    await page.mouse.move(x + by / 2, box["y"] + 18)
    await page.mouse.move(x + by, box["y"] + 15)
    await page.mouse.up()


async def test_a_drag_saves_and_opens_nothing(signed_in: Page, http: httpx.Client) -> None:
    """Within its lane, where the block that was dragged is the one that is let go."""
    mark = uuid4().hex[:8]
    times = {"scheduledStart": f"{DAY}T08:00:00Z", "scheduledEnd": f"{DAY}T09:00:00Z"}
    event = _made(http, "/api/event/", title=f"Final {mark}", roomId=_made(http, "/api/room/", name=f"A {mark}"), **times)
    await _schedule(signed_in, f"date={DAY}&search={mark}")
    block = signed_in.get_by_role("button", name=re.compile(f"^Final {mark}"))
    await _drag(signed_in, block, by=72, grip=30)
    await expect(signed_in.locator(".undo")).to_contain_text("11:00")
    assert _got(http, f"/api/event/{event}")["scheduledStart"] == f"{DAY}T09:00:00.000Z"
    await _drag(signed_in, block, by=72, grip=-2)
    await expect(signed_in.locator(".undo")).to_contain_text("to 13:00")
    await expect(signed_in.get_by_role("dialog")).to_have_count(0)
    await block.click()
    await expect(signed_in.get_by_role("dialog", name="Event")).to_be_visible()


async def test_of_what_is_on_the_air_only_the_end_is_moved_and_that_is_asked_first(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    noon = system_clock().replace(hour=11, minute=0, second=0, microsecond=0)
    times = {"scheduledStart": iso(noon - HOUR), "scheduledEnd": iso(noon)}
    event = _made(http, "/api/event/", title=f"Live {mark}", roomId=_made(http, "/api/room/", name=f"L {mark}"), **times)
    _goes_to(http, event, LIVE)
    await _schedule(signed_in, f"date={noon.date()}&search={mark}")
    block = signed_in.get_by_role("button", name=re.compile(f"^Live {mark}"))
    dialog = signed_in.get_by_role("dialog", name="Move the end of an Event on the air?")
    for answer, end in (("Back", noon), ("Move the end", noon + HOUR)):
        await _drag(signed_in, block, by=72, grip=30)
        await dialog.get_by_role("button", name=answer).click()
        await expect(dialog).to_have_count(0)
        await expect(signed_in.locator(".undo")).to_have_count(0 if answer == "Back" else 1)
        read = _got(http, f"/api/event/{event}")
        assert (read["scheduledStart"], read["scheduledEnd"]) == (iso(noon - HOUR), iso(end))


async def test_going_live_warns_of_what_will_not_happen(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    point = '{"primaryPublishingPoint": {"publishingPointUrl": "http://127.0.0.1:9/live.isml"}}'
    server = f'"streamingServer": {{"streamingServerSpecific": {point}}}'
    nothing = _made(http, "/api/channel/", name=f"Nothing {mark}")
    sender = _made(http, "/api/channel/", name=f"Sender {mark}", configurationJson='{"encoders": [{"name": "e"}]}')
    whole = _made(http, "/api/channel/", name=f"Whole {mark}", configurationJson=f'{{"encoders": [{{"name": "e", {server}}}]}}')
    other = _made(http, "/api/event/", title=f"Other {mark}", channelId=whole)
    _goes_to(http, other, LIVE)
    soon = iso(system_clock() + HOUR / 4)
    _made(http, "/api/event/", title=f"Soon {mark}", channelId=whole, scheduledStart=soon)
    for channel, warnings in (
        (None, ["It has no channel"]),
        (nothing, ["has no encoder"]),
        (sender, ["has no publishing point"]),
        (whole, [f"Other {mark} is on the channel: Live", f"Soon {mark} is planned on the channel"]),
    ):
        event = _made(http, "/api/event/", title=f"Final {mark}", channelId=channel)
        await signed_in.goto(f"{_origin(signed_in)}/console/events/{event}")
        await signed_in.get_by_role("button", name="Go live", exact=True).click()
        dialog = signed_in.get_by_role("dialog", name="Go live", exact=True)
        for warning in warnings:
            await expect(dialog.locator(".warnings")).to_contain_text(warning)
        if channel is None:
            await expect(dialog.get_by_text("Its encoders start")).to_have_count(0)
    _goes_to(http, other, STOPPED)
    event = _made(http, "/api/event/", title=f"Final {mark}", channelId=whole, scheduledEnd=iso(system_clock() + HOUR / 8))
    await signed_in.goto(f"{_origin(signed_in)}/console/events/{event}")
    await signed_in.get_by_role("button", name="Go live", exact=True).click()
    dialog = signed_in.get_by_role("dialog", name="Go live", exact=True)
    await expect(dialog).to_contain_text("with 1 encoder and 1 publishing point")
    await expect(dialog.locator(".warnings")).to_have_count(0)


async def test_an_event_on_the_air_without_a_channel_is_no_healthy_bar(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    event = _made(http, "/api/event/", title=f"Nowhere {mark}", scheduledStart=iso(system_clock()))
    _goes_to(http, event, LIVE)
    await signed_in.goto(f"{_origin(signed_in)}/console/")
    bar = signed_in.locator(f'.bar[data-event="{event}"]')
    await expect(bar).to_contain_text("No channel")
    await expect(bar).to_have_css("border-top-style", "dashed")
    await bar.click()
    await expect(signed_in.get_by_role("dialog", name="Event").locator(".badge", has_text="No channel")).to_be_visible()
    _goes_to(http, event, STOPPED)


async def test_a_role_is_told_what_it_may_not_see(browser: Browser, product: Product, http: httpx.Client) -> None:
    async with visitor(browser, product.address, key=_client_with(http, "keys")) as came:
        page = await came.open()
        await expect(page.locator(".live-badge")).to_have_text("No live updates")
        await expect(page.locator(".live-badge")).to_have_attribute("title", re.compile("Your role may not see changes"))
        for path, words in (("clients", "It needs the role admin."), ("audit", "It needs one of the roles auditor, admin.")):
            await page.goto(f"{product.address}/console/{path}")
            await expect(page.get_by_text(words)).to_be_visible()
        await expect(page.locator(".band")).to_have_count(0)
        assert came.complaints == []
