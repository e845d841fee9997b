"""Every page of the console at 375 pixels, in a product full of hostile texts: they are text, and fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.console.addresses import ADDRESSES
from tests.console.browser import NARROW, visitor
from tests.console.conftest import KEY
from tests.console.hostile_strings import HOSTILE_STRINGS
from tests.console.test_deliveries import failed_webhook
from tests.console.test_jobs import failed_job
from tests.support.product import Product, client
from tests.support.waiting import ROOT, until

START: Final = "2041-07-08T12:00:00Z"
END: Final = "2041-07-08T13:00:00Z"
FAR: Final = "2041-01-01T00:00:00Z"
PROVISIONING_FAILED: Final = 2
MOST: Final = 195
"""Bytes: lists show at least 200 characters of a name."""
BEGINNING: Final = 90
"""Length of the part of a long text that is searched: lists cut texts, even between the halves of a character."""


def _packed(texts: Sequence[str], longest: int, between: str) -> list[str]:
    """The texts in few names: several in one where they are short."""
    packed: list[str] = []
    for text in texts:
        joined = f"{packed[-1]}{between}{text}" if packed else text
        if packed and len(joined.encode()) <= longest:
            packed[-1] = joined
        else:
            packed.append(text)
    return packed


NAMES: Final = _packed(HOSTILE_STRINGS, MOST, " | ")
FILE_NAMES: Final = [
    text
    for text in HOSTILE_STRINGS
    if text.isprintable() and text == text.strip() and len(text.encode()) < 200 and not re.search(r"[/\\]|^\.|Cookie", text)
]
"""Names that the API accepts as the id of a content. Jobs do not show texts that look like credentials, such as a cookie."""
CONTENTS: Final = _packed(FILE_NAMES, 200, " ")
PLAIN: Final = [
    text for text in HOSTILE_STRINGS if text.isascii() and text.isprintable() and text == text.strip() and len(text) <= 128
]
"""Texts that the header `X-Actor` can carry."""
JOB_TEXTS: Final = ("<img src=x onerror=alert(1)>", "\u202edesrever\u202d", "W" * 300, "{{7*7}}${7*7}", "'\"><svg onload=alert(1)>")
"""Names and values in the parameters of jobs, which a page shows as JSON."""
MORE: Final = (
    *("/schedule?date=2041-07-08", "/jobs/{failed}", "/jobs/{failed}?part=log", "/jobs/{job}?part=timeline"),
    *("/destinations?destination={destination}", "/destinations?tab=films", "/destinations?tab=live"),
    *("/infrastructure?tab=events", "/infrastructure?open={event}", "/infrastructure?tab=planned", "/infrastructure?tab=archive"),
    *("/infrastructure?tab=profiles&open={profile}", "/infrastructure?tab=archive&open={stream}"),
    *(
        f"/events/{{event}}?tab={tab}"
        for tab in ("chapters", "assets", "captions", "jobs", "publications", "provisioning", "deliveries", "json")
    ),
)
LISTS: Final = {
    "/schedule": HOSTILE_STRINGS,
    "/events": HOSTILE_STRINGS,
    "/jobs": FILE_NAMES,
    "/destinations": HOSTILE_STRINGS,
    "/destinations?tab=films": FILE_NAMES,
    "/infrastructure": HOSTILE_STRINGS,
    "/infrastructure?tab=planned": HOSTILE_STRINGS,
    "/infrastructure?tab=archive": HOSTILE_STRINGS,
}
"""Pages and tabs that list names, with the texts that are in these."""
MADE: Final = """[...document.querySelectorAll([
    'main script', 'main iframe', 'main object', 'main embed', 'main base', 'main link', 'main meta', 'main style', 'main marquee',
    'main math', 'main template', 'main noscript', 'main source', 'main img:not([src^="/"])', '[onload]', '[onerror]',
    '[onmouseover]', '[onfocus]', '[ontoggle]', '[href^="javascript:" i]', '[href^="data:" i]',
    '[href*="evil.example"]', 'form[action]',
].join())].map(one => one.outerHTML.slice(0, 200))"""
SHOWN: Final = "[...document.querySelectorAll('main bdi')].map(one => one.textContent).join('\\n')"


@pytest.fixture(scope="module")
def ids(spoilt: Product) -> Iterator[dict[str, str]]:
    """The ids in the addresses of the pages."""
    with client(spoilt, KEY) as http, ExitStack() as open_until_the_end:
        _, webhook = open_until_the_end.enter_context(failed_webhook(http))
        yield {"webhook": webhook, **_fill(http)}


def _made(http: httpx.Client, path: str, body: Any, **headers: str) -> Any:
    answer = http.post(path, json=body, headers=headers)
    assert answer.is_success, (path, body, answer.text)
    return answer.json()


def _id(made: Any) -> str:
    """A room has a capital letter."""
    return str(made.get("id") or made["Id"])


def _fill(http: httpx.Client) -> dict[str, str]:
    """Use each text as a name, title, reference, description, tag, parameter, file and message wherever there is such a field."""
    http.headers["client"] = "admin"  # jobs ask for it
    http.put("/api/client/admin", json={"roles": ["admin"], "trustActor": True}).raise_for_status()
    rooms = [_id(_made(http, "/api/room/", {"name": text, "referenceId": text})) for text in NAMES]
    profiles = [_id(_made(http, "/api/infrastructureprofile/", _profile(text))) for text in NAMES]
    named = zip(NAMES, rooms, profiles, strict=True)
    for text, room, profile in named:
        _made(http, "/api/event/", _event(text, room, profile))
    destinations = [_id(_made(http, "/api/media/destination/", _destination(text))) for text in NAMES]
    streams = [_id(_made(http, "/api/archiverstream/", _stream(text))) for text in NAMES]
    jobs = [_id(_made(http, "/engine/job", _job(text))) for text in CONTENTS]
    event, destination = _id(_made(http, "/api/event/", _event(NAMES[0], rooms[0], profiles[0]))), destinations[0]
    films = [{"contentId": text, "destinationId": destination, "publicationJson": "{}"} for text in CONTENTS]
    _made(http, "/api/vodpublications/", {"publications": films})
    pushes = [{"destinationId": destination, "publicationJson": json.dumps({"title": text})} for text in NAMES]
    _made(http, "/api/media/livepublication/", {"eventId": event, "publications": pushes})
    http.put(f"/api/tag/event/{event}", json=[{"name": text} for text in HOSTILE_STRINGS if text.strip()]).raise_for_status()
    for text in NAMES:
        _made(http, "/api/log/loggable/", {"id": event, "message": text, "level": "Error"})
    for text in PLAIN[:20]:
        _made(http, "/api/chapterpoint/", {"eventId": event, "title": text, "startTime": "00:00:01"}, **{"X-Actor": text})
    _made(http, f"/api/provision/{event}", None)
    until(lambda: http.get(f"/api/provision/{event}").json()["state"] == PROVISIONING_FAILED)  # the template is not installed
    failed = str(failed_job(http, CONTENTS[0]))
    made = {"room": rooms[0], "profile": profiles[0], "stream": streams[0], "job": jobs[0]}
    return {**made, "event": event, "destination": destination, "failed": failed}


def _event(text: str, room: str, profile: str) -> dict[str, Any]:
    times = {"scheduledStart": START, "scheduledEnd": END, "scheduledProvisionAt": START}
    return {
        "title": text,
        "description": text * 3,
        "refId": text,
        "externalId": text,
        "roomId": room,
        "infrastructureProfileId": profile,
        **times,
    }


def _profile(text: str) -> dict[str, Any]:
    request = {
        "options": {"deploymentType": "template"},
        "settings": {"template": text},
        "resources": [{"name": text, "type": "origin", "ipAddress": text}],
    }
    return {"name": text, "configurationJson": json.dumps({"request": request, "workflow": {}})}


def _destination(text: str) -> dict[str, Any]:
    return {
        "name": text,
        "target": "S3",
        "destinationJson": json.dumps(
            {"endpoint": "http://127.0.0.1:9", "bucket": "films", "accessKeyId": text, "secretAccessKey": "s"}
        ),
    }


def _stream(text: str) -> dict[str, Any]:
    return {"profileId": text, "captureId": text, "ismUrl": text, "startTime": START, "endTime": END}


def _job(text: str) -> dict[str, Any]:
    parameters = {"content_id": text, "file": "a", "custom_data": [text, {each: each for each in JOB_TEXTS}]}
    return {"job": {"workflow": "probe_media", "run_at": FAR}, "parameters": parameters}


def test_each_page_has_an_address() -> None:
    """A page that is added is opened by the tests of all pages."""
    paths = re.findall(r'\{ path: "([^"]+)"', (ROOT / "console/src/pages/index.ts").read_text())
    assert sorted(ADDRESSES) == sorted(paths)


async def test_hostile_texts_are_text_on_every_page(browser: Browser, spoilt: Product, ids: dict[str, str]) -> None:
    wrong: dict[str, list[str]] = {}
    async with visitor(browser, spoilt.address, size=NARROW, key=KEY) as came:
        page = await came.open()
        page.on("dialog", lambda dialog: came.complaints.append(f"the dialog {dialog.message}"))
        for path, address in (*ADDRESSES.items(), *((more, more) for more in MORE)):
            await page.goto(f"{spoilt.address}/console{address.format(**ids)}")
            await expect(page.locator("main h1")).to_be_visible()
            await expect(page.locator(".skeleton")).to_have_count(0)
            shown = await page.evaluate(SHOWN)
            result = [f"it does not show {text!r}" for text in LISTS.get(path, ()) if text.strip()[:BEGINNING] not in shown]
            result += await page.evaluate(MADE) + came.complaints + came.strangers
            if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                result.append("it is wider than the screen")
            if (await page.title()).startswith("broken in"):
                result.append("a text was run")
            came.complaints.clear()
            came.requests.clear()
            wrong |= {path: result} if result else {}
    assert wrong == {}
