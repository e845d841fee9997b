"""The state of the publishing points of the built-in origin: published or not, by the Event on the air, also while the database
does not answer; and the actors that have ordered an encoder."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.kernel.clock import iso
from projections.publishing_point.own_points import LostRecordings, OwnPoints, StoredPointOwners
from projections.publishing_point.points import ChannelPointsReader, Orderers
from projections.record.queries import RecordQueries
from tests.support.application import introduce
from tests.support.clock import HandClock

OWN = "http://own.test/origin/live/"
LIVE_UNPUBLISHED, LIVE_PUBLISHED, STOPPED, INSTANT_VOD, INSTANT_VOD_BACKUP = 1, 2, 4, 5, 6


def named(url: str) -> str | None:
    return url.removeprefix(OWN) if url.startswith(OWN) else None


def sending_to(*urls: str) -> str:
    places = ("primaryPublishingPoint", "secondaryPublishingPoint")
    points = {place: {"publishingPointUrl": url} for place, url in zip(places, urls, strict=False)}
    return json.dumps({"encoders": [{"name": "e", "streamingServer": {"streamingServerSpecific": points}}]})


async def published(points: OwnPoints, point: str) -> bool:
    return bool(await points.public_parts(point))


class Studio:
    """Channels and Events, and what is known of their points at once."""

    def __init__(self, http: httpx.AsyncClient, core: Core) -> None:
        self.http, self.core = http, core

    @property
    def points(self) -> OwnPoints:
        """The points of a process that has just been started."""
        channels = ChannelPointsReader(self.core.database, RecordQueries(self.core.database, RECORDS))
        return OwnPoints(self.core.database, channels, named, hours=24)

    async def channel(self, *urls: str, key: str | None = None) -> str:
        headers = {} if key is None else {"API-KEY": key}
        body = {"name": "One", "configurationJson": sending_to(*urls)}
        return str((await self.http.post("/api/channel/", json=body, headers=headers)).raise_for_status().json()["id"])

    async def event(self, channel: str, state: int, **values: Any) -> str:
        body = {"title": "Match", "channelId": channel, "EventState": state, **values}
        return str((await self.http.post("/api/event/", json=body)).raise_for_status().json()["id"])

    async def session(self, event: str, number: int, *, state: str = "running") -> None:
        sql = (
            "INSERT INTO sessions (kind, key, shard, owner, wish, number, state, host, started_at, changed_at) "
            "VALUES ('encoder', %s, 0, %s, 1, %s, %s, 'x', now(), now())"
        )
        await self.core.database.execute(sql, (f"channel of {event}", event, number, state))


@pytest.fixture
async def studio(http: httpx.AsyncClient, inner: Core) -> Studio:
    return Studio(http, inner)


@pytest.mark.parametrize("drm", [False, True])
async def test_a_point_is_published_with_the_event_of_its_channel(studio: Studio, drm: bool) -> None:
    channel = await studio.channel(f"{OWN}news", f"{OWN}news-b")
    assert not await published(studio.points, "news")
    event = await studio.event(channel, LIVE_UNPUBLISHED, vodDrm=drm)
    assert not await published(studio.points, "news")
    for state, public in ((LIVE_PUBLISHED, True), (STOPPED, False)):
        (await studio.http.post("/api/event/", json={"id": event, "EventState": state})).raise_for_status()
        points = studio.points
        assert [await published(points, name) for name in ("news", "news-b", "other", "")] == [public, public, False, False]


async def test_a_point_is_public_since_its_event_was_published(studio: Studio) -> None:
    event = await studio.event(await studio.channel(f"{OWN}news"), LIVE_UNPUBLISHED)
    (await studio.http.post("/api/event/", json={"id": event, "EventState": LIVE_PUBLISHED})).raise_for_status()
    shown = (await studio.http.get(f"/api/event/{event}")).json()
    [(since, until)] = await studio.points.public_parts("news")
    assert (iso(datetime.fromtimestamp(since, UTC)), until) == (shown["publishedStart"], inf)


async def test_the_recorded_stream_of_instant_vod_is_public_between_its_times(studio: Studio, clock: HandClock) -> None:
    clock.now = datetime.now(UTC) - timedelta(hours=1)  # the database compares with its own clock
    channel = await studio.channel(f"{OWN}news")
    event = await studio.event(channel, LIVE_PUBLISHED)
    clock.forward(minutes=50)
    for state, parts in ((STOPPED, 0), (INSTANT_VOD, 1), (INSTANT_VOD_BACKUP, 0), (INSTANT_VOD, 1)):
        shown = (await studio.http.post("/api/event/", json={"id": event, "EventState": state})).raise_for_status().json()
        public = await studio.points.public_parts("news")
        times = [tuple(iso(datetime.fromtimestamp(time, UTC)) for time in part) for part in public]
        assert times == [(shown["actualLiveStart"], shown["actualLiveEnd"])] * parts
    await studio.event(channel, LIVE_PUBLISHED)
    assert [end for _, end in await studio.points.public_parts("news")][1:] == [inf]


async def test_a_name_at_another_address_is_another_point(studio: Studio) -> None:
    await studio.event(await studio.channel("http://other.test/origin/live/news", "http://own.test.evil/origin/live/news"), 2)
    assert not await published(studio.points, "news")


async def test_published_points_stay_published_while_the_database_does_not_answer(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await studio.event(await studio.channel(f"{OWN}news"), LIVE_PUBLISHED)
    running, fresh = studio.points, studio.points
    assert await published(running, "news")

    async def away(*_: object) -> Any:
        raise TimeoutError

    monkeypatch.setattr(studio.core.database, "rows", away)
    monkeypatch.setattr("projections.publishing_point.own_points.FRESH", 0.0)
    assert await published(running, "news")
    assert await running.runs(7), "its token tells, until it ends"
    assert not await published(running, "rehearsal")
    assert not await published(fresh, "news"), "of which nothing was known is closed"


async def test_sessions_of_encoders_run_until_they_have_ended(studio: Studio) -> None:
    points = studio.points
    assert not await points.runs(7)
    await studio.session("a", 7)
    assert await studio.points.runs(7)
    await studio.session("b", 8, state="stopped")
    assert not await studio.points.runs(8)


async def test_a_recording_is_awaited_until_its_event_is_video_on_demand(studio: Studio) -> None:
    channel = await studio.channel(f"{OWN}news")
    first, second = [await studio.event(channel, STOPPED) for _ in range(2)]
    for event, number in ((first, 10), (second, 20)):
        encoding = "jsonb_build_object('encoding', jsonb_build_object('session', %s::bigint))"
        statement = f"UPDATE event_view SET document = (document::jsonb || {encoding})::text WHERE id = %s"
        await studio.core.database.execute(statement, (number, UUID(event)))
    awaited = await studio.points.awaited()
    assert [awaited("news", session) for session in (5, 10, 15, 20, 21)] == [True, True, True, True, None]
    assert awaited("other", 10) is None
    await studio.core.database.execute("UPDATE event_view SET state = 10 WHERE id = %s", (UUID(first),))
    awaited = await studio.points.awaited()
    assert [awaited("news", session) for session in (5, 10, 15, 20)] == [False, False, True, True]


async def test_a_lost_recording_is_reported_once(studio: Studio) -> None:
    for _ in range(2):
        await studio.points.lost("news", 7)
    assert [(recording.point, recording.session) for recording in await LostRecordings(studio.core.database).latest()] == [
        ("news", 7)
    ]
    attention = (await studio.http.get("/api/health/overview/")).json()["attention"]
    assert ["news" in recording["text"] for recording in attention if recording["about"] == "points"] == [True]


async def test_a_user_may_order_an_encoder_until_its_key_or_role_is_gone(studio: Studio) -> None:
    key = await introduce(studio.core, "op", "operator")
    channel = await studio.channel(f"{OWN}news", key=key)
    orderers = Orderers(studio.core.database, studio.core.directory, studio.core.clock)
    assert await orderers.may_still(channel)
    (await studio.http.put("/api/client/op", json={"roles": ["viewer"]})).raise_for_status()
    assert not await orderers.may_still(channel)
    (await studio.http.put("/api/client/op", json={"roles": ["operator"]})).raise_for_status()
    assert await orderers.may_still(channel)
    (await studio.http.delete("/api/client/op/keys/op-1")).raise_for_status()
    assert not await orderers.may_still(channel)
    (await studio.http.put(f"/api/channel/{channel}", json={"name": "Two"})).raise_for_status()
    assert await orderers.may_still(channel), "an admin answers for it now"


async def test_the_point_of_another_channel_is_taken_for_all_but_admins(studio: Studio, services_by_type: dict[Any, Any]) -> None:
    """The encoder of the second channel got a token with which it could write in place of the first."""
    owners = StoredPointOwners(studio.core.database, services_by_type[ChannelPointsReader], named)
    first = await studio.channel(f"{OWN}news", f"{OWN}news-b")
    assert await owners.taken_points(sending_to(f"{OWN}news-b", f"{OWN}mine"), channel=UUID(int=1)) == ["news-b"]
    assert await owners.taken_points(sending_to(f"{OWN}mine", "http://other.test/origin/live/news"), channel=UUID(int=1)) == []
    assert await owners.taken_points(sending_to(f"{OWN}news", f"{OWN}news-b"), channel=first) == []
    second = await studio.channel(f"{OWN}news")
    assert await owners.taken_points(sending_to(f"{OWN}news"), channel=second) == [], "an admin has let it send there"
    escaped = sending_to(f"{OWN}news-b").replace("/", "\\/")
    assert await owners.taken_points(escaped, channel=second) == ["news-b"], "however it is written"
    (await studio.http.delete(f"/api/channel/{first}")).raise_for_status()
    assert await owners.taken_points(sending_to(f"{OWN}news-b"), channel=second) == []
