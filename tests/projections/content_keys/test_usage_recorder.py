"""The usage recorder: one event per key and flush, nothing lost at a stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from api.speke.usage_recorder import UsageRecorder
from api.wiring.core import Core, core
from domain.content_key.aggregate import ContentKey, Usage
from domain.content_key.handlers import PlainKey
from domain.content_key.usage import KeyUse
from domain.kernel.mapper import EventMapper
from projections.content_keys.queries import ContentKeyQueries
from projections.content_keys.view import CONTENT_KEY_VIEW
from projections.kernel.database import Database
from projections.log.rebuild import Rebuilder
from projections.log.streams import Streams
from tests.conftest import NOON, HandClock
from tests.projections.content_keys.issuing import handlers_on, issue, issue_one, key_request, topics
from tests.projections.feeding import table
from tests.projections.log.helpers import Wire


def use(key: PlainKey | UUID, *systems: str, version: str = "1", transaction: str = "t-1") -> KeyUse:
    return KeyUse(key if isinstance(key, UUID) else key.id, "studio", systems or ("WIDEVINE",), version, transaction)


@pytest.fixture
async def wire(database_url: str) -> AsyncIterator[Wire]:
    async with Wire(database_url) as between:
        yield between


async def recorded(inner: Core, key: PlainKey) -> Usage | None:
    [root] = (await inner.streams.load.many([ContentKey.stream(key.id)])).values()
    assert isinstance(root, ContentKey)
    return root.usage


async def test_a_key_that_is_used_often_gets_one_event_with_a_count(inner: Core, clock: HandClock) -> None:
    keys = handlers_on(inner)
    key = await issue_one(keys, key_request())
    recorder = UsageRecorder(inner.executor, clock)
    for number in range(1000):
        clock.now = NOON + timedelta(milliseconds=number)
        recorder.add(use(key, *(["FAIRPLAY"] if number % 2 else ["WIDEVINE", "PLAYREADY"]), version="2.0" if number % 5 else "1"))
    assert await topics(inner) == ["content_key.issued"], "a response does not wait for it"
    await recorder.flush()
    await recorder.flush()
    assert await topics(inner) == ["content_key.issued", "content_key.delivered"]
    assert await recorded(inner, key) == Usage(
        1000, NOON, NOON + timedelta(milliseconds=999), ("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0")
    )
    [row] = (await ContentKeyQueries(inner.database).of_content("movie-1")).results
    assert (row.answers, row.first_answered_at, row.last_answered_at) == (1000, NOON, NOON + timedelta(milliseconds=999))
    assert (row.systems, row.speke_versions) == (("FAIRPLAY", "PLAYREADY", "WIDEVINE"), ("1", "2.0"))


async def test_a_use_has_the_transaction_id_of_its_request(inner: Core, clock: HandClock) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, clock)
    recorder.add(use(key, transaction="t-7"))
    await recorder.flush()
    assert await inner.database.row(
        "SELECT metadata->>'actor', metadata->>'correlation_id' FROM events WHERE topic = 'content_key.delivered'"
    ) == ("studio", "t-7")


async def test_each_of_many_keys_gets_its_own_event(inner: Core, clock: HandClock) -> None:
    found = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(300)))
    recorder = UsageRecorder(inner.executor, clock)
    for key in found:
        recorder.add(use(key))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.delivered") == 300
    for key in (found[0], found[-1]):
        usage = await recorded(inner, key)
        assert usage is not None
        assert usage.count == 1


async def test_totals_of_two_processes_are_added(inner: Core, other: Core) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorders = [UsageRecorder(wired.executor, wired.clock) for wired in (inner, other)]
    for _ in range(3):
        for recorder in recorders:
            recorder.add(use(key))
        await asyncio.gather(*(recorder.flush() for recorder in recorders))
    usage = await recorded(inner, key)
    assert usage is not None
    assert usage.count == 6


async def test_it_records_at_intervals_and_at_a_stop(inner: Core, clock: HandClock) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, clock, every=0.01)
    await recorder.start()
    recorder.add(use(key))
    async with asyncio.timeout(60):
        while "content_key.delivered" not in await topics(inner):
            pass
    stopped = UsageRecorder(inner.executor, clock, every=3600)
    await stopped.start()
    for _ in range(3):
        stopped.add(use(key))
    await stopped.stop()
    await recorder.stop()
    usage = await recorded(inner, key)
    assert usage is not None
    assert usage.count == 4


async def test_half_full_it_records_before_the_interval_ends(inner: Core, clock: HandClock) -> None:
    found = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(4)))
    recorder = UsageRecorder(inner.executor, clock, every=3600, most=8)
    await recorder.start()
    for key in found:
        recorder.add(use(key))
    async with asyncio.timeout(60):
        while (await topics(inner)).count("content_key.delivered") < 4:
            pass
    await recorder.stop()


async def test_uses_of_too_many_keys_are_counted_in_the_log(
    inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    found = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(4)))
    recorder = UsageRecorder(inner.executor, clock, most=2)
    for key in [*found, *found]:
        recorder.add(use(key))
    await recorder.flush()
    assert "4 uses of content keys were not recorded" in caplog.text
    assert (await topics(inner)).count("content_key.delivered") == 2
    recorder.add(use(found[3]))
    await recorder.flush()
    assert (await topics(inner)).count("content_key.delivered") == 3


async def test_nothing_is_lost_while_the_database_is_away(inner: Core, wire: Wire, clock: HandClock) -> None:
    found = await issue(handlers_on(inner), *(key_request(period=str(number)) for number in range(200)))
    far = core(wire.conninfo, role=None, clock=clock)
    await far.start()
    recorder = UsageRecorder(far.executor, clock)
    for key in found:
        recorder.add(use(key, "WIDEVINE"))
    await wire.cut()
    await recorder.flush()
    recorder.add(use(found[0], "FAIRPLAY"))
    await wire.mend()
    await recorder.flush()
    await recorder.flush()
    await far.stop()
    assert (await topics(inner)).count("content_key.delivered") == 200
    first = await recorded(inner, found[0])
    assert first is not None
    assert (first.count, first.systems) == (2, ("FAIRPLAY", "WIDEVINE"))


async def test_a_use_that_is_refused_is_logged_once(inner: Core, clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    recorder = UsageRecorder(inner.executor, clock)
    recorder.add(use(UUID(int=1)))
    await recorder.flush()
    await recorder.flush()
    assert caplog.text.count(f"the content key {UUID(int=1)} was not recorded") == 1


async def test_a_rebuilt_view_shows_the_same_usage(
    inner: Core, clock: HandClock, database_url: str, migrated: tuple[str, str | None]
) -> None:
    key = await issue_one(handlers_on(inner), key_request())
    recorder = UsageRecorder(inner.executor, clock)
    for _ in range(120):  # past a snapshot
        recorder.add(use(key))
        await recorder.flush()
    live = await table(inner.database, CONTENT_KEY_VIEW)
    await inner.executor.stop()
    usage = await recorded(inner, key)
    assert usage is not None
    assert usage.count == 120
    async with Database(database_url, size=4) as owner:
        streams = Streams(owner, EventMapper(inner.catalogue))
        await Rebuilder(owner, streams, app_role=migrated[1]).rebuild(CONTENT_KEY_VIEW)
    assert await table(inner.database, CONTENT_KEY_VIEW) == live
