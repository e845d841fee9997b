"""The publishing points of live Events, over HTTP: what was sampled, and what is known no more."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.wiring.core import Core
from domain.channel.points import watched_points
from domain.event.values import EventState
from domain.kernel.clock import iso
from projections.consumers.leases import ShardLeases
from projections.publishing_point.queries import PointStates
from projections.publishing_point.samples import CONSUMER, PointKey, PointSample, Samples
from tests.api.asking import UNKNOWN, add, add_channel, fields_of
from tests.projections.consuming import hold

ADDRESS = "/api/health/live/stream/"
POINTS = {
    "primaryPublishingPoint": {"publishingPointUrl": "http://user:s3cret@o1/live.isml?token=s3cret"},
    "secondaryPublishingPoint": {"publishingPointUrl": "http://o2/live.isml"},
}
ENCODER = {"name": "enc-1", "streamingServer": {"streamingServerSpecific": POINTS}}
UPDATED = datetime(2031, 1, 2, 12, 0, tzinfo=UTC)
MEMBER = UUID(int=5)


def configuration(**members: Any) -> str:
    return json.dumps({"encoders": [ENCODER], **members})


async def live(http: httpx.AsyncClient, channel: str | None = None, state: str = "LIVE_PUBLISHED") -> str:
    key = str((await add(http, channelId=channel))["id"])
    assert (await http.put(f"/api/event/state/{key}", json={"state": state})).status_code == 200
    return key


class Sampling:
    """The prober of a test: it holds the only shard."""

    def __init__(self, inner: Core) -> None:
        self._inner = inner
        self._leases = ShardLeases(inner.database, CONSUMER, shards=1, member=MEMBER, reads_log=False)

    async def begin(self) -> None:
        await self._leases.start()
        self._epoch = (await hold(self._leases)).leases[0].epoch

    async def sample(self, channel: str, point: int = 0, *, text: str | None = None, **values: Any) -> None:
        watched = watched_points(text or configuration())[point]
        given = {"strategy": int(watched.strategy), "age": 0.0, **values}
        key = PointKey(UUID(channel), watched.encoder, watched.index)
        sample = PointSample(key, 0, self._epoch, watched.fingerprint, **given)
        assert await Samples(self._inner.database, member=MEMBER).write([sample]) == 1

    async def on_air(self, channel: str, point: int = 0, **values: Any) -> None:
        """Two samples that differ."""
        for number in (1, 2):
            reported = {"strategy": 2, "state": "started", "last_updated": UPDATED, "mark": str(number), **values}
            await self.sample(channel, point, **reported)

    async def later(self, seconds: float) -> None:
        """Act as if this time had passed since the last samples."""
        await self._inner.database.execute(
            "UPDATE publishing_point_probes SET sampled_at = sampled_at - make_interval(secs => %(s)s), "
            "moved_at = moved_at - make_interval(secs => %(s)s), failing_since = failing_since - make_interval(secs => %(s)s)",
            {"s": seconds},
        )


@pytest.fixture
async def sampling(inner: Core) -> Sampling:
    made = Sampling(inner)
    await made.begin()
    return made


@pytest.fixture
async def channel(http: httpx.AsyncClient) -> str:
    return await add_channel(http, configurationJson=configuration())


def url(point: int = 0, **members: Any) -> dict[str, Any]:
    return {
        "name": "enc-1",
        "url": f"http://o{point + 1}/live.isml",
        "state": "unknown",
        "hasStarted": False,
        "lastUpdated": None,
        "receivingData": False,
        "statusCheckStrategy": 0,
        "statusCheckStrategyString": "ALL",
        "publishingPointIndex": point,
        "encoderIndex": 0,
        **members,
    }


def on_air(point: int = 0, **members: Any) -> dict[str, Any]:
    existing = {"state": "started", "hasStarted": True, "lastUpdated": iso(UPDATED), "receivingData": True}
    return url(point, **{**existing, "statusCheckStrategy": 2, "statusCheckStrategyString": "SRVA_API", **members})


async def health(http: httpx.AsyncClient, path: str = "", *, status: int = 200, **query: str) -> dict[str, Any]:
    answer = await http.get(ADDRESS + path, params=query)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    shown: dict[str, Any] = answer.json()
    return shown


async def test_points_that_were_sampled_are_shown_with_what_was_told(
    http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    assert await health(http) == {key: {"urls": [url(0), url(1)]}}
    await sampling.on_air(channel, 0)
    await sampling.sample(channel, 1, state="idle", strategy=3, mark="1", last_updated=UPDATED)
    idle = url(1, state="idle", lastUpdated=iso(UPDATED), statusCheckStrategy=3, statusCheckStrategyString="STATUS_PHP")
    shown = {key: {"urls": [on_air(0), idle]}}
    assert await health(http) == shown
    assert await health(http, channel) == shown
    assert await health(http, f"event/{key}") == shown
    video = (await http.get(f"/api/event/{key}", params={"processVideo": "true"})).json()["video"]
    assert video["publishingPointUrls"] == [
        {"url": "http://o1/live.isml", "state": "started", "hasStarted": True, "lastUpdated": iso(UPDATED), "receivingData": True},
        {"url": "http://o2/live.isml", "state": "idle", "hasStarted": False, "lastUpdated": iso(UPDATED), "receivingData": False},
    ]


async def test_one_of_two_points_that_is_dead_is_an_error_with_the_same_body(
    http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    await sampling.on_air(channel, 0)
    await sampling.sample(channel, 1, fault="The host cannot be reached: Connection refused.")
    shown = {key: {"urls": [on_air(0), url(1)]}}
    for path in ("", channel, f"event/{key}"):
        assert await health(http, path, checkForErrors="false") == shown
        assert await health(http, path, checkForErrors="true", status=415) == shown
    await sampling.on_air(channel, 1)
    assert await health(http, checkForErrors="true") == {key: {"urls": [on_air(0), on_air(1)]}}


async def test_a_point_that_has_started_and_receives_nothing_is_an_error(
    http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    await sampling.on_air(channel, 0)
    for _ in range(2):
        await sampling.sample(channel, 1, state="started", strategy=2, mark="1", last_updated=UPDATED)
    assert await health(http, status=415, checkForErrors="true") == {key: {"urls": [on_air(0), on_air(1, receivingData=False)]}}


async def test_what_nobody_has_heard_of_for_15_seconds_is_unknown(
    http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    await sampling.on_air(channel, 0)
    await sampling.on_air(channel, 1)
    await sampling.later(14)
    assert await health(http, checkForErrors="true") == {key: {"urls": [on_air(0), on_air(1)]}}
    await sampling.later(1.1)
    stale = [url(point, lastUpdated=iso(UPDATED)) for point in (0, 1)]
    assert await health(http, status=415, checkForErrors="true") == {key: {"urls": stale}}
    video = (await http.get(f"/api/event/{key}", params={"processVideo": "true"})).json()["video"]
    assert [point["state"] for point in video["publishingPointUrls"]] == ["unknown", "unknown"]


async def test_a_mark_that_moved_long_ago_is_no_data(http: httpx.AsyncClient, sampling: Sampling, channel: str) -> None:
    key = await live(http, channel)
    reported: dict[str, Any] = {"state": "started", "strategy": 2, "last_updated": UPDATED}
    await sampling.on_air(channel, 0)
    await sampling.later(10)
    await sampling.sample(channel, 0, mark="2", **reported)
    assert (await health(http))[key]["urls"][0] == on_air(0)
    await sampling.later(10)
    await sampling.sample(channel, 0, mark="2", **reported)
    assert (await health(http))[key]["urls"][0] == on_air(0, receivingData=False)


async def test_a_sample_after_a_gap_is_a_first_one(http: httpx.AsyncClient, sampling: Sampling, channel: str) -> None:
    key = await live(http, channel)
    await sampling.on_air(channel, 0)
    await sampling.later(20)
    await sampling.sample(channel, 0, mark="3", state="started", strategy=2, last_updated=UPDATED)
    assert (await health(http))[key]["urls"][0] == on_air(0, receivingData=False)


async def test_a_server_may_say_itself_whether_data_come(http: httpx.AsyncClient, sampling: Sampling, channel: str) -> None:
    key = await live(http, channel)
    await sampling.sample(channel, 0, state="started", receiving=True)
    assert (await health(http))[key]["urls"][0]["receivingData"] is True
    await sampling.on_air(channel, 0, receiving=False)
    assert (await health(http))[key]["urls"][0]["receivingData"] is False


async def test_another_address_is_another_point(http: httpx.AsyncClient, sampling: Sampling, channel: str) -> None:
    key = await live(http, channel)
    await sampling.on_air(channel, 0)
    changed = configuration().replace("//o2", "//o3").replace("@o1", "@o4")
    answer = await http.put(f"/api/channel/{channel}", json={"configurationJson": changed})
    assert answer.status_code == 200, answer.text
    assert await health(http) == {key: {"urls": [url(0, url="http://o4/live.isml"), url(1, url="http://o3/live.isml")]}}


async def test_a_channel_that_is_not_checked_is_unknown_and_no_error(http: httpx.AsyncClient, sampling: Sampling) -> None:
    text = configuration(statusCheckStrategy="NONE")
    key = await live(http, await add_channel(http, configurationJson=text))
    unchecked = {"statusCheckStrategy": 4, "statusCheckStrategyString": "NONE"}
    assert await health(http, checkForErrors="true") == {key: {"urls": [url(0, **unchecked), url(1, **unchecked)]}}


@pytest.mark.parametrize("state", EventState)
async def test_only_live_events_are_shown(http: httpx.AsyncClient, channel: str, state: EventState) -> None:
    key = await live(http, channel, state.name)
    streams = state in (EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED, EventState.LIVE_STARTING)
    shown = {key: {"urls": [url(0), url(1)]}} if streams else {}
    assert await health(http) == await health(http, channel) == await health(http, f"event/{key}") == shown


async def test_an_event_without_a_channel_has_no_points(http: httpx.AsyncClient, channel: str) -> None:
    key = await live(http)
    assert await health(http, checkForErrors="true") == {key: {"urls": []}}
    assert await health(http, f"event/{key}", checkForErrors="true") == {key: {"urls": []}}
    assert await health(http, channel) == {}


async def test_events_of_one_channel_share_its_points(http: httpx.AsyncClient, sampling: Sampling, channel: str) -> None:
    keys = {await live(http, channel), await live(http, channel)}
    await sampling.on_air(channel, 0)
    other = await live(http, await add_channel(http, configurationJson=configuration()))
    shown = await health(http)
    assert shown == {**{key: {"urls": [on_air(0), url(1)]} for key in keys}, other: {"urls": [url(0), url(1)]}}
    assert (await health(http, channel)).keys() == keys


async def test_what_is_unknown_is_404_and_what_is_no_id_400(http: httpx.AsyncClient, channel: str) -> None:
    key = await live(http, channel)
    await http.delete(f"/api/event/{key}")
    for path in (UNKNOWN, f"event/{UNKNOWN}", f"event/{key}", f"event/{channel}", key):
        assert (await http.get(ADDRESS + path)).status_code == 404, path
    assert fields_of(await http.get(f"{ADDRESS}nothing")) == ["channelId"]
    assert fields_of(await http.get(f"{ADDRESS}event/nothing")) == ["eventId"]
    assert fields_of(await http.get(ADDRESS, params={"checkForErrors": "perhaps"})) == ["checkForErrors"]


async def test_a_member_without_the_lease_writes_nothing(
    inner: Core, http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    watched = watched_points(configuration())[0]
    sample = PointSample(PointKey(UUID(channel), 0, 0), 0, 1, watched.fingerprint, 2, age=0.0, state="started")
    assert await Samples(inner.database, member=UUID(int=6)).write([sample]) == 0
    leases = ShardLeases(inner.database, CONSUMER, shards=1, member=MEMBER, reads_log=False)
    await leases.release([0])
    await hold(leases)
    assert await Samples(inner.database, member=MEMBER).write([sample]) == 0
    assert await health(http) == {key: {"urls": [url(0), url(1)]}}


async def test_a_channel_fails_since_the_last_of_its_points_began_to_fail(inner: Core, sampling: Sampling, channel: str) -> None:
    states, key = PointStates(inner.database), UUID(channel)
    assert await states.all_failing_since(key) is None
    await sampling.sample(channel, 0, fault="It answered with status 500.")
    await sampling.on_air(channel, 1)
    assert await states.all_failing_since(key) is None
    await sampling.later(5)
    await sampling.sample(channel, 0, state="stopped", mark="1")
    await sampling.sample(channel, 1, fault="It answered with status 500.")
    began = await states.all_failing_since(key)
    assert began is not None
    await sampling.later(5)
    for point in (0, 1):
        await sampling.sample(channel, point, fault="It answered with status 500.")
    again = await states.all_failing_since(key)
    assert again is not None
    assert 4.9 < (began - again).total_seconds() < 5.1  # `later` moves the past
    await sampling.sample(channel, 1, fault="Its address is refused.", counted=False)
    assert await states.all_failing_since(key) is None


async def test_points_that_nobody_samples_do_not_fail(inner: Core, sampling: Sampling, channel: str) -> None:
    states, key = PointStates(inner.database), UUID(channel)
    for point in (0, 1):
        await sampling.sample(channel, point, fault="It answered with status 500.")
    assert await states.all_failing_since(key) is not None
    await sampling.later(16)
    assert await states.all_failing_since(key) is None
    await sampling.sample(channel, 0, fault="It answered with status 500.")
    assert await states.all_failing_since(key) is None


async def test_points_of_live_events_are_counted_by_what_was_last_heard(
    inner: Core, http: httpx.AsyncClient, sampling: Sampling, channel: str
) -> None:
    key = await live(http, channel)
    second = await add_channel(http, configurationJson=configuration())
    await live(http, second)
    await sampling.on_air(channel, 0)
    await sampling.sample(channel, 1, state="started", strategy=2, mark="1")
    await sampling.sample(second, 0, state="idle", strategy=2, mark="1")
    await sampling.sample(second, 1, fault="It answered with status 500.")
    states = PointStates(inner.database)
    assert await states.counts() == {"on_air": 1, "not_receiving": 1, "not_started": 1, "unknown": 1}
    await http.put(f"/api/event/state/{key}", json={"state": 4})
    assert await states.counts() == {"on_air": 0, "not_receiving": 0, "not_started": 1, "unknown": 1}
    await sampling.later(16)
    assert await states.counts() == {"on_air": 0, "not_receiving": 0, "not_started": 0, "unknown": 2}
