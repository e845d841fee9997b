"""The prober: the points that it samples, their frequency, and the division between members."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.channel.points import WatchedPoint, watched_points
from domain.kernel.clock import system_clock
from domain.kernel.encryption import SecretCipher
from domain.kernel.errors import Unavailable
from projections.consumers.leases import Assignment, ShardLeases
from projections.provision.queries import ProvisionQueries
from projections.publishing_point import points
from projections.publishing_point.points import ChannelPointsReader
from projections.publishing_point.queries import PointStates
from projections.publishing_point.samples import CONSUMER, LiveChannel, PointSample, Samples
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from tests.api.asking import add, add_channel
from tests.api.media.provision.provisions_given import Ends, document, event_with, provision
from tests.support.sessions import go_live
from tests.workers.health.point_server import PointServer, answers, hangs, smil
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.point_status.strategies import point_status
from workers.health.prober import SHARDS, LookResult, PointKeys, Prober, look_at
from workers.kernel.metrics import PointMetrics
from workers.kernel.wakeups import Waker

ADDRESS = "/api/health/live/stream/"
INTERVAL = 0.5


def prober(inner: Core, outbound: GuardedClient, *, registry: CollectorRegistry | None = None) -> Prober:
    member = uuid4()
    return Prober(
        Samples(inner.database, member=member),
        ChannelPointsReader(inner.database, RecordQueries(inner.database, RECORDS)),
        hosts=ProvisionQueries(inner.database),
        keys=PointKeys(Vault(inner.database, SecretCipher(bytes(32)))),
        statuses=point_status(outbound, system_clock),
        leases=ShardLeases(inner.database, CONSUMER, shards=SHARDS, member=member, reads_log=False),
        waker=Waker(),
        metrics=PointMetrics(registry or CollectorRegistry()),
        interval=INTERVAL,
    )


@asynccontextmanager
async def running(*probers: Prober) -> AsyncIterator[None]:
    for entry in probers:
        await entry.start()
    try:
        yield
    finally:
        await asyncio.gather(*(prober.stop() for prober in probers))


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await true():  # noqa: ASYNC110 - what is watched has no event
            await asyncio.sleep(0.05)


def configuration(*urls: str, **members: Any) -> str:
    places = ("primaryPublishingPoint", "secondaryPublishingPoint")
    points = {place: {"publishingPointUrl": url, **members} for place, url in zip(places, urls, strict=False)}
    return json.dumps({"encoders": [{"name": "enc", "streamingServer": {"streamingServerSpecific": points}}]})


async def live(http: httpx.AsyncClient, text: str) -> str:
    channel = await add_channel(http, configurationJson=text)
    key = str((await add(http, channelId=channel))["id"])
    await state(http, key, 2)
    return key


async def state(http: httpx.AsyncClient, key: str, to: int) -> None:
    assert (await http.put(f"/api/event/state/{key}", json={"state": to})).status_code == 200


async def shown(http: httpx.AsyncClient, key: str) -> list[dict[str, Any]]:
    urls: list[dict[str, Any]] = (await http.get(f"{ADDRESS}event/{key}")).json()[key]["urls"]
    return urls


@pytest.fixture
async def server() -> AsyncIterator[PointServer]:
    async with PointServer() as listening:
        yield listening


def counting(server: PointServer, path: str, state: str = "started") -> None:
    """Move the last time that the server reports with each request."""
    seconds = iter(range(10_000))

    async def page(out: asyncio.StreamWriter) -> None:
        minutes, second = divmod(next(seconds), 60)
        await answers(smil(state, f"2031-01-02T12:{minutes:02}:{second:02}Z"))(out)

    server.pages[path] = page


async def test_the_points_of_live_events_are_sampled_and_no_others(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    counting(server, "/a/archive")
    key = await live(http, configuration(f"{server.url}/a", f"{server.url}/b"))
    other = await live(http, configuration(f"{server.url}/c"))
    await state(http, other, 4)
    async with running(prober(inner, outbound)):
        await until(lambda: on_air(http, key, 0))
        first, second = await shown(http, key)
        assert (first["state"], first["statusCheckStrategyString"]) == ("started", "SRVA_ARCHIVE")
        assert (second["state"], second["receivingData"]) == ("unknown", False)
        assert not [path for path in server.asked if path.startswith("/c")]
        await state(http, other, 1)
        await until(lambda: asked(server, "/c/archive"))
        await state(http, key, 4)
        await state(http, other, 4)
        await until(lambda: quiet(inner))


async def test_a_point_with_a_time_that_cannot_be_stored_takes_nothing_from_the_others(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    """The samples of all points are written together."""
    counting(server, "/a/archive")
    server.pages["/b/status.php"] = answers(r'{"state": "started", "lastUpdated": "\u0000\ud8001"}')
    key = await live(http, configuration(f"{server.url}/a", f"{server.url}/b"))

    async def sampled() -> bool:
        first, second = await shown(http, key)
        return (first["state"], second["state"]) == ("started", "started")

    async with running(prober(inner, outbound)):
        await until(sampled)


async def on_air(http: httpx.AsyncClient, key: str, point: int) -> bool:
    url = (await shown(http, key))[point]
    return bool(url["hasStarted"] and url["receivingData"])


async def asked(server: PointServer, path: str) -> bool:
    return path in server.asked


async def quiet(inner: Core) -> bool:
    """Return True if nothing was sampled for several intervals: both Events have stopped."""
    rows = await inner.database.rows(
        "SELECT 1 FROM publishing_point_probes WHERE sampled_at > clock_timestamp() - interval '3 seconds'"
    )
    return not rows


async def test_a_point_that_dies_is_shown_as_such_and_the_other_stays(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    for path in ("/a/archive", "/b/archive"):
        counting(server, path)
    key = await live(http, configuration(f"{server.url}/a", f"{server.url}/b"))
    channel = UUID((await http.get(f"/api/event/{key}")).json()["channelId"])

    async def dead() -> bool:
        return [url["hasStarted"] for url in await shown(http, key)] == [True, False]

    async def failing() -> bool:
        return await PointStates(inner.database).all_failing_since(channel) is not None

    async with running(prober(inner, outbound)):
        await until(lambda: on_air(http, key, 0))
        await until(lambda: on_air(http, key, 1))
        server.pages["/b/archive"] = hangs
        await until(dead)
        assert not await failing()
        assert (await http.get(ADDRESS, params={"checkForErrors": "true"})).status_code == 415
        del server.pages["/a/archive"]
        await until(failing)
        counting(server, "/a/state")
        await until(lambda: on_air(http, key, 0))
        assert not await failing()


async def test_a_fault_of_one_channel_costs_that_channel_only(
    inner: Core,
    http: httpx.AsyncClient,
    outbound: GuardedClient,
    server: PointServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def breaks(text: str) -> Sequence[WatchedPoint]:
        if "broken" in text:
            raise RecursionError(text)
        return watched_points(text)

    monkeypatch.setattr(points, "watched_points", breaks)
    counting(server, "/a/archive")
    broken = await live(http, configuration(f"{server.url}/broken"))
    key = await live(http, configuration(f"{server.url}/a"))
    async with running(prober(inner, outbound)):
        await until(lambda: on_air(http, key, 0))
        for _ in range(3):
            everything = (await http.get(ADDRESS)).json()
            assert [len(everything[entry]["urls"]) for entry in (broken, key)] == [0, 1]
    reported = [record.getMessage() for record in caplog.records if record.name == points.__name__]
    assert reported == ["publishing points of the channel 'Main channel' are not watched: RecursionError"] * 2, (
        "by the API and the prober"
    )


async def test_the_key_comes_from_the_vault_and_changes_with_the_channel(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    counting(server, "/api/state")
    text = configuration(f"{server.url}/a", srvaApi=f"{server.url}/api", srvaApiKey="first-key")
    key = await live(http, text)
    channel = (await http.get(f"/api/event/{key}")).json()["channelId"]

    async def with_key(value: str) -> bool:
        return any(f"API-KEY: {value}\r\n" in head for head in server.heads)

    async with running(prober(inner, outbound)):
        await until(lambda: with_key("first-key"))
        text = text.replace("first-key", "second-key")
        assert (await http.put(f"/api/channel/{channel}", json={"configurationJson": text})).status_code == 200
        await until(lambda: with_key("second-key"))


async def test_two_members_share_the_points_and_a_second_one_goes_on(
    inner: Core, second: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    keys = []
    for number in range(12):
        counting(server, f"/{number}/archive")
        keys.append(await live(http, configuration(f"{server.url}/{number}")))

    async def all_on_air() -> bool:
        return all([await on_air(http, key, 0) for key in keys])

    first, other = prober(inner, outbound), prober(second, outbound)
    async with running(other):
        async with running(first):
            await until(all_on_air)
            await until(lambda: shared(first, other))
            server.heads.clear()
            await until(lambda: every_one(server, 10))
            assert max(counts(server)) <= 12, counts(server)
        server.heads.clear()
        await until(lambda: every_one(server, 5))
        assert max(counts(server)) <= 11, "the first four samples of a new owner follow each other sooner"
        assert await all_on_air()


async def test_a_stop_gives_the_shards_back_where_the_last_samples_cannot_be_written(
    inner: Core, outbound: GuardedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(samples: Sequence[PointSample]) -> None:
        raise Unavailable("the database does not answer")

    member = prober(inner, outbound)
    await member.start()
    await until(lambda: holds_shards(inner))
    monkeypatch.setattr(member._samples, "write", away)
    await member.stop()
    assert not await holds_shards(inner)


async def test_a_point_of_a_shard_that_went_away_is_left_alone_until_the_points_are_read_again(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting(server, "/0/archive")
    await live(http, configuration(f"{server.url}/0"))
    member, faults = prober(inner, outbound), list[str]()

    async def renew() -> None:
        member.renewal()
        member.renewed(Assignment({}, until=monotonic() + 60, alive=2))

    async def away() -> dict[UUID, LiveChannel]:
        faults.append(member._fault.what if member._fault is not None else "")
        raise Unavailable("the database does not answer")

    async with running(member):
        await until(lambda: every_one(server, 1, points=1))
        with monkeypatch.context() as patched:
            patched.setattr(member._samples, "live_channels", away)
            patched.setattr(member._leases.keeper, "renew", renew)
            member._leases.keeper.hurry()
            async with asyncio.timeout(60):
                while len(faults) < 4:  # noqa: ASYNC110 - what is watched has no event
                    await asyncio.sleep(0.05)
    assert not [fault for fault in faults if "Unavailable" not in fault and fault]


async def test_a_sample_that_breaks_off_is_not_the_last_one_of_its_point(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting(server, "/0/archive")
    await live(http, configuration(f"{server.url}/0"))
    broken = asyncio.Event()

    async def breaks_once(*given: Any, **named: Any) -> LookResult:
        if not broken.is_set():
            broken.set()
            raise RuntimeError("nobody has thought of this")
        return await look_at(*given, **named)

    monkeypatch.setattr("workers.health.prober.look_at", breaks_once)
    async with running(prober(inner, outbound)):
        await until(lambda: every_one(server, 1, points=1))
    assert broken.is_set()


async def holds_shards(inner: Core) -> bool:
    rows = await inner.database.rows("SELECT FROM consumer_shards WHERE consumer = %s AND owner IS NOT NULL", (CONSUMER,))
    return bool(rows)


async def shared(*probers: Prober) -> bool:
    return all(prober._watched for prober in probers)


def counts(server: PointServer, points: int = 12) -> list[int]:
    return [server.asked.count(f"/{number}/archive") for number in range(points)]


async def every_one(server: PointServer, times: int, *, points: int = 12) -> bool:
    return min(counts(server, points)) >= times


async def test_the_host_of_a_point_is_that_which_is_provisioned_for_its_event(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    """The host moves while the Event is live. A second live Event on the channel has no hosts, so the state of its points is
    unknown."""
    counting(server, "/a/archive")
    url = f"http://{{IPADDRESS}}:{server.url.rpartition(':')[2]}/a"
    channel = await add_channel(http, configurationJson=configuration(url, resource="origin-1"))
    key = await event_with(http, document(key="k"), channelId=channel)
    other = str((await add(http, channelId=channel))["id"])
    await go_live(inner, UUID(key))
    await state(http, other, 2)
    async with running(prober(inner, outbound)):
        assert [point["url"] for point in await shown(http, key)] == [url]
        await provision(http, key)
        await Ends(inner).tell(key, 1, {"name": "origin-1", "type": "origin", "ipAddress": "127.0.0.1"})
        await until(lambda: on_air(http, key, 0))
        assert [point["url"] for point in await shown(http, key)] == [f"{server.url}/a"]
        video = (await http.get(f"/api/event/{key}", params={"processVideo": "true"})).json()["video"]
        assert [(point["url"], point["state"]) for point in video["publishingPointUrls"]] == [(f"{server.url}/a", "started")]
        assert [(point["url"], point["state"]) for point in await shown(http, other)] == [(url, "unknown")]
        asked = len(server.asked)
        await provision(http, key, allowUpdates="true")
        server.pages["/a/archive"] = hangs
        await Ends(inner).tell(key, 2, {"name": "origin-1", "type": "origin", "ipAddress": "localhost"})
        assert [point["state"] for point in await shown(http, key)] == ["unknown"], "what was heard at another address is void"
        counting(server, "/a/archive")
        await until(lambda: on_air(http, key, 0))
        assert [path for path in server.asked[asked:] if not path.startswith("/a")] == []


async def test_a_key_goes_to_a_host_that_was_made_and_to_none_that_a_profile_lists(
    inner: Core, http: httpx.AsyncClient, outbound: GuardedClient, server: PointServer
) -> None:
    port = server.url.rpartition(":")[2]
    keys = {}
    for deployment in ("static", "template"):
        counting(server, f"/{deployment}/state")
        api = f"http://{{dns}}:{port}/{deployment}"
        text = configuration(server.url, resource="origin-1", srvaApi=api, srvaApiKey=f"key-{deployment}")
        asked = json.dumps({**json.loads(text), "statusCheckStrategy": "SRVA_API"})
        channel = await add_channel(http, configurationJson=asked)
        settings = document(key=deployment, deploymentType=deployment)
        key = keys[deployment] = await event_with(http, settings, channelId=channel)
        await state(http, key, 2)
        await provision(http, key)
        await Ends(inner).tell(key, 1, {"name": "origin-1", "type": "origin", "dns": "localhost"})
    async with running(prober(inner, outbound)):
        for key in keys.values():
            await until(partial(on_air, http, key, 0))
    assert {name for name in keys for head in server.heads if f"key-{name}" in head} == {"template"}
