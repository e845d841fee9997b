"""Live publications that a streaming server pushes: Wowza's REST interface, asked by the API and by the orders of syndication."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.asking import assert_problem, topics
from tests.api.media.publishing import add_destination
from tests.contract.encoder.ffmpeg_stage import LOCAL
from tests.contract.target.test_stream_targets import PASSWORD, USER, Wowza
from tests.support.engine import once
from tests.support.targets.stages import serving
from tests.workers.asset.producing import Production, production
from tests.workers.pushes.test_whole_engine import LIVE, became, state

Migrated = tuple[str, str | None]
KEY = "marked-stream-key"


@pytest.fixture
async def made(database_url: str, migrated: Migrated, media_root: Path) -> AsyncIterator[Production]:
    roles = ("sessions", "syndication")
    async with production(database_url, migrated[1], media_root, roles=roles, outbound_allow=LOCAL) as product:
        yield product


async def given(made: Production, url: str) -> dict[str, Any]:
    """A live publication of an Event whose channel has a streaming server."""
    server = {"apiUrl": url, "application": "live", "streamName": "news", "user": USER, "password": PASSWORD}
    encoder = {
        "streamingServer": {"type": "Wowza", "streamingServerSpecific": server},
        "outputUrls": [{"streamProtocol": "HLS", "liveOriginPrimaryUrl": f"{url}/master.m3u8"}],
    }
    channel = await made.http.post("/api/channel/", json={"name": "main", "configurationJson": json.dumps({"encoders": [encoder]})})
    assert PASSWORD not in channel.text
    event = (await made.http.post("/api/event/", json={"title": "Final", "channelId": channel.json()["id"]})).json()["id"]
    config = json.dumps({"cstm_streamUrl": "rtmp://partner.test/in", "cstm_streamName": KEY})
    destination = await add_destination(made.http, "Partner", target="CUSTOM", destinationJson=config, active=True)
    wanted = [{"destinationId": destination, "publicationJson": "{}"}]
    answer = await made.http.post(f"{LIVE}/", json={"eventId": event, "publications": wanted})
    publication: dict[str, Any] = answer.json()[0]
    await state(made, event, "LIVE_PUBLISHED")
    return publication


async def test_the_server_pushes_from_the_start_to_the_stop_and_says_how(made: Production) -> None:
    wowza = Wowza()
    async with serving(wowza.app()) as port:
        publication = await given(made, f"http://127.0.0.1:{port}")
        body = {"eventId": publication["contentId"], "publicationId": publication["id"]}
        body["destinationId"] = publication["destinationId"]
        query = {"destinationId": publication["destinationId"]}
        wowza.status = 503
        assert_problem(await made.http.put(f"{LIVE}/start/", json=body), 503)
        assert (await became(made, publication, "Scheduled"))["dateStarted"] is None
        wowza.status = 0
        assert (await made.http.put(f"{LIVE}/start/", json=body)).status_code == 200
        entry = wowza.entries[publication["id"]]
        assert (entry["host"], entry["application"], entry["streamName"], entry["sourceStreamName"]) == (
            "partner.test",
            "in",
            KEY,
            "news",
        )

        async def last(topic: str) -> bool:
            return (await topics(made.inner, f"publication:{publication['id']}"))[-1] == f"publication.{topic}"

        await once(lambda: last("arrived"))
        answer = await made.http.get(f"{LIVE}/statistics/{publication['id']}", params=query)
        assert (answer.status_code, answer.json()["server"]["host"], answer.json()["session"]) == (200, "partner.test", None)
        assert await made.inner.database.rows("SELECT FROM sessions WHERE kind = 'publication'") == []
        wowza.status = 503
        assert_problem(await made.http.get(f"{LIVE}/statistics/{publication['id']}", params=query), 503)
        assert (await made.http.delete(f"/api/event/{publication['contentId']}")).status_code == 200
        await became(made, publication, "Completed")
        assert publication["id"] in wowza.entries, "it cannot be reached"
        wowza.status = 0
        await once(lambda: last("target_closed"), seconds=60)
        assert wowza.entries == {}
    rows = await made.inner.database.rows("SELECT convert_from(state, 'utf8') FROM stream_events WHERE state IS NOT NULL")
    assert not {KEY, PASSWORD} & {secret for secret in (KEY, PASSWORD) if secret in str(rows)}
