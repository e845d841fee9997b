"""Destinations in a real browser: one is added with a secret that is never shown, tried, changed and deleted."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

import httpx
from playwright.async_api import Browser, Page, Route, expect

from tests.console.browser import Visitor, violations, violations_in_all_sizes, visitor
from tests.console.conftest import KEY
from tests.support.product import Product
from tests.support.waiting import until

SECRET = "a-secret-that-nobody-sees"
CONFIGURATION = '{"endpoint": "http://127.0.0.1:9", "bucket": "films", "accessKeyId": "id", "secretAccessKey": "s"}'


def _call(http: httpx.Client, method: str, path: str, **content: Any) -> Any:
    """The body of the answer, which must be a success."""
    answer = http.request(method, path, **content)
    assert answer.is_success, answer.text
    return answer.json()


def _origin(page: Page) -> str:
    result = re.match(r"https?://[^/]+", page.url)
    assert result is not None
    return result[0]


async def test_a_destination_is_added_tried_changed_and_deleted(signed_in: Page, http: httpx.Client) -> None:
    name = f"<b>Archive</b> {uuid4().hex[:8]}"
    origin = re.match(r"https?://[^/]+", signed_in.url)
    assert origin is not None
    await signed_in.goto(f"{origin[0]}/console/destinations")
    await signed_in.get_by_role("button", name="Add destination").click()
    form = signed_in.get_by_role("dialog", name="New destination")
    await form.get_by_label("Name").fill(name)
    for label, value in (
        ("Endpoint", "http://127.0.0.1:9"),
        ("Bucket", "films"),
        ("Access key id", "id"),
        ("Secret access key", SECRET),
    ):
        await form.get_by_label(label, exact=True).fill(value)
    await form.get_by_role("button", name="Add", exact=True).click()
    drawer = signed_in.get_by_role("dialog", name="Destination", exact=True)
    await expect(drawer.get_by_label("Bucket")).to_have_value("films")
    await expect(drawer.get_by_label("Secret access key")).to_have_value("")
    assert SECRET not in await signed_in.content()
    await drawer.get_by_role("button", name="Try it").click()
    await expect(drawer.get_by_role("status").filter(has_text="Action required")).to_be_visible(timeout=60_000)
    await drawer.get_by_label("Bucket").fill("archive")
    async with signed_in.expect_response(lambda answer: answer.request.method == "PUT") as saved:
        await drawer.get_by_role("button", name="Save").click()
    assert (await saved.value).ok
    await expect(signed_in.get_by_text("Destination saved").last).to_be_visible()
    [made] = [each for each in _call(http, "GET", "/api/media/destination/") if each["name"] == name]
    assert '"archive"' in made["configJson"]
    assert SECRET not in made["configJson"]
    await drawer.get_by_role("button", name="Delete").click()
    await signed_in.get_by_role("dialog", name="Delete this destination?").get_by_role("button", name="Delete").click()
    await expect(signed_in.get_by_role("dialog")).to_have_count(0)
    assert name not in [each["name"] for each in _call(http, "GET", "/api/media/destination/")]


async def test_a_live_publication_is_shown_and_deleted(signed_in: Page, http: httpx.Client) -> None:
    event = _call(http, "POST", "/api/event/", json={"title": f"Pushed {uuid4()}"})["id"]
    body = {"name": f"Push {event}", "target": "CUSTOM", "destinationJson": '{"cstm_streamUrl": "rtmp://127.0.0.1:9/live"}'}
    destination = _call(http, "POST", "/api/media/destination/", json=body)["id"]
    _call(http, "PUT", f"/api/media/destination/active/{destination}", params={"active": True})
    streams = [{"destinationId": destination, "publicationJson": "{}"}]
    made = _call(http, "POST", "/api/media/livepublication/", json={"eventId": event, "publications": streams})
    origin = re.match(r"https?://[^/]+", signed_in.url)
    assert origin is not None
    await signed_in.goto(f"{origin[0]}/console/destinations?tab=live&search={event}")
    await signed_in.locator("tbody tr").click()
    drawer = signed_in.get_by_role("dialog", name="Live publication")
    await drawer.get_by_role("button", name="Delete", exact=True).click()
    await signed_in.get_by_role("dialog", name="Delete?").get_by_role("button", name="Delete").click()
    await expect(signed_in.get_by_text("Delete: done")).to_be_visible()
    await expect(signed_in.get_by_text("No publications")).to_be_visible()
    result = _call(http, "GET", "/api/audit/events/", params={"aggregate": "publication", "id": made[0]["id"], "order": "ASC"})
    assert len(result["results"]) >= 2


async def test_a_start_that_is_refused_is_told_with_its_reason_on_both_pages(signed_in: Page, http: httpx.Client) -> None:
    """A destination that is not active fails the publication; the call for one answers 200."""
    event = _call(http, "POST", "/api/event/", json={"title": f"Refused {uuid4()}"})["id"]
    _call(http, "PUT", f"/api/event/state/{event}", json={"state": 2})
    body = {"name": f"Push {event}", "target": "CUSTOM", "destinationJson": '{"cstm_streamUrl": "rtmp://127.0.0.1:9/live"}'}
    destination = _call(http, "POST", "/api/media/destination/", json=body)["id"]
    _call(http, "PUT", f"/api/media/destination/active/{destination}", params={"active": True})
    streams = {"eventId": event, "publications": [{"destinationId": destination, "publicationJson": "{}"}]}
    for path in (f"/console/events/{event}?tab=publications", f"/console/destinations?tab=live&search={event}"):
        [made] = _call(http, "POST", "/api/media/livepublication/", json=streams)
        _call(http, "PUT", f"/api/media/destination/active/{destination}", params={"active": False})
        await signed_in.goto(f"{_origin(signed_in)}{path}")
        if "destinations" in path:
            await signed_in.locator("tbody tr").click()
        await signed_in.get_by_role("button", name="Start", exact=True).click()
        question = signed_in.get_by_role("dialog", name=re.compile("^Start"))
        await question.get_by_role("button", name="Start", exact=True).click()
        await expect(signed_in.get_by_role("alert").filter(has_text="The destination is not active")).to_be_visible()
        await question.get_by_role("button", name="Back").click()
        await expect(signed_in.get_by_text("Destination failed").first).to_be_visible()
        await expect(signed_in.get_by_role("button", name="Start", exact=True)).to_have_count(0)
        asked = {"eventId": event, "publications": [{"publicationId": made["id"], "destinationId": destination}]}
        _call(http, "DELETE", "/api/media/livepublication/", json=asked)
        _call(http, "PUT", f"/api/media/destination/active/{destination}", params={"active": True})


async def test_changes_of_others_to_an_open_destination_are_not_overwritten(signed_in: Page, http: httpx.Client) -> None:
    name = f"Bucket {uuid4().hex[:8]}"
    body = {"name": name, "target": "S3", "destinationJson": CONFIGURATION}
    destination = _call(http, "POST", "/api/media/destination/", json=body)["id"]
    await signed_in.goto(f"{_origin(signed_in)}/console/destinations?destination={destination}")
    drawer = signed_in.get_by_role("dialog", name="Destination", exact=True)
    await drawer.get_by_label("Name").fill(f"{name} mine")
    theirs = {**body, "destinationJson": CONFIGURATION.replace("films", "theirs")}
    _call(http, "PUT", f"/api/media/destination/{destination}", json=theirs)
    await expect(drawer.get_by_text("It was changed since you opened it")).to_be_visible()
    await drawer.get_by_role("button", name="Save").click()
    await expect(drawer.get_by_role("alert")).to_contain_text("was changed meanwhile")
    result = _call(http, "GET", f"/api/media/destination/{destination}")
    assert (result["name"], "theirs" in result["configJson"]) == (name, True)
    await drawer.get_by_role("button", name="Show the current version").click()
    await expect(drawer.get_by_label("Bucket")).to_have_value("theirs")
    for mine in ("one", "two"):  # what the form itself saved is no change of others
        await drawer.get_by_label("Name").fill(f"{name} {mine}")
        async with signed_in.expect_response(lambda answer: answer.request.method == "PUT") as saved:
            await drawer.get_by_role("button", name="Save").click()
        assert (await saved.value).ok
        await expect(signed_in.locator("tbody tr", has_text=f"{name} {mine}")).to_be_attached()
        await expect(drawer.get_by_text("It was changed since you opened it")).to_have_count(0)


async def _opened(page: Page, http: httpx.Client) -> str:
    """The id of a new destination, whose drawer is open."""
    body = {"name": f"Bucket {uuid4().hex[:8]}", "target": "S3", "destinationJson": CONFIGURATION}
    destination = str(_call(http, "POST", "/api/media/destination/", json=body)["id"])
    await page.goto(f"{_origin(page)}/console/destinations?destination={destination}")
    await expect(page.get_by_role("dialog", name="Destination", exact=True).get_by_label("Bucket")).to_have_value("films")
    return destination


async def test_an_answer_that_comes_late_does_not_move_who_has_gone_on(signed_in: Page, http: httpx.Client) -> None:
    destination = await _opened(signed_in, http)
    release = asyncio.Event()

    async def late(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await signed_in.route(f"**/activate/{destination}", late)
    await signed_in.get_by_role("button", name="Try it").click()
    await signed_in.get_by_role("button", name="Close").click()
    await signed_in.get_by_role("link", name="Jobs", exact=True).click()
    await expect(signed_in.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    async with signed_in.expect_response(lambda answer: "/activate/" in answer.url) as tried:
        release.set()
    await (await tried.value).finished()
    await signed_in.evaluate("new Promise(then => requestAnimationFrame(() => requestAnimationFrame(then)))")
    assert signed_in.url.split("?")[0].endswith("/console/jobs")


async def test_a_failure_in_a_drawer_is_shown_in_front_of_it(signed_in: Page, guest: Visitor, http: httpx.Client) -> None:
    guest.expected.append("status of 503")
    destination = await _opened(signed_in, http)
    await signed_in.route(f"**/activate/{destination}", lambda route: route.fulfill(status=503, json={"detail": "Not now."}))
    drawer = signed_in.get_by_role("dialog", name="Destination", exact=True)
    await drawer.get_by_role("button", name="Try it").click()
    await expect(drawer.get_by_role("alert").filter(has_text="Not now.")).to_be_visible()
    await drawer.get_by_role("button", name="Dismiss").click()
    await expect(signed_in.get_by_role("alert")).to_have_count(0)
    await expect(drawer).to_be_visible()


async def test_a_selection_that_ends_beside_a_drawer_leaves_it_open(signed_in: Page, http: httpx.Client) -> None:
    await _opened(signed_in, http)
    drawer = signed_in.get_by_role("dialog", name="Destination", exact=True)
    field = await drawer.get_by_label("Name").bounding_box()
    assert field is not None
    inside, other = (field["x"] + 40, field["y"] + 10), (60, field["y"] + 10)
    for begin, end in ((inside, other), (other, inside)):
        await signed_in.mouse.move(*begin)
        await signed_in.mouse.down()
        await signed_in.mouse.move(*end)
        await signed_in.mouse.up()
        await expect(drawer).to_be_visible()
        assert "destination=" in signed_in.url
    await signed_in.mouse.click(*other)
    await expect(drawer).to_have_count(0)


async def test_an_event_is_found_and_published_and_its_upload_followed(signed_in: Page, http: httpx.Client) -> None:
    mark = uuid4().hex[:8]
    event = _call(http, "POST", "/api/event/", json={"title": f"Film <b>{mark}</b>"})["id"]
    _call(http, "POST", "/api/event/flow/add/", json={"id": event, "taskEngineJson": "{}", "mp4State": "AVAILABLE"})
    body = {"name": f"Bucket {mark}", "target": "S3", "destinationJson": CONFIGURATION}
    destination = _call(http, "POST", "/api/media/destination/", json=body)["id"]
    _call(http, "PUT", f"/api/media/destination/active/{destination}", params={"active": True})
    origin = re.match(r"https?://[^/]+", signed_in.url)
    assert origin is not None
    await signed_in.goto(f"{origin[0]}/console/destinations")
    await signed_in.get_by_role("button", name="Publish an Event").click()
    form = signed_in.get_by_role("dialog", name="Publish")
    await form.get_by_role("searchbox", name="Event").fill(mark)
    await form.get_by_role("button", name=f"Film <b>{mark}</b>").click()
    await expect(form.get_by_label("Title")).to_have_value(f"Film <b>{mark}</b>")
    await form.get_by_label("Destination").select_option(destination)
    await form.get_by_label("Callback addresses").fill("no address")
    await form.get_by_role("button", name="Publish").click()
    await expect(form.get_by_role("alert")).to_contain_text("callbackUrls[0]")
    await form.get_by_label("Callback addresses").fill("")
    assert await violations(signed_in) == []
    await form.get_by_role("button", name="Publish").click()
    drawer = signed_in.get_by_role("dialog", name="Publication", exact=True)
    await expect(drawer.get_by_text("There is no MP4 of the content here")).to_be_visible()
    await expect(drawer.get_by_role("link", name=f"Film <b>{mark}</b>")).to_be_visible()

    def published() -> dict[str, Any]:
        [results] = _call(http, "GET", "/api/vodpublications/", params={"contentIdFilter": event})["results"]
        return dict(results)

    until(lambda: published()["publicationState"] == 5)
    made = published()
    assert made["destinationId"] == destination
    asked = {"aggregate": "publication", "id": made["id"], "order": "ASC"}
    assert len(_call(http, "GET", "/api/audit/events/", params=asked)["results"]) >= 2
    await drawer.get_by_role("button", name="Close").click()
    await expect(signed_in.locator("tbody tr td").first).to_have_text(f"Film <b>{mark}</b>")


async def test_it_is_accessible(browser: Browser, product: Product) -> None:
    async with visitor(browser, product.address, key=KEY) as came:
        page = await came.open("/console/destinations")
        await expect(page.get_by_role("table")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.get_by_role("button", name="Add destination").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_role("tab", name="Live publications").click()
        await expect(page.get_by_role("table", name="Live publications")).to_be_visible()
        assert await violations_in_all_sizes(page) == []
        assert came.complaints == []
