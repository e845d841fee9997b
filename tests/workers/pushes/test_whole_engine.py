"""Live publications from the request to the stream at the receiver: the API, the roles of one process, an origin and RTMP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.asking import topics
from tests.api.media.publishing import add_destination
from tests.contract.encoder.ffmpeg_stage import LOCAL
from tests.support.engine import once
from tests.support.live_origin import LiveOrigin, live_origin
from tests.support.rtmp_receiver import RtmpReceiver, rtmp_receiver
from tests.support.sessions import until
from tests.workers.asset.producing import Production, production

Migrated = tuple[str, str | None]
LIVE = "/api/media/livepublication"
KEY = "marked-stream-key"
SECONDS = 90


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[LiveOrigin]:
    (tmp_path / "origin").mkdir()
    async with live_origin(tmp_path / "origin") as made:
        yield made


@pytest.fixture
async def receiver() -> AsyncIterator[RtmpReceiver]:
    async with rtmp_receiver() as made:
        yield made


@pytest.fixture
async def made(database_url: str, migrated: Migrated, media_root: Path) -> AsyncIterator[Production]:
    roles = ("sessions", "syndication")
    async with production(database_url, migrated[1], media_root, roles=roles, outbound_allow=LOCAL) as product:
        yield product


async def given(made: Production, origin: LiveOrigin, receiver: RtmpReceiver) -> dict[str, Any]:
    """An Event with two live publications: one of its picture as CMAF, and nothing is on the air yet."""
    encoder = {"name": "e", "outputUrls": [{"streamProtocol": "HLS", "liveOriginPrimaryUrl": origin.cmaf}]}
    body = {"name": "main", "configurationJson": json.dumps({"encoders": [encoder]})}
    channel = (await made.http.post("/api/channel/", json=body)).json()["id"]
    event = await made.http.post("/api/event/", json={"title": "Final", "channelId": channel, "autoStartPublications": True})
    config = json.dumps({"cstm_streamUrl": receiver.url, "cstm_streamName": KEY})
    destination = await add_destination(made.http, "Partner", target="CUSTOM", destinationJson=config)
    tried = (await made.http.put(f"/api/media/destination/activate/{destination}")).json()
    assert not tried["actionRequired"], tried
    wanted = [{"destinationId": destination, "publicationJson": "{}"}]
    answer = await made.http.post(f"{LIVE}/", json={"eventId": event.json()["id"], "publications": wanted})
    assert answer.status_code == 200, answer.text
    publication: dict[str, Any] = answer.json()[0]
    return publication


async def became(made: Production, publication: dict[str, Any], state: str) -> dict[str, Any]:
    async def ask() -> dict[str, Any] | None:
        query = {"destinationId": publication["destinationId"]}
        body: dict[str, Any] = (await made.http.get(f"{LIVE}/{publication['id']}", params=query)).json()
        return body if body["publicationStateString"] == state else None

    return await once(ask, seconds=SECONDS)


async def state(made: Production, event: str, name: str) -> None:
    assert (await made.http.put(f"/api/event/state/{event}", json={"state": name})).status_code == 200


async def test_it_starts_with_its_event_arrives_and_ends_with_it(
    made: Production, origin: LiveOrigin, receiver: RtmpReceiver
) -> None:
    publication = await given(made, origin, receiver)
    event, stream = publication["contentId"], f"publication:{publication['id']}"
    await state(made, event, "LIVE_UNPUBLISHED")
    await became(made, publication, "InProgress")
    await until(lambda: receiver.media(KEY) > 30, seconds=SECONDS)

    async def pushed_statistics() -> dict[str, Any] | None:
        query = {"destinationId": publication["destinationId"]}
        answer = await made.http.get(f"{LIVE}/statistics/{publication['id']}", params=query)
        return answer.json() if answer.status_code == 200 and answer.json()["bytes"] else None

    statistics = await once(pushed_statistics, seconds=SECONDS)
    assert statistics["connected"]
    assert statistics["session"] == receiver.sessions(KEY)[0]
    await state(made, event, "STOPPED")
    done = await became(made, publication, "Completed")
    await until(lambda: not receiver.taken[-1].open, seconds=SECONDS)
    count = receiver.media(KEY)
    assert receiver.taken[-1].ended, "its server was told"

    async def closed() -> bool:
        return (await topics(made.inner, stream))[-1] == "publication.target_closed"

    await once(closed, seconds=SECONDS)
    assert receiver.media(KEY) == count
    happened = ["scheduled", "started", "arrived", "stopped", "target_closed"]
    assert await topics(made.inner, stream) == [f"publication.{topic}" for topic in happened]
    rows = await made.inner.database.rows("SELECT convert_from(state, 'utf8') FROM stream_events WHERE state IS NOT NULL")
    rows += await made.inner.database.rows("SELECT coalesce(statistics::text, '') || reason FROM sessions")
    assert KEY not in json.dumps([row[0] for row in rows]) + json.dumps(done) + json.dumps(statistics)


async def test_a_refused_key_fails_it_and_a_stop_ends_a_push_that_was_lost(
    made: Production, origin: LiveOrigin, receiver: RtmpReceiver
) -> None:
    publication = await given(made, origin, receiver)
    entry = {"publicationId": publication["id"], "destinationId": publication["destinationId"]}
    await state(made, publication["contentId"], "LIVE_PUBLISHED")
    await until(lambda: receiver.media(KEY) > 5, seconds=SECONDS)
    receiver.how = "refuse"
    receiver.drop()
    body = {"eventId": publication["contentId"], "publications": [entry]}
    stopped = (await made.http.put(f"{LIVE}/stop/all/", json=body)).json()
    assert [attempt["isSuccessful"] for attempt in stopped] == [True]
    await became(made, publication, "Completed")
    receiver.how = ""

    async def ended() -> bool:
        rows = await made.inner.database.rows("SELECT state FROM sessions WHERE kind = 'publication'")
        return rows == [("stopped",)]

    await once(ended, seconds=SECONDS)
    connections = len(receiver.taken)
    gone = await made.http.request("DELETE", f"{LIVE}/", json={**body, "publications": [{**entry, "hardDelete": True}]})
    assert [attempt["isSuccessful"] for attempt in gone.json()] == [True]
    assert len(receiver.taken) == connections
