"""The warning to a client that schedules two Events on one channel at the same time. See docs/reference/api/events.md."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.asking import add

SEVEN, EIGHT, NINE, TEN = (f"2041-01-02T{hour}:00:00.000Z" for hour in (19, 20, 21, 22))
PATCH_TYPE = {"content-type": "application/json-patch+json"}


@pytest.fixture
async def channel(http: httpx.AsyncClient) -> str:
    response = await http.post("/api/channel/", json={"name": "main"})
    return str(response.json()["id"])


async def post(http: httpx.AsyncClient, channel: str, start: str, end: str | None, **more: Any) -> httpx.Response:
    body = {"channelId": channel, "scheduledStart": start, "scheduledEnd": end, "autoStart": True, **more}
    response = await http.post("/api/event/", json=body)
    assert response.status_code == 200, response.text
    return response


async def test_the_second_event_of_the_same_time(http: httpx.AsyncClient, channel: str) -> None:
    first = await post(http, channel, EIGHT, NINE)
    assert "warning" not in first.headers
    second = await post(http, channel, SEVEN, None)
    key = first.json()["id"]
    assert second.headers["warning"] == (
        f'299 - "another Event on the channel {channel} at the same time: {key} ({EIGHT} to {NINE}); only one of them is on the air'
        ' at a time, and the others wait until the channel is free"'
    )


@pytest.mark.parametrize(
    "other",
    [
        {"scheduledStart": NINE, "scheduledEnd": TEN},
        {"scheduledStart": SEVEN, "scheduledEnd": EIGHT},
        {"autoStart": False},
        {"channelId": None},
    ],
    ids=["after it", "before it", "started by an operator", "without a channel"],
)
async def test_an_event_that_does_not_overlap(http: httpx.AsyncClient, channel: str, other: dict[str, Any]) -> None:
    await post(http, channel, EIGHT, NINE)
    assert "warning" not in (await post(http, channel, EIGHT, NINE, **other)).headers


async def test_an_event_on_another_channel(http: httpx.AsyncClient, channel: str) -> None:
    await post(http, channel, EIGHT, NINE)
    other = (await http.post("/api/channel/", json={"name": "second"})).json()["id"]
    assert "warning" not in (await post(http, other, EIGHT, NINE)).headers


async def test_a_deleted_event_does_not_count(http: httpx.AsyncClient, channel: str) -> None:
    first = (await post(http, channel, EIGHT, NINE)).json()["id"]
    assert (await http.delete(f"/api/event/{first}")).status_code == 200
    assert "warning" not in (await post(http, channel, EIGHT, NINE)).headers


async def test_a_live_event_counts_whether_or_not_the_schedule_started_it(http: httpx.AsyncClient, channel: str) -> None:
    live = (await add(http, title="live", channelId=channel))["id"]
    assert (await http.put(f"/api/event/state/{live}", json={"state": 1})).status_code == 200
    assert f"{live} (open to open)" in (await post(http, channel, EIGHT, NINE)).headers["warning"]


async def test_only_a_change_of_the_schedule_warns(http: httpx.AsyncClient, channel: str) -> None:
    await post(http, channel, EIGHT, NINE)
    second = (await post(http, channel, NINE, TEN)).json()["id"]

    async def patched(path: str, value: object) -> httpx.Headers:
        change = [{"op": "replace", "path": path, "value": value}]
        response = await http.patch(f"/api/event/{second}", json=change, headers=PATCH_TYPE)
        assert response.status_code == 200, response.text
        return response.headers

    assert "warning" in await patched("/scheduledStart", EIGHT)
    assert "warning" not in await patched("/title", "other title")


async def test_no_more_than_three_are_named(http: httpx.AsyncClient, channel: str) -> None:
    keys = [(await post(http, channel, EIGHT, NINE)).json()["id"] for _ in range(4)]
    warning = (await post(http, channel, EIGHT, NINE)).headers["warning"]
    assert warning.startswith(f'299 - "other Events on the channel {channel} at the same time: ')
    assert sum(key in warning for key in keys) == 3
    assert " and others; " in warning


async def test_the_warning_stands_beside_that_of_unknown_names(http: httpx.AsyncClient, channel: str) -> None:
    await post(http, channel, EIGHT, NINE)
    response = await post(http, channel, EIGHT, NINE, titel="Final")
    warnings = response.headers.get_list("warning")
    assert len(warnings) == 2
    assert any("unknown: titel" in warning for warning in warnings)


async def test_the_playlist_of_an_encoder_warns_too(http: httpx.AsyncClient) -> None:
    composes = {"encoders": [{"name": "enc-1", "type": "ffmpeg", "supportsComposition": True}]}
    response = await http.post("/api/channel/", json={"name": "main", "configurationJson": json.dumps(composes)})
    assert response.status_code == 200, response.text
    channel = response.json()["id"]
    await post(http, channel, EIGHT, NINE)
    event = {"channelId": channel, "scheduledStart": EIGHT, "scheduledEnd": NINE, "autoStart": True}
    items = [{"type": 1, "value": "https://films.example/a.mp4", "start": 0, "end": 1}]
    response = await http.post("/api/compose/encoder/", json={"event": event, "playlist": {"name": "list", "items": items}})
    assert response.status_code == 201, response.text
    assert "another Event on the channel" in response.headers["warning"]
